"""The numbers of a noise model: in the units that people use, as a simulated sensor's settings, and as a curve."""

from collections.abc import Mapping

import numpy as np
from scipy.stats import chi2, t

from gapless.core.results import AllanCurve, NoiseTerm
from gapless.core.signal import Array
from gapless.signals.noise.allan import INTERVAL_LEVEL, OVERLAP_GAIN, TERMS, AllanFit, AllanVariances, term_shapes
from gapless.signals.noise.readings import RANDOM_WALKS, SI_FACTORS

FLICKER_PLATEAU = float(np.sqrt(2 * np.log(2) / np.pi))  # Allan deviation of flicker noise over its coefficient B
# n^2 times the variance of the slope of n samples in flicker noise of plateau 1: slope = 12 / n^3 (n/2 X(n) + n/2 X(0)
# - integral of X), X the running sum with generalised covariance k^2 log(k) / (4 log 2); integrated over 400 steps.
FLICKER_SLOPE_VARIANCE = 6.492073583222705
MAX_FREEDOM = 10**9
STRETCH_AVERAGES = 4  # times the shortest average that was fitted: stretches within which readings scatter
MIN_STRETCH_SAMPLES = 16
# A first-order Gauss-Markov bias of standard deviation 1 and correlation time 1 s has its largest Allan deviation,
# 0.618, at 1.89 s (IEEE Std 952-1997, C.1.7, where it is 0.437 q sqrt(T), with q^2 T = 2 s^2).
GAUSS_MARKOV_PEAK = 0.618
GAUSS_MARKOV_PEAK_TAU = 1.89
IDEAL_TAU_S = 100.0  # of layer `inertial sensor`; a test compares


def compute_terms(values: Array, fit: AllanFit, quantum: float, unit: str) -> tuple[dict[str, NoiseTerm], float | None]:
    """Returns the numbers by name, and the averaging time of the least Allan deviation [s]; None if it still falls."""
    interval_s, root = fit.allan.interval_s, np.sqrt(fit.allan.interval_s)
    terms = {
        "bias": _compute_bias(values, fit, unit),
        "white": _compute_scatter(values, fit, unit),
        "density": _scale_term(fit, "white", root, f"{unit}/√Hz"),
    }
    if unit in RANDOM_WALKS:
        name, walk_unit, factor = RANDOM_WALKS[unit]
        terms[name] = _scale_term(fit, "white", root * factor, walk_unit)
    terms["bias_instability"], tau_s = _find_floor(fit, unit)
    terms["flicker"] = _scale_term(fit, "flicker", 1 / FLICKER_PLATEAU, unit)
    terms["walk"] = _scale_term(fit, "walk", 1 / root, f"{unit}/√s")
    terms["drift"] = _compute_drift(fit, unit)
    terms["quantisation"] = _scale_term(fit, "quantisation", interval_s, f"{unit}·s")
    if quantum:
        terms["quantum"] = describe_quantum(values, quantum, unit)
    return terms, tau_s


def describe_quantum(values: Array, quantum: float, unit: str) -> NoiseTerm:
    """Returns the step of the readings as a number of the noise model; it is known to single precision at least."""
    known = values[np.isfinite(values)]
    error = float(np.spacing(np.float32(np.abs(known).max())))
    low, high = quantum - error, quantum + error
    return NoiseTerm(quantum, low, high, INTERVAL_LEVEL, len(known), "spacing", unit, True)


def _scale_term(fit: AllanFit, name: str, factor: float, unit: str) -> NoiseTerm:
    value, low, high = (float(np.sqrt(size) * factor) for size in fit.term(name))
    place = TERMS.index(name)
    freedom = fit.variance(np.eye(len(TERMS))[place])[1] if value else float(fit.allan.freedom[-1])
    told = bool(low > 0 and not fit.is_unsteady[place])
    return NoiseTerm(value, low, high, INTERVAL_LEVEL, _round_freedom(freedom), "allan fit", unit, told)


def _round_freedom(freedom: float) -> int:
    return int(np.clip(freedom, 1, MAX_FREEDOM))


def _chi2_bounds(variance: Array | float, freedom: Array | float) -> tuple[Array, Array]:
    """Returns the interval of an Allan variance: an estimate is about chi2(n) / n of it."""
    tail = (1 - INTERVAL_LEVEL) / 2
    low, high = (np.asarray(variance * freedom / chi2.ppf(p, freedom)) for p in (1 - tail, tail))
    return low, high


