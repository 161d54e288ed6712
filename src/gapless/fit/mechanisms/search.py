"""A search for the set of mechanisms that explains some logs with the fewest numbers.

At the best point so far slopes of all mechanisms are measured, and the linear model that they make is searched for the
set that predicts unseen windows best, less a price per number: mechanisms are added, left out and exchanged. The set is
then fitted with steps that count only after a real prediction, slopes are measured anew, and so on until the set stays.
In the end every dimension of the set is put back to the model as written and the others are searched again: what that
costs is the evidence for it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array, Indices
from gapless.fit.mechanisms.linear import LinearModel, MechanismSet, add_mechanism, score_windows
from gapless.fit.mechanisms.mechanism import Mechanism
from gapless.fit.mechanisms.problem import MechanismProblem


@dataclass(frozen=True)
class MechanismSearchConfig:
    """Numbers of the search, set on the tuning cases of `benchmarks/diagnose.py`."""

    price: float = 10.0  # score that each number must add to be chosen [nats]
    max_added: tuple[int, ...] = (2, 4)  # mechanisms that a proposal adds: slopes are true nearby only
    num_singles: int = 4  # proposals that add one mechanism
    max_rounds: int = 8  # of measuring all slopes
    max_steps: int = 3  # gauss-Newton steps of a set in each round
    num_raced: int = 3  # proposals that go on after their first step
    step_shares: tuple[float, ...] = (1.0, 0.4)  # shares of each step that are tried
    min_gain: float = 1.0  # a step that gains less is the last [nats]
    jump_sizes: tuple[float, ...] = (0.2, 0.6, 1.2)  # of play and limits that are probed, in typical errors
    num_exchanged: int = 3  # proposals that leave one out, or exchange it
    max_left_near: float = 0.7  # mean logarithm of squares above noise [1], beyond which a start far away is tried
    min_moved: float = 0.05  # of its typical error: what moved less at a far start is as written
    max_restarts: int = 3  # searches that go on from a better explanation without a dimension, at most
    max_rounds_without: int = 3  # of measuring slopes in searches without a dimension
    num_substitutes: int = 6  # mechanisms that may take the place of a dimension that is put back


NOISE_LOG = float(np.log(2.0))  # mean logarithm of 1 + mean squares where only noise is left
DELAYS = ("actuator/*/delay", "measurement/*/delay")
JUMPING_FIELDS = ("/backlash", "/limit")
CONFIG = MechanismSearchConfig()
Report = Callable[[float], None]


@dataclass(frozen=True)
class Explanation:
    """A set of mechanisms after its fit."""

    mechanisms: tuple[Mechanism, ...]  # what it frees
    point: Array  # (num_entries,) where it fits all windows best
    held_out: Array  # (num_windows, num_measurements) 1 + mean squares under a fit to the other half
    residual: Array  # (num_windows, num_steps, num_measurements) what is left where it was fitted, in units of noise
    is_far: bool = False  # whether it is where a search began that was far from the model as written

    @cached_property
    def window_scores(self) -> Array:
        """The held-out score of each window, (num_windows,) [nats]."""
        return score_windows(self.held_out)

    @cached_property
    def total(self) -> float:
        """Its held-out score [nats]."""
        return float(self.window_scores.sum())

    @cached_property
    def price(self) -> int:
        """How many numbers it pays for."""
        return sum(mechanism.price for mechanism in self.mechanisms)

    @cached_property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions of its mechanisms."""
        return tuple(dict.fromkeys(mechanism.dimension for mechanism in self.mechanisms))


@dataclass(frozen=True)
class _State:
    """Where the fit of a set is."""

    chosen: MechanismSet
    point: Array
    residual: Array
    cost: float  # less the score on all windows, and half the squares of what has moved [nats]
    done: bool = False  # whether the last step gained too little


