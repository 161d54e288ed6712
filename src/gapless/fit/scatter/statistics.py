"""How what predictions leave of runs looks, and which values of a parameter logs that look so may have.

A line predicts the value from the statistics (semi-automatic summary, Fearnhead and Prangle 2012), fitted by ridge,
as no statistic is trusted further than `RESOLUTION`. What the line says of runs whose value is u has a mean m(u) and a
standard deviation s(u), and the runs themselves show how far they stray, in units of s. A value is in the interval if
the logs stray no further from its m(u) than `LEVEL` of the runs do (Neyman 1937). So it holds whatever the statistics'
distribution, and where they jump with the value, that counts as scatter: each run has a value of its own.
"""

from dataclasses import dataclass

import numpy as np

from gapless.core.signal import Array, Flags

MIN_OUTLIER = 6.0  # times the median size: what only outliers reach
NUM_STATISTICS = 9  # per column
LAG_STEPS = 10  # between readings that are compared
LEVEL = 0.95
RESOLUTION = 0.03  # of a statistic: no simulation is trusted beyond this
KERNEL_WIDTH = 0.08  # of the runs around a value, as a share of the range
NUM_FINE = 321  # values at which the interval is evaluated
MAX_REACH = 2.0  # in multiples of the interval's half width: beyond, a value is ruled out for good


def statistics_of(left: Array, reading: Array, tiny: Array) -> Array:
    """Returns statistics of runs, (num_runs, num_measurements * NUM_STATISTICS).

    Sizes enter by their logarithm and shares by four times the arcsine of their root, so that each scatters about
    evenly, and what is small for one is small for the other: 0.03 is 3 % of a size, and of a share of a quarter.

    Args:
        left: (num_runs, num_logs, num_steps, num_measurements) reading less prediction; NaN where unknown.
        reading: What was read, of the same shape.
        tiny: (num_measurements,) sizes that are none: readings that differ by less are one reading, repeated.
    """
    with np.errstate(invalid="ignore"):
        step, moved = np.diff(left, axis=2), np.diff(reading, axis=2)
        later = left[:, :, LAG_STEPS:] - left[:, :, :-LAG_STEPS] if left.shape[2] > LAG_STEPS else left
        size, jump = np.abs(left), np.abs(step)
        typical = np.nanmedian(size, axis=(1, 2), keepdims=True)
        still = np.abs(moved) < tiny
        per_log = np.sqrt(np.nanmean(left**2, axis=2))
        parts = [
            _log(np.sqrt(np.nanmean(left**2, axis=(1, 2))), tiny),
            _log(np.sqrt(np.nanmean(step**2, axis=(1, 2))), tiny),
            _log(np.sqrt(np.nanmean(later**2, axis=(1, 2))), tiny),
            _log(np.nanquantile(jump, 0.99, axis=(1, 2)), tiny),
            _log(np.sqrt(np.mean(np.nanmean(left, axis=2) ** 2, axis=1)), tiny),
            _share(_mean_where(size > MIN_OUTLIER * typical + tiny, left)),
            _share(_mean_where(still, moved)),
            _share(_mean_where(still[:, :, 1:] & ~still[:, :, :-1], moved[:, :, 1:])),  # gaps, however long
            np.std(_log(per_log, tiny), axis=1),
        ]
    return np.concatenate(parts, axis=1)


def _log(values: Array, tiny: Array) -> Array:
    return np.log(values + tiny)


def _share(values: Array) -> Array:
    return 4 * np.arcsin(np.sqrt(values))


def _mean_where(true: Flags, known: Array) -> Array:
    """Returns the share of known samples where something is true, (num_runs, num_measurements)."""
    count = np.isfinite(known).sum(axis=(1, 2))
    return true.sum(axis=(1, 2)) / np.maximum(count, 1)


@dataclass(frozen=True)
class ValueRange:
    """The values that statistics allow."""

    value: float  # the likeliest
    low: float  # lower end of the interval
    high: float  # upper end
    left: float  # values below are ruled out for good
    right: float  # values above are
    distance: float  # squared distance of the logs from runs of the likeliest value, in standard deviations


