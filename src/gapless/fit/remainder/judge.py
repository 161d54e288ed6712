"""Hypotheses about what remains: fitted beside the parameters on most windows, judged on the others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapless.core.signal import Array
from gapless.fit.remainder.gather import NUM_FOLDS, Remainder
from gapless.fit.remainder.shapes import Place, Shape, list_shapes

VALUES_PER_WINDOW = 3.0  # independent values of a window's residuals, about: they go wrong together
RIDGE = 1e-3  # on factors, as a share of their information


@dataclass(frozen=True)
class Judged:
    """A variable at a place."""

    place: Place
    shape: Shape  # the best on all windows
    left: Array  # (num_windows,) sum of squares that it leaves of each held-out window


class Judge:
    """Fits shapes beside the parameters on most windows, and judges them on the others."""

    def __init__(self, remainder: Remainder, known: Sequence[Array] = ()) -> None:
        """Prepares the fits; `known` are responses, (num_windows, num_per_window, any), of what is explained."""
        self.remainder = remainder
        slopes = np.concatenate([remainder.slopes, *known], axis=2)
        prior = np.concatenate([remainder.prior**2, *(_ridge(one) for one in known)])
        self._slopes, self._flat = slopes, slopes.reshape(-1, slopes.shape[2])
        self._train = np.array([remainder.fold != k for k in range(NUM_FOLDS + 1)], dtype=float)  # the last: all
        self._inverse = np.linalg.inv(self._sum(slopes, slopes) + np.diag(prior + 1e-9))
        self._alone = np.matmul(self._inverse, self._sum(slopes, remainder.residual[..., None]))
        left = remainder.residual[..., None] - self._fit(self._flat, self._alone)
        self.before = self._leave(left)[0]  # (num_windows,) sum of squares of each held-out window
        self.left = left[..., -1]  # (num_windows, num_per_window) what parameters leave that are fitted to all windows

    def respond(self, place: Place, shape: Shape) -> Array:
        """Returns what the forces of a shape do to the residuals, (num_windows, num_per_window, num_factors)."""
        found = np.zeros((*self.remainder.residual.shape, shape.forces.shape[-1]))
        for number, dof in enumerate(place.dofs):
            found += np.matmul(self.remainder.responses[dof].transpose(0, 2, 1), shape.forces[:, :, number])
        return found / np.maximum(np.sqrt(np.mean(found**2, axis=(0, 1))), 1e-12)

    def try_shape(self, response: Array) -> tuple[Array, Array]:
        """Returns what a shape leaves of held-out windows, (num_windows,), and of those it is fitted to, per fold."""
        cross = self._sum(self._slopes, response)
        own = self._sum(response, response) + np.diag(_ridge(response))
        right = self._sum(response, self.remainder.residual[..., None])
        solved = np.matmul(self._inverse, cross)
        schur = own - np.matmul(cross.transpose(0, 2, 1), solved)
        rest = right - np.matmul(cross.transpose(0, 2, 1), self._alone)
        factors: Array = np.asarray(np.linalg.solve(schur, rest), dtype=np.float64)
        fitted = self._fit(self._flat, self._alone - np.matmul(solved, factors))
        fitted += self._fit(response.reshape(-1, response.shape[2]), factors)
        return self._leave(self.remainder.residual[..., None] - fitted)

    def _sum(self, one: Array, other: Array) -> Array:
        """Returns the sum over the windows of each fold of products of two, (num_folds, any, any)."""
        each = np.matmul(one.transpose(0, 2, 1), other)
        return (self._train @ each.reshape(len(each), -1)).reshape(-1, *each.shape[1:])

    def _fit(self, flat: Array, factors: Array) -> Array:
        """Returns slopes times the factors of each fold, (num_windows, num_per_window, num_folds)."""
        return (flat @ factors[..., 0].T).reshape(*self.remainder.residual.shape, -1)

    def _leave(self, left: Array) -> tuple[Array, Array]:
        """Returns sums of squares of held-out windows, (num_windows,), and of the others in each fold."""
        squares = np.einsum("wnf,wnf->wf", left, left)
        return squares[np.arange(len(squares)), self.remainder.fold], np.sum(squares.T * self._train, axis=1)

    def judge_place(self, place: Place) -> list[Judged]:
        """Returns each variable at a place, by the shape that fits best in each fold."""
        best: dict[str, tuple[Array, Array, list[Shape | None]]] = {}
        count = VALUES_PER_WINDOW * self._train.sum(axis=1)
        for shape in list_shapes(self.remainder.motion, place):
            held, fitted = self.try_shape(self.respond(place, shape))
            price = count * np.log(np.maximum(fitted, 1e-12)) + 2.0 * shape.forces.shape[-1]
            if shape.variable not in best:
                best[shape.variable] = np.full(len(price), np.inf), np.zeros_like(held), [None]
            prices, left, chosen = best[shape.variable]
            better = price < prices
            prices[better] = price[better]
            mine = better[self.remainder.fold]
            left[mine] = held[mine]
            if better[-1]:
                chosen[0] = shape
        return [Judged(place, chosen[0], left) for _, left, chosen in best.values() if chosen[0] is not None]


def _ridge(response: Array) -> Array:
    return RIDGE * np.sum(response**2, axis=(0, 1)) + 1e-9