class MechanismSearch:
    """Explanations of one set of windows."""

    def __init__(self, problem: MechanismProblem, slopes: Array | None = None) -> None:
        """Prepares a search; `slopes` are `problem.slopes_as_written()`, if they are known."""
        self.problem, self.mechanisms = problem, problem.mechanisms
        self._slopes = slopes
        self.found: dict[MechanismSet, Explanation] = {}

    def run(
        self, find_far_start: Callable[[], Array] | None = None, report: Report = lambda done: None
    ) -> tuple[Explanation, ...]:
        """Returns all explanations that were fitted, the best first.

        Args:
            find_far_start: Returns a point far from the model as written at which something better is expected; asked
                where the search from the model as written leaves too much.
            report: Called with how far it is, in [0, 1].
        """
        everything = range(len(self.mechanisms))
        state = self._search(self._begin(()), everything, CONFIG.max_rounds, lambda done: report(0.4 * done))
        left = np.log(self.problem.mean_squares(state.residual)).mean() - NOISE_LOG
        if find_far_start is not None and left > CONFIG.max_left_near:
            begun = self._begin_far(find_far_start())
            far = self._search(begun, everything, CONFIG.max_rounds, lambda done: report(0.4 * done))
            self.found[begun.chosen] = replace(self.found[begun.chosen], is_far=True)
            state = min(state, far, key=self._priced_cost)
        for number in range(CONFIG.max_restarts):
            without = self._put_back_each(state, lambda done, at=number: report(0.4 + 0.2 * (at + done)))
            better = min(without, key=self._priced_cost, default=state)
            if self._priced_cost(better) > self._priced_cost(state):
                break
            state = self._search(better, everything, CONFIG.max_rounds, lambda done: None)
        report(1.0)
        return tuple(sorted(self.found.values(), key=lambda one: -one.total))

    def _search(self, state: _State, among: Collection[int], max_rounds: int, report: Report) -> _State:
        """Returns where the search ends that begins at a state, with some of the mechanisms."""
        self._linear = linear = self._linearise(state, among)
        for number in range(max_rounds):
            report(number / max_rounds)
            self._keep_judged(linear, state, [state.chosen])
            ends = self._fit_all(linear, state, self._propose(linear, state, among))
            for begun in (*self._move_delay(state, among), *self._probe_jumps(state, among)):
                ends += self._fit_all(linear, begun, [begun.chosen])
            self._keep_fitted(ends)
            best = min(ends, key=self._priced_cost)
            if self._priced_cost(best) > self._priced_cost(state) - CONFIG.min_gain:
                break
            state = best
            self._linear = linear = self._linearise(state, among)
        more = [add_mechanism(state.chosen, k) for k in among if k not in state.chosen]
        self._keep_judged(linear, state, [state.chosen, *more])
        return state

    def _propose(self, linear: LinearModel, state: _State, among: Collection[int]) -> list[MechanismSet]:
        """Returns sets that are worth a fit: the present one, what the linear model selects, and single changes."""
        selected = [linear.select(state.chosen, among, CONFIG.price, most) for most in CONFIG.max_added]
        others = [k for k in among if k not in state.chosen]
        more = [add_mechanism(state.chosen, k) for k in others]
        more.sort(key=lambda each: linear.value(each, CONFIG.price), reverse=True)
        singles = more[: CONFIG.num_singles]
        if not state.chosen:  # far from the best, slopes rank causes badly: each dimension is tried
            singles += {self.mechanisms[k].dimension: (k,) for (k,) in reversed(more)}.values()
        exchanged = [each for each in linear.list_neighbours(state.chosen, among, CONFIG.price) if each not in more]
        exchanged.sort(key=lambda each: linear.value(each, CONFIG.price), reverse=True)
        return list(dict.fromkeys([state.chosen, *selected, *singles, *exchanged[: CONFIG.num_exchanged]]))

    def _probe_jumps(self, state: _State, among: Collection[int]) -> list[_State]:
        """Returns the states, one per kind, that are best when play or a limit is added by one of a few sizes.

        Slopes do not show a limit that does not act yet, nor play that is smaller than a step.
        """
        found: list[_State] = []
        for field in JUMPING_FIELDS:
            tries: list[tuple[int, Array]] = []
            for k in (k for k in among if k not in state.chosen and self.mechanisms[k].targets[0].endswith(field)):
                entries = list(self.mechanisms[k].entries)
                for size in CONFIG.jump_sizes:
                    point = state.point.copy()
                    point[entries] += size * (self.problem.typical * self.problem.side)[entries]
                    tries.append((k, np.clip(point, *self.problem.bounds)))
            if tries:
                points = np.stack([point for _, point in tries])
                costs = self._costs(points, self.problem.residuals(points))
                k, point = tries[int(np.argmin(costs))]
                if costs.min() < state.cost:
                    found.append(self._begin_at(add_mechanism(state.chosen, k), point))
        return found

    def _move_delay(self, state: _State, among: Collection[int]) -> list[_State]:
        """Returns a state in which readings are late instead of commands, or the other way round, where one of both is.

        Both look alike until accelerations are large, and slopes do not lead from one to the other.
        """
        late = {self.mechanisms[k].targets[0]: k for k in among if self.mechanisms[k].targets[0] in DELAYS}
        chosen = [target for target in late if late[target] in state.chosen]
        if len(late) < 2 or len(chosen) != 1:
            return []
        one, other = late[chosen[0]], next(k for target, k in late.items() if target != chosen[0])
        row = self.problem.rows(state.point[None])[0]
        (column,), (instead,) = self.mechanisms[one].entries, self.mechanisms[other].entries
        row[instead], row[column] = row[column], self.problem.fit.base[column]
        point = np.clip(self.problem.point_of(row, float(state.point[-1])), *self.problem.bounds)
        return [self._begin_at(add_mechanism([k for k in state.chosen if k != one], other), point)]

    def _priced_cost(self, state: _State) -> float:
        return state.cost + CONFIG.price * sum(self.mechanisms[k].price for k in state.chosen)

    def _put_back_each(self, state: _State, report: Report) -> list[_State]:
        """Returns where searches end that do without one dimension of a state."""
        dimensions: dict[Dimension, None] = dict.fromkeys(self.mechanisms[k].dimension for k in state.chosen)
        found: list[_State] = []
        for number, dimension in enumerate(dimensions):
            report(number / len(dimensions))
            found.append(self._put_back(state, dimension))
        return found

    def _put_back(self, state: _State, dimension: Dimension) -> _State:
        """Returns where a search without a dimension ends, among what may take its place."""
        kept = tuple(k for k in state.chosen if self.mechanisms[k].dimension != dimension)
        others = [k for k, m in enumerate(self.mechanisms) if m.dimension != dimension and k not in kept]
        promise = {k: self._linear.value(add_mechanism(kept, k), 0.0) for k in others}
        substitutes = sorted(others, key=lambda k: -promise[k])[: CONFIG.num_substitutes]
        begun = self._begin(kept, state.point)
        return self._search(begun, [*kept, *substitutes], CONFIG.max_rounds_without, lambda done: None)

    def _begin(self, chosen: MechanismSet, near: Array | None = None) -> _State:
        """Returns a state in which only some mechanisms have moved, as they have at a point."""
        point = np.zeros(len(self.problem.typical))
        entries = self._entries(chosen)
        if near is not None:
            point[entries] = near[entries]
        return self._begin_at(chosen, point)

    def _begin_far(self, point: Array) -> _State:
        """Returns a state at a point, with every mechanism that it moves on its own."""
        moved = np.abs(point) > CONFIG.min_moved * self.problem.typical
        chosen = tuple(k for k, m in enumerate(self.mechanisms) if not m.tied and moved[list(m.entries)].any())
        return self._begin(chosen, point)

    def _begin_at(self, chosen: MechanismSet, point: Array) -> _State:
        residual = self.problem.residuals(point[None])
        return _State(chosen, point, residual[0], float(self._costs(point[None], residual)[0]))

    def _entries(self, chosen: Iterable[int]) -> Indices:
        return np.array(sorted({e for k in chosen for e in self.mechanisms[k].entries}), dtype=np.intp)

    def _costs(self, points: Array, residual: Array) -> Array:
        """Returns what fits minimise, (num_points,) [nats]."""
        score = score_windows(self.problem.mean_squares(residual)).sum(axis=1)
        return 0.5 * np.sum((points / self.problem.typical) ** 2, axis=1) - score

    def _linearise(self, state: _State, among: Iterable[int]) -> LinearModel:
        """Returns the linear model at a state, with the slopes of some mechanisms."""
        if not state.point.any():
            if self._slopes is None:
                self._slopes = self.problem.slopes_as_written()
            return LinearModel(self.problem, state.point, state.residual, self._slopes)
        entries = self._entries(among)
        moved = self.problem.residuals(self.problem.moved_points(state.point, entries))
        return self._make_linear(state, entries, moved)

    def _make_linear(self, state: _State, entries: Indices, moved: Array) -> LinearModel:
        slopes = np.zeros((len(state.point), *state.residual.shape))
        slopes[entries] = self.problem.slopes(state.point, state.residual, moved, entries)
        return LinearModel(self.problem, state.point, state.residual, slopes)

    def _fit_all(self, linear: LinearModel, state: _State, sets: Sequence[MechanismSet]) -> list[_State]:
        """Returns where fits of some sets end, whose steps go through the engine together."""
        fits = [replace(state, chosen=c, cost=state.cost if c == state.chosen else np.inf, done=False) for c in sets]
        models, known = [linear] * len(fits), linear.point is state.point
        for number in range(CONFIG.max_steps):
            active = [k for k, fit in enumerate(fits) if not fit.done and fit.chosen]
            if number and state.chosen:  # near the best, the first step shows which are worth more
                active = sorted(active, key=lambda k: self._priced_cost(fits[k]))[: CONFIG.num_raced]
            if number or not known:
                entries = {k: self._entries(fits[k].chosen) for k in active}
                moved = self._residuals([self.problem.moved_points(fits[k].point, entries[k]) for k in active])
                for k, some in zip(active, moved, strict=True):
                    models[k] = self._make_linear(fits[k], entries[k], some)
            steps = {k: models[k].fit(fits[k].chosen) - fits[k].point for k in active}
            tries = [fits[k].point + np.outer(CONFIG.step_shares, steps[k]) for k in active]
            for k, points, residual in zip(active, tries, self._residuals(tries), strict=True):
                fits[k] = self._move(fits[k], points, residual)
        return fits

    def _move(self, fit: _State, points: Array, residual: Array) -> _State:
        """Returns a fit at the best of some points, done where that gains too little."""
        costs = self._costs(points, residual)
        best = int(np.argmin(costs))
        done = bool(costs[best] > fit.cost - CONFIG.min_gain)
        if costs[best] >= fit.cost:
            return replace(fit, done=done)
        return _State(fit.chosen, points[best], residual[best], float(costs[best]), done)

    def _residuals(self, asked: Sequence[Array]) -> list[Array]:
        """Returns the residuals of some stacks of points, all in one call."""
        if not asked:
            return []
        return np.split(self.problem.residuals(np.concatenate(asked)), np.cumsum([len(some) for some in asked])[:-1])

    def _keep_judged(self, linear: LinearModel, state: _State, sets: Iterable[MechanismSet]) -> None:
        """Keeps what the linear model at a state says of some sets, fitted to one half and judged on the other."""
        for chosen in sets:
            if chosen == state.chosen or chosen not in self.found:
                self._keep(chosen, linear.fit(chosen), linear.held_out_squares(chosen), state.residual)

    def _keep_fitted(self, fits: Iterable[_State]) -> None:
        """Keeps fits to all windows of sets that were not judged yet: by chance a number explains about one nat."""
        for fit in fits:
            squares = self.problem.mean_squares(fit.residual)
            known = self.found.get(fit.chosen)
            if np.isfinite(fit.cost) and (known is None or score_windows(squares).sum() > known.total):
                self._keep(fit.chosen, fit.point, squares, fit.residual)

    def _keep(self, chosen: MechanismSet, point: Array, squares: Array, residual: Array) -> None:
        mechanisms = tuple(self.mechanisms[k] for k in chosen)
        self.found[chosen] = Explanation(mechanisms, point, squares, residual)
