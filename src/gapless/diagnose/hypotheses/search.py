"""A search for the sets of mechanisms that predict best: fitted on one half of the windows, judged on the other.

From the best set so far a linear model proposes what to add, exchange or leave out. Proposals are fitted with steps
that count only after a real prediction, until nothing better is found. In the end the best set is asked what it would
be without each of its parts, with another in its place, and with one more of every dimension: from these comparisons
come the probabilities. All fits advance together: every step of all of them is two batched calls per half.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array, Indices
from gapless.diagnose.hypotheses.linear import LinearModel, score_windows
from gapless.diagnose.hypotheses.mechanisms import Mechanism, MechanismSet
from gapless.diagnose.hypotheses.problem import DiagnosisProblem


@dataclass(frozen=True)
class SearchConfig:
    """Numbers of the search, set on the tuning cases of `benchmarks/diagnose.py`."""

    first_steps: int = 5  # gauss-Newton steps of the first fits at most
    later_steps: int = 2  # of later fits, which begin near the best
    step_shares: tuple[float, ...] = (1.0, 0.5, 0.2)  # shares of each step that are tried
    start_errors: tuple[float, ...] = (-1.5, -0.7, 0.7, 1.5)  # where mechanisms are probed: multiples of typical errors
    num_singles: int = 6  # mechanisms that are fitted alone at first
    num_new: int = 5  # new sets that are fitted after each further linear model
    num_probed: int = 3  # of them, how many because a probe far from the best point promises more than slopes do
    max_rounds: int = 10  # further linear models at most
    max_mechanisms: int = 40  # in a set
    num_rivals: int = 2  # others that are tried in the place of each mechanism of the best set
    price: float = 10.0  # score that each number must add to be proposed [nats]
    min_gain: float = 2.0  # a step that gains less is the last [nats]


CONFIG = SearchConfig()


@dataclass(frozen=True)
class SetFit:
    """A set of mechanisms after its fits to both halves."""

    mechanisms: tuple[Mechanism, ...]  # what it frees
    window_scores: Array  # (num_windows,) score of each window under the fit to the other half [nats]
    points: tuple[Array, Array]  # the points that fit the two halves of the windows
    mean_squares: Array  # (num_windows, num_measurements) 1 + mean square residual under the fit to the other half
    residual: Array  # (num_windows, num_steps, num_measurements) residuals behind them, in units of noise

    @cached_property
    def total(self) -> float:
        """Its score [nats]."""
        return float(self.window_scores.sum())

    @cached_property
    def num_numbers(self) -> int:
        """How many numbers it frees."""
        return sum(mechanism.num_numbers for mechanism in self.mechanisms)

    @cached_property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions of its mechanisms."""
        return tuple(dict.fromkeys(mechanism.dimension for mechanism in self.mechanisms))

    @property
    def point(self) -> Array:
        """The middle between the fits to both halves."""
        return (self.points[0] + self.points[1]) / 2


def find_best(fits: Iterable[SetFit], price: float | None = None) -> SetFit:
    """Returns the set with the best score less the price of its numbers; there must be one."""
    each = CONFIG.price if price is None else price
    return max(fits, key=lambda fit: fit.total - each * fit.num_numbers)


def find_best_without(fits: Iterable[SetFit], best: SetFit, dimension: str) -> SetFit:
    """Returns the fit with the best score among the sets within the best one that leave a dimension out."""
    kept = {mechanism for mechanism in best.mechanisms if mechanism.dimension != dimension}
    return max((fit for fit in fits if set(fit.mechanisms) <= kept), key=lambda fit: fit.total)


@dataclass
class _RunningFit:
    """A fit under way, of a set to one half: points to try next, and the best point so far with residual and cost."""

    chosen: MechanismSet
    half: int
    free: Indices
    tries: Array
    point: Array
    residual: Array
    cost: float = np.inf
    done: bool = False


