"""Residuals as a linear function of a point, and which set of mechanisms explains them best there.

A window's column counts by the logarithm of its mean square, noise included: no signal and no window dominates, and
halving an error counts the same everywhere. What is fitted on one half of the windows is judged on the other.
"""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from gapless.core.signal import Array, Indices
from gapless.fit.mechanisms.problem import MechanismProblem

NUM_INDEPENDENT = 4.0  # readings of a window and column that count as independent
WEIGHTING_ROUNDS = 3
MAX_EXCHANGED = 6  # mechanisms that are tried in the place of each one of a set, those that promise most
MAX_LEFT_OUT = 6  # mechanisms that are tried to be left out of a large set, those that seem worth least
MechanismSet = tuple[int, ...]  # indices of mechanisms, ascending


def score_windows(mean_squares: Array) -> Array:
    """Returns the score of each window [nats] from (..., num_measurements) mean squares."""
    return -0.5 * NUM_INDEPENDENT * np.log(mean_squares).sum(axis=-1)


class LinearModel:
    """r(numbers) = r(as written) + slopes · numbers, for the numbers of some mechanisms; 1 is a typical error."""

    def __init__(
        self, problem: MechanismProblem, point: Array, residual: Array, slopes: Array, among: Iterable[int]
    ) -> None:
        """Sums over each window and column what all fits need.

        Args:
            problem: The windows.
            point: (num_entries,) where residuals and slopes were measured.
            residual: (num_windows, num_steps, num_measurements) the residuals there.
            slopes: (num_entries, num_windows, num_steps, num_measurements) how they change with each entry.
            among: The mechanisms that may be free.
        """
        self.problem, self.mechanisms, self.point, self.slopes = problem, problem.mechanisms, point, slopes
        among = list(among)
        parts = [self.mechanisms[k].directions(problem.typical) for k in among]
        self._directions = np.concatenate(parts)
        ends = np.cumsum([len(part) for part in parts])
        self._numbers: dict[int, Indices] = {
            k: np.arange(int(end) - len(part), int(end), dtype=np.intp)
            for k, part, end in zip(among, parts, ends, strict=True)
        }
        as_written = residual - np.einsum("p,pwtm->wtm", point, slopes, optimize=True)
        columns = np.einsum("kp,pwtm->wmkt", self._directions, slopes, optimize=True)
        self._hessian = columns @ np.swapaxes(columns, -1, -2)
        self._gradient = np.einsum("wmkt,wtm->wmk", columns, as_written, optimize=True)
        self._square = np.einsum("wtm,wtm->wm", as_written, as_written)
        self._low, self._high = self._bound_numbers()
        self._first = (problem.half == 0)[:, None]
        self._weigh()
        self._scores: dict[MechanismSet, float] = {}

    def _weigh(self) -> None:
        """Weighs every window and column by what all mechanisms together leave of it: less where much is left.

        That is how the logarithm of a mean square weighs it, and the median keeps a few good windows from ruling.
        """
        free = np.arange(len(self._directions))
        left = self._square / self.problem.num_known + 1.0
        for _ in range(WEIGHTING_ROUNDS):
            weight = 1.0 / np.maximum(left, np.median(left, axis=0))
            self._halves = [self._assemble(weight * here) for here in (self._first, ~self._first)]
            self._whole = self._halves[0][0] + self._halves[1][0], self._halves[0][1] + self._halves[1][1]
            left = self._mean_squares(free, self._solve(*self._whole, free))

    def fit(self, chosen: MechanismSet, damping: float = 0.0) -> Array:
        """Returns the point that fits all windows best if only some mechanisms are free.

        With damping each number is also held where it is now, by so many times what the windows know of it (Marquardt,
        1963).
        """
        free = self.numbers_of(chosen)
        hessian, gradient = self._whole
        if damping:
            now = self._numbers_at_point(free)
            held = damping * np.diag(hessian)
            hessian, gradient = hessian + np.diag(held), gradient.copy()
            gradient[free] -= held[free] * now
        point = self._solve(hessian, gradient, free) @ self._directions[free]
        return np.clip(point, *self.problem.bounds)

    def _numbers_at_point(self, free: Indices) -> Array:
        """Returns the free numbers that come nearest to where the slopes were measured, in typical errors."""
        scaled = self._directions[free] / self.problem.typical
        return np.asarray(np.linalg.lstsq(scaled.T, self.point / self.problem.typical, rcond=None)[0], dtype=np.float64)

    def held_out_squares(self, chosen: MechanismSet) -> Array:
        """Returns 1 + mean squares under a fit of some mechanisms to the other half, (num_windows, num_columns)."""
        free = self.numbers_of(chosen)
        under = [self._mean_squares(free, self._solve(*half, free)) for half in self._halves]
        return np.where(self._first, under[1], under[0])

    def score(self, chosen: MechanismSet) -> float:
        """Returns the held-out score of all windows [nats]."""
        return float(score_windows(self.held_out_squares(chosen)).sum())

    def price(self, chosen: Iterable[int]) -> int:
        """Returns how many numbers some mechanisms pay for."""
        return sum(self.mechanisms[k].price for k in chosen)

    def numbers_of(self, chosen: MechanismSet) -> Indices:
        """Returns the numbers that some mechanisms free, in their order."""
        return np.concatenate([np.zeros(0, np.intp), *(self._numbers[k] for k in chosen)])

    def value(self, chosen: MechanismSet, price: float) -> float:
        """Returns the held-out score of a set less the price of its numbers [nats]; computed once."""
        if chosen not in self._scores:
            self._scores[chosen] = self.score(chosen)
        return self._scores[chosen] - price * self.price(chosen)

    def select(self, chosen: MechanismSet, among: Collection[int], price: float, max_added: int) -> MechanismSet:
        """Returns the best set found by adding, leaving out and exchanging mechanisms.

        Args:
            chosen: Where to begin.
            among: The mechanisms that may take part.
            price: What each number must add to the score [nats].
            max_added: How many mechanisms may be added at most: slopes are true nearby only.
        """
        begun = set(chosen)
        while True:
            near = [s for s in self.list_neighbours(chosen, among, price) if len(set(s) - begun) <= max_added]
            best = max(near, key=lambda each: self.value(each, price), default=chosen)
            if self.value(best, price) <= self.value(chosen, price):
                return chosen
            chosen = best

    def prune(self, chosen: MechanismSet, price: float) -> MechanismSet:
        """Returns a set without what does not pay its price, left out one by one, the least worth first."""
        while chosen:
            less = [tuple(k for k in chosen if k != out) for out in self.rank_worth(chosen)[:MAX_LEFT_OUT]]
            best = max(less, key=lambda each: self.value(each, price))
            if self.value(best, price) < self.value(chosen, price):
                break
            chosen = best
        return chosen

    def rank_worth(self, chosen: MechanismSet) -> MechanismSet:
        """Returns some mechanisms by how much the fit of all windows loses without each, the least first."""
        free = self.numbers_of(chosen)
        hessian, gradient = self._whole
        inverse = np.linalg.inv(hessian[np.ix_(free, free)] + np.eye(len(free)))
        best, worth, first = -inverse @ gradient[free], dict[int, float](), 0
        for k in chosen:
            here = slice(first, first + len(self._numbers[k]))
            worth[k] = float(best[here] @ np.linalg.solve(inverse[here, here], best[here])) / len(best[here])
            first = here.stop
        return tuple(sorted(chosen, key=lambda k: worth[k]))

    def list_neighbours(self, chosen: MechanismSet, among: Collection[int], price: float) -> list[MechanismSet]:
        """Returns the sets with one mechanism more, the best first, one less, and one exchanged for a promising one."""
        others = [k for k in among if k not in chosen]
        more = sorted((add_mechanism(chosen, k) for k in others), key=lambda s: self.value(s, price), reverse=True)
        less = [tuple(k for k in chosen if k != out) for out in chosen]
        promising = [next(k for k in tried if k not in chosen) for tried in more[:MAX_EXCHANGED]]
        return [*more, *less, *(add_mechanism(rest, k) for rest in less for k in promising)]

    def _bound_numbers(self) -> tuple[Array, Array]:
        """Returns the least and the largest value of each number that keeps its entries within bounds."""
        low, high = self.problem.bounds
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.where(self._directions > 0, np.stack([low, high])[:, None] / self._directions, np.nan)
        return np.nanmax(ends[0], axis=1), np.nanmin(ends[1], axis=1)

    def _assemble(self, weight: Array) -> tuple[Array, Array]:
        """Returns the normal equations under a weight of each window and column."""
        hessian = np.einsum("wm,wmpq->pq", weight, self._hessian, optimize=True)
        return hessian, np.einsum("wm,wmp->p", weight, self._gradient)

    def _solve(self, hessian: Array, gradient: Array, free: Indices) -> Array:
        """Returns the free numbers that fit best, each drawn from a normal distribution of typical errors."""
        if not len(free):
            return np.zeros(0)
        here = hessian[np.ix_(free, free)] + np.eye(len(free))
        solved = np.asarray(-np.linalg.solve(here, gradient[free]), dtype=np.float64)
        return np.clip(solved, self._low[free], self._high[free])

    def _mean_squares(self, free: Indices, moved: Array) -> Array:
        """Returns 1 + the mean square residual of each window and column, (num_windows, num_measurements)."""
        bent = (self._hessian[:, :, free[:, None], free] @ moved) @ moved
        pulled = self._gradient[:, :, free] @ moved
        return np.maximum(self._square + 2 * pulled + bent, 0.0) / self.problem.num_known + 1.0


def add_mechanism(chosen: Sequence[int], one: int) -> MechanismSet:
    """Returns a set with one mechanism more."""
    return tuple(sorted((*chosen, one)))
