"""The noise model of one column: its terms, and what its log cannot tell."""

from dataclasses import dataclass, replace

import numpy as np

from gapless.core.results import ColumnNoise, NoiseTerm
from gapless.core.signal import Array, Flags
from gapless.signals.noise.allan.curve import allan_curve
from gapless.signals.noise.allan.terms import LEVEL, Fit, fit_terms
from gapless.signals.noise.allan.variance import TERMS, Allan, allan_variance, shapes
from gapless.signals.noise.grid import sticking_out
from gapless.signals.noise.layer import layer_parameters
from gapless.signals.noise.numbers import noise_terms
from gapless.signals.noise.quantum import quantum_of
from gapless.signals.noise.stillness import Unrest, knocked, unrest
from gapless.signals.noise.units import UNKNOWN, in_si

FEWEST_SAMPLES = 64
FEWEST_SIZES = 5  # averaging times that a fit of four terms needs
HIDES = 0.5  # a standard deviation of fewer quanta than this is mostly rounding
FEWEST_LEVELS = 4  # that noise which rounding does not hide takes
ODD = 1e-4  # chance below which an Allan deviation does not belong to the sum of terms
BEYOND_FILTER = 2  # octaves
SHARE_OF_LOG = 0.01  # the fit may begin at averaging times up to this share of the log
MOST_KNOCKED = 0.02  # share of the log that may be left out about knocks; more is motion
NAMED = 3  # knocks that are named
SHAKES = 1.0  # a vibration of more than this many standard deviations of the noise is motion
FEEBLE = 0.2  # and of fewer than this is worth a note only


@dataclass(frozen=True)
class Column:
    """What was read of one column: its noise model, whether it moved, and notes."""

    noise: ColumnNoise
    moved: bool
    notes: tuple[str, ...]


def column_noise(values: Array, interval_s: float, unit: str) -> Column:
    """Returns the noise model of a column at rest.

    Args:
        values: (num_samples,) at even times, NaN where one is missing.
        interval_s: Time between samples [s].
        unit: Unit of the values.
    """
    known = values[np.isfinite(values)]
    if len(known) < FEWEST_SAMPLES:
        return _refused(unit, len(known), f"only {len(known)} of at least {FEWEST_SAMPLES} readings: record longer")
    if known.min() == known.max():
        text = f"constant at {known[0]:.4g} {unit}: the sensor is dead or frozen, or its steps are far above its noise"
        return _refused(unit, len(known), text)
    quantum = quantum_of(known)
    out = sticking_out(values, quantum[0])
    notes = [f"{int(out.sum())} of {len(known)} readings stick out far and were left out"] if out.any() else []
    values = np.where(out, np.nan, values)
    allan = allan_variance(values, interval_s)
    deviation = float(np.sqrt(allan.variance[0]))
    levels = len(np.unique(np.round(known / quantum[0]))) if quantum[0] else FEWEST_LEVELS
    if quantum[0] and (deviation < HIDES * quantum[0] or levels < FEWEST_LEVELS):
        return _hidden(values, allan, quantum, unit, notes)
    knocks = knocked(values, interval_s, quantum[0])
    if 0 < knocks.mean() < MOST_KNOCKED:
        notes.append(_knock_note(values, knocks, interval_s))
        values = np.where(knocks, np.nan, values)
        allan = allan_variance(values, interval_s)
    signs = unrest(values, interval_s, quantum[0], unit)
    moves = [sign.text for sign in signs if _is_motion(sign, deviation)]
    if moves:
        return replace(_refused(unit, len(known), f"not at rest: {moves[0]}"), moved=True, notes=tuple(notes))
    first, fit = _begin(allan)
    noise = _described(values, allan, first, fit, quantum, unit)
    odd = [s.text for s in signs if s.kind == "drift" or s.amplitude > FEEBLE * deviation]
    notes += [s.text for s in signs if s.text not in odd]
    verdict = "poor" if odd else noise.verdict
    return Column(replace(noise, verdict=verdict, reasons=(*odd, *noise.reasons)), False, tuple(notes))


def _knock_note(values: Array, knocks: Flags, interval_s: float) -> str:
    begins = np.flatnonzero(np.diff(knocks.astype(int), prepend=0) == 1) * interval_s
    times = ", ".join(f"{at_s:.4g}" for at_s in begins[:NAMED]) + (", ..." if len(begins) > NAMED else "")
    lost_s = float(knocks.sum()) * interval_s
    return f"it was knocked: {lost_s:.3g} s about {len(begins)} jumps were left out, from {times} s on"


def _is_motion(sign: Unrest, deviation: float) -> bool:
    return sign.kind == "motion" or sign.amplitude > SHAKES * deviation


def _begin(allan: Allan) -> tuple[int, Fit]:
    """Returns how many of the shortest averaging times to leave out until the sum of terms fits, and that fit.

    A filter in the sensor lowers the Allan deviation of short averages, and a little that of those a few times as long,
    too little to be seen: where the last one left out is low, two more go.
    """
    best: tuple[float, int] = (-1.0, 0)
    for first in _beginnings(allan):
        fit = fit_terms(allan.since(first), ends=False)
        best = max(best, (float(fit.chance.min()), first))
        if best[0] > ODD:
            before = shapes(allan.sizes)[first - 1] @ fit.value
            if first and allan.variance[first - 1] < before:
                best = (best[0], min(first + BEYOND_FILTER, _beginnings(allan)[-1]))
            break
    return best[1], _steady(allan, best[1])


