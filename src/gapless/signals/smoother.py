"""Values and slopes of noisy, quantised readings, with their standard errors; smooth between impacts, not across them.

The true signal x is taken to have third differences that are independent N(0, tau^2), the readings y = x + N(0, s^2).
The likeliest signal minimises |y - x|^2 + L |D3 x|^2 with L = s^2 / tau^2 (Whittaker, 1923), a banded system that is
solved in linear time. L is the one that makes the readings likeliest: so a coarse encoder read at a high rate is
smoothed over many samples, and a clean one over none.

An impact changes velocities within a few samples. Smoothed like the rest it would be smeared over the rows around it,
whose slopes would then be wrong by far more than their standard errors. So third differences of things that collide
are heavy-tailed (multivariate t, all columns of a body together): each gets a weight that is small where the jerk is
large, found by iterating (expectation maximisation, Lange, Little and Taylor, 1989).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve_banded, cholesky_banded

from gapless.core.signal import Array, Flags

PENALTIES = 10.0 ** np.arange(-6, 7.01, 0.5)  # of L; at the first, 1 part in 1000 of the jerk passes for noise
MAX_ROWS_FOR_PENALTY = 20_000  # of a longer signal the penalty is chosen on stretches that come to this many rows
NUM_PENALTY_STRETCHES = 8
MAX_LEVELS = 100_000  # values of a signal that are compared to find its step: more than any encoder has levels
_ANGLES = (np.arange(4096) + 0.5) * np.pi / 4096  # frequencies [rad/sample] of the integrals in `_standard_errors`


@dataclass(frozen=True)
class Smoothed:
    """A smoothed signal."""

    value: Array  # (num_rows,) the signal
    slope: Array  # (num_rows,) its time derivative [unit/s]
    noise: float  # standard deviation of the readings
    value_sd: float  # standard error of `value`, away from the ends
    slope_sd: float  # standard error of `slope` [unit/s], away from the ends
    jerk_sd: float  # standard deviation of the signal's third differences, tau


def smooth(
    values: Array, rate_hz: float, noise: float | None = None, quantum: float = 0.0, weight: Array | None = None
) -> Smoothed:
    """Returns a signal without its noise, and its slope.

    Args:
        values: (num_rows,) readings at a fixed rate, none missing.
        rate_hz: Their rate.
        noise: Their standard deviation; None estimates it.
        quantum: Step of the readings; the noise is at least that of rounding, quantum / sqrt(12).
        weight: (num_rows - 3,) of each third difference, 1 / its variance in units of tau^2; None for 1.
    """
    least = max(quantum / np.sqrt(12.0), 1e-6 * float(np.ptp(values)), 1e-12)
    most = max(estimate_noise(values), least)
    if noise is not None:
        least = most = max(noise, 1e-12)
    if len(values) < 8:
        value_sd, slope_sd = _standard_errors(0.0, most, rate_hz)
        return Smoothed(values.copy(), _differentiate(values, rate_hz), most, value_sd, slope_sd, np.inf)
    weight = np.ones(len(values) - 3) if weight is None else weight
    rows = np.linspace(-1.0, 1.0, len(values))
    parabola = np.polynomial.polynomial.polyval(rows, np.polynomial.polynomial.polyfit(rows, values, 2))
    bent = values - parabola  # a parabola has no third differences: smoothing gives it back, but for rounding
    best = _choose_penalty(bent, weight, least, most)
    _, value, noise = _fit_signal(bent, PENALTIES[best] * weight, least, most)
    value += parabola
    value_sd, slope_sd = _standard_errors(PENALTIES[best], noise, rate_hz)
    jerk_sd = noise / float(np.sqrt(PENALTIES[best]))
    return Smoothed(value, _differentiate(value, rate_hz), noise, value_sd, slope_sd, jerk_sd)


def estimate_noise(values: Array) -> float:
    """Returns the standard deviation of white noise on a smooth signal, from its third differences.

    A third difference of white noise has variance 20 sigma^2 (1 + 9 + 9 + 1); the median keeps jumps out.
    """
    if len(values) < 8:
        return (1e-3 * float(np.std(values)) if len(values) else 0.0) + 1e-12
    third = np.diff(values, n=3)
    typical = float(np.median(np.abs(third))) / 0.6745 / np.sqrt(20.0)
    return max(typical, 1e-6 * float(np.ptp(values)), 1e-12)


def find_quantum(values: Array, min_levels: int = 3) -> float:
    """Returns the step that all values are multiples of, from a common origin; 0 where there is none.

    Fewer different values than `min_levels` show no step: of a signal that moves, two are a switch.
    """
    values = values[:: -(-len(values) // MAX_LEVELS) or 1]
    levels = np.unique(values[np.isfinite(values)])
    gaps = np.diff(levels)
    if len(levels) < min_levels or len(levels) > len(values) / 2:
        return 0.0
    gaps = gaps[gaps > 1e-6 * (levels[-1] - levels[0])]
    step = float(np.median(gaps[gaps < 1.5 * gaps.min()]))
    ratio = gaps / step
    return step if np.mean(np.abs(ratio - np.round(ratio)) < 0.05) > 0.95 else 0.0


def _choose_penalty(values: Array, weight: Array, least: float, most: float) -> int:
    """Returns which of `PENALTIES` makes the readings likeliest; of a long signal, those of some stretches."""
    count, length = len(values), len(values)
    firsts = np.zeros(1, dtype=np.intp)
    if count > MAX_ROWS_FOR_PENALTY:
        length = MAX_ROWS_FOR_PENALTY // NUM_PENALTY_STRETCHES
        firsts = np.linspace(0, count - length, NUM_PENALTY_STRETCHES).astype(np.intp)
    pieces = [(values[first : first + length], weight[first : first + length - 3]) for first in firsts]
    totals = [sum(_fit_signal(piece, penalty * own, least, most)[0] for piece, own in pieces) for penalty in PENALTIES]
    return int(np.argmax(totals))


def _fit_signal(values: Array, penalty: Array, least: float, most: float) -> tuple[float, Array, float]:
    """Returns the log-likelihood of penalties at their likeliest noise within limits, the signal, and that noise."""
    count = len(values)
    factor = cholesky_banded(_penalty_bands(count, penalty), lower=True)
    value = cho_solve_banded((factor, True), values)
    squares = float(np.sum((values - value) ** 2) + np.sum(penalty * np.diff(value, n=3) ** 2))
    noise = float(np.clip(np.sqrt(squares / (count - 3)), least, most))
    log_det = 2.0 * float(np.sum(np.log(factor[0])))
    likelihood = np.sum(np.log(penalty)) - 2 * (count - 3) * np.log(noise) - log_det - squares / noise**2
    return 0.5 * float(likelihood), value, noise


def _penalty_bands(count: int, penalty: Array) -> Array:
    """Returns 1 + D3^T diag(L) D3 as lower bands, (4, count)."""
    stencil = np.array([-1.0, 3.0, -3.0, 1.0])
    bands = np.zeros((4, count))
    for offset in range(4):
        for first in range(4 - offset):
            product = stencil[first] * stencil[first + offset]
            bands[offset, first : first + count - 3] += penalty * product
    bands[0] += 1.0
    return bands


def _differentiate(values: Array, rate_hz: float) -> Array:
    """Returns the derivative by central differences of fourth order; of second order at the ends."""
    if len(values) < 3:
        return np.zeros_like(values)
    slope = np.gradient(values, edge_order=2)
    if len(values) >= 5:
        slope[2:-2] = (8 * (values[3:-1] - values[1:-3]) - (values[4:] - values[:-4])) / 12
    return slope * rate_hz


def _standard_errors(penalty: float, noise: float, rate_hz: float) -> tuple[float, float]:
    """Returns the standard errors of value and slope: integrals of the error's spectrum over all frequencies."""
    left = noise**2 / (1 + penalty * (2 - 2 * np.cos(_ANGLES)) ** 3)
    derivative = (8 * np.sin(_ANGLES) - np.sin(2 * _ANGLES)) / 6
    return float(np.sqrt(left.mean())), float(np.sqrt((left * derivative**2).mean())) * rate_hz


