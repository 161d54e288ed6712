"""Bounded least squares on the batch: every finite-difference column goes through one call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from gapless.core.interval import normal_quantile
from gapless.core.signal import Array
from gapless.identify.lean import is_smooth
from gapless.identify.solver.covariance import Pieces, clustered, together
from gapless.identify.solver.problem import PRIOR, Problem, robust, robust_bend, robust_pull, robust_slope, spreads
from gapless.sim.blueprint import finer
from gapless.sim.prediction.predict import Predictor

COARSE, MEDIUM, FINE = (
    0.1,
    0.03,
    0.01,
)  # finite-difference steps as shares of the range; contact needs large ones
DAMPINGS = (1e-6, 1e-3, 1e-2, 0.1, 0.4, 1.5, 6.0)  # of steps, as shares of the Hessian's diagonal
ENOUGH = 1e-3  # share of the cost: with coarse slopes an iteration that saves less is the last
LITTLE = 0.02  # of the sum of squares, with fine ones: it moves no parameter by more than 0.15 standard errors
FINEST = FINE / 250.0  # steps of the slopes that judge a solution, where nothing touches
AGREE = 1.5  # a slope that grows by more than this with finer steps is a jump, and tells nothing of its parameter
FINER_TIME = 8  # how much finer the time step is whose effect says how far to trust the model's
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
    return _summary(*_descended(problem, start, schedule, progress))


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


def widened(problem: Problem, solution: Solution, held: Sequence[int]) -> Solution:
    """Returns a solution with intervals that also hold if the time step or values that were not fitted are a bit off.

    A mass of which a motion shows little is left as written, and whatever was fitted makes up for it; a delay makes up
    for a coarse time step. Each fitted parameter is as unsure as those are, times how much it moves with them. Values
    are known to what a careful builder knows (`spreads`), the time step to its effect, both to what these windows say
    of them besides: too little to fit them, yet enough to say how far off they may be.

    Args:
        problem: What was solved.
        solution: Its solution.
        held: Columns of values that were not fitted.
    """
    number = len(problem.free)
    both = replace(problem, free=(*problem.free, *held)).at(solution.row)
    unit = both.unit(solution.row)
    residual, jacobian = _judging_slopes(both, unit)
    predictor = Predictor(finer(both.predictor.blueprint, FINER_TIME), both.predictor.space)
    fine = replace(both, predictor=predictor).plain_residuals(unit[None])[0]
    jacobian = np.concatenate([jacobian, (fine - residual)[..., None]], axis=-1)
    pieces = _pieces(both, jacobian, residual)
    known, pull = pieces.whole_information, pieces.gradients.sum(axis=0)
    moves = np.linalg.solve(known[:number, :number] + PRIOR**2 * np.eye(number), known[:number, number:])
    spread = np.append(spreads(both.space)[number:], 1.0)
    left = known[number:, number:] - known[number:, :number] @ moves + np.diag(1.0 / spread**2)
    off = np.clip(np.linalg.solve(left, moves.T @ pull[:number] - pull[number:]), -2.0 * spread, 2.0 * spread)
    square = np.linalg.inv(left) + np.outer(off, off)  # about what was written, where they stayed
    return replace(solution, covariance=solution.covariance + moves @ square @ moves.T)


def _summary(problem: Problem, unit: Array) -> Solution:
    """Measures the solution: cost, information, and a covariance from pieces of windows; see `clustered`."""
    residual, jacobian = _judging_slopes(problem, unit)
    pieces = _pieces(problem, jacobian, residual)
    information = pieces.whole_information
    covariance = _covariance(pieces, _pressed(unit, pieces.gradients.sum(axis=0)))
    unseen = np.diag(information) < PRIOR**2  # no window shows them: they stay as the model was written
    unit = np.where(unseen, problem.unit(problem.base), unit)
    row = problem.rows(unit[None])[0]
    return Solution(row, unit, covariance, information, 0.5 * float(np.sum(robust(residual) ** 2)))


def _judging_slopes(problem: Problem, unit: Array) -> tuple[Array, Array]:
    """Returns residuals, (num_windows, num_per_window), and how they change with `unit`, (..., num_free).

    Slopes are taken on both sides: the curvature in one-sided ones would pass for information along directions
    that these windows do not determine, such as gain and mass together; and so would what is left of it, if steps
    were large. They are those of the plain residuals, for the same reason: flattened ones bend. Where friction or
    contact makes predictions jump, though, the slopes of fine steps are heights of jumps over small numbers, and would
    pass for knowledge without end: then the finest steps count with whose slopes coarser ones agree.
    """
    residual = problem.plain_residuals(unit[None])[0]
    steps = (*((FINEST,) if is_smooth(problem.predictor.blueprint) else ()), FINE, MEDIUM, COARSE)
    found = np.zeros((len(unit), *residual.shape))
    asked = np.arange(len(unit))  # whose slopes no coarser ones have agreed with yet
    finer = np.full(len(unit), np.inf)
    for step in steps:
        slopes = _two_sided(problem, unit, asked, step)
        sizes = np.sqrt(np.sum(slopes**2, axis=(1, 2)))
        jumps = finer[asked] > AGREE * sizes
        asked, slopes, sizes = asked[jumps], slopes[jumps], sizes[jumps]
        if not len(asked):
            break
        found[asked], finer[asked] = slopes, sizes
    return residual, np.moveaxis(found, 0, -1)


def _two_sided(problem: Problem, unit: Array, columns: NDArray[np.intp], step: float) -> Array:
    """Returns how plain residuals change with some entries of `unit`, (num_columns, num_windows, num_per_window)."""
    above, below = np.minimum(unit + step, 1.0), np.maximum(unit - step, 0.0)
    moved = [np.where(np.eye(len(unit), dtype=bool), side, unit)[columns] for side in (above, below)]
    up, down = np.split(problem.plain_residuals(np.concatenate(moved)), 2)
    return (up - down) / (above - below)[columns, None, None]


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