def _steady(allan: Allan, first: int) -> Fit:
    """Returns the fit, its intervals widened where it changes by more than they allow if it begins an octave later.

    A beginning that was chosen is a guess that no interval knows of.
    """
    fit = fit_terms(allan.since(first))
    if not first or len(allan.sizes) - first <= FEWEST_SIZES:
        return fit
    later = fit_terms(allan.since(first + 1))
    moved = (later.value < fit.low) | (later.value > fit.high)
    low = np.where(moved, np.minimum(fit.low, later.low), fit.low)
    high = np.where(moved, np.maximum(fit.high, later.high), fit.high)
    return replace(fit, low=low, high=high, moved=moved)


def _beginnings(allan: Allan) -> list[int]:
    longest_s = SHARE_OF_LOG * allan.num_samples * allan.interval_s
    most = max(1, len(allan.sizes) - FEWEST_SIZES)
    return [first for first in range(most) if not first or allan.tau_s[first] <= longest_s]


def _described(
    values: Array, allan: Allan, first: int, fit: Fit, quantum: tuple[float, float], unit: str
) -> ColumnNoise:
    terms, tau_s = noise_terms(values, allan, first, fit, quantum, unit)
    reasons = _untold(allan, first, fit, terms, unit)
    told = terms["density"].told and terms["bias_instability"].told and fit.chance.min() > ODD
    told = told and not fit.moved[TERMS.index("white")]
    return ColumnNoise(
        unit=unit,
        num_samples=int(np.isfinite(values).sum()),
        verdict="good" if told else "poor",
        reasons=tuple(reasons),
        terms=terms,
        instability_tau_s=tau_s,
        fitted_from_s=float(allan.tau_s[first]),
        noise=in_si(unit)[1] * terms["white"].value,
        layer=layer_parameters(terms, tau_s, allan.interval_s, unit),
        allan=allan_curve(allan, first, fit),
    )


def _untold(allan: Allan, first: int, fit: Fit, terms: dict[str, NoiseTerm], unit: str) -> list[str]:
    """Returns what this log cannot tell, in words."""
    reasons: list[str] = []
    if fit.chance.min() < ODD:
        at_s = allan.tau_s[first:][int(np.argmin(fit.chance))]
        text = (
            f"the Allan deviation at {at_s:.3g} s belongs to no sum of these terms: does something vibrate or warm up?"
        )
        reasons.append(text)
    if first:
        text = f"averages shorter than {allan.tau_s[first]:.3g} s do not fit and were left out: the sensor filters, "
        reasons.append(text + "or something shakes it")
    if fit.moved[TERMS.index("white")]:
        text = f"white noise depends on where the fit begins: its density may be {terms['density'].low:.3g} to "
        reasons.append(text + f"{terms['density'].high:.3g} {terms['density'].unit}")
    elif not terms["density"].told:
        reasons.append("white noise cannot be told: what wanders is larger from the first reading on")
    floor, flicker, walk = terms["bias_instability"], terms["flicker"], terms["walk"]
    if not floor.told:
        text = "a steady drift hides bias instability" if fit.ramps else "too short for bias instability"
        text += "" if fit.ramps else f": the Allan deviation still falls at {allan.tau_s[-1]:.3g} s"
        reasons.append(f"{text}; it is at most {floor.high:.3g} {unit}: record longer")
    elif not (flicker.told or walk.told):
        reasons.append("flicker and random walk cannot be told apart: record longer")
    elif not walk.told:
        reasons.append(f"random walk cannot be told: it is at most {walk.high:.3g} {walk.unit}")
    if unit == UNKNOWN:
        reasons.append("its unit is not known: end its name with one, such as gyro_x_rad_s or accel_x_m_s2")
    return reasons


def _hidden(values: Array, allan: Allan, quantum: tuple[float, float], unit: str, notes: list[str]) -> Column:
    """Returns a column whose steps hide its noise: the step, the mean, and a bound."""
    known = values[np.isfinite(values)]
    step, count, mean = quantum[0], len(known), float(known.mean())
    terms = {
        "bias": NoiseTerm(mean, mean - step / 2, mean + step / 2, LEVEL, count, "mean", unit, False),
        "white": NoiseTerm(float(np.sqrt(allan.variance[0])), 0.0, HIDES * step, LEVEL, count, "bound", unit, False),
        "quantum": NoiseTerm(step, step - quantum[1], step + quantum[1], LEVEL, count, "spacing", unit, True),
    }
    text = f"steps of {step:.3g} {unit} hide the noise: it is at most {HIDES * step:.2g} {unit}"
    layer = layer_parameters(terms, None, allan.interval_s, unit)
    rounding = in_si(unit)[1] * step / float(np.sqrt(12))
    noise = ColumnNoise(unit, count, "poor", (text,), terms, None, None, rounding, layer, allan_curve(allan, 0, None))
    return Column(noise, False, tuple(notes))


def _refused(unit: str, num_samples: int, reason: str) -> Column:
    noise = ColumnNoise(unit, num_samples, "refused", (reason,), {}, None, None, None, {}, None)
    return Column(noise, False, ())