DEGREES_OF_FREEDOM = 1.0  # of the t distribution: impacts are rare and large
NUM_IMPACT_ROUNDS = 6
MAX_IMPACT_WEIGHT = 0.2  # a jerk whose weight is less is an impact
MIN_SLOPE_TO_ERROR = 5.0  # of a row that moves
MIN_CALM_SHARE = 0.5  # of the moving rows; below, what is sudden is not impacts but the motion itself
CALM_MARGIN_ROWS = 3  # between an impact and a calm row


def smooth_between_impacts(
    values: Array, rate_hz: float, noises: Sequence[float | None], quanta: Sequence[float]
) -> tuple[list[Smoothed], Flags]:
    """Returns the columns of one body without their noise, and which rows are calm: no impact is near.

    `values` are (num_rows, num_columns) readings, none missing; the rest is as in `smooth`, for each column.
    """
    count, num_columns = values.shape
    settings = list(zip(values.T, [rate_hz] * num_columns, noises, quanta, strict=True))
    plain = [smooth(*one) for one in settings]
    always = np.ones(count, dtype=np.bool_)
    if count < 8:
        return plain, always
    found, weight = plain, np.ones(count - 3)
    for _ in range(NUM_IMPACT_ROUNDS):
        jerk = np.stack([np.diff(one.value, n=3) / one.jerk_sd for one in found], axis=1)
        weight = (DEGREES_OF_FREEDOM + num_columns) / (DEGREES_OF_FREEDOM + np.sum(jerk**2, axis=1))
        found = [smooth(*one, weight) for one in settings]
    near = np.zeros(count, dtype=np.bool_)  # rows that a sudden third difference touches, and their neighbours
    for offset in range(-CALM_MARGIN_ROWS, 4 + CALM_MARGIN_ROWS):
        near[np.clip(np.flatnonzero(weight < MAX_IMPACT_WEIGHT) + offset, 0, count - 1)] = True
    moving = np.any([np.abs(one.slope) > MIN_SLOPE_TO_ERROR * one.slope_sd for one in found], axis=0)
    rare = not moving.any() or np.mean(~near[moving]) > MIN_CALM_SHARE
    return (found, ~near) if rare else (plain, always)
