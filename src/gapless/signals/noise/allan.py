"""The overlapping Allan variance of a column with gaps, and how it scatters.

With X the running sum of the samples, the Allan variance at m samples is mean((X[k+2m] - 2 X[k+m] + X[k])^2) / (2 m^2)
over every k (IEEE Std 952-1997, annex C). Each kind of noise gives it one shape in m, and its generalised covariance
g(k), for which sums of X with coefficients c that annul straight lines have the variance sum(c_i c_j g(i - j)), gives
the covariance of the estimates at all m in closed form: no table of degrees of freedom is needed.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from gapless.core.signal import Array

TERMS = ("quantisation", "white", "flicker", "walk")
MIN_AVERAGES = 3.0  # pairs of the longest averages that fit into the log
MIN_SAMPLE_SHARE = 0.5  # of the samples of an average that must be there
LAGS_PER_AVERAGE = 8  # in the sums over lags
MAX_CORRELATED_OCTAVES = 4  # between two estimates; beyond, they count as independent


@dataclass(frozen=True)
class AllanVariances:
    """Allan variances of one column."""

    interval_s: float  # time between samples [s]
    sizes: Array  # (num_sizes,) samples per average: powers of two
    variance: Array  # (num_sizes,) Allan variance [unit^2]
    windows: Array  # (num_sizes,) pairs of averages that had enough samples
    num_samples: int  # places for samples, gaps included
    slope: float  # slope of the straight line through the samples [unit per sample]

    @property
    def tau_s(self) -> Array:
        """Averaging times [s]."""
        return self.sizes * self.interval_s

    def drop_shortest(self, count: int) -> "AllanVariances":
        """Returns the same without the `count` shortest averaging times."""
        return replace(self, sizes=self.sizes[count:], variance=self.variance[count:], windows=self.windows[count:])


def compute_allan_variances(values: Array, interval_s: float) -> AllanVariances:
    """Returns the overlapping Allan variance of evenly spaced samples, NaN where one is missing.

    An average needs at least half of its samples. One of c instead of m samples has more white noise: squares are
    multiplied by (2/m) / (1/c1 + 1/c2), which is exact for white noise. It lowers flicker and random walk by the
    share that is missing.
    """
    known = np.isfinite(values)
    middle = float(np.median(values[known])) if known.any() else 0.0
    sums = np.concatenate([[0.0], np.cumsum(np.where(known, values - middle, 0.0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    found: list[tuple[int, float, int]] = []
    size = 1
    while 2 * size * MIN_AVERAGES <= max(len(values), 2 * MIN_AVERAGES):
        found += _average_squares(sums, counts, size)
        size *= 2
    sizes, variance, windows = np.array(found, dtype=np.float64).reshape(-1, 3).T
    places = np.flatnonzero(known) - (len(values) - 1) / 2
    slope = float(np.polyfit(places, values[known], 1)[0]) if len(places) > 1 else 0.0
    return AllanVariances(interval_s, sizes, variance, windows, len(values), slope)


def _average_squares(sums: Array, counts: Array, size: int) -> list[tuple[int, float, int]]:
    """Returns the size, the Allan variance and the number of pairs of averages; nothing where there is no pair."""
    first, second = counts[size:-size] - counts[: -2 * size], counts[2 * size :] - counts[size:-size]
    usable = (first >= max(1, MIN_SAMPLE_SHARE * size)) & (second >= max(1, MIN_SAMPLE_SHARE * size))
    if not usable.any():
        return []
    first, second = first[usable], second[usable]
    before = (sums[size:-size] - sums[: -2 * size])[usable] / first
    after = (sums[2 * size :] - sums[size:-size])[usable] / second
    scaled = (after - before) ** 2 * (2 / size) / (1 / first + 1 / second)
    return [(size, float(scaled.mean()) / 2, int(usable.sum()))]


def term_shapes(sizes: Array) -> Array:
    """Returns the Allan variance of each term of unit size, (num_sizes, num_terms), in the order of `TERMS`.

    quantisation: 3 / m^2; white: 1 / m; flicker: 1; walk: (2 m^2 + 1) / (6 m). Units: variance of the quantised running
    sum, variance per sample, plateau, variance of a step per sample. (A ramp of slope R per sample has R^2 m^2 / 2.)
    """
    m = np.asarray(sizes, dtype=float)
    return np.stack([3 / m**2, 1 / m, np.ones_like(m), (2 * m**2 + 1) / (6 * m)], axis=1)


def estimate_covariance(allan: AllanVariances, terms: Array) -> Array:
    """Returns the covariance of the Allan variances if the terms have these sizes, (num_sizes, num_sizes).

    Of normal noise it is the mean over pairs of windows of 2 r^2, with r the covariance of the two differences.
    """
    count, total = len(allan.sizes), allan.num_samples
    found = np.zeros((count, count))
    for i in range(count):
        for j in range(i, min(count, i + MAX_CORRELATED_OCTAVES + 1)):
            m, n = int(allan.sizes[i]), int(allan.sizes[j])
            stride, weights, parts = _unit_covariances(m, n, total)
            # Windows that are missing take pairs away in proportion: half of them leaves half of the information.
            lost = (total - 2 * m + 1) * (total - 2 * n + 1) / (allan.windows[i] * allan.windows[j])
            mean_square = stride * float(weights @ (2 * (parts @ terms) ** 2))
            found[i, j] = found[j, i] = mean_square / (2 * m * m * 2 * n * n) * np.sqrt(lost)
    return found


@cache
def _unit_covariances(m: int, n: int, num_samples: int) -> tuple[int, Array, Array]:
    """Returns the stride of the lags, the share of window pairs at each, and the covariance there of unit terms."""
    stride = max(1, m // LAGS_PER_AVERAGE)
    first, second = num_samples - 2 * m + 1, num_samples - 2 * n + 1  # windows of each size
    reach = min(num_samples, 8 * n)
    lags = np.arange(-reach, reach + 1, stride, dtype=float)  # where the second begins, after the first
    pairs = np.clip(np.minimum(first, second - lags) - np.maximum(0.0, -lags), 0.0, None)
    keep = pairs > 0
    lags, pairs = lags[keep], pairs[keep]
    parts = np.zeros((len(lags), 4))
    for a, c in ((0, 1.0), (1, -2.0), (2, 1.0)):
        for b, e in ((0, 1.0), (1, -2.0), (2, 1.0)):
            parts += c * e * _generalised_covariance(lags + b * n - a * m, stride)
    return stride, pairs / (float(first) * float(second)), parts


def _generalised_covariance(k: Array, stride: int) -> Array:
    """Returns the generalised covariance of the running sum of each unit term, (num_lags, 4)."""
    size = np.abs(k)
    logs = np.log(np.where(size > 0, size, 1.0))
    spike = np.where(size < stride / 2 + 1e-9, 1.0 / np.sqrt(stride), 0.0)  # the one lag stands for `stride` of them
    return np.stack([spike, -size / 2, size**2 * logs / (4 * np.log(2)), (size**3 - size) / 12], axis=1)
