"""The noise model of one column: its terms, and what its log does not identify."""

from dataclasses import dataclass, replace

import numpy as np

from gapless.core.results import ColumnNoise, NoiseTerm
from gapless.core.signal import Array
from gapless.signals.noise.allan import (
    INTERVAL_LEVEL,
    TERMS,
    AllanFit,
    AllanVariances,
    compute_allan_variances,
    fit_terms,
    term_shapes,
)
from gapless.signals.noise.readings import SI_FACTORS, UNKNOWN, find_outliers
from gapless.signals.noise.stillness import find_disturbances, find_knocks
from gapless.signals.noise.terms import compute_terms, describe_quantum, make_allan_curve, make_layer_parameters
from gapless.signals.smoother import find_quantum


@dataclass(frozen=True)
class ColumnNoiseConfig:
    """Limits of what is fitted and of what is odd; set on simulated columns and an hour of a real sensor."""

    min_samples: int = 64
    min_averages: int = 5  # averaging times that a fit of four terms needs
    min_noise_to_quantum: float = 0.5  # a standard deviation of less is mostly rounding
    min_levels: int = 4  # values that noise takes which rounding does not hide
    min_chance: float = 1e-4  # below, an Allan deviation does not belong to the sum of terms
    octaves_beyond_filter: int = 2  # left out after the last average that a filter lowers
    max_first_share: float = 0.01  # of the log, for the averaging time at which the fit begins
    max_knocked_share: float = 0.02  # of the log, that is left out about knocks; more is motion
    max_knocks_named: int = 3
    max_vibration: float = 1.0  # in standard deviations of the noise; more is motion
    min_vibration: float = 0.2  # below, a vibration is worth a note only


LIMITS = ColumnNoiseConfig()


@dataclass(frozen=True)
class FittedColumn:
    """What was read of one column: its noise model, whether it moved, and notes."""

    noise: ColumnNoise
    moved: bool = False
    notes: tuple[str, ...] = ()


def fit_column_noise(values: Array, interval_s: float, unit: str) -> FittedColumn:
    """Returns the noise model of a column at rest."""
    known = values[np.isfinite(values)]
    count = len(known)
    if count < LIMITS.min_samples:
        return _refuse(unit, count, f"only {count} of at least {LIMITS.min_samples} readings: record longer")
    if known.min() == known.max():
        text = f"constant at {known[0]:.4g} {unit}: the sensor is dead or frozen, or its steps are far above its noise"
        return _refuse(unit, count, text)
    step = find_quantum(known, min_levels=2)
    outliers = find_outliers(values, step)
    notes = [f"{int(outliers.sum())} of {count} readings stick out far and were left out"] if outliers.any() else []
    values = np.where(outliers, np.nan, values)
    allan = compute_allan_variances(values, interval_s)
    deviation = float(np.sqrt(allan.variance[0]))
    num_levels = len(np.unique(np.round(known / step))) if step else LIMITS.min_levels
    if step and (deviation < LIMITS.min_noise_to_quantum * step or num_levels < LIMITS.min_levels):
        return FittedColumn(_describe_hidden_noise(values, allan, step, unit), notes=tuple(notes))
    knocks = find_knocks(values, interval_s, step)
    if 0 < knocks.mean() < LIMITS.max_knocked_share:
        begins = np.flatnonzero(np.diff(knocks.astype(int), prepend=0) == 1) * interval_s
        times = ", ".join(f"{at_s:.4g}" for at_s in begins[: LIMITS.max_knocks_named])
        more, lost_s = ", ..." if len(begins) > LIMITS.max_knocks_named else "", float(knocks.sum()) * interval_s
        notes.append(f"it was knocked: {lost_s:.3g} s about {len(begins)} jumps were left out, from {times}{more} s on")
        values = np.where(knocks, np.nan, values)
        allan = compute_allan_variances(values, interval_s)
    found = find_disturbances(values, interval_s, step, unit)
    motions = [one.text for one in found if one.kind == "motion" or one.amplitude > LIMITS.max_vibration * deviation]
    if motions:
        return replace(_refuse(unit, count, f"not at rest: {motions[0]}"), moved=True, notes=tuple(notes))
    noise = _fit_noise(values, allan, step, unit)
    odd = [one.text for one in found if one.kind == "drift" or one.amplitude > LIMITS.min_vibration * deviation]
    notes += [one.text for one in found if one.text not in odd]
    verdict = "poor" if odd else noise.verdict
    return FittedColumn(replace(noise, verdict=verdict, reasons=(*odd, *noise.reasons)), notes=tuple(notes))


def _refuse(unit: str, num_samples: int, reason: str) -> FittedColumn:
    return FittedColumn(ColumnNoise(unit, num_samples, "refused", (reason,), {}, None, None, None, {}, None))


