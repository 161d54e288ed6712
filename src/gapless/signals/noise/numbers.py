"""The numbers of a noise model, in the units that people use."""

from functools import cache

import numpy as np
from scipy.stats import chi2, t

from gapless.core.results import NoiseTerm
from gapless.core.signal import Array
from gapless.signals.noise.allan.terms import LEVEL, Fit
from gapless.signals.noise.allan.variance import TERMS, Allan, shapes
from gapless.signals.noise.units import integral

PLATEAU = float(np.sqrt(2 * np.log(2) / np.pi))  # Allan deviation of flicker noise over its coefficient B: 0.664
MOST_FREEDOM = 10**9
STRETCHES = 4  # times the shortest average that was fitted: stretches within which readings scatter
LEAST_STRETCH = 16  # readings in them, at least


def noise_terms(
    values: Array, allan: Allan, first: int, fit: Fit, quantum: tuple[float, float], unit: str
) -> tuple[dict[str, NoiseTerm], float | None]:
    """Returns the numbers by name, and the averaging time of the least Allan deviation [s], None where it still falls.

    Args:
        values: (num_samples,) NaN where one is missing.
        allan: Its Allan variance.
        first: How many of the shortest averaging times were not fitted.
        fit: The fit to the others.
        quantum: Step of the values and its error; (0, 0) for none.
        unit: Unit of the values.
    """
    interval_s, root = allan.interval_s, np.sqrt(allan.interval_s)
    terms = {"bias": _bias(values, fit, unit)}
    terms["white"] = _per_sample(values, first, fit, unit)
    terms["density"] = _term(fit, "white", root, f"{unit}/√Hz")
    walk = integral(unit)
    if walk is not None:
        terms[walk[0]] = _term(fit, "white", root * walk[2], walk[1])
    floor, tau_s = _floor(allan, first, fit, unit)
    terms["bias_instability"] = floor
    terms["flicker"] = _term(fit, "flicker", 1 / PLATEAU, unit)
    terms["walk"] = _term(fit, "walk", 1 / root, f"{unit}/√s")
    terms["drift"] = _drift(allan, fit, unit)
    terms["quantisation"] = _term(fit, "quantisation", interval_s, f"{unit}·s")
    count = int(np.isfinite(values).sum())
    if quantum[0]:
        ends = quantum[0] - quantum[1], quantum[0] + quantum[1]
        terms["quantum"] = NoiseTerm(quantum[0], *ends, LEVEL, count, "spacing", unit, True)
    return terms, tau_s


def _term(fit: Fit, name: str, factor: float, unit: str) -> NoiseTerm:
    value, low, high = (float(np.sqrt(size) * factor) for size in fit.term(name))
    freedom = fit.variance(np.eye(len(TERMS))[TERMS.index(name)])[1] if value else float(fit.freedom[-1])
    told = low > 0 and not fit.moved[TERMS.index(name)]
    return NoiseTerm(value, low, high, LEVEL, _whole(freedom), "allan fit", unit, bool(told))


def _whole(freedom: float) -> int:
    return int(min(max(1.0, freedom), MOST_FREEDOM))


def _bounds(deviation: float, freedom: float) -> tuple[float, float]:
    """Returns the interval of an Allan deviation: its square is about chi2(n) / n."""
    tail = (1 - LEVEL) / 2
    low, high = (np.sqrt(freedom / chi2.ppf(p, freedom)) for p in (1 - tail, tail))
    return float(deviation * low), float(deviation * high)


