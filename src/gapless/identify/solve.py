"""Bounded least squares on the batch: every finite-difference column goes through one call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from mujoco import minimize
from numpy.typing import NDArray

from gapless.core.interval import normal_quantile
from gapless.core.signal import Array
from gapless.identify.problem import PRIOR, Problem

COARSE, MEDIUM, FINE = (
    0.1,
    0.03,
    0.01,
)  # finite-difference steps as shares of the range; contact needs large ones
AT_BOUND = 0.005  # nearer to a bound than this share of the range is at the bound
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
    problem: Problem,
    start: Array,
    schedule: Sequence[tuple[float, int]] = ((MEDIUM, 6), (FINE, 6)),
    progress: Progress | None = None,
) -> Solution:
    """Minimises the problem from a whole row.

    The optimiser is MuJoCo's own bounded Gauss-Newton (`mujoco.minimize`); residuals and Jacobian come from the
    batched simulation. It is run once per entry of the schedule, each time from where it was.

    Args:
        problem: What to minimise.
        start: (num_parameters,) whole row to begin at.
        schedule: (finite-difference step as a share of the range, iterations at most) of each run.
        progress: Called with how far it is, in [0, 1].
    """
    unit = np.clip(problem.unit(start), 0.0, 1.0)
    step = FINE
    for k, (step, max_iterations) in enumerate(schedule):
        done = k / len(schedule)
        report = None if progress is None else _reporter(progress, done, 1 / (len(schedule) * max_iterations))
        problem = problem.at(problem.rows(unit[None])[0])
        unit = _minimise(problem, unit, step, max_iterations, report)
    if progress is not None:
        progress("fit", 1.0)
    return _summary(problem, unit, step)


def _reporter(progress: Progress, done: float, share: float) -> Callable[[list[minimize.IterLog]], None]:
    return lambda trace: progress("fit", min(1.0, done + share * len(trace)))


def _minimise(
    problem: Problem,
    unit: Array,
    step: float,
    max_iterations: int,
    report: Callable[[list[minimize.IterLog]], None] | None,
) -> Array:
    centre = problem.unit(problem.base)

    def stacked(units: Array) -> Array:
        values = problem.residuals(units.T).reshape(units.shape[1], -1).T
        return np.concatenate([values, PRIOR * (units - centre[:, None])])

    def jacobian(at: Array, residual: Array) -> Array:
        flat = at.ravel()
        steps = np.where(flat + step <= 1.0, step, -step)
        moved = stacked(flat[:, None] + np.diag(steps))
        return (moved - residual.reshape(-1, 1)) / steps

    found, _ = minimize.least_squares(
        unit,
        stacked,
        [np.zeros(len(unit)), np.ones(len(unit))],
        jacobian=jacobian,
        mu_min=1e-2,
        mu_factor=4.0,
        xtol=1e-3,
        gtol=1e-4,
        max_iter=max_iterations,
        verbose=minimize.Verbosity.SILENT,
        iter_callback=report,
    )
    return np.clip(found.ravel(), 0.0, 1.0)


def search(problem: Problem, rng: np.random.Generator, num_tries: int = 64) -> Array:
    """Looks for a good row without any slopes, for landscapes that contact makes rugged; returns it.

    Draws from the bounds, some of them near the model as written; then from ever smaller clouds about the best.
    """
    problem = problem.at(problem.base)
    centre = problem.unit(problem.base)
    tries = rng.uniform(0.0, 1.0, (num_tries, len(centre)))
    tries = centre + rng.uniform(0.0, 1.0, (num_tries, 1)) * (tries - centre)
    best, cost = _best_of(problem, tries, centre, np.inf)
    for spread in (0.1, 0.1, 0.05, 0.05, 0.02, 0.02):
        cloud = np.clip(best + spread * rng.standard_normal((num_tries // 2, len(centre))), 0.0, 1.0)
        best, cost = _best_of(problem, cloud, best, cost)
    return problem.rows(best[None])[0]


def _best_of(problem: Problem, units: Array, best: Array, cost: float) -> tuple[Array, float]:
    costs = 0.5 * np.sum(problem.residuals(units) ** 2, axis=(1, 2))
    index = int(np.argmin(costs))
    return (units[index], float(costs[index])) if costs[index] < cost else (best, cost)


def _summary(problem: Problem, unit: Array, step: float) -> Solution:
    """Measures the solution: cost, information, and a covariance clustered by window.

    With g_w the gradient of window w and H the Gauss-Newton matrix plus prior: cov = H^-1 (sum g_w g_w^T) H^-1
    plus the prior's part, which stays right when errors within a window go together (Liang and Zeger, 1986).
    Slopes are taken on both sides: the curvature in one-sided ones would pass for information along directions
    that these windows do not determine, such as gain and mass together.
    """
    above, below = np.minimum(unit + step, 1.0), np.maximum(unit - step, 0.0)
    moved = [np.where(np.eye(len(unit), dtype=bool), side, unit) for side in (above, below)]
    values = problem.residuals(np.concatenate([unit[None], *moved]))
    residual, up, down = values[0], *np.split(values[1:], 2)
    jacobian = np.moveaxis((up - down) / (above - below)[:, None, None], 0, -1)
    information = np.einsum("wri,wrj->ij", jacobian, jacobian)
    gradients = np.einsum("wri,wr->wi", jacobian, residual)
    covariance = _covariance(information, gradients, _pressed(unit, gradients.sum(axis=0)))
    unseen = np.diag(information) < PRIOR**2  # no window shows them: they stay as the model was written
    unit = np.where(unseen, problem.unit(problem.base), unit)
    row = problem.rows(unit[None])[0]
    return Solution(row, unit, covariance, information, 0.5 * float(np.sum(residual**2)))


def _pressed(unit: Array, gradient: Array) -> NDArray[np.bool_]:
    """Tells which parameters lie at a bound that the data would have them cross."""
    return ((unit < AT_BOUND) & (gradient > 0)) | ((unit > 1 - AT_BOUND) & (gradient < 0))


def _covariance(information: Array, gradients: Array, pressed: NDArray[np.bool_]) -> Array:
    """Returns the covariance of the free parameters; those pressed against a bound are held, each on its own."""
    count = len(gradients)
    curvature = information + PRIOR**2 * np.eye(len(information))
    covariance = np.diag(1.0 / np.diag(curvature))
    free = np.flatnonzero(~pressed)
    if len(free):
        moved = gradients[:, free] - gradients[:, free].mean(axis=0)
        spread = moved.T @ moved * count / max(1, count - len(free)) + PRIOR**2 * np.eye(len(free))
        inverse = np.linalg.inv(curvature[np.ix_(free, free)])
        covariance[np.ix_(free, free)] = inverse @ spread @ inverse
    return covariance
