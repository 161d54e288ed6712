"""Ranges as wide as the policy's success allows: most entropy under a constraint on success.

After DORAEMON (Tiboni and others: Domain randomization via entropy maximization, ICLR 2024): each parameter has a beta
distribution on its limits; after a number of runs the distributions move to those of greatest entropy for which the
success rate, estimated from these runs by importance weights, stays above a target, at most a given KL divergence
away; if there are none, they move to those of greatest success instead.

Differences: importance weights are divided by their sum (less scatter, a small bias); the solver (SLSQP) gets analytic
slopes in double precision: in single precision the divergence of near distributions comes out below 0 and nothing
moves; shapes are stepped in by factors.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from gapless.core.distribution import Distribution, Range
from gapless.core.signal import Array, Flags
from gapless.learn.curriculum import beta
from gapless.learn.curriculum.limits import Limits

TARGET = 0.7  # success rate to keep
KL = 0.5  # most that the distributions move at a time [nat]
ENOUGH = 100  # runs between moves
NARROW = 60.0  # a + b at the start: a standard deviation of 6 % of the limits in the middle
LEAST, MOST = 0.9, 500.0  # of a and b; 1 and 1 is even
EDGE = 1e-3  # points this near the limits count as here: densities there may be infinite
Slopes = Callable[[Array], Array]


class MaxEntropy:
    """Beta distributions on each parameter's limits. A `Curriculum`."""

    def __init__(self, limits: Distribution) -> None:
        """Begins narrow."""
        self._limits = Limits.of(limits)
        mean = np.clip(self._limits.start, 1.2 / NARROW, 1 - 1.2 / NARROW)
        self.shape = NARROW * np.stack([mean, 1 - mean], axis=1)
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
        return self._limits.grown(ranges)

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Returns rows of the present distributions."""
        return self._limits.rows(rng.beta(*self.shape.T, (count, len(self.shape))), rng)

    def told(self, rows: Array, success: Flags) -> None:
        """Takes note of runs."""
        self._points.extend(np.clip(self._limits.unit(rows), EDGE, 1 - EDGE))
        self._success.extend(bool(won) for won in success)

    def advance(self) -> None:
        """Moves the distributions after `ENOUGH` runs. Runs that began before the last move count as of now."""
        if len(self._success) < ENOUGH or not len(self.shape):
            return
        points, won = np.stack(self._points), np.array(self._success, dtype=np.float64)
        self.shape = widened(self.shape, points, won)
        self._points.clear()
        self._success.clear()

    def restore(self, distribution: Distribution) -> None:
        """Goes on from ranges of kind `beta`."""
        told = {item.target: item for item in distribution.ranges}
        self.shape = np.array([told[item.target].shape() for item in self._limits.ranges])


def success_rate(shape: Array, old: Array, points: Array, won: Array) -> tuple[float, Array]:
    """Returns the success rate under other distributions, from runs under `old`, and its slopes, (num, 2).

    sum w s / sum w with w = density / old density, self-normalised.
    """
    log_weight = beta.log_density(shape, points) - beta.log_density(old, points)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    rate = float(weight @ won)
    slope = np.einsum("p,pka->ka", weight * (won - rate), beta.log_density_slope(shape, points))
    return rate, slope


def widened(old: Array, points: Array, won: Array) -> Array:
    """Returns the shapes, (num, 2), that a step of the curriculum moves to.

    Args:
        old: (num, 2) the present shapes.
        points: (num_runs, num) where runs were, inside (0, 1).
        won: (num_runs,) 1 for success, 0 for failure.
    """
    near = {
        "type": "ineq",
        **_in_logs(lambda s: KL - beta.divergence(s, old), lambda s: -beta.divergence_slope(s, old)),
    }

    def rate(shape: Array) -> float:
        return success_rate(shape, old, points, won)[0]

    def rate_slope(shape: Array) -> Array:
        return success_rate(shape, old, points, won)[1]

    good = {"type": "ineq", **_in_logs(lambda s: rate(s) - TARGET, rate_slope)}
    wide = _in_logs(lambda s: -beta.entropy(s), lambda s: -beta.entropy_slope(s))
    successful = _in_logs(lambda s: -rate(s), lambda s: -rate_slope(s))
    for goal, constraints in ((wide, [near, good]), (successful, [near])):
        found = _best(old, goal, constraints)
        if found is not None:
            return found
    return old


def _in_logs(value: Callable[[Array], float], slope: Slopes) -> dict[str, Callable[[Array], float | Array]]:
    """Returns a function of shapes and its slopes as functions of the shapes' logarithms, flat."""

    def shape_of(logs: Array) -> Array:
        return np.exp(logs).reshape(-1, 2)

    return {
        "fun": lambda logs: value(shape_of(logs)),
        "jac": lambda logs: (slope(shape_of(logs)) * shape_of(logs)).ravel(),
    }


def _best(
    old: Array, goal: dict[str, Callable[[Array], float | Array]], constraints: list[dict[str, object]]
) -> Array | None:
    """Returns the shapes at the least of `goal`; None if the solver finds none that keep the constraints."""
    logs = np.log(np.clip(old, LEAST, MOST)).ravel()
    bounds = [(np.log(LEAST), np.log(MOST))] * len(logs)
    options = {"maxiter": 50}
    found = minimize(
        goal["fun"], logs, jac=goal["jac"], bounds=bounds, constraints=constraints, method="SLSQP", options=options
    )
    kept = all(float(item["fun"](found.x)) > -1e-3 for item in constraints)  # type: ignore[operator]
    return np.exp(found.x).reshape(-1, 2) if kept and np.isfinite(found.x).all() else None
