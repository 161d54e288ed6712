"""Residuals as a linear function of the point, and what each set of dimensions explains there.

A window's column counts by the logarithm of its mean square, noise included: no signal and no window dominates, and
halving an error counts the same everywhere. What is fitted on one half of the windows is judged on the other.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array, Indices
from gapless.diagnose.hypotheses.problem import DiagnosisProblem

NUM_INDEPENDENT = 4.0  # readings of a window and column that count as independent
MAX_DIMENSIONS = 4  # that are asked about together
WEIGHTING_ROUNDS = 3
Subset = tuple[Dimension, ...]


class LinearFit(NamedTuple):
    """What a set of dimensions explains, by the linear model."""

    total: float  # score of all windows, each under a fit to the other half [nats]
    point: Array  # (num_entries,) the point that fits all windows best


def score_windows(mean_squares: Array) -> Array:
    """Returns the score of each window [nats] from (..., num_measurements) mean squares."""
    return -0.5 * NUM_INDEPENDENT * np.log(mean_squares).sum(axis=-1)


class LinearModel:
    """r(point) = r(as written) + slopes · point, for some entries of the point; the others are as written."""

    def __init__(
        self, problem: DiagnosisProblem, entries: Indices, slopes: Array, point: Array, residual: Array
    ) -> None:
        """Sums over each window and column what all fits need.

        Args:
            problem: The windows.
            entries: (num_looked_at,) the entries that may move.
            slopes: (num_looked_at, num_windows, num_steps, num_measurements) how residuals change with them.
            point: (num_entries,) where.
            residual: (num_windows, num_steps, num_measurements) the residuals there.
        """
        as_written = residual - np.einsum("p,pwtm->wtm", point[entries], slopes)
        self.problem, self.entries = problem, entries
        self.stiffness = np.diag(1.0 / problem.typical[entries] ** 2)
        self.hessian = np.einsum("pwtm,qwtm->wmpq", slopes, slopes, optimize=True)
        self.gradient = np.einsum("pwtm,wtm->wmp", slopes, as_written, optimize=True)
        self.square = np.einsum("wtm,wtm->wm", as_written, as_written)
        self._weight = self._weigh()

    def fit(self) -> Array:
        """Returns the point that fits all windows best."""
        return self._whole(self._solve(*self._assemble(self._weight), np.arange(len(self.entries))))

    def fit_subsets(self) -> dict[Subset, LinearFit]:
        """Returns what each set of up to `MAX_DIMENSIONS` dimensions explains; it takes the slopes of all entries."""
        first = (self.problem.half == 0)[:, None]
        halves = [self._assemble(self._weight * here) for here in (first, ~first)]
        whole = halves[0][0] + halves[1][0], halves[0][1] + halves[1][1]
        found: dict[Subset, LinearFit] = {}
        for size in range(MAX_DIMENSIONS + 1):
            for subset in combinations(self.problem.dimensions, size):
                free = self.problem.entries_of(subset)
                under = [self._mean_squares(self._solve(*half, free)) for half in halves]
                total = float(score_windows(np.where(first, under[1], under[0])).sum())
                found[subset] = LinearFit(total, self._whole(self._solve(*whole, free)))
        return found

    def _weigh(self) -> Array:
        """Returns the weight of each window and column: less where even all entries together leave much."""
        left, free = self.square / self.problem.num_known + 1.0, np.arange(len(self.entries))
        weight = np.ones_like(left)
        for _ in range(WEIGHTING_ROUNDS):
            weight = 1.0 / np.maximum(left, np.median(left, axis=0))
            left = self._mean_squares(self._solve(*self._assemble(weight), free))
        return weight

    def _assemble(self, weight: Array) -> tuple[Array, Array]:
        """Returns the normal equations under a weight of each window and column."""
        return np.einsum("wm,wmpq->pq", weight, self.hessian), np.einsum("wm,wmp->p", weight, self.gradient)

    def _solve(self, hessian: Array, gradient: Array, free: Indices) -> Array:
        """Returns the entries that fit best within bounds if only some of them are free."""
        found = np.zeros(len(self.entries))
        if len(free):
            here = np.ix_(free, free)
            found[free] = -np.linalg.solve(hessian[here] + self.stiffness[here], gradient[free])
        low, high = self.problem.bounds
        return np.clip(found, low[self.entries], high[self.entries])

    def _mean_squares(self, moved: Array) -> Array:
        """Returns 1 + the mean square residual of each window and column, (num_windows, num_measurements)."""
        bent = np.einsum("p,q,wmpq->wm", moved, moved, self.hessian, optimize=True)
        return np.maximum(self.square + 2 * self.gradient @ moved + bent, 0.0) / self.problem.num_known + 1.0

    def _whole(self, moved: Array) -> Array:
        point = np.zeros(len(self.problem.typical))
        point[self.entries] = moved
        return point