def _choose_first(allan: AllanVariances) -> int:
    """Returns how many of the shortest averaging times to leave out until the sum of terms fits.

    A filter in the sensor lowers the Allan deviation of short averages, and a little that of those a few times as long,
    too little to be seen: where the last one left out is low, two more go.
    """
    longest_s = LIMITS.max_first_share * allan.num_samples * allan.interval_s
    most = max(1, len(allan.sizes) - LIMITS.min_averages)
    possible = [first for first in range(most) if not first or allan.tau_s[first] <= longest_s]
    best = (-1.0, 0)
    for first in possible:
        fit = fit_terms(allan, first, intervals=False)
        best = max(best, (float(fit.chance.min()), first))
        if best[0] > LIMITS.min_chance:
            before = term_shapes(allan.sizes)[first - 1] @ fit.value
            if first and allan.variance[first - 1] < before:
                return min(first + LIMITS.octaves_beyond_filter, possible[-1])
            break
    return best[1]


def _fit_steadily(allan: AllanVariances) -> AllanFit:
    """Returns the fit from the averaging time on at which the sum of terms fits.

    A beginning that was chosen is a guess that no interval knows of: where the fit changes by more than they allow if
    it begins an octave later, they are widened.
    """
    first = _choose_first(allan)
    fit = fit_terms(allan, first)
    if not first or len(allan.sizes) - first <= LIMITS.min_averages:
        return fit
    later = fit_terms(allan, first + 1)
    moved = (later.value < fit.low) | (later.value > fit.high)
    low = np.where(moved, np.minimum(fit.low, later.low), fit.low)
    high = np.where(moved, np.maximum(fit.high, later.high), fit.high)
    return replace(fit, low=low, high=high, is_unsteady=moved)


def _fit_noise(values: Array, allan: AllanVariances, quantum: float, unit: str) -> ColumnNoise:
    fit = _fit_steadily(allan)
    terms, tau_s = compute_terms(values, fit, quantum, unit)
    identified = terms["density"].told and terms["bias_instability"].told and fit.chance.min() > LIMITS.min_chance
    identified = identified and not fit.is_unsteady[TERMS.index("white")]
    return ColumnNoise(
        unit=unit,
        num_samples=int(np.isfinite(values).sum()),
        verdict="good" if identified else "poor",
        reasons=tuple(_explain_unidentified(fit, terms, unit)),
        terms=terms,
        instability_tau_s=tau_s,
        fitted_from_s=float(fit.allan.tau_s[0]),
        noise=SI_FACTORS.get(unit, 1.0) * terms["white"].value,
        layer=make_layer_parameters(terms, tau_s, allan.interval_s, unit),
        allan=make_allan_curve(allan, fit),
    )


def _explain_unidentified(fit: AllanFit, terms: dict[str, NoiseTerm], unit: str) -> list[str]:
    """Returns what this log does not identify, and why."""
    reasons, tau_s = list[str](), fit.allan.tau_s
    if fit.chance.min() < LIMITS.min_chance:
        text = f"the Allan deviation at {tau_s[int(np.argmin(fit.chance))]:.3g} s belongs to no sum of these terms"
        reasons.append(f"{text}: does something vibrate or warm up?")
    if fit.first:
        text = f"averages shorter than {tau_s[0]:.3g} s do not fit and were left out"
        reasons.append(f"{text}: the sensor filters, or something shakes it")
    density, floor, flicker, walk = (terms[name] for name in ("density", "bias_instability", "flicker", "walk"))
    if fit.is_unsteady[TERMS.index("white")]:
        text = "white noise depends on where the fit begins: its density may be"
        reasons.append(f"{text} {density.low:.3g} to {density.high:.3g} {density.unit}")
    elif not density.told:
        reasons.append("white noise is not identified: what wanders is larger from the first reading on")
    if not floor.told:
        text = "a steady drift hides bias instability" if fit.has_ramp else "too short for bias instability"
        text += "" if fit.has_ramp else f": the Allan deviation still falls at {tau_s[-1]:.3g} s"
        reasons.append(f"{text}; it is at most {floor.high:.3g} {unit}: record longer")
    elif not (flicker.told or walk.told):
        reasons.append("this log does not separate flicker from random walk: record longer")
    elif not walk.told:
        reasons.append(f"random walk is not identified: it is at most {walk.high:.3g} {walk.unit}")
    if unit == UNKNOWN:
        reasons.append("its unit is not known: end its name with one, such as gyro_x_rad_s or accel_x_m_s2")
    return reasons


def _describe_hidden_noise(values: Array, allan: AllanVariances, step: float, unit: str) -> ColumnNoise:
    """Returns the noise model of a column whose steps hide its noise: the step, the mean, and a bound."""
    known = values[np.isfinite(values)]
    count, mean = len(known), float(known.mean())
    bound, deviation = LIMITS.min_noise_to_quantum * step, float(np.sqrt(allan.variance[0]))
    terms = {
        "bias": NoiseTerm(mean, mean - step / 2, mean + step / 2, INTERVAL_LEVEL, count, "mean", unit, False),
        "white": NoiseTerm(deviation, 0.0, bound, INTERVAL_LEVEL, count, "bound", unit, False),
        "quantum": describe_quantum(values, step, unit),
    }
    text = f"steps of {step:.3g} {unit} hide the noise: it is at most {bound:.2g} {unit}"
    layer = make_layer_parameters(terms, None, allan.interval_s, unit)
    rounding, curve = SI_FACTORS.get(unit, 1.0) * step / float(np.sqrt(12)), make_allan_curve(allan)
    return ColumnNoise(unit, count, "poor", (text,), terms, None, None, rounding, layer, curve)
