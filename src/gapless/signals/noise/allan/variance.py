"""The overlapping Allan variance of a column with gaps, and how it scatters.

With X the running sum of the samples, the Allan variance at m samples is mean((X[k+2m] - 2 X[k+m] + X[k])^2) / (2 m^2)
over every k (IEEE Std 952-1997, annex C). Each kind of noise gives it one shape in m, and its generalised covariance
g(k), for which sums of X with coefficients c that annul straight lines have the variance sum(c_i c_j g(i - j)), gives
the covariance of the estimates at all m in closed form: no table of degrees of freedom is needed.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from gapless.core.signal import Array, Flags

TERMS = ("quantisation", "white", "flicker", "walk")
FEWEST = 3.0  # the longest averages of which so many fit into the log twice
WHOLE = 0.5  # share of the samples that an average must have
LAGS = 8  # lags per averaging time in the sums over lags
APART = 4  # octaves beyond which two estimates count as independent


@dataclass(frozen=True)
class Allan:
    """Allan variances of one column.

    Attributes:
        interval_s: Time between samples [s].
        sizes: (num_sizes,) samples per average: powers of two.
        variance: (num_sizes,) Allan variance [unit^2].
        windows: (num_sizes,) pairs of averages that had enough samples.
        num_samples: Places for samples, gaps included.
        slope: Slope of the straight line through the samples [unit per sample].
    """

    interval_s: float
    sizes: Array
    variance: Array
    windows: Array
    num_samples: int
    slope: float

    @property
    def tau_s(self) -> Array:
        """Averaging times [s]."""
        return self.sizes * self.interval_s

    def since(self, first: int) -> "Allan":
        """Returns the same without the shortest averaging times, of which there are `first`."""
        kept = {"sizes": self.sizes[first:], "variance": self.variance[first:], "windows": self.windows[first:]}
        return replace(self, **kept)


def allan_variance(values: Array, interval_s: float) -> Allan:
    """Returns the overlapping Allan variance of evenly spaced samples, NaN where one is missing.

    An average needs at least half of its samples. One of c instead of m samples has more white noise: squares are
    multiplied by (2/m) / (1/c1 + 1/c2), which is exact for white noise. It lowers flicker and random walk by the
    share that is missing.

    Args:
        values: (num_samples,) in any unit.
        interval_s: Time between samples [s].
    """
    there = np.isfinite(values)
    middle = float(np.median(values[there])) if there.any() else 0.0
    sums = np.concatenate([[0.0], np.cumsum(np.where(there, values - middle, 0.0))])
    counts = np.concatenate([[0], np.cumsum(there)])
    sizes, variance, windows = list[int](), list[float](), list[int]()
    size = 1
    while 2 * size * FEWEST <= max(len(values), 2 * FEWEST):
        found = _at(sums, counts, size)
        if found is not None:
            sizes.append(size)
            variance.append(found[0])
            windows.append(found[1])
        size *= 2
    arrays = np.array(sizes, float), np.array(variance), np.array(windows, float)
    return Allan(interval_s, *arrays, len(values), _slope(values, there))


def _slope(values: Array, there: Flags) -> float:
    places = np.flatnonzero(there) - (len(values) - 1) / 2
    return float(np.polyfit(places, values[there], 1)[0]) if len(places) > 1 else 0.0


def _at(sums: Array, counts: Array, size: int) -> tuple[float, int] | None:
    first, second = counts[size:-size] - counts[: -2 * size], counts[2 * size :] - counts[size:-size]
    usable = (first >= max(1, WHOLE * size)) & (second >= max(1, WHOLE * size))
    if not usable.any():
        return None
    first, second = first[usable], second[usable]
    before = (sums[size:-size] - sums[: -2 * size])[usable] / first
    after = (sums[2 * size :] - sums[size:-size])[usable] / second
    scaled = (after - before) ** 2 * (2 / size) / (1 / first + 1 / second)
    return float(scaled.mean()) / 2, int(usable.sum())


def shapes(sizes: Array) -> Array:
    """Returns the Allan variance of each term of unit size, (num_sizes, num_terms), in the order of `TERMS`.

    quantisation: 3 / m^2; white: 1 / m; flicker: 1; walk: (2 m^2 + 1) / (6 m). Units: variance of the quantised running
    sum, variance per sample, plateau, variance of a step per sample. (A ramp of slope R per sample has R^2 m^2 / 2.)
    """
    m = np.asarray(sizes, dtype=float)
    return np.stack([3 / m**2, 1 / m, np.ones_like(m), (2 * m**2 + 1) / (6 * m)], axis=1)


def covariance(allan: Allan, sizes_of_terms: Array) -> Array:
    """Returns the covariance of the estimates if the terms have these sizes, (num_sizes, num_sizes).

    Of normal noise it is the mean over pairs of windows of 2 r^2, with r the covariance of the two differences.
    """
    count = len(allan.sizes)
    made = np.zeros((count, count))
    for i in range(count):
        for j in range(i, min(count, i + APART + 1)):
            made[i, j] = made[j, i] = _pair(allan, i, j, sizes_of_terms)
    return made


def _pair(allan: Allan, i: int, j: int, sizes_of_terms: Array) -> float:
    m, n = int(allan.sizes[i]), int(allan.sizes[j])
    stride, weights, parts = _lags(m, n, allan.num_samples)
    r = parts @ sizes_of_terms
    lost = (allan.num_samples - 2 * m + 1) * (allan.num_samples - 2 * n + 1) / (allan.windows[i] * allan.windows[j])
    # Windows that are missing take pairs away in proportion: half of them leaves half of the information.
    return stride * float(weights @ (2 * r**2)) / (2 * m * m * 2 * n * n) * np.sqrt(lost)


@cache
def _lags(m: int, n: int, num_samples: int) -> tuple[int, Array, Array]:
    """Returns the stride of the lags, the share of window pairs at each, and the covariance there of unit terms."""
    stride = max(1, m // LAGS)
    first, second = num_samples - 2 * m + 1, num_samples - 2 * n + 1  # windows of each size
    reach = min(num_samples, 8 * n)
    lags = np.arange(-reach, reach + 1, stride, dtype=float)  # where the second begins, after the first
    pairs = np.clip(np.minimum(first, second - lags) - np.maximum(0.0, -lags), 0.0, None)
    keep = pairs > 0
    lags, pairs = lags[keep], pairs[keep]
    parts = np.zeros((len(lags), 4))
    for a, c in ((0, 1.0), (1, -2.0), (2, 1.0)):
        for b, e in ((0, 1.0), (1, -2.0), (2, 1.0)):
            parts += c * e * _generalised(lags + b * n - a * m, stride)
    return stride, pairs / (float(first) * float(second)), parts


def _generalised(k: Array, stride: int) -> Array:
    """Returns the generalised covariance of the running sum of each unit term, (num_lags, 4)."""
    size = np.abs(k)
    logs = np.log(np.where(size > 0, size, 1.0))
    spike = np.where(size < stride / 2 + 1e-9, 1.0 / np.sqrt(stride), 0.0)  # the one lag stands for `stride` of them
    return np.stack([spike, -size / 2, size**2 * logs / (4 * np.log(2)), (size**3 - size) / 12], axis=1)
