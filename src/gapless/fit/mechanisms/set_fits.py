"""Fits of sets of mechanisms to all windows, side by side: steps of all go through the engine together.

Slopes are measured once. After each real prediction they are corrected along the step that was made (Broyden, 1965).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.core.signal import Array, Indices
from gapless.fit.mechanisms.linear import LinearModel, MechanismSet, score_windows
from gapless.fit.mechanisms.problem import MechanismProblem

PRICE = 10.0  # score that each number must add to be chosen; set on the tuning cases of `benchmarks/diagnose.py` [nats]
MAX_STEPS = 6  # of a set
NUM_RACED = (8, 3)  # sets that go on after their first step, and after later ones
SHORT_STEP = 0.4  # share of a step that is tried where the whole one disappoints
DAMPINGS = (0.3, 3.0)  # that are tried besides in fits of many numbers, of which some are hardly known
MIN_DAMPED = 6  # numbers from which on
MIN_GAIN = 1.0  # a step that gains less is the last [nats]


@dataclass(frozen=True)
class SetFit:
    """Where the fit of a set is."""

    chosen: MechanismSet
    point: Array  # (num_entries,)
    residual: Array  # (num_windows, num_steps, num_measurements) [1]
    cost: float  # less the score on all windows, and half the squares of what has moved [nats]
    linear: LinearModel | None = None  # at this point, with slopes of at least what the set moves; None before that
    is_done: bool = False  # whether the last step gained too little


class SetFitter:
    """Fits sets of mechanisms to the windows of one problem."""

    def __init__(self, problem: MechanismProblem, slopes: Array | None = None, price: float = PRICE) -> None:
        """Prepares fits; `slopes` are `problem.slopes_as_written()`, if they are known.

        `price` is what each number must add to the score of these windows to be chosen [nats].
        """
        self.problem, self.mechanisms, self._slopes, self.price = problem, problem.mechanisms, slopes, price

    def begin(self, chosen: MechanismSet, near: Array | None = None) -> SetFit:
        """Returns a fit in which only some mechanisms have moved, as they have at a point."""
        return self.begin_all([(chosen, np.zeros(len(self.problem.typical)) if near is None else near)])[0]

    def begin_all(self, asked: Sequence[tuple[MechanismSet, Array]]) -> list[SetFit]:
        """Returns fits of some sets, each with what its mechanisms have at a point."""
        if not asked:
            return []
        points = np.zeros((len(asked), len(self.problem.typical)))
        for point, (chosen, near) in zip(points, asked, strict=True):
            entries = self.entries(chosen)
            point[entries] = near[entries]
        residual = self.problem.residuals(points)
        begun = zip(asked, points, residual, self.costs(points, residual), strict=True)
        return [SetFit(chosen, point, left, float(cost)) for (chosen, _), point, left, cost in begun]

    def renew(self, fit: SetFit) -> SetFit:
        """Returns a fit after what a finer time step does was measured at its point; all later fits go by that."""
        self.problem = self.problem.with_step_effect_at(fit.point)
        return self.begin(fit.chosen, fit.point)

    def move_starts(self, fit: SetFit) -> SetFit:
        """Returns a fit after errors of start states are discounted as they show at its point, for all later fits."""
        self.problem, self._slopes = self.problem.with_starts_at(fit.point), None
        return self.begin(fit.chosen, fit.point)

    def change(self, fit: SetFit, chosen: MechanismSet) -> SetFit:
        """Returns the fit of another set, which begins where one has ended, with its slopes."""
        return fit if chosen == fit.chosen else replace(fit, chosen=chosen, cost=np.inf, is_done=False)

    def priced_cost(self, fit: SetFit) -> float:
        """Returns what the search minimises [nats]."""
        return fit.cost + self.price * sum(self.mechanisms[k].price for k in fit.chosen)

    def costs(self, points: Array, residual: Array) -> Array:
        """Returns what fits minimise, (num_points,) [nats]."""
        score = score_windows(self.problem.mean_squares(residual)).sum(axis=1)
        return 0.5 * np.sum((points / self.problem.typical) ** 2, axis=1) - score

    def linearise(self, fit: SetFit, among: Iterable[int]) -> SetFit:
        """Returns a fit with the linear model of some mechanisms at its point."""
        among = tuple(among)
        if not fit.point.any():
            if self._slopes is None:
                self._slopes = self.problem.slopes_as_written()
            slopes = self._slopes
        else:
            (slopes,) = self._measure_slopes([fit], [among])
        linear = LinearModel(self.problem, fit.point, fit.residual, slopes, among)
        return replace(fit, linear=linear, is_done=False)

    def fit_all(self, begun: Sequence[SetFit]) -> list[SetFit]:
        """Returns where fits end; only those go on after each step that are best so far."""
        fits = self._with_slopes(begun, [k for k, fit in enumerate(begun) if fit.linear is None and fit.chosen])
        for number in range(MAX_STEPS):
            active = [k for k, fit in enumerate(fits) if not fit.is_done and fit.chosen]
            if number:
                most = NUM_RACED[min(number, len(NUM_RACED)) - 1]
                active = sorted(active, key=lambda k: self.priced_cost(fits[k]))[:most]
            if not active:
                break
            for k, points, residual in self._try_steps([fits[k] for k in active], active):
                fits[k] = self._move(fits[k], points, residual)
        return fits

    def _try_steps(self, fits: Sequence[SetFit], which: Sequence[int]) -> Iterator[tuple[int, Array, Array]]:
        """Yields each fit's number with the points that were tried for it and their residuals.

        The short step is tried where the whole one ends worse than the linear model says that the short one would.
        """
        whole = [self._propose_points(fit) for fit in fits]
        short = [self._shorten_step(fit, points[0]) for fit, points in zip(fits, whole, strict=True)]
        found = self._residuals(whole)
        missed = [
            bool(self.costs(points, residual).min() > self._predict_cost(fit, point))
            for fit, points, residual, point in zip(fits, whole, found, short, strict=True)
        ]
        more = iter(self._residuals([point[None] for point, asked in zip(short, missed, strict=True) if asked]))
        for number, asked in enumerate(missed):
            points, residual = whole[number], found[number]
            if asked:
                points, residual = np.vstack([points, short[number]]), np.concatenate([residual, next(more)])
            yield which[number], points, residual

    def _propose_points(self, fit: SetFit) -> Array:
        """Returns where the linear model is best, and shorter of the way where many numbers are fitted."""
        assert fit.linear is not None
        end = fit.linear.fit(fit.chosen)[None]
        if fit.linear.price(fit.chosen) < MIN_DAMPED:
            return end
        return np.concatenate([end, [fit.linear.fit(fit.chosen, damping) for damping in DAMPINGS]])

    def _shorten_step(self, fit: SetFit, end: Array) -> Array:
        """Returns a point on the way to an end; what is not in the set is as written."""
        begin, entries = np.zeros_like(fit.point), self.entries(fit.chosen)
        begin[entries] = fit.point[entries]
        return begin + SHORT_STEP * (end - begin)

    def _predict_cost(self, fit: SetFit, point: Array) -> float:
        """Returns the cost that the linear model of a fit predicts of a point [nats]."""
        assert fit.linear is not None
        step = point - fit.point
        moved = np.flatnonzero(step)
        residual = fit.residual + np.tensordot(step[moved], fit.linear.slopes[moved], axes=1)
        return float(self.costs(point[None], residual[None])[0])

    def _move(self, fit: SetFit, points: Array, residual: Array) -> SetFit:
        """Returns a fit at the best of some points, its slopes corrected; done where that gains too little."""
        assert fit.linear is not None
        costs = self.costs(points, residual)
        best = int(np.argmin(costs))
        step, change = points[best] - fit.point, residual[best] - fit.residual
        slopes = correct_slopes(fit.linear.slopes, step, change, self.problem.typical)
        is_done = bool(costs[best] > fit.cost - MIN_GAIN)
        if costs[best] >= fit.cost:
            linear = LinearModel(self.problem, fit.point, fit.residual, slopes, fit.chosen)
            return replace(fit, linear=linear, is_done=is_done)
        linear = LinearModel(self.problem, points[best], residual[best], slopes, fit.chosen)
        cost = float(costs[best])
        return SetFit(fit.chosen, points[best], residual[best], cost, linear, is_done)

    def _with_slopes(self, fits: Sequence[SetFit], which: Sequence[int]) -> list[SetFit]:
        """Returns fits of which some have their slopes measured."""
        found = list(fits)
        measured = self._measure_slopes([fits[k] for k in which], [fits[k].chosen for k in which])
        for k, slopes in zip(which, measured, strict=True):
            linear = LinearModel(self.problem, fits[k].point, fits[k].residual, slopes, fits[k].chosen)
            found[k] = replace(fits[k], linear=linear, is_done=False)
        return found

    def _measure_slopes(self, fits: Sequence[SetFit], among: Sequence[Iterable[int]]) -> list[Array]:
        """Returns the slopes of some mechanisms at each of some fits, (num_entries, ...); 0 of all others."""
        entries = [self.entries(some) for some in among]
        asked = [self.problem.moved_points(fit.point, some) for fit, some in zip(fits, entries, strict=True)]
        found: list[Array] = []
        for fit, some, moved in zip(fits, entries, self._residuals(asked), strict=True):
            slopes = np.zeros((len(fit.point), *fit.residual.shape))
            slopes[some] = self.problem.slopes(fit.point, fit.residual, moved, some)
            found.append(slopes)
        return found

    def entries(self, chosen: Iterable[int]) -> Indices:
        """Returns the entries of a point that some mechanisms move."""
        return np.array(sorted({e for k in chosen for e in self.mechanisms[k].entries}), dtype=np.intp)

    def _residuals(self, asked: Sequence[Array]) -> list[Array]:
        """Returns the residuals of some stacks of points, all in one call."""
        if not asked:
            return []
        return np.split(self.problem.residuals(np.concatenate(asked)), np.cumsum([len(some) for some in asked])[:-1])


def correct_slopes(slopes: Array, step: Array, change: Array, typical: Array) -> Array:
    """Returns slopes that predict the change along a step as it was, and across it what they did (Broyden's update).

    Args:
        slopes: (num_entries, ...) how residuals change with each entry.
        step: (num_entries,) how far each entry moved.
        change: (...) by how much residuals changed.
        typical: (num_entries,) how far each entry is typically off: in these units lengths of steps are measured.
    """
    size = step / typical
    square = float(size @ size)
    if square == 0.0:
        return slopes
    moved = np.flatnonzero(step)
    missed = change - np.tensordot(step[moved], slopes[moved], axes=1)
    shares = (size / typical / square)[moved]
    corrected = slopes.copy()
    corrected[moved] += shares.reshape(-1, *[1] * missed.ndim) * missed
    return corrected
