"""Residuals as a linear function of the point, and what each set of mechanisms explains there.

A window's column counts by the logarithm of its mean square, noise included: no signal and no window dominates, and
halving an error counts the same everywhere. What is fitted on one half of the windows is judged on the other.
"""

import numpy as np

from gapless.core.signal import Array, Indices
from gapless.diagnose.hypotheses.problem import DiagnosisProblem

NUM_INDEPENDENT = 4.0  # readings of a window and column that count as independent
WEIGHTING_ROUNDS = 3


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
        columns = np.moveaxis(slopes, (1, 3, 0, 2), (0, 1, 2, 3))
        self.hessian = columns @ np.swapaxes(columns, -1, -2)
        self.gradient = np.einsum("wmpt,wtm->wmp", columns, as_written, optimize=True)
        self.square = np.einsum("wtm,wtm->wm", as_written, as_written)
        self._weight = self._weigh()
        self._first = (problem.half == 0)[:, None]
        self._halves = [self._assemble(self._weight * here) for here in (self._first, ~self._first)]

    def fit(self, free: Indices | None = None) -> Array:
        """Returns the point that fits all windows best, if only some of the entries are free; None for all."""
        whole = self._halves[0][0] + self._halves[1][0], self._halves[0][1] + self._halves[1][1]
        found = np.arange(len(self.entries)) if free is None else free
        return self._whole(found, self._solve(*whole, found))

    def score(self, free: Indices) -> float:
        """Returns the score of all windows, each under a fit of some entries to the other half [nats]."""
        under = [self._mean_squares(free, self._solve(*half, free)) for half in self._halves]
        return float(score_windows(np.where(self._first, under[1], under[0])).sum())

    def _weigh(self) -> Array:
        """Returns the weight of each window and column: less where even all entries together leave much."""
        left, free = self.square / self.problem.num_known + 1.0, np.arange(len(self.entries))
        weight = np.ones_like(left)
        for _ in range(WEIGHTING_ROUNDS):
            weight = 1.0 / np.maximum(left, np.median(left, axis=0))
            left = self._mean_squares(free, self._solve(*self._assemble(weight), free))
        return weight

    def _assemble(self, weight: Array) -> tuple[Array, Array]:
        """Returns the normal equations under a weight of each window and column."""
        return np.einsum("wm,wmpq->pq", weight, self.hessian), np.einsum("wm,wmp->p", weight, self.gradient)

    def _solve(self, hessian: Array, gradient: Array, free: Indices) -> Array:
        """Returns the free entries that fit best within bounds."""
        if not len(free):
            return np.zeros(0)
        here = np.ix_(free, free)
        found = -np.linalg.solve(hessian[here] + self.stiffness[here], gradient[free])
        low, high = self.problem.bounds
        return np.clip(found, low[self.entries[free]], high[self.entries[free]]).astype(np.float64)

    def _mean_squares(self, free: Indices, moved: Array) -> Array:
        """Returns 1 + the mean square residual of each window and column, (num_windows, num_measurements)."""
        bent = (self.hessian[:, :, free[:, None], free] @ moved) @ moved
        pulled = self.gradient[:, :, free] @ moved
        return np.maximum(self.square + 2 * pulled + bent, 0.0) / self.problem.num_known + 1.0

    def _whole(self, free: Indices, moved: Array) -> Array:
        point = np.zeros(len(self.problem.typical))
        point[self.entries[free]] = moved
        return point
