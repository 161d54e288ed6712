"""Bounded least squares on the batch: every finite-difference column goes through one call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from gapless.core.interval import normal_quantile
from gapless.core.signal import Array
from gapless.identify.lean import is_smooth
from gapless.identify.solver.covariance import Pieces, clustered, together
from gapless.identify.solver.problem import PRIOR, Problem, robust, robust_bend, robust_pull, robust_slope

COARSE, MEDIUM, FINE = (
    0.1,
    0.03,
    0.01,
)  # finite-difference steps as shares of the range; contact needs large ones
DAMPINGS = (1e-6, 1e-3, 1e-2, 0.1, 0.4, 1.5, 6.0)  # of steps, as shares of the Hessian's diagonal
ENOUGH = 1e-3  # share of the cost: with coarse slopes an iteration that saves less is the last
LITTLE = 0.02  # of the sum of squares, with fine ones: it moves no parameter by more than 0.15 standard errors
FINER = 250.0  # slopes that judge a solution are finer by this where nothing touches
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

    It is run once per entry of the schedule, each time from where it was.

    Args:
        problem: What to minimise; if errors of its start states are discounted, as they show under `start`.
        start: (num_parameters,) whole row to begin at.
        schedule: (finite-difference step as a share of the range, iterations at most) of each run.
        progress: Called with how far it is, in [0, 1].
    """
    problem, unit = _descended(problem, start, schedule, progress)
    step = schedule[-1][0]
    return _summary(problem, unit, step / FINER if is_smooth(problem.predictor.blueprint) else step)


def approach(problem: Problem, start: Array, schedule: Sequence[tuple[float, int]]) -> Array:
    """Returns the whole row that `solve` arrives at, and spares what it takes to say how sure that is."""
    problem, unit = _descended(problem, start, schedule, None)
    return problem.rows(unit[None])[0]


def _descended(
    problem: Problem, start: Array, schedule: Sequence[tuple[float, int]], progress: Progress | None
) -> tuple[Problem, Array]:
    """Returns the free parameters in [0, 1] after all runs, and the problem as the last of them saw it.

    Errors of the start states are discounted as they show where each run begins.
    """
    unit = np.clip(problem.unit(start), 0.0, 1.0)
    for k, (step, max_iterations) in enumerate(schedule):
        report = None if progress is None else _reporter(progress, k / len(schedule), 1 / len(schedule))
        if k or problem.starts is None:
            problem = problem.at(problem.rows(unit[None])[0])
        unit = _minimise(problem, unit, step, max_iterations, report)
        problem.notice(unit)
    if progress is not None:
        progress("fit", 1.0)
    return problem, unit


def _reporter(progress: Progress, done: float, share: float) -> Callable[[float], None]:
    return lambda part: progress("fit", done + share * part)


def _minimise(
    problem: Problem,
    unit: Array,
    step: float,
    max_iterations: int,
    report: Callable[[float], None] | None,
) -> Array:
    """Minimises by Gauss-Newton steps, damped as far as real evaluations ask for (Levenberg and Marquardt).

    An iteration is two batched calls: all columns of the Jacobian, then the steps of all dampings; the best of these
    is taken.
    """
    centre, prior = problem.unit(problem.base), problem.prior

    def stacked(plain: Array, units: Array) -> Array:
        values = robust(plain).reshape(len(units), -1)
        return np.concatenate([values, prior * (units - centre)], axis=1)

    plain = problem.plain_residuals(unit[None])
    residual = stacked(plain, unit[None])[0]
    for iteration in range(max_iterations):
        jacobian = np.concatenate([_slopes(problem, unit, plain, step), np.diag(prior)])
        tries = unit + damped_steps(jacobian, residual, unit)
        tried = problem.plain_residuals(tries)
        outcomes = stacked(tried, tries)
        best = int(np.argmin(np.sum(outcomes**2, axis=1)))
        gain = 1.0 - float(np.sum(outcomes[best] ** 2) / np.sum(residual**2))
        if gain > 0:
            unit, residual, plain = np.clip(tries[best], 0.0, 1.0), outcomes[best], tried[best : best + 1]
            problem.notice(unit)
        if report is not None:
            report((iteration + 1) / max_iterations)
        if gain * np.sum(residual**2) < (ENOUGH * np.sum(residual**2) if step > FINE else LITTLE):
            break
    return unit


