"""Bounded least squares on the batch: every finite-difference column goes through one call."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from mujoco import minimize

from gapless.core.interval import normal_quantile
from gapless.core.signal import Array
from gapless.identify.problem import PRIOR, Problem

STEP = 0.01  # finite-difference step as a share of the range: large enough for contact
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Solution:
    """A solved problem.

    Attributes:
        row: (num_parameters,) whole row of the predictor's space.
        unit: (num_free,) the free parameters in [0, 1].
        covariance: (num_free, num_free) of `unit`, robust to errors that persist within a window.
        information: (num_free, num_free) Gauss-Newton information about `unit`, the prior left out.
        cost: Half the sum of squares of the robust residuals.
    """

    row: Array
    unit: Array
    covariance: Array
    information: Array
    cost: float

    def half_width(self, level: float = 0.95) -> Array:
        """Returns the half widths of intervals of `unit`, (num_free,)."""
        return normal_quantile((1 + level) / 2) * np.sqrt(np.diag(self.covariance))


def solve(
    problem: Problem, start: Array, max_iterations: int = 20, progress: Progress | None = None
) -> Solution:
    """Minimises the problem from a whole row.

    The optimiser is MuJoCo's own bounded Gauss-Newton (`mujoco.minimize`); residuals and Jacobian come from the
    batched simulation.
    """
    centre = problem.unit(problem.base)

    def stacked(unit: Array) -> Array:
        values = problem.residuals(unit.T).reshape(unit.shape[1], -1).T
        return np.concatenate([values, PRIOR * (unit - centre[:, None])])

    def jacobian(unit: Array, residual: Array) -> Array:
        flat = unit.ravel()
        steps = np.where(flat + STEP <= 1.0, STEP, -STEP)
        moved = stacked(flat[:, None] + np.diag(steps))
        return (moved - residual.reshape(-1, 1)) / steps

    count = len(problem.free)
    bounds = [np.zeros(count), np.ones(count)]
    first = np.clip(problem.unit(start), 0.0, 1.0)

    def report(trace: list[minimize.IterLog]) -> None:
        if progress is not None:
            progress("fit", len(trace) / max_iterations)

    unit, _ = minimize.least_squares(
        first,
        stacked,
        bounds,
        jacobian=jacobian,
        xtol=1e-3,
        gtol=1e-4,
        max_iter=max_iterations,
        verbose=minimize.Verbosity.SILENT,
        iter_callback=report,
    )
    return _summary(problem, np.clip(unit.ravel(), 0.0, 1.0))


def best_start(problem: Problem, rng: np.random.Generator, num_tries: int = 24) -> Array:
    """Returns the best of the base row and some rows drawn from the bounds, in one batched call."""
    tries = rng.uniform(0.0, 1.0, (num_tries, len(problem.free)))
    mix = rng.uniform(0.0, 1.0, (num_tries, 1))
    centre = problem.unit(problem.base)
    tries = np.concatenate([centre[None], centre + mix * (tries - centre)])
    cost = np.sum(problem.residuals(tries) ** 2, axis=(1, 2))
    return problem.rows(tries[[int(np.argmin(cost))]])[0]


def _summary(problem: Problem, unit: Array) -> Solution:
    """Measures the solution: cost, information, and a covariance clustered by window.

    With g_w the gradient of window w and H the Gauss-Newton matrix plus prior: cov = H^-1 (sum g_w g_w^T) H^-1,
    which stays right when errors within a window go together (White, Liang and Zeger), plus the prior's part.
    """
    steps = np.where(unit + STEP <= 1.0, STEP, -STEP)
    values = problem.residuals(np.concatenate([unit[None], unit + np.diag(steps)]))
    residual, moved = values[0], values[1:]
    jacobian = np.moveaxis((moved - residual) / steps[:, None, None], 0, -1)
    information = np.einsum("wri,wrj->ij", jacobian, jacobian)
    inverse = np.linalg.inv(information + PRIOR**2 * np.eye(len(unit)))
    gradients = np.einsum("wri,wr->wi", jacobian, residual)
    spread = gradients.T @ gradients * len(residual) / max(1, len(residual) - len(unit))
    covariance = inverse @ (spread + PRIOR**2 * np.eye(len(unit))) @ inverse
    row = problem.rows(unit[None])[0]
    return Solution(row, unit, covariance, information, 0.5 * float(np.sum(residual**2)))
