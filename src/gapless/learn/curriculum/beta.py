"""Products of beta distributions on [0, 1]: density, entropy and divergence with their slopes, in double precision.

All take `shape`, (num, 2): a and b of each; slopes have its form.
"""

import numpy as np
from scipy.special import betaln, digamma, polygamma

from gapless.core.signal import Array


def log_density(shape: Array, unit: Array) -> Array:
    """Returns the log density of points, (num_points,), for `unit` of (num_points, num) inside (0, 1)."""
    a, b = shape.T
    return np.sum((a - 1) * np.log(unit) + (b - 1) * np.log1p(-unit) - betaln(a, b), axis=1)


def log_density_slope(shape: Array, unit: Array) -> Array:
    """Returns the slopes of `log_density`, (num_points, num, 2)."""
    a, b = shape.T
    both = digamma(a + b)
    return np.stack([np.log(unit) - digamma(a) + both, np.log1p(-unit) - digamma(b) + both], axis=-1)


def entropy(shape: Array) -> float:
    """Returns the entropy [nat]: 0 for even distributions, below for all others."""
    a, b = shape.T
    terms = betaln(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b) + (a + b - 2) * digamma(a + b)
    return float(terms.sum())


def entropy_slope(shape: Array) -> Array:
    """Returns the slopes of `entropy`."""
    a, b = shape.T
    both = (a + b - 2) * polygamma(1, a + b)
    return np.stack([both - (a - 1) * polygamma(1, a), both - (b - 1) * polygamma(1, b)], axis=-1)


def divergence(shape: Array, other: Array) -> float:
    """Returns KL(shape || other) [nat], at least 0."""
    a, b = shape.T
    c, d = other.T
    terms = betaln(c, d) - betaln(a, b) + (a - c) * digamma(a) + (b - d) * digamma(b)
    return float((terms + (c - a + d - b) * digamma(a + b)).sum())


def divergence_slope(shape: Array, other: Array) -> Array:
    """Returns the slopes of `divergence` by its first argument."""
    a, b = shape.T
    c, d = other.T
    both = (c - a + d - b) * polygamma(1, a + b)
    return np.stack([(a - c) * polygamma(1, a) + both, (b - d) * polygamma(1, b) + both], axis=-1)