def _slopes(problem: Problem, unit: Array, plain: Array, step: float) -> Array:
    """Returns how robust residuals change with `unit`, (num_residuals, num_free), from one prediction per parameter.

    Fine slopes are those of the prediction times that of the loss: a difference of flattened residuals bends with the
    noise in them, more for those that the step makes larger, and the solver would stop aside of the minimum, always
    on the side that the steps go to. Far from the minimum flattening keeps one bad window from ruling all slopes.
    """
    steps = np.where(unit + step <= 1.0, step, -step)
    moved = problem.plain_residuals(unit + np.diag(steps))
    change = robust(moved) - robust(plain) if step > FINE else robust_slope(plain) * (moved - plain)
    return change.reshape(len(unit), -1).T / steps


def damped_steps(jacobian: Array, residual: Array, unit: Array) -> Array:
    """Returns the steps of all dampings that stay within bounds, (num_dampings, num_free)."""
    hessian, gradient = jacobian.T @ jacobian, jacobian.T @ residual
    scale = np.maximum(np.diag(hessian), 1e-9 * np.diag(hessian).max() + 1e-12)
    return np.stack([_bounded(hessian + np.diag(damping * scale), gradient, -unit, 1.0 - unit) for damping in DAMPINGS])


def _bounded(hessian: Array, gradient: Array, low: Array, high: Array) -> Array:
    """Returns the minimiser of x^T H x / 2 + g^T x within bounds."""
    factor = np.linalg.cholesky(hessian)
    return lsq_linear(factor.T, -np.linalg.solve(factor, gradient), (low - 1e-9, high + 1e-9), method="bvls").x


def _summary(problem: Problem, unit: Array, step: float) -> Solution:
    """Measures the solution: cost, information, and a covariance from pieces of windows; see `clustered`.

    Slopes are taken on both sides: the curvature in one-sided ones would pass for information along directions
    that these windows do not determine, such as gain and mass together; and so would what is left of it, if steps
    were large. They are those of the plain residuals, for the same reason: flattened ones bend.
    """
    above, below = np.minimum(unit + step, 1.0), np.maximum(unit - step, 0.0)
    moved = [np.where(np.eye(len(unit), dtype=bool), side, unit) for side in (above, below)]
    values = problem.plain_residuals(np.concatenate([unit[None], *moved]))
    residual, up, down = values[0], *np.split(values[1:], 2)
    jacobian = np.moveaxis((up - down) / (above - below)[:, None, None], 0, -1)
    pieces = _pieces(problem, jacobian, residual)
    information = pieces.whole_information
    covariance = _covariance(pieces, _pressed(unit, pieces.gradients.sum(axis=0)))
    unseen = np.diag(information) < PRIOR**2  # no window shows them: they stay as the model was written
    unit = np.where(unseen, problem.unit(problem.base), unit)
    row = problem.rows(unit[None])[0]
    return Solution(row, unit, covariance, information, 0.5 * float(np.sum(robust(residual) ** 2)))


def _pieces(problem: Problem, jacobian: Array, residual: Array) -> Pieces:
    """Returns what the pieces of all windows say, from slopes (num_windows, num_per_window, num_free) and residuals."""
    bend, pull = robust_bend(residual), robust_pull(residual)
    parts = [problem.in_pieces(part) for part in (jacobian, bend, pull)]
    information = np.einsum("wri,wr,wrj->wij", parts[0], parts[1], parts[0], optimize=True)
    gradients = np.einsum("wri,wr->wi", parts[0], parts[2])
    if problem.starts is None:
        return Pieces(information, gradients, np.zeros(information.shape[1:]))
    taken = problem.starts.taken_out
    in_pieces = np.einsum("wrd,wri->wdi", problem.in_pieces(taken), parts[0])
    num_left = max(1.0, np.count_nonzero(residual) - np.sum(taken**2) - jacobian.shape[2])
    shared = together(in_pieces, np.einsum("wrd,wri->wdi", taken, jacobian), float(np.sum(pull**2) / num_left))
    return Pieces(information, gradients, shared)


def _pressed(unit: Array, gradient: Array) -> NDArray[np.bool_]:
    """Tells which parameters lie at a bound that the data would have them cross."""
    return ((unit < AT_BOUND) & (gradient > 0)) | ((unit > 1 - AT_BOUND) & (gradient < 0))


def _covariance(pieces: Pieces, pressed: NDArray[np.bool_]) -> Array:
    """Returns the covariance of the free parameters; those pressed against a bound are held, each on its own."""
    covariance = np.diag(1.0 / (np.diag(pieces.whole_information) + PRIOR**2))
    free = np.flatnonzero(~pressed)
    if len(free):
        covariance[np.ix_(free, free)] = clustered(pieces.of(free), PRIOR)
    return covariance