def _compute_scatter(values: Array, fit: AllanFit, unit: str) -> NoiseTerm:
    """Returns the standard deviation of single readings about their slow part.

    It is that of the fit; or, if short averages were left out of that because the sensor filters or shakes, the root of
    the mean variance within stretches a few times as long as those.
    """
    if not fit.first:
        return _scale_term(fit, "white", 1.0, unit)
    size = max(MIN_STRETCH_SAMPLES, STRETCH_AVERAGES * 2**fit.first)
    rows = values[: len(values) // size * size].reshape(-1, size)
    rows = rows[np.isfinite(rows).mean(axis=1) > 0.5]
    variances, freedom = np.nanvar(rows, axis=1, ddof=1), max(1, len(rows) - 1)
    mean = float(variances.mean())
    half = _student_quantile(freedom) * float(variances.std()) / np.sqrt(freedom)
    value, low, high = (float(np.sqrt(max(0.0, mean + side))) for side in (0.0, -half, half))
    return NoiseTerm(value, low, high, INTERVAL_LEVEL, len(rows), "variance within stretches", unit, True)


def _compute_bias(values: Array, fit: AllanFit, unit: str) -> NoiseTerm:
    """Returns the mean, with the interval that the fitted Allan deviation at the log's length gives.

    That is the classical one for white noise. For a random walk it is how far the mean lies from the bias at the start
    or the end of the log: both have the variance K^2 T / 3.
    """
    known = values[np.isfinite(values)]
    variance, freedom = fit.variance(term_shapes(np.array([len(known)]))[0])
    mean, half = float(known.mean()), float(np.sqrt(variance)) * _student_quantile(freedom)
    return NoiseTerm(mean, mean - half, mean + half, INTERVAL_LEVEL, len(known), "mean, allan fit", unit, True)


def _compute_drift(fit: AllanFit, unit: str) -> NoiseTerm:
    """Returns the slope of the straight line, with the interval that the fitted noise leaves it."""
    allan = fit.allan
    variance, freedom = fit.variance(slope_variances(allan.num_samples))
    half = float(np.sqrt(variance)) * _student_quantile(freedom)
    low, value, high = (float(allan.slope + side) / allan.interval_s for side in (-half, 0.0, half))
    count, told = _round_freedom(freedom), low > 0 or high < 0
    return NoiseTerm(value, low, high, INTERVAL_LEVEL, count, "straight line, allan fit", f"{unit}/s", told)


def _student_quantile(freedom: float) -> float:
    """Returns how many standard deviations an interval reaches (Student); as if of one degree of freedom at least.

    Below one, where a term that is hardly there rules, the quantile means nothing and grows without end.
    """
    return float(t.ppf((1 + INTERVAL_LEVEL) / 2, max(freedom, 1.0)))


def slope_variances(num_samples: int) -> Array:
    """Returns the variance of a straight line's slope per sample in each unit term, (num_terms,).

    white: 12 / n^3; random walk: 6 / (5 n); quantisation: 72 / n^4 (the two ends); flicker: a number over n^2.
    """
    n = float(num_samples)
    return np.array([72 / n**4, 12 / n**3, FLICKER_SLOPE_VARIANCE / n**2, 6 / (5 * n)])


def _find_floor(fit: AllanFit, unit: str) -> tuple[NoiseTerm, float | None]:
    """Returns the Allan deviation where the fitted one is least, and that averaging time.

    Where it stays flat to the end, it is the shortest time at which it is within a tenth of that: more averages, surer.
    """
    has_flicker, has_walk = fit.term("flicker")[0] > 0, fit.term("walk")[0] > 0
    at, last = int(np.argmin(fit.fitted)), len(fit.fitted) - 1
    if at == last and has_flicker:
        at = int(np.argmax(fit.fitted < 1.1**2 * fit.fitted[at]))
    told = has_flicker or (has_walk and at < last)
    variance, freedom = float(fit.allan.variance[at]), OVERLAP_GAIN * float(fit.allan.freedom[at])
    low, high = (float(np.sqrt(end)) for end in _chi2_bounds(variance, freedom))
    numbers = (float(np.sqrt(variance)), low if told else 0.0, high, INTERVAL_LEVEL, _round_freedom(freedom))
    return NoiseTerm(*numbers, "allan, chi2", unit, told), float(fit.allan.tau_s[at]) if told else None


def make_layer_parameters(
    terms: Mapping[str, NoiseTerm], tau_s: float | None, interval_s: float, unit: str
) -> dict[str, float]:
    """Returns a simulated sensor's settings in SI units, by the names of layer `inertial sensor`; ideal by default.

    `density` is without what rounding to `quantum` adds, step^2 / 12 per sample, since a layer rounds as well.
    `instability` and `tau_s` are of the Gauss-Markov bias whose Allan deviation is highest where that of the log is
    least, and as high as the flicker there: right about that time, too low far from it. A log at rest does not
    identify `scale`. `bias` and `quantum` are for the layers `scale and bias` and `quantisation`. `tau_s` is None where
    the Allan deviation still falls at the end.
    """
    factor = SI_FACTORS.get(unit, 1.0)
    size = {name: term.value for name, term in terms.items()}
    quantum, density = size.get("quantum", 0.0), size.get("density", 0.0)
    floor = FLICKER_PLATEAU * size.get("flicker", 0.0)
    return {
        "density": factor * float(np.sqrt(max(0.0, density**2 - quantum**2 / 12 * interval_s))),
        "bias": factor * size["bias"],
        "instability": factor * floor / GAUSS_MARKOV_PEAK if tau_s else 0.0,
        "tau_s": tau_s / GAUSS_MARKOV_PEAK_TAU if tau_s and floor else IDEAL_TAU_S,
        "walk": factor * size.get("walk", 0.0),
        "quantum": factor * quantum,
        "scale": 1.0,
    }


def make_allan_curve(allan: AllanVariances, fit: AllanFit | None = None) -> AllanCurve:
    """Returns the Allan deviation with its intervals, and the terms of a fit if there is one, for plots."""
    fitted = np.full(len(allan.sizes), np.nan)
    terms: dict[str, tuple[float, ...]] = {}
    if fit is not None:
        fitted[fit.first :] = fit.fitted
        parts = {name: term_shapes(allan.sizes)[:, k] * fit.value[k] for k, name in enumerate(TERMS)}
        if fit.has_ramp:
            parts["drift"] = allan.ramp
        terms = {name: _take_roots(part) for name, part in parts.items() if part.any()}
    low, high = _chi2_bounds(allan.variance, OVERLAP_GAIN * allan.freedom)
    tau_s, deviation = tuple(map(float, allan.tau_s)), _take_roots(allan.variance)
    return AllanCurve(tau_s, deviation, _take_roots(low), _take_roots(high), _take_roots(fitted), terms)


def _take_roots(squares: Array) -> tuple[float, ...]:
    return tuple(map(float, np.sqrt(squares)))
