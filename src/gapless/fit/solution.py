"""A solved problem, and how sure it is."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gapless.core.interval import normal_quantile
from gapless.core.signal import Array
from gapless.fit.covariance import Pieces, clustered_covariance, shared_start_variance
from gapless.fit.prediction.predict import Predictor
from gapless.fit.problem import PRIOR_WEIGHT, FitProblem, flatten_outliers, robust_bend, robust_pull, spreads
from gapless.fit.slopes import judging_slopes

AT_BOUND = 0.005  # nearer to a bound than this share of the range is at the bound


@dataclass(frozen=True)
class Solution:
    """A solved problem."""

    row: Array  # (num_parameters,) whole row of the predictor's space
    unit: Array  # (num_free,) the free parameters in [0, 1]
    covariance: Array  # (num_free, num_free) of `unit`, robust to errors that persist within a window
    information: Array  # (num_free, num_free) Gauss-Newton information about `unit`, the prior left out
    cost: float  # half the sum of squares of the robust residuals
    # (num_windows, num_per_window, num_free) of the residuals, that judged it; None where they are not known
    slopes: Array | None = field(default=None, repr=False, compare=False)

    def half_width(self, level: float = 0.95) -> Array:
        """Returns the half widths of intervals of `unit`, (num_free,)."""
        return normal_quantile((1 + level) / 2) * np.sqrt(np.diag(self.covariance))


def summarize_solution(problem: FitProblem, unit: Array) -> Solution:
    """Measures the solution: cost, information, and a covariance from pieces of windows; see `clustered_covariance`."""
    residual, jacobian = judging_slopes(problem, unit)
    pieces = _pieces(problem, jacobian, residual)
    information = pieces.whole_information
    covariance = _covariance(pieces, _find_pressed(unit, pieces.gradients.sum(axis=0)))
    unseen = np.diag(information) < PRIOR_WEIGHT**2  # no window shows them: they stay as the model was written
    unit = np.where(unseen, problem.unit(problem.base), unit)
    row = problem.rows(unit[None])[0]
    cost = 0.5 * float(np.sum(flatten_outliers(residual) ** 2))
    return Solution(row, unit, covariance, information, cost, jacobian)


def widen_intervals(
    problem: FitProblem, solution: Solution, held: Sequence[int], finer_time: Predictor, left: float
) -> Solution:
    """Returns a solution with intervals that also hold if the time step or values that were not fitted are a bit off.

    A mass of which a motion shows little is left as written, and whatever was fitted makes up for it; a delay makes up
    for a coarse time step. Each fitted parameter is as unsure as those are, times how much it moves with them. Values
    are known to what a careful builder knows (`spreads`), the time step to its effect, both to what these windows say
    of them besides: too little to fit them, yet enough to say how far off they may be.

    Args:
        problem: What was solved, with errors of the start states discounted as they show there.
        solution: Its solution.
        held: Columns of values that were not fitted.
        finer_time: Predicts with a far finer time step.
        left: Share of the step's effect that may be left in the values.
    """
    number = len(problem.free)
    both = replace(problem, free=(*problem.free, *held))
    unit = both.unit(solution.row)
    residual, jacobian = judging_slopes(both, unit, 0 if solution.slopes is None else number)
    if solution.slopes is not None:
        jacobian = np.concatenate([solution.slopes, jacobian], axis=-1)
    fine = replace(both, predictor=finer_time).plain_residuals(unit[None])[0]
    jacobian = np.concatenate([jacobian, (fine - residual)[..., None]], axis=-1)
    spread = np.append(spreads(both.space)[number:], left)
    pieces = _pieces(both, jacobian, residual)
    known, pull = pieces.whole_information, pieces.gradients.sum(axis=0)
    moves = np.linalg.solve(known[:number, :number] + PRIOR_WEIGHT**2 * np.eye(number), known[:number, number:])
    rest: Array = known[number:, number:] - known[number:, :number] @ moves + np.diag(1.0 / spread**2)
    solved: Array = np.asarray(np.linalg.solve(rest, moves.T @ pull[:number] - pull[number:]), dtype=np.float64)
    off = np.clip(solved, -2.0 * spread, 2.0 * spread)
    square = np.linalg.inv(rest) + np.outer(off, off)  # about what was written, where they stayed
    return replace(solution, covariance=solution.covariance + moves @ square @ moves.T)


def _pieces(problem: FitProblem, jacobian: Array, residual: Array) -> Pieces:
    """Returns what the pieces of all windows say, from slopes (num_windows, num_per_window, num_free) and residuals."""
    bend, pull = robust_bend(residual), robust_pull(residual)
    parts = [problem.in_pieces(part) for part in (jacobian, bend, pull)]
    information: Array = np.einsum("wri,wr,wrj->wij", parts[0], parts[1], parts[0], optimize=True)
    gradients = np.einsum("wri,wr->wi", parts[0], parts[2])
    if problem.starts is None:
        return Pieces(information, gradients, np.zeros(information.shape[1:]))
    taken = problem.starts.taken_out
    in_pieces = np.einsum("wrd,wri->wdi", problem.in_pieces(taken), parts[0])
    num_left = max(1.0, np.count_nonzero(residual) - np.sum(taken**2) - jacobian.shape[2])
    shared = shared_start_variance(
        in_pieces, np.einsum("wrd,wri->wdi", taken, jacobian), float(np.sum(pull**2) / num_left)
    )
    return Pieces(information, gradients, shared)


def _find_pressed(unit: Array, gradient: Array) -> NDArray[np.bool_]:
    """Tells which parameters lie at a bound that the data would have them cross."""
    return ((unit < AT_BOUND) & (gradient > 0)) | ((unit > 1 - AT_BOUND) & (gradient < 0))


def _covariance(pieces: Pieces, pressed: NDArray[np.bool_]) -> Array:
    """Returns the covariance of the free parameters; those pressed against a bound are held, each on its own."""
    covariance = np.diag(1.0 / (np.diag(pieces.whole_information) + PRIOR_WEIGHT**2))
    free = np.flatnonzero(~pressed)
    if len(free):
        covariance[np.ix_(free, free)] = clustered_covariance(pieces.of(free), PRIOR_WEIGHT)
    return covariance
