"""A search for the set of mechanisms that explains some logs with the fewest numbers.

At the best point so far slopes of all mechanisms are measured, and the linear model that they make is searched for the
set that predicts unseen windows best, less a price per number: mechanisms are added, left out and exchanged. The set is
then fitted with steps that count only after a real prediction, slopes are measured anew, and so on until the set stays.

Causes that hide behind each other are not found one by one. So where such a search leaves errors, everything is fitted
at once, each value near the model as written, and what is not worth its price is left out again.

The valley is searched on few short windows. What lies in it is judged on more and longer ones, which show what is small
and lasts. In the end every dimension of the set is put back to the model as written and the others are searched
again: what that costs is the evidence for it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array
from gapless.fit.mechanisms.alternatives import list_alternatives
from gapless.fit.mechanisms.far_start import fit_everything
from gapless.fit.mechanisms.linear import LinearModel, MechanismSet, add_mechanism, score_windows
from gapless.fit.mechanisms.mechanism import Mechanism
from gapless.fit.mechanisms.problem import MechanismProblem
from gapless.fit.mechanisms.set_fits import MIN_GAIN, PRICE, SetFit, SetFitter
from gapless.sim.targets.target import split_target


@dataclass(frozen=True)
class MechanismSearchConfig:
    """Numbers of the search, set on the tuning cases of `benchmarks/diagnose.py`."""

    max_added: tuple[int, ...] = (2, 4)  # mechanisms that a proposal adds: slopes are true nearby only
    num_singles: int = 4  # proposals that add one mechanism
    num_pruned: int = 4  # proposals that add one mechanism and leave out all that it makes needless
    max_few_windows: int = 16  # on which the valley is searched
    max_rounds: int = 8  # of measuring all slopes
    jump_sizes: tuple[float, ...] = (0.2, 0.6, 1.2)  # of play and limits that are probed, in typical errors
    num_exchanged: int = 3  # proposals that leave one out, or exchange it
    # mean logarithm of squares above noise [1]: where more is left, everything is fitted at once,
    max_left: float = 0.15
    max_left_near: float = 0.3  # and from starts far from the model as written, too
    max_rounds_again: int = 4  # of a search that begins there
    max_exchanges: int = 3  # times that what stands in for something else is exchanged
    max_rival_price: float = 2.0  # priced cost above that of the best at which a rival still counts, in prices
    max_restarts: int = 2  # searches that go on from a better explanation without a dimension, at most
    max_rounds_without: int = 3  # of measuring slopes in searches without a dimension
    max_worse: float = 300.0  # priced cost above that of the best, at which these are given up [nats]
    # loss without a dimension by the linear model [nats] above which nothing is searched; times 1 + what is left. Real
    # losses were at least 0.2 of those in 47 of 49 cases of tuning, and above 70 where the linear ones were above 150
    max_linear_loss: float = 150.0
    num_substitutes: int = 6  # mechanisms that may take the place of a dimension that is put back


NOISE_LOG = float(np.log(2.0))  # mean logarithm of 1 + mean squares where only noise is left
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
    prior_cost: float = 0.0  # by which its sizes make it less likely before the logs are seen [nats]

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


class MechanismSearch:
    """Explanations of one set of windows."""

    def __init__(self, problem: MechanismProblem, slopes: Array | None = None, price: float = PRICE) -> None:
        """Prepares a search; see `SetFitter`."""
        self.mechanisms, self.fitter = problem.mechanisms, SetFitter(problem, slopes, price)
        self.found: dict[MechanismSet, Explanation] = {}

    def run(
        self,
        short: MechanismProblem | None = None,
        find_far_start: Callable[[], Array] | None = None,
        report: Report = lambda done: None,
    ) -> tuple[Explanation, ...]:
        """Returns all explanations that were fitted, the best first.

        Args:
            short: The same problem on shorter windows, on which the valley is searched; by default on its own.
            find_far_start: Returns a point far from the model as written at which something better is expected; asked
                where the search from the model as written leaves too much.
            report: Called with how far it is, in [0, 1].
        """
        short = short or self.fitter.problem
        windows = _keep_few_windows(short)  # on which the valley shows as well
        share = len(windows.windows) / len(short.windows)
        few = MechanismSearch(windows, price=share * self.fitter.price)
        near = few.explore(find_far_start, lambda done: report(0.4 * done))
        everything = range(len(self.mechanisms))
        self.fitter.move_starts(near[0])
        written = self.fitter.begin(())
        self._keep_best((), written.point, self.fitter.problem.mean_squares(written.residual), written.residual)
        begun = self.fitter.begin_all([(each.chosen, each.point) for each in near])
        state = self._search(self._fit_best(begun), everything)
        for number in range(CONFIG.max_restarts):
            without = self._put_back_each(state, few, lambda done, at=number: report(0.4 + 0.2 * (at + done)))
            better = min(without, key=self.fitter.priced_cost, default=state)
            if self.fitter.priced_cost(better) > self.fitter.priced_cost(state) - MIN_GAIN:
                break
            state = self._search(better, everything)
        report(1.0)
        return tuple(sorted(self.found.values(), key=lambda one: -one.total))

    def explore(self, find_far_start: Callable[[], Array] | None, report: Report) -> list[SetFit]:
        """Returns where searches end: the best first, then rivals that are about as good.

        They begin at the model as written, at a fit of everything, and far away; then with what single changes of the
        best do not lead to.
        """
        everything = range(len(self.mechanisms))
        state = self._search(self.fitter.begin(()), everything, report=lambda done: report(0.3 * done))
        if self._measure_left(state) > CONFIG.max_left:
            state = self._search_from_everything(state, state.point)
        report(0.5)
        if find_far_start is not None and self._measure_left(state) > CONFIG.max_left_near:
            state = self._search_from_everything(state, find_far_start())
        report(0.7)
        state = self.fitter.move_starts(state)
        for _ in range(CONFIG.max_exchanges if state.chosen else 0):
            rivals = self._fit_alternatives(self.fitter.linearise(state, everything))
            most = self.fitter.priced_cost(state) + self.fitter.price * CONFIG.max_rival_price
            rivals = [each for each in rivals if self.fitter.priced_cost(each) < most]
            if not rivals:
                return [state]
            found = self._search(self.fitter.renew(rivals[0]), everything)
            if self.fitter.priced_cost(found) > self.fitter.priced_cost(state) - MIN_GAIN:
                return [state, found, *rivals[1:]]
            state = found
        return [state]

    def _fit_alternatives(self, state: SetFit) -> list[SetFit]:
        """Returns the fits of sets that are far from a state and yet may be as good, the best first."""
        asked = list_alternatives(self.fitter, state, self._measure_left(state))
        fits = self.fitter.fit_all(self.fitter.begin_all(asked))
        self._keep(fits)
        return sorted(fits, key=self.fitter.priced_cost)

    def _measure_left(self, fit: SetFit) -> float:
        """Returns what a fit leaves above noise: the mean logarithm of its squares."""
        return float(np.log(self.fitter.problem.mean_squares(fit.residual)).mean() - NOISE_LOG)

    def _search(
        self,
        state: SetFit,
        among: Collection[int],
        max_rounds: int = CONFIG.max_rounds,
        report: Report = lambda done: None,
        max_cost: float = np.inf,
    ) -> SetFit:
        """Returns where the search ends that begins at a state, with some of the mechanisms.

        It is given up after a round that leaves more than a priced cost.
        """
        state = self.fitter.linearise(state, among)
        for number in range(max_rounds):
            report(number / max_rounds)
            self._keep([state])
            proposed = self._propose(state, among)
            best = self._fit_best(self.fitter.change(state, chosen) for chosen in proposed)
            if self.fitter.priced_cost(best) > self.fitter.priced_cost(state) - MIN_GAIN:
                best = self._fit_best([state, *self._probe_jumps(state, among)])
            if self.fitter.priced_cost(best) > self.fitter.priced_cost(state) - MIN_GAIN:
                break
            state = self.fitter.linearise(self.fitter.renew(best), among)
            if self.fitter.priced_cost(state) > max_cost:
                break
        self._keep_linear(state, [add_mechanism(state.chosen, k) for k in among if k not in state.chosen])
        return state

    def _fit_best(self, begun: Iterable[SetFit]) -> SetFit:
        """Returns the best of where some fits end; all are kept."""
        begun = list(begun)
        ends = self.fitter.fit_all(begun)
        self._keep(ends)
        return min(ends, key=self.fitter.priced_cost)

    def _propose(self, state: SetFit, among: Collection[int]) -> list[MechanismSet]:
        """Returns sets that are worth a fit: the present one, what the linear model selects, and single changes."""
        linear = _linear_of(state)

        def rank(sets: Iterable[MechanismSet]) -> list[MechanismSet]:
            return sorted(sets, key=lambda each: linear.value(each, self.fitter.price), reverse=True)

        selected = [linear.select(state.chosen, among, self.fitter.price, most) for most in CONFIG.max_added]
        more = rank(add_mechanism(state.chosen, k) for k in among if k not in state.chosen)
        singles = more[: CONFIG.num_singles]
        if not state.chosen:  # far from the best, slopes rank badly: all that promise anything are tried
            singles += [
                each for each in more if linear.value(each, self.fitter.price) > linear.value((), self.fitter.price)
            ]
        kinds = {self.mechanisms[k].dimension for k in state.chosen}
        alike = [
            each for each in more if {self.mechanisms[k].dimension for k in set(each) - set(state.chosen)} <= kinds
        ]
        pruned = rank(
            {linear.prune(each, self.fitter.price) for each in [*more[: CONFIG.num_pruned], *alike]} - {state.chosen}
        )
        less = [tuple(k for k in state.chosen if k != out) for out in state.chosen]
        others = [k for k in among if k not in state.chosen]
        exchanged = rank({*less, *(add_mechanism(rest, k) for rest in less for k in others)})
        return list(
            dict.fromkeys(
                [state.chosen, *selected, *singles, *pruned[: CONFIG.num_pruned], *exchanged[: CONFIG.num_exchanged]]
            )
        )

    def _search_from_everything(self, state: SetFit, start: Array) -> SetFit:
        """Returns the better of a state and where a search ends that begins with a fit of everything.

        Errors of start states are discounted as they show under that fit, for both.
        """
        begun, everything = self._fit_everything(start), range(len(self.mechanisms))
        found = self._search(begun, everything, CONFIG.max_rounds_again)
        return min(self.fitter.begin(state.chosen, state.point), found, key=self.fitter.priced_cost)

    def _fit_everything(self, near: Array) -> SetFit:
        """Returns a fit of what is left of all mechanisms, begun at a point, when each has to pay its price."""
        whole = tuple(k for k, mechanism in enumerate(self.mechanisms) if not mechanism.tied)
        state = self.fitter.move_starts(self.fitter.begin(whole, fit_everything(self.fitter.problem, near)))
        state = self.fitter.linearise(self.fitter.renew(state), whole)
        begun = self.fitter.change(state, _linear_of(state).prune(whole, self.fitter.price))
        (end,) = self.fitter.fit_all([begun])
        return end

    def _probe_jumps(self, state: SetFit, among: Collection[int]) -> list[SetFit]:
        """Returns the states, one per kind, that are best when play or a limit is added by one of a few sizes.

        Slopes do not show a limit that does not act yet, nor play that is smaller than a step.
        """
        found: list[SetFit] = []
        for field in JUMPING_FIELDS:
            tries: list[tuple[MechanismSet, Array]] = []
            for k in (k for k in among if k not in state.chosen and self.mechanisms[k].targets[0].endswith(field)):
                for kept in dict.fromkeys([state.chosen, self._without_drive_of(state.chosen, k)]):
                    begun = np.zeros_like(state.point)
                    entries = self.fitter.entries(kept)
                    begun[entries] = state.point[entries]
                    tries += [(add_mechanism(kept, k), point) for point in self._jump(begun, k)]
            if tries:
                points = np.stack([point for _, point in tries])
                costs = self.fitter.costs(points, self.fitter.problem.residuals(points))
                chosen, point = tries[int(np.argmin(costs))]
                if costs.min() < state.cost:
                    found.append(self.fitter.begin(chosen, point))
        return found

    def _jump(self, point: Array, k: int) -> list[Array]:
        """Returns points at which one mechanism is wrong by each of a few sizes."""
        entries, found = list(self.mechanisms[k].entries), list[Array]()
        for size in CONFIG.jump_sizes:
            moved = point.copy()
            moved[entries] += size * (self.fitter.problem.typical * self.fitter.problem.side)[entries]
            found.append(np.clip(moved, *self.fitter.problem.bounds))
        return found

    def _without_drive_of(self, chosen: MechanismSet, k: int) -> MechanismSet:
        """Returns a set without what else is wrong of the same joint: friction may stand where its gear has play."""
        joints = {split_target(target).name for target in self.mechanisms[k].targets}
        dimension = self.mechanisms[k].dimension
        return tuple(
            other
            for other in chosen
            if self.mechanisms[other].dimension != dimension
            or not {split_target(target).name for target in self.mechanisms[other].targets} <= joints
        )

    def _dimensions(self, state: SetFit) -> tuple[Dimension, ...]:
        return tuple(dict.fromkeys(self.mechanisms[k].dimension for k in state.chosen))

    def _put_back_each(self, state: SetFit, few: "MechanismSearch", report: Report) -> list[SetFit]:
        """Returns fits that do without one dimension of a state, each from where a search on few windows ends."""
        dimensions = self._dimensions(state)
        found: list[SetFit] = []
        for number, dimension in enumerate(dimensions):
            report(number / len(dimensions))
            found += self._put_back(state, dimension, few)
        return found

    def _put_back(self, state: SetFit, dimension: Dimension, few: "MechanismSearch") -> list[SetFit]:
        """Returns a fit without a dimension, with what takes its place in a search on few windows.

        Where the linear model leaves no hope of it, nothing is searched, and what it says is kept.
        """
        kept = tuple(k for k in state.chosen if self.mechanisms[k].dimension != dimension)
        others = [k for k, m in enumerate(self.mechanisms) if m.dimension != dimension and k not in kept]
        linear = _linear_of(state)
        instead = linear.select(kept, [*kept, *others], self.fitter.price, CONFIG.max_added[-1])
        loss = linear.value(state.chosen, self.fitter.price) - linear.value(instead, self.fitter.price)
        if loss > CONFIG.max_linear_loss * (1.0 + self._measure_left(state)):
            self._keep_linear(state, [kept, instead])
            return []
        promise = {k: linear.value(add_mechanism(kept, k), 0.0) for k in others}
        substitutes = sorted(others, key=lambda k: -promise[k])[: CONFIG.num_substitutes]
        begun = few.fitter.begin(kept, state.point)
        hopeless = few.fitter.priced_cost(few.fitter.begin(state.chosen, state.point)) + CONFIG.max_worse
        near = few._search(begun, [*kept, *substitutes], CONFIG.max_rounds_without, max_cost=hopeless)
        asked = [(kept, state.point), (instead, linear.fit(instead)), (near.chosen, near.point)]
        return [self._fit_best(self.fitter.begin_all(list({chosen: (chosen, at) for chosen, at in asked}.values())))]

    def _keep(self, fits: Iterable[SetFit]) -> None:
        """Keeps what fits say of their sets: what is fitted to one half of the windows is judged on the other."""
        for fit in fits:
            if np.isfinite(fit.cost) and fit.linear is not None:
                self._keep_best(fit.chosen, fit.point, fit.linear.held_out_squares(fit.chosen), fit.residual)

    def _keep_linear(self, state: SetFit, sets: Sequence[MechanismSet]) -> None:
        """Keeps what the linear model at a state says of sets that were not fitted."""
        linear = _linear_of(state)
        for chosen in sets:
            if chosen not in self.found:
                self._keep_best(chosen, linear.fit(chosen), linear.held_out_squares(chosen), state.residual)

    def _keep_best(self, chosen: MechanismSet, point: Array, squares: Array, residual: Array) -> None:
        known = self.found.get(chosen)
        if known is None or score_windows(squares).sum() > known.total:
            mechanisms = tuple(self.mechanisms[k] for k in chosen)
            prior_cost = measure_prior_cost(mechanisms, point / self.fitter.problem.typical)
            self.found[chosen] = Explanation(mechanisms, point, squares, residual, prior_cost)


def measure_prior_cost(mechanisms: Iterable[Mechanism], sizes: Array) -> float:
    """Returns the sum of log(1 + x^2 / 2) over the numbers of mechanisms, of size x in typical errors [nats].

    Of two that show alike the one is likelier that has moved less; what is far off is not impossible (heavy tails).
    """
    costs = np.log1p(0.5 * sizes**2)
    return float(sum(mechanism.price * costs[list(mechanism.entries)].mean() for mechanism in mechanisms))


def _keep_few_windows(problem: MechanismProblem) -> MechanismProblem:
    """Returns a problem on at most `max_few_windows` of its windows, from all of it."""
    count = len(problem.windows)
    chosen = np.zeros(count, dtype=np.bool_)
    chosen[np.linspace(0, count - 1, min(count, CONFIG.max_few_windows)).astype(np.intp)] = True
    return problem.keep_windows(chosen)


def _linear_of(state: SetFit) -> LinearModel:
    assert state.linear is not None
    return state.linear
