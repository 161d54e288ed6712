"""The overlapping Allan variance of a column with gaps, and a sum of kinds of noise fitted to it.

With y the averages over m samples, the Allan variance at m is mean((y[k+m] - y[k])^2) / 2 over every k (IEEE Std
952-1997, annex C). Each kind of noise gives it one shape in m.

Each estimate s is taken as v chi2(n) / n with v the sum of the terms and n the number of windows of 2m samples that lie
side by side in the log, and all as independent. The differences of such windows are Haar wavelet coefficients, which
hardly correlate, within an octave or between octaves, whichever of these kinds the noise is (D. B. Percival, 1995).
Windows that overlap know more of each octave, and less that the other octaves do not: together about as much.

The fit minimises the deviance sum n (s/v - log(s/v) - 1) over terms that are not negative. That is least squares of
the logarithms, weighted by n, for large n, without their bias where n is small. Intervals are profiles: all values for
which the least deviance over the other terms is at most 3.84 above the least of all. A ramp is no noise and has one
size: it is the straight line through the samples, or none.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls, root_scalar
from scipy.stats import chi2

from gapless.core.signal import Array, Flags

TERMS = ("quantisation", "white", "flicker", "walk")
MIN_WINDOWS = 3.0  # of the longest averages, side by side
MIN_SAMPLE_SHARE = 0.5  # of the samples of an average that must be there
# Degrees of freedom of one octave alone, per window side by side, where windows overlap: 2 for a random walk, 2.5 for
# flicker, 3 for white noise (NIST SP 1065, table 5, long averages).
OVERLAP_GAIN = 2.0

INTERVAL_LEVEL = 0.95
MIN_DEVIANCE_SAVING = float(chi2.ppf(INTERVAL_LEVEL, 1))  # that a term must bring to be part of the fit
MAX_ROUNDS = 60  # of weights from the fit and a fit with those weights


@dataclass(frozen=True)
class AllanVariances:
    """Allan variances of one column."""

    interval_s: float  # time between samples [s]
    sizes: Array  # (num_sizes,) samples per average: powers of two
    variance: Array  # (num_sizes,) Allan variance [unit^2]
    freedom: Array  # (num_sizes,) degrees of freedom that it adds to a fit: windows side by side with enough samples
    num_samples: int  # places for samples, gaps included
    slope: float  # slope of the straight line through the samples [unit per sample]

    @property
    def tau_s(self) -> Array:
        """Averaging times [s]."""
        return self.sizes * self.interval_s

    @property
    def ramp(self) -> Array:
        """Allan variance of the straight line, (num_sizes,)."""
        return self.slope**2 * self.sizes**2 / 2


def compute_allan_variances(values: Array, interval_s: float) -> AllanVariances:
    """Returns the Allan variances of evenly spaced samples, NaN where one is missing.

    An average needs at least half of its samples. One of c instead of m samples has more white noise: squares are
    multiplied by (2/m) / (1/c1 + 1/c2), which is exact for white noise. It lowers flicker and random walk by the
    share that is missing.
    """
    known = np.isfinite(values)
    middle = float(np.median(values[known])) if known.any() else 0.0
    sums = np.concatenate([[0.0], np.cumsum(np.where(known, values - middle, 0.0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    found: list[tuple[int, float, float]] = []
    size = 1
    while 2 * size * MIN_WINDOWS <= max(len(values), 2 * MIN_WINDOWS):
        first, second = counts[size:-size] - counts[: -2 * size], counts[2 * size :] - counts[size:-size]
        least = max(1, MIN_SAMPLE_SHARE * size)
        usable = (first >= least) & (second >= least)
        if usable.any():
            first, second = first[usable], second[usable]
            before = (sums[size:-size] - sums[: -2 * size])[usable] / first
            after = (sums[2 * size :] - sums[size:-size])[usable] / second
            squares = (after - before) ** 2 * (2 / size) / (1 / first + 1 / second)
            found.append((size, float(squares.mean()) / 2, max(1.0, float(usable.sum()) / (2 * size))))
        size *= 2
    sizes, variance, freedom = np.array(found, dtype=np.float64).reshape(-1, 3).T
    places = np.flatnonzero(known) - (len(values) - 1) / 2
    slope = float(np.polyfit(places, values[known], 1)[0]) if len(places) > 1 else 0.0
    return AllanVariances(interval_s, sizes, variance, freedom, len(values), slope)


def term_shapes(sizes: Array) -> Array:
    """Returns the Allan variance of each term of unit size, (num_sizes, num_terms), in the order of `TERMS`.

    quantisation: 3 / m^2; white: 1 / m; flicker: 1; walk: (2 m^2 + 1) / (6 m). Units: variance of the quantised running
    sum, variance per sample, plateau, variance of a step per sample. (A ramp of slope R per sample has R^2 m^2 / 2.)
    """
    m = np.asarray(sizes, dtype=float)
    return np.stack([3 / m**2, 1 / m, np.ones_like(m), (2 * m**2 + 1) / (6 * m)], axis=1)


@dataclass(frozen=True)
class AllanFit:
    """Sizes of the terms, in the order of `TERMS` and the units of `term_shapes`."""

    allan: AllanVariances  # what was fitted, without the shortest averaging times
    first: int  # how many of these were left out
    value: Array  # (num_terms,) fitted sizes; 0 for terms that the data do not call for
    low: Array  # (num_terms,) lower ends of the intervals
    high: Array  # (num_terms,) upper ends
    every: Array  # (num_terms,) fitted sizes if no term is left out for being small
    scatter: Array  # (num_terms, num_terms) covariance of `every`
    has_ramp: bool  # whether a ramp is called for beside them
    fitted: Array  # (num_sizes,) Allan variance of the sum, with the ramp
    chance: Array  # (num_sizes,) probability of an estimate at least as far off, to either side
    is_unsteady: Flags  # (num_terms,) whether a term leaves its interval if the fit begins later; it is then wider

    def term(self, name: str) -> tuple[float, float, float]:
        """Returns value, low and high of a term."""
        place = TERMS.index(name)
        return float(self.value[place]), float(self.low[place]), float(self.high[place])

    def variance(self, weights: Array) -> tuple[float, float]:
        """Returns a weighted sum of the terms, none left out, and its degrees of freedom."""
        total = float(weights @ self.every)
        scatter = float(weights @ self.scatter @ weights)
        return total, 2 * total**2 / max(scatter, 1e-9 * total**2, 1e-300)


def fit_terms(allan: AllanVariances, first: int = 0, *, intervals: bool = True) -> AllanFit:
    """Returns the fit of all terms that the Allan variances call for, with the intervals of all.

    The `first` shortest averaging times are left out. Intervals take nearly all of the time; without them their ends
    are 0 and inf.
    """
    allan = replace(allan, **{name: getattr(allan, name)[first:] for name in ("sizes", "variance", "freedom")})
    every = _minimize_deviance(allan, np.ones(len(TERMS), dtype=np.bool_))[0]
    value, _, has_ramp = _minimize_deviance(allan, _select_terms(allan), MIN_DEVIANCE_SAVING)
    low, high = np.zeros(len(TERMS)), np.full(len(TERMS), np.inf)
    if intervals:
        ends = np.array([[_find_end(allan, k, every, upper) for upper in (False, True)] for k in range(len(TERMS))])
        low, high = np.minimum(ends[:, 0], value), np.maximum(ends[:, 1], value)
    fitted = term_shapes(allan.sizes) @ value + has_ramp * allan.ramp
    freedom = OVERLAP_GAIN * allan.freedom
    below = chi2.cdf(freedom * allan.variance / fitted, freedom)
    return AllanFit(
        *(allan, first, value, low, high, every, _compute_scatter(allan, every), has_ramp, fitted),
        chance=2 * np.minimum(below, 1 - below),
        is_unsteady=np.zeros(len(TERMS), dtype=np.bool_),
    )


def _minimize_deviance(
    allan: AllanVariances, free: Flags, min_ramp_saving: float = 0.0, offset: Array | float = 0.0
) -> tuple[Array, float, bool]:
    """Returns the sizes of least deviance, that deviance, and whether the ramp lowers it by `min_ramp_saving`.

    `free` says which terms may be there, (num_terms,); `offset` is Allan variance that is there anyhow, (num_sizes,).
    """
    without, with_ramp = (_minimize_beside(allan, free, offset + ramp) for ramp in (0.0, allan.ramp))
    has_ramp = with_ramp[1] < without[1] - min_ramp_saving
    return *(with_ramp if has_ramp else without), has_ramp


def _minimize_beside(allan: AllanVariances, free: Flags, offset: Array | float) -> tuple[Array, float]:
    """Returns the sizes of least deviance beside an offset, by least squares with weights from the fit before."""
    columns, sizes, best = term_shapes(allan.sizes)[:, free], np.zeros(len(free)), np.inf
    fitted = np.maximum(allan.variance, offset)
    for _ in range(MAX_ROUNDS):
        weight = np.sqrt(allan.freedom) / fitted
        weighted = columns * weight[:, None]
        scale = np.linalg.norm(weighted, axis=0)
        solved = nnls(weighted / scale, (allan.variance - offset) * weight)[0] / scale
        whole = np.maximum(columns @ solved + offset, 1e-6 * allan.variance)
        ratio = allan.variance / whole
        cost = float(np.sum(allan.freedom * (ratio - np.log(ratio) - 1)))
        if cost < best:
            sizes[free] = solved
        worse, best = cost > best, min(cost, best)
        if np.allclose(whole, fitted, rtol=1e-7, atol=0):
            break
        fitted = np.sqrt(fitted * whole) if worse else whole
    return sizes, best


def _compute_scatter(allan: AllanVariances, value: Array) -> Array:
    """Returns the covariance of the sizes of terms, 0 for those that are 0.

    Where flicker or a random walk is seen, both count: which of them it is, is not known well.
    """
    basis, wanders = term_shapes(allan.sizes), np.isin(TERMS, ("flicker", "walk"))
    used = np.flatnonzero((value > 0) | (wanders & np.any(value[wanders] > 0)))
    columns = basis[:, used] / (basis @ value)[:, None]
    found = np.zeros((len(value), len(value)))
    found[np.ix_(used, used)] = np.linalg.pinv(columns.T @ (allan.freedom[:, None] / 2 * columns), hermitian=True)
    return found


def _select_terms(allan: AllanVariances) -> Flags:
    """Returns which terms stay when the one that saves least is left out again and again."""
    kept = np.ones(len(TERMS), dtype=np.bool_)
    while kept.sum() > 1:
        now = _minimize_deviance(allan, kept)[1]
        without = [kept & (np.arange(len(kept)) != place) for place in np.flatnonzero(kept)]
        costs = [_minimize_deviance(allan, left)[1] for left in without]
        if min(costs) - now > MIN_DEVIANCE_SAVING:
            break
        kept = without[int(np.argmin(costs))]
    return kept


def _find_end(allan: AllanVariances, place: int, value: Array, upper: bool) -> float:
    """Returns where the deviance passes its limit, searched in the logarithm of the size; 0 if it never does below."""
    others, shape = np.arange(len(value)) != place, term_shapes(allan.sizes)[:, place]
    limit = _minimize_deviance(allan, value >= 0)[1] + MIN_DEVIANCE_SAVING

    def exceed_limit(log_size: float) -> float:
        return _minimize_deviance(allan, others, offset=shape * np.exp(log_size))[1] - limit

    whole = float(np.log(np.min(allan.variance / shape)))  # as large as it can be if there is nothing else
    least = whole - 20.0
    start = float(np.log(value[place])) if value[place] > 0 else least
    low, high = (start, whole + 6.0) if upper else (least, start)
    at_low, at_high = exceed_limit(low), exceed_limit(high)
    if not upper and at_low <= 0:
        return 0.0
    if at_low * at_high > 0:  # it does not pass: the nearer end
        return float(np.exp(low if abs(at_low) < abs(at_high) else high))
    return float(np.exp(root_scalar(exceed_limit, bracket=(low, high), method="brentq", xtol=1e-4).root))
