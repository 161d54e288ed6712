"""A solved problem, and how sure it is: from how much pieces of the logs disagree about it.

With H the sum of the pieces' information H_w and g_w their gradients at the solution, the covariance is
H^-1 (sum g_w g_w^T) H^-1, which stays right when errors within a piece go together (Liang and Zeger, 1986). A fit
follows the pieces that say most, so that their gradients are smaller than the errors in them: each is enlarged by
(1 - H_w H^-1)^(-1/2), which makes the covariance right on average where errors are independent (Bell and McCaffrey,
2002). With few pieces it is still uncertain itself, as much as one from few independent pieces of equal weight: the
quantile of Student's t takes the place of the normal one. Coordinates below are those in which H is the identity.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from gapless.core.interval import normal_quantile
from gapless.core.signal import Array
from gapless.fit.prediction.predict import Predictor
from gapless.fit.problem import PRIOR_WEIGHT, FitProblem, flatten_outliers, robust_bend, robust_pull, spreads
from gapless.fit.slopes import judging_slopes

AT_BOUND = 0.005  # nearer to a bound than this share of the range is at the bound
LEVEL = 0.95  # of the intervals for which Student's t is put into the covariance
MAX_SHARE = 1.0 - 1e-6  # share of the information about one direction that a single piece is taken to have at most
MIN_FREEDOM = 2.0  # with fewer degrees of freedom Student's t has no variance


@dataclass(frozen=True)
class Pieces:
    """What pieces of the logs say about parameters at a solution."""

    information: Array  # (num_pieces, num_parameters, num_parameters) Hessians H_w of the pieces' costs
    gradients: Array  # (num_pieces, num_parameters) gradients g_w of the pieces' costs
    shared: Array  # (num_parameters, num_parameters) what is added to sum g_w g_w^T because pieces are not independent

    @property
    def whole_information(self) -> Array:
        """The information of all pieces, (num_parameters, num_parameters)."""
        return self.information.sum(axis=0)

    def of(self, columns: NDArray[np.intp]) -> "Pieces":
        """Returns what they say about some of the parameters."""
        block = np.ix_(columns, columns)
        return Pieces(self.information[:, columns[:, None], columns], self.gradients[:, columns], self.shared[block])


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
    """Measures the solution: cost, information, and a covariance from pieces of windows; see `clustered_covariance`.

    Parameters that lie at a bound which the data would have them cross are held there, each uncertain on its own.
    """
    residual, jacobian = judging_slopes(problem, unit)
    pieces = _pieces(problem, jacobian, residual)
    information, gradient = pieces.whole_information, pieces.gradients.sum(axis=0)
    pressed = ((unit < AT_BOUND) & (gradient > 0)) | ((unit > 1 - AT_BOUND) & (gradient < 0))
    covariance = np.diag(1.0 / (np.diag(information) + PRIOR_WEIGHT**2))
    if len(free := np.flatnonzero(~pressed)):
        covariance[np.ix_(free, free)] = clustered_covariance(pieces.of(free), PRIOR_WEIGHT)
    unseen = np.diag(information) < PRIOR_WEIGHT**2  # no window shows them: they stay as the model was written
    unit = np.where(unseen, problem.unit(problem.base), unit)
    cost = 0.5 * float(np.sum(flatten_outliers(residual) ** 2))
    return Solution(problem.rows(unit[None])[0], unit, covariance, information, cost, jacobian)


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


def clustered_covariance(pieces: Pieces, prior: float) -> Array:
    """Returns the covariance of the parameters, (num_parameters, num_parameters).

    The prior is one reading of where each parameter was, of standard deviation 1 / prior.
    """
    ridge = prior**2 * np.eye(pieces.gradients.shape[1])
    values, vectors = np.linalg.eigh(pieces.whole_information + ridge)
    root = (vectors / np.sqrt(values)) @ vectors.T  # H^(-1/2)
    shares, axes = np.linalg.eigh(root @ pieces.information @ root)
    shares = np.clip(shares, 0.0, MAX_SHARE)
    along = np.einsum("wia,wi->wa", axes, pieces.gradients @ root)
    enlarged = np.einsum("wia,wa->wi", axes, along / np.sqrt(1.0 - shares))
    covariance = root @ (enlarged.T @ enlarged + root @ (ridge + pieces.shared) @ root) @ root
    wider = stdtrit(_freedom(shares, axes, root), (1 + LEVEL) / 2) / normal_quantile((1 + LEVEL) / 2)
    return covariance * np.outer(wider, wider)


def shared_start_variance(in_pieces: Array, in_windows: Array, variance: float) -> Array:
    """Returns what windows' gradients vary by beyond those of their pieces, (num_parameters, num_parameters).

    A start that follows the readings of a window takes from all of them together, which makes its pieces' residuals
    depend on each other: noise of variance v keeps v (1 - C C^T). The gradient of a window then varies by
    v (J^T J - A^T A) with A = C^T J, and those of its pieces by v (J_p^T J_p - A_p^T A_p) each. A_p and A are
    (num_pieces or num_windows, num_starts, num_parameters).
    """
    parts, whole = (np.einsum("wdi,wdj->ij", part, part) for part in (in_pieces, in_windows))
    values, vectors = np.linalg.eigh(variance * (parts - whole))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def _freedom(shares: Array, axes: Array, root: Array) -> Array:
    """Returns the degrees of freedom of each parameter's variance, (num_parameters,).

    The variance of parameter z^T x is a sum of squares with covariance C = diag(a) - B B^T, where
    a_w = z^T G_w (1 - G_w)^-1 z, row w of B is (1 - G_w)^(-1/2) G_w z, and G_w is the piece's share of the information:
    as uncertain as a chi-squared one of tr(C)^2 / tr(C^2) degrees of freedom (Satterthwaite, 1946).
    """
    along = np.einsum("wia,ik->kwa", axes, root)
    size = np.sum(along**2 * (shares / (1.0 - shares)), axis=2)
    rows = np.einsum("wia,kwa->kwi", axes, along * (shares / np.sqrt(1.0 - shares)))
    squares = np.sum(rows**2, axis=2)
    inner = np.einsum("kwi,kwj->kij", rows, rows)
    second = np.sum(size**2 - 2 * size * squares, axis=1) + np.sum(inner**2, axis=(1, 2))
    return np.maximum(np.sum(size - squares, axis=1) ** 2 / np.maximum(second, 1e-300), MIN_FREEDOM)
