"""Ranges as wide as the policy's success allows: most entropy under a constraint on success.

After DORAEMON (Tiboni and others: Domain randomization via entropy maximization, ICLR 2024): each parameter has a beta
distribution on its limits; after a number of runs the distributions move to those of greatest entropy for which the
success rate, estimated from these runs by importance weights, stays above a target, at most a given KL divergence
away; if there are none, they move to those of greatest success instead.

Differences: importance weights are divided by their sum (less scatter, a small bias); the solver (SLSQP) gets analytic
slopes in double precision: in single precision the divergence of near distributions comes out below 0 and nothing
moves; shapes are stepped in by factors.

`shape`, (num, 2), holds a and b of each beta distribution; slopes have its form.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln, digamma, polygamma

from gapless.core.distribution import Distribution, Range
from gapless.core.signal import Array, Flags
from gapless.learn.curriculum.growth import GrowthLimits

MIN_SUCCESS = 0.7  # success rate to keep
MAX_DIVERGENCE = 0.5  # that the distributions move at a time [nat]
MIN_RUNS = 100  # between moves
START_SIZE = 60.0  # a + b at the start: a standard deviation of 6 % of the limits in the middle
MIN_SHAPE, MAX_SHAPE = 0.9, 500.0  # of a and b; 1 and 1 is even
EDGE = 1e-3  # points this near the limits count as here: densities there may be infinite
Sloped = Callable[[Array], tuple[float, Array]]  # shape -> value and its slopes


class MaxEntropy:
    """Beta distributions on each parameter's limits. A `Curriculum`."""

    def __init__(self, limits: Distribution) -> None:
        """Begins narrow."""
        self._limits = GrowthLimits.of(limits)
        mean = np.clip(self._limits.start, 1.2 / START_SIZE, 1 - 1.2 / START_SIZE)
        self.shape = START_SIZE * np.stack([mean, 1 - mean], axis=1)
        self._points: list[Array] = []
        self._success: list[bool] = []

    @property
    def distribution(self) -> Distribution:
        """The distributions as ranges of kind `beta`."""
        size = self.shape.sum(axis=1)
        mean = self.shape[:, 0] / size
        std = np.sqrt(mean * (1 - mean) / (size + 1))
        span = self._limits.high - self._limits.low
        reason = "grown as far as success allows"
        ranges = [
            Range(r.target, "beta", r.low, r.high, float(r.low + w * m), float(w * s), reason)
            for r, m, s, w in zip(self._limits.ranges, mean, std, span, strict=True)
        ]
        return self._limits.with_ranges(ranges)

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Returns rows of the present distributions."""
        a, b = self.shape.T
        return self._limits.rows(rng.beta(a, b, (count, len(self.shape))), rng)

    def record_outcomes(self, rows: Array, success: Flags) -> None:
        """Takes note of runs."""
        self._points.extend(np.clip(self._limits.unit(rows), EDGE, 1 - EDGE))
        self._success.extend(bool(won) for won in success)

    def advance(self) -> None:
        """Moves the distributions after `MIN_RUNS` runs. Runs that began before the last move count as of now."""
        if len(self._success) < MIN_RUNS or not len(self.shape):
            return
        self.shape = move_shapes(self.shape, np.stack(self._points), np.array(self._success, dtype=np.float64))
        self._points.clear()
        self._success.clear()

    def restore(self, distribution: Distribution) -> None:
        """Goes on from ranges of kind `beta`."""
        self.shape = np.array([item.shape() for item in self._limits.find_own(distribution)])


def log_density(shape: Array, unit: Array) -> tuple[Array, Array]:
    """Returns the log density of points inside (0, 1), (num_points, num), and its slopes, (num_points, num, 2)."""
    a, b = shape.T
    density = np.sum((a - 1) * np.log(unit) + (b - 1) * np.log1p(-unit) - betaln(a, b), axis=1)
    both = digamma(a + b)
    return density, np.stack([np.log(unit) - digamma(a) + both, np.log1p(-unit) - digamma(b) + both], axis=-1)


def entropy(shape: Array) -> tuple[float, Array]:
    """Returns the entropy [nat], 0 for even distributions and below for all others, and its slopes."""
    a, b = shape.T
    terms = betaln(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b) + (a + b - 2) * digamma(a + b)
    both = (a + b - 2) * polygamma(1, a + b)
    return float(terms.sum()), np.stack([both - (a - 1) * polygamma(1, a), both - (b - 1) * polygamma(1, b)], axis=-1)


def divergence(shape: Array, other: Array) -> tuple[float, Array]:
    """Returns KL(shape || other) [nat], at least 0, and its slopes by its first argument."""
    (a, b), (c, d) = shape.T, other.T
    terms = betaln(c, d) - betaln(a, b) + (a - c) * digamma(a) + (b - d) * digamma(b)
    value = float((terms + (c - a + d - b) * digamma(a + b)).sum())
    both = (c - a + d - b) * polygamma(1, a + b)
    return value, np.stack([(a - c) * polygamma(1, a) + both, (b - d) * polygamma(1, b) + both], axis=-1)


def success_rate(shape: Array, old: Array, points: Array, won: Array) -> tuple[float, Array]:
    """Returns the success rate under other distributions, from runs under `old`, and its slopes.

    sum w s / sum w with w = density / old density, self-normalised.
    """
    density, slopes = log_density(shape, points)
    log_weight = density - log_density(old, points)[0]
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    rate = float(weight @ won)
    return rate, np.einsum("p,pka->ka", weight * (won - rate), slopes)


def move_shapes(old: Array, points: Array, won: Array) -> Array:
    """Returns the shapes, (num, 2), that a step of the curriculum moves to.

    Args:
        old: (num, 2) the present shapes.
        points: (num_runs, num) where runs were, inside (0, 1).
        won: (num_runs,) 1 for success, 0 for failure.
    """

    def rate(shape: Array) -> tuple[float, Array]:
        return success_rate(shape, old, points, won)

    near = {"type": "ineq", **_in_logs(lambda shape: divergence(shape, old), -1.0, MAX_DIVERGENCE)}
    good = {"type": "ineq", **_in_logs(rate, 1.0, -MIN_SUCCESS)}
    for goal, constraints in ((_in_logs(entropy, -1.0), [near, good]), (_in_logs(rate, -1.0), [near])):
        found = _minimize(old, goal, constraints)
        if found is not None:
            return found
    return old


def _in_logs(function: Sloped, sign: float, offset: float = 0.0) -> dict[str, Callable[[Array], Any]]:
    """Returns sign * function + offset and its slopes, as functions of the shapes' logarithms, flat."""

    def shape_of(logs: Array) -> Array:
        return np.exp(logs).reshape(-1, 2)

    return {
        "fun": lambda logs: offset + sign * function(shape_of(logs))[0],
        "jac": lambda logs: (sign * function(shape_of(logs))[1] * shape_of(logs)).ravel(),
    }


def _minimize(old: Array, goal: dict[str, Callable[[Array], Any]], constraints: list[dict[str, Any]]) -> Array | None:
    """Returns the shapes at the least of `goal`; None if the solver finds none that keep the constraints."""
    logs = np.log(np.clip(old, MIN_SHAPE, MAX_SHAPE)).ravel()
    bounds = [(np.log(MIN_SHAPE), np.log(MAX_SHAPE))] * len(logs)
    found = minimize(**goal, x0=logs, bounds=bounds, constraints=constraints, method="SLSQP", options={"maxiter": 50})
    kept = all(float(item["fun"](found.x)) > -1e-3 for item in constraints)
    return np.exp(found.x).reshape(-1, 2) if kept and np.isfinite(found.x).all() else None