def _per_sample(values: Array, first: int, fit: Fit, unit: str) -> NoiseTerm:
    """Returns the standard deviation of single readings about their slow part.

    It is that of the fit; or, if short averages were left out of that because the sensor filters or shakes, the root of
    the mean variance within stretches a few times as long as those.
    """
    if not first:
        return _term(fit, "white", 1.0, unit)
    size = max(LEAST_STRETCH, STRETCHES * 2**first)
    rows = values[: len(values) // size * size].reshape(-1, size)
    rows = rows[np.isfinite(rows).mean(axis=1) > 0.5]
    variances = np.nanvar(rows, axis=1, ddof=1)
    mean = float(variances.mean())
    half = float(t.ppf((1 + LEVEL) / 2, max(1, len(rows) - 1)) * variances.std() / np.sqrt(max(1, len(rows) - 1)))
    value, low, high = (float(np.sqrt(max(0.0, mean + side))) for side in (0.0, -half, half))
    return NoiseTerm(value, low, high, LEVEL, len(rows), "variance within stretches", unit, True)


def _bias(values: Array, fit: Fit, unit: str) -> NoiseTerm:
    """Returns the mean, with the interval that the fitted Allan deviation at the log's length gives.

    That is the classical one for white noise. For a random walk it is how far the mean lies from the bias at the start
    or the end of the log: both have the variance K^2 T / 3.
    """
    known = values[np.isfinite(values)]
    variance, freedom = fit.variance(shapes(np.array([len(known)]))[0])
    mean, half = float(known.mean()), float(np.sqrt(variance)) * _reach(freedom)
    return NoiseTerm(mean, mean - half, mean + half, LEVEL, len(known), "mean, allan fit", unit, True)


def _drift(allan: Allan, fit: Fit, unit: str) -> NoiseTerm:
    """Returns the slope of the straight line, with the interval that the fitted noise leaves it."""
    variance, freedom = fit.variance(slope_variances(allan.num_samples))
    slope, half = allan.slope, float(np.sqrt(variance)) * _reach(freedom)
    low, value, high = (float(slope + side) / allan.interval_s for side in (-half, 0.0, half))
    told = low > 0 or high < 0
    return NoiseTerm(value, low, high, LEVEL, _whole(freedom), "straight line, allan fit", f"{unit}/s", told)


def _reach(freedom: float) -> float:
    """Returns how many standard deviations an interval reaches (Student); as if of one degree of freedom at least.

    Below one, where a term that is hardly there rules, the quantile means nothing and grows without end.
    """
    return float(t.ppf((1 + LEVEL) / 2, max(freedom, 1.0)))


def slope_variances(num_samples: int) -> Array:
    """Returns the variance of a straight line's slope per sample in each unit term, (num_terms,).

    white: 12 / n^3; random walk: 6 / (5 n); quantisation: 72 / n^4 (the two ends); flicker: a number over n^2.
    """
    n = float(num_samples)
    return np.array([72 / n**4, 12 / n**3, _flicker_slope() / n**2, 6 / (5 * n)])


@cache
def _flicker_slope(count: int = 400) -> float:
    """Returns n^2 times the variance of the slope in flicker noise of plateau 1, from its generalised covariance.

    slope = 12 / n^3 (n/2 X(n) + n/2 X(0) - integral of X), with X the running sum and g(k) = k^2 log(k) / (4 log 2).
    """
    places = np.arange(count + 1) / count
    weights = -np.ones(count + 1) / count
    weights[[0, -1]] = 0.5 - 0.5 / count
    apart = np.abs(places[:, None] - places[None, :])
    covariance = apart**2 * np.log(np.where(apart > 0, apart, 1.0)) / (4 * np.log(2))
    return float(144 * weights @ covariance @ weights)


def _floor(allan: Allan, first: int, fit: Fit, unit: str) -> tuple[NoiseTerm, float | None]:
    """Returns the Allan deviation where the fitted one is least, and that averaging time.

    Where it stays flat to the end, it is the shortest time at which it is within a tenth of that: more averages, surer.
    """
    at = int(np.argmin(fit.fitted))
    if at == len(fit.fitted) - 1 and fit.term("flicker")[0] > 0:
        at = int(np.argmax(fit.fitted < 1.1**2 * fit.fitted[at]))
    rises = fit.term("walk")[0] > 0 and at < len(fit.fitted) - 1
    told = rises or fit.term("flicker")[0] > 0
    value = float(np.sqrt(allan.variance[first + at]))
    low, high = _bounds(value, float(fit.freedom[at]))
    made = NoiseTerm(value, low if told else 0.0, high, LEVEL, _whole(fit.freedom[at]), "allan, chi2", unit, told)
    return made, float(allan.tau_s[first + at]) if told else None