def invert(values: Array, statistics: Array, seen: Array) -> ValueRange:
    """Returns the values that logs may have.

    Args:
        values: (num_runs,) of simulated runs, spread evenly.
        statistics: (num_runs, num_statistics) of theirs.
        seen: (num_statistics,) of the logs.
    """
    said, of_logs, blur = _predict_values(values, statistics, seen)
    fine: Array = np.linspace(float(values.min()), float(values.max()), NUM_FINE)
    weight = _weight(values, np.concatenate([fine, values]))
    centre = _local_line(values, np.concatenate([fine, values]), weight, said)
    off = said - centre[NUM_FINE:]
    spread = np.sqrt(weight @ off**2 / weight.sum(axis=1)) + 1e-12
    low, high = np.quantile(off / spread[NUM_FINE:], [0.5 - LEVEL / 2, 0.5 + LEVEL / 2], method="weibull")
    away = (of_logs - centre[:NUM_FINE]) / np.hypot(spread[:NUM_FINE], blur)
    reach = np.maximum(away / max(high, 1e-3), away / min(low, -1e-3)) ** 2
    reach -= reach.min()
    inside, possible = fine[reach <= 1.0], fine[reach <= MAX_REACH**2]
    best = float(fine[np.argmin(reach)])
    ends = float(inside[0]), float(inside[-1]), float(possible[0]), float(possible[-1])
    return ValueRange(best, *ends, _distance(values, statistics, seen, best))


def _predict_values(values: Array, statistics: Array, seen: Array) -> tuple[Array, float, float]:
    """Returns what a line fitted to the other runs says of each, what it says of logs, and its error from `RESOLUTION`.

    With h the diagonal of the hat matrix, leaving a run out of the fit makes its error r / (1 - h).
    """
    middle: Array = statistics.mean(axis=0)
    mean, inputs = float(values.mean()), statistics - middle
    gram = inputs.T @ inputs + len(values) * RESOLUTION**2 * np.eye(len(seen))
    slope: Array = np.asarray(np.linalg.solve(gram, inputs.T @ (values - mean)), dtype=np.float64)
    hat = 1 / len(values) + np.sum(inputs * np.linalg.solve(gram, inputs.T).T, axis=1)
    said = values - (values - mean - inputs @ slope) / (1 - hat)
    return said, float(mean + (seen - middle) @ slope), RESOLUTION * float(np.linalg.norm(slope))


def _weight(values: Array, places: Array) -> Array:
    """Returns how much each run counts at each place, (num_places, num_runs)."""
    width = KERNEL_WIDTH * (values.max() - values.min())
    return np.exp(-0.5 * ((places[:, None] - values) / width) ** 2)


def _local_line(values: Array, places: Array, weight: Array, said: Array) -> Array:
    """Returns the height at each place of a line through the runs around it, (num_places,)."""
    apart = values - places[:, None]
    zero, one, two = weight.sum(axis=1), (weight * apart).sum(axis=1), (weight * apart**2).sum(axis=1)
    return (two * (weight @ said) - one * ((weight * apart) @ said)) / (zero * two - one**2)


def _distance(values: Array, statistics: Array, seen: Array, best: float) -> float:
    """Returns the squared distance of logs from runs of a value, whose statistics follow a line nearby."""
    weight: Array = _weight(values, np.array([best]))[0]
    apart = np.stack([np.ones_like(values), values - best], axis=1)
    squares, products = apart.T @ (weight[:, None] * apart), apart.T @ (weight[:, None] * statistics)
    line: Array = np.asarray(np.linalg.solve(squares, products), dtype=np.float64)
    off = statistics - apart @ line
    covariance = off.T @ (weight[:, None] * off) / weight.sum() + RESOLUTION**2 * np.eye(len(seen))
    far: Array = seen - line[0]
    solved: Array = np.asarray(np.linalg.solve(covariance, far), dtype=np.float64)
    return float(far @ solved)