class MechanismSearch:
    """Fits of sets of mechanisms to one set of windows."""

    def __init__(self, problem: DiagnosisProblem, slopes: Array | None = None, near: Array | None = None) -> None:
        """Prepares fits.

        Args:
            problem: The windows.
            slopes: `problem.slopes_as_written()`, if they are known.
            near: A point at which something better is expected, if there is one.
        """
        self.problem, self.mechanisms = problem, problem.mechanisms
        self.fits: dict[MechanismSet, SetFit] = {}
        self._slopes, self._near = slopes, near
        self._halves = [problem.keep_windows(problem.half == half) for half in (0, 1)]

    def run(self, report: Callable[[float], None] | None = None) -> tuple[SetFit, ...]:
        """Returns every set that was fitted, the best first.

        Args:
            report: Called with how far it is, in [0, 1].
        """
        report = report or (lambda done: None)
        zero = np.zeros(len(self.problem.typical))
        slopes = self.problem.slopes_as_written() if self._slopes is None else self._slopes
        linear = self._linear_model(zero, self.problem.residuals(zero[None])[0], slopes)
        self._fit_all([()], linear, 0)
        singles = [(k,) for k in range(len(self.mechanisms))]
        probes = self._probe((), zero)
        chosen = [*self._choose(linear, singles, CONFIG.num_singles), *((k,) for k in probes)]
        self._fit_all(list(dict.fromkeys(chosen)), linear, CONFIG.first_steps, *probes.values())
        report(0.3)
        if self._near is not None:
            self._prune(self._near)
        probed = False
        for number in range(CONFIG.max_rounds):
            report(0.3 + 0.5 * number / CONFIG.max_rounds)
            best = self._best_set()
            point = self.fits[best].point
            linear = self._linear_near(point)
            probes = self._probe(best, point) if probed else {}
            wanted = [*self._propose(linear, best), *(tuple(sorted((*best, k))) for k in probes)]
            self._fit_all(list(dict.fromkeys(wanted)), linear, CONFIG.later_steps, point, *probes.values())
            if self._best_set() != best:
                probed = False
            elif probed:
                break
            else:
                probed = True  # slopes promise nothing more: typical errors may
        report(0.85)
        self._fit_neighbours()
        report(1.0)
        return tuple(sorted(self.fits.values(), key=lambda fit: -fit.total))

    def _best_set(self) -> MechanismSet:
        best = find_best(self.fits.values())
        return next(chosen for chosen, fit in self.fits.items() if fit is best)

    def _price(self, chosen: MechanismSet) -> float:
        return CONFIG.price * sum(self.mechanisms[k].num_numbers for k in chosen)

    def _entries(self, chosen: MechanismSet) -> Indices:
        """Returns the entries of a point that some mechanisms free, in their order."""
        return np.array([entry for k in chosen for entry in self.mechanisms[k].entries], dtype=np.intp)

    def _linear_near(self, point: Array) -> LinearModel:
        """Returns the linear model with the slopes of all entries at a point."""
        entries = np.arange(len(point))
        moved = self.problem.moved_points(point, entries)
        residual = self.problem.residuals(np.concatenate([point[None], moved]))
        return self._linear_model(point, residual[0], self.problem.slopes(point, residual[0], residual[1:], entries))

    def _linear_model(self, point: Array, residual: Array, slopes: Array) -> LinearModel:
        return LinearModel(self.problem, np.arange(len(point)), slopes, point, residual)

    def _choose(self, linear: LinearModel, sets: Iterable[MechanismSet], count: int) -> list[MechanismSet]:
        """Returns the sets that the linear model gives the best scores, less the price of their numbers."""
        return sorted(sets, key=lambda chosen: self._price(chosen) - linear.score(self._entries(chosen)))[:count]

    def _probe(self, best: MechanismSet, point: Array) -> dict[int, Array]:
        """Returns the few mechanisms that help most when moved by typical errors, each with the best such point.

        Slopes do not show limits that do not act yet, play, or friction that holds.
        """
        others = [k for k in range(len(self.mechanisms)) if k not in best]
        moves: list[tuple[int, Array]] = []
        for k in others:
            for entry in self.mechanisms[k].entries if len(self.mechanisms[k].targets) > 1 else (None,):
                which = self._entries((k,)) if entry is None else np.array([entry])
                error = np.zeros(len(point))
                error[which] = self.problem.typical[which]
                moves += [(k, point + size * error) for size in CONFIG.start_errors]
        for limited in self.problem.limited:
            entry = int(np.argmax(np.abs(limited)))
            moves += [(k, point + limited) for k in others if entry in self.mechanisms[k].entries]
        points = np.clip(np.array([p for _, p in moves]), *self.problem.bounds)
        here = self.problem.residuals(point[None])
        scores = score_windows(self.problem.mean_squares(self.problem.residuals(points))).sum(axis=1)
        gains = scores - score_windows(self.problem.mean_squares(here)).sum()
        found: dict[int, Array] = {}
        for k in np.argsort(-gains, kind="stable"):
            if gains[k] > 0 and moves[k][0] not in found and len(found) < CONFIG.num_probed:
                found[moves[k][0]] = points[k]
        return found

    def _propose(self, linear: LinearModel, best: MechanismSet) -> list[MechanismSet]:
        """Returns the most promising sets with one mechanism more, one less, or one exchanged."""
        others = [k for k in range(len(self.mechanisms)) if k not in best]
        fewer = [tuple(k for k in best if k != out) for out in best]
        more = [tuple(sorted((*best, k))) for k in others] if len(best) < CONFIG.max_mechanisms else []
        exchanged = [tuple(sorted((*some, k))) for some in fewer for k in others]
        new = [chosen for chosen in (*more, *exchanged) if chosen not in self.fits]
        less = [chosen for chosen in fewer if chosen not in self.fits]
        path = [chosen for chosen in self._follow_path(linear, best) if chosen not in self.fits]
        return [*self._choose(linear, less, 2), *self._choose(linear, new, CONFIG.num_new), *path]

    def _follow_path(self, linear: LinearModel, best: MechanismSet) -> list[MechanismSet]:
        """Returns where adding one mechanism after the other leads by the linear model: its end, and halfway.

        Where much is wrong at once, adding one at a time by real fits takes as many rounds as there are causes.
        """
        path, score = [best], linear.score(self._entries(best)) - self._price(best)
        while len(path[-1]) < CONFIG.max_mechanisms:
            others = [k for k in range(len(self.mechanisms)) if k not in path[-1]]
            more = self._choose(linear, [tuple(sorted((*path[-1], k))) for k in others], 1)
            gained = linear.score(self._entries(more[0])) - self._price(more[0]) if more else -np.inf
            if gained <= score:
                break
            path.append(more[0])
            score = gained
        return [path[k] for k in sorted({len(path) // 2, len(path) - 1} - {0, 1})]

    def _prune(self, near: Array) -> None:
        """Fits the set that a point moves, then leaves out what does not pay, one mechanism after the other."""
        moved = np.abs(near / self.problem.typical)
        chosen = tuple(k for k, m in enumerate(self.mechanisms) if max(moved[list(m.entries)]) > 0.05)
        linear = self._linear_near(near)
        while len(chosen) > CONFIG.max_mechanisms or (
            chosen and max(self._gain_without(linear, chosen, out) for out in chosen) > 0
        ):
            out = max(chosen, key=lambda k: self._gain_without(linear, chosen, k))
            chosen = tuple(k for k in chosen if k != out)
        self._fit_all([chosen], linear, CONFIG.first_steps, near)

    def _gain_without(self, linear: LinearModel, chosen: MechanismSet, out: int) -> float:
        """Returns what leaving a mechanism out gains, its price included, by the linear model [nats]."""
        rest = tuple(k for k in chosen if k != out)
        loss = linear.score(self._entries(chosen)) - linear.score(self._entries(rest))
        return self._price((out,)) - loss

    def _fit_neighbours(self) -> None:
        """Fits the best set without each part, with rivals in its place, and with one more of every dimension."""
        best = self._best_set()
        linear = self._linear_near(self.fits[best].point)
        dimension = [mechanism.dimension for mechanism in self.mechanisms]
        others = [k for k in range(len(self.mechanisms)) if k not in best]
        wanted: list[MechanismSet] = []
        for out in best:
            rest = tuple(k for k in best if k != out)
            rivals = [tuple(sorted((*rest, k))) for k in others if dimension[k] != dimension[out]]
            wanted += [rest, *self._choose(linear, rivals, CONFIG.num_rivals)]
        for each in dict.fromkeys(dimension):
            wanted.append(tuple(k for k in best if dimension[k] != each))
            wanted.append(tuple(k for k in best if dimension[k] == each))
            more = [tuple(sorted((*best, k))) for k in others if dimension[k] == each]
            wanted += self._choose(linear, more, 1)
        new = [chosen for chosen in dict.fromkeys(wanted) if chosen not in self.fits]
        self._fit_all(new, linear, CONFIG.later_steps, self.fits[best].point)

    def _fit_all(self, sets: Sequence[MechanismSet], linear: LinearModel, num_steps: int, *starts: Array) -> None:
        """Fits sets to each half, from the best of some points, judges them on the other, and keeps the better."""
        running = [self._begin(chosen, half, linear, starts) for chosen in sets for half in (0, 1)]
        self._evaluate(running)
        for _ in range(num_steps):
            self._aim(running)
            self._evaluate(running)
            if all(fit.done for fit in running):
                break
        for chosen, fit in self._judge(running):
            if chosen not in self.fits or fit.total > self.fits[chosen].total:
                self.fits[chosen] = fit

    def _begin(self, chosen: MechanismSet, half: int, linear: LinearModel, starts: Sequence[Array]) -> _RunningFit:
        """Returns a fit that begins at the best of: the linear model, given points, fits of the best smaller sets."""
        zero, free = np.zeros(len(self.problem.typical)), self._entries(chosen)
        guess = linear.fit(free)
        names = {self.mechanisms[k] for k in chosen}
        smaller = sorted((fit for fit in self.fits.values() if set(fit.mechanisms) <= names), key=lambda f: -f.total)
        tries = [zero, guess, 0.5 * guess, *starts, *(fit.points[half] for fit in smaller[:2])]
        points = np.zeros((len(tries), len(zero)))
        points[:, free] = np.stack(tries)[:, free]
        points = np.unique(np.clip(points, *self.problem.bounds), axis=0)
        return _RunningFit(chosen, half, free, points, points[0], np.zeros(0))

    def _evaluate(self, fits: Sequence[_RunningFit]) -> None:
        """Moves fits to the best of the points that they try; those that gain too little are done."""
        active = [fit for fit in fits if not fit.done]
        for fit, residual in zip(active, self._residuals([(fit.half, fit.tries) for fit in active]), strict=True):
            cost = -score_windows(self._halves[fit.half].mean_squares(residual)).sum(axis=1)
            cost += 0.5 * np.sum((fit.tries / self.problem.typical) ** 2, axis=1)
            k = int(np.argmin(cost))
            fit.done = bool(cost[k] > fit.cost - CONFIG.min_gain or not len(fit.free))
            if cost[k] < fit.cost:
                fit.point, fit.residual, fit.cost = fit.tries[k], residual[k], float(cost[k])

    def _aim(self, fits: Sequence[_RunningFit]) -> None:
        """Lets fits try shares of the way to where the slopes at their points lead."""
        active = [fit for fit in fits if not fit.done]
        moved = self._residuals([(fit.half, self.problem.moved_points(fit.point, fit.free)) for fit in active])
        for fit, residual in zip(active, moved, strict=True):
            slopes = self.problem.slopes(fit.point, fit.residual, residual, fit.free)
            model = LinearModel(self._halves[fit.half], fit.free, slopes, fit.point, fit.residual)
            fit.tries = fit.point + np.outer(CONFIG.step_shares, model.fit() - fit.point)

    def _residuals(self, asked: Sequence[tuple[int, Array]]) -> list[Array]:
        """Returns the residuals of (num_points, num_entries) points on a half, for each question."""
        found: dict[int, Array] = {}
        for half, problem in enumerate(self._halves):
            here = [k for k, question in enumerate(asked) if question[0] == half]
            if here:
                points = [asked[k][1] for k in here]
                ends = np.cumsum([len(some) for some in points])[:-1]
                found |= zip(here, np.split(problem.residuals(np.concatenate(points)), ends), strict=True)
        return [found[k] for k in range(len(asked))]

    def _judge(self, fits: Sequence[_RunningFit]) -> Iterator[tuple[MechanismSet, SetFit]]:
        """Yields the result of each two fits, of a set to either half: each half under the point of the other."""
        pairs = list(zip(fits[::2], fits[1::2], strict=True))
        if not pairs:
            return
        crossed = [(half, np.array([pair[1 - half].point for pair in pairs])) for half in (0, 1)]
        residuals = np.zeros((len(pairs), *self.problem.step_effect.shape))
        for half, residual in enumerate(self._residuals(crossed)):
            residuals[:, self.problem.half == half] = residual
        for k, (first, second) in enumerate(pairs):
            left = residuals[k]
            squares = self.problem.mean_squares(left)
            mechanisms = tuple(self.mechanisms[number] for number in first.chosen)
            yield first.chosen, SetFit(mechanisms, score_windows(squares), (first.point, second.point), squares, left)
