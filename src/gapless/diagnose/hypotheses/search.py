"""A search for the sets of dimensions that predict best: fitted on one half of the windows, judged on the other.

A linear model about the model as written proposes sets. They are then fitted with steps that count only after a real
prediction. From the best set a new linear model proposes what to add, exchange or leave out, until nothing better is
found. All fits advance together: every step of all of them is two batched calls per half.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array, Indices
from gapless.diagnose.hypotheses.linear import MAX_DIMENSIONS, LinearFit, LinearModel, Subset, score_windows
from gapless.diagnose.hypotheses.problem import DiagnosisProblem


@dataclass(frozen=True)
class SubsetSearchConfig:
    """Numbers of the search, set on the tuning cases of `benchmarks/diagnose.py`."""

    first_steps: int = 8  # gauss-Newton steps of the first fits at most
    later_steps: int = 2  # of later fits, which begin near the best
    step_shares: tuple[float, ...] = (1.0, 0.5, 0.2)  # shares of each step that are tried
    # where fits of one dimension also begin: multiples of the typical error of each of its targets
    start_errors: tuple[float, ...] = (-1.5, -0.7, 0.7, 1.5)
    num_singles: int = 3  # dimensions that are fitted alone at first
    num_pairs: int = 4  # pairs with the best of them that are fitted next
    num_restarted: int = 2  # of these pairs, how many begin a second time without what the best dimension found alone
    num_new: int = 3  # new sets that are fitted after each further linear model
    max_rounds: int = 4  # further linear models at most
    price: float = 6.0  # score that each dimension of a set must add to be proposed [nats]
    min_gain: float = 2.0  # a step that gains less is the last [nats]


CONFIG = SubsetSearchConfig()
LinearFits = dict[Subset, LinearFit]


@dataclass(frozen=True)
class SubsetFit:
    """A set of dimensions after its fits to both halves."""

    subset: Subset  # the dimensions
    window_scores: Array  # (num_windows,) score of each window under the fit to the other half [nats]
    points: tuple[Array, Array]  # the points that fit the two halves of the windows
    mean_squares: Array  # (num_windows, num_measurements) 1 + mean square residual under the fit to the other half
    residual: Array  # (num_windows, num_steps, num_measurements) residuals behind them, in units of noise

    @cached_property
    def total(self) -> float:
        """Its score [nats]."""
        return float(self.window_scores.sum())

    @property
    def point(self) -> Array:
        """The middle between the fits to both halves."""
        return (self.points[0] + self.points[1]) / 2


def find_best(fits: Iterable[SubsetFit]) -> SubsetFit:
    """Returns the set with the best score less the price of its dimensions; there must be one."""
    return max(fits, key=lambda fit: fit.total - CONFIG.price * len(fit.subset))


def find_best_without(fits: Iterable[SubsetFit], best: SubsetFit, dimension: str) -> SubsetFit:
    """Returns the fit with the best score among the sets within the best one that leave a dimension out."""
    rest = [fit for fit in fits if set(fit.subset) <= set(best.subset) - {dimension}]
    return max(rest, key=lambda fit: fit.total)


@dataclass
class _RunningFit:
    """A fit under way, of a set to one half: points to try next, and the best point so far with residual and cost."""

    subset: Subset
    half: int
    free: Indices
    tries: Array
    point: Array
    residual: Array
    cost: float = np.inf
    done: bool = False


class SubsetSearch:
    """Fits of sets of dimensions to one set of windows."""

    def __init__(self, problem: DiagnosisProblem, slopes: Array | None = None, near: Array | None = None) -> None:
        """Prepares fits.

        Args:
            problem: The windows.
            slopes: `problem.slopes_as_written()`, if they are known.
            near: A point at which something better is expected, if there is one.
        """
        self.problem = problem
        self.fits: dict[Subset, SubsetFit] = {}
        self._slopes, self._near = slopes, near
        self._halves = [problem.keep_windows(problem.half == half) for half in (0, 1)]

    def run(self, report: Callable[[float], None] | None = None) -> tuple[SubsetFit, ...]:
        """Returns every set that was fitted, the best first.

        Args:
            report: Called with how far it is, in [0, 1].
        """
        report = report or (lambda done: None)
        zero = np.zeros(len(self.problem.typical))
        slopes = self.problem.slopes_as_written() if self._slopes is None else self._slopes
        linear = self._fit_linear(zero, self.problem.residuals(zero[None])[0], slopes)
        report(0.2)
        singles, pairs = ([subset for subset in linear if len(subset) == size] for size in (1, 2))
        self._fit_all([(), *_choose(linear, singles, CONFIG.num_singles)], linear, CONFIG.first_steps)
        report(0.4)
        main = find_best(self.fits.values()).subset
        with_main = [pair for pair in pairs if set(main) & set(pair)]
        chosen = [*_choose(linear, pairs, 2), *_choose(linear, with_main, CONFIG.num_pairs)]
        self._fit_all(list(dict.fromkeys(chosen)), linear, CONFIG.later_steps)
        if self._near is not None:
            self._fit_all(self._subsets_moved_in(self._near), linear, CONFIG.later_steps, self._near)
        for number in range(CONFIG.max_rounds):
            report(0.6 + 0.1 * number)
            best = find_best(self.fits.values())
            linear = self._fit_linear_near(best.point)
            self._fit_all(self._propose(linear, best.subset), linear, CONFIG.later_steps, best.point)
            if find_best(self.fits.values()) is best:
                break
        report(1.0)
        return tuple(sorted(self.fits.values(), key=lambda fit: -fit.total))

    def _fit_linear_near(self, point: Array) -> LinearFits:
        """Returns what each set explains by the slopes at a point."""
        entries = np.arange(len(point))
        moved = self.problem.moved_points(point, entries)
        residual = self.problem.residuals(np.concatenate([point[None], moved]))
        return self._fit_linear(point, residual[0], self.problem.slopes(point, residual[0], residual[1:], entries))

    def _fit_linear(self, point: Array, residual: Array, slopes: Array) -> LinearFits:
        return LinearModel(self.problem, np.arange(len(point)), slopes, point, residual).fit_subsets()

    def _subsets_moved_in(self, point: Array) -> list[Subset]:
        """Returns all sets of the dimensions in which a point is furthest from the model as written."""
        shift = np.abs(point / self.problem.typical)
        size: dict[Dimension, float] = {d: float(shift[entries].max()) for d, entries in self.problem.entries.items()}
        moved: list[Dimension] = [d for d in size if size[d] > 0]
        furthest = sorted(moved, key=lambda d: -size[d])[:MAX_DIMENSIONS]
        ordered: list[Dimension] = [d for d in moved if d in furthest]
        return [subset for number in range(1, len(ordered) + 1) for subset in combinations(ordered, number)]

    def _propose(self, linear: LinearFits, best: Subset) -> list[Subset]:
        """Returns the best set without each one of its dimensions, and the most promising new sets near it.

        New sets have one dimension more, or one exchanged.
        """
        changes = [(len(set(subset) - set(best)), len(set(best) - set(subset)), subset) for subset in linear]
        fewer = [subset for more, less, subset in changes if subset and (more, less) == (0, 1)]
        near = [subset for more, less, subset in changes if more == 1 and less <= 1 and subset not in self.fits]
        return [*fewer, *_choose(linear, near, CONFIG.num_new)]

    def _fit_all(self, subsets: Sequence[Subset], linear: LinearFits, num_steps: int, *starts: Array) -> None:
        """Fits sets to each half, from the best of some points, judges them on the other, and keeps the better.

        New single dimensions are fitted once more from typical errors of each target. The first pairs are fitted once
        more without what the best dimension found alone: there its values make up for the other dimension's.
        """
        main = find_best(self.fits.values()).subset if self.fits else ()
        running = [self._begin(subset, half, linear, starts) for subset in subsets for half in (0, 1)]
        pairs = [subset for subset in subsets if len(subset) == 2 and len(main) == 1 and main[0] in subset]
        for subset in pairs[: CONFIG.num_restarted]:
            running += [self._begin(subset, half, linear, starts, without=main) for half in (0, 1)]
        for subset in subsets:
            if len(subset) == 1 and subset not in self.fits:
                running += [self._begin_at_typical_errors(subset, half) for half in (0, 1)]
        self._evaluate(running)
        for _ in range(num_steps):
            self._aim(running)
            self._evaluate(running)
            if all(fit.done for fit in running):
                break
        for fit in self._judge(running):
            if fit.subset not in self.fits or fit.total > self.fits[fit.subset].total:
                self.fits[fit.subset] = fit

    def _begin(
        self, subset: Subset, half: int, linear: LinearFits, starts: Sequence[Array], without: Subset = ()
    ) -> _RunningFit:
        """Returns a fit that begins at the best of: the linear model, fits of smaller sets, limits that act."""
        zero, guess = np.zeros(len(self.problem.typical)), linear[subset].point
        smaller = [fit for fit in self.fits.values() if fit.subset and set(fit.subset) <= set(subset)]
        smaller = [fit for fit in smaller if not set(without) & set(fit.subset)]
        bases = [zero, find_best(smaller).points[half]] if smaller else [zero]
        tries = [zero, guess, 0.5 * guess, *starts, *(fit.points[half] for fit in smaller)]
        tries += [base + limited for base in bases for limited in self.problem.limited]
        return self._begin_at(subset, half, tries)

    def _begin_at_typical_errors(self, subset: Subset, half: int) -> _RunningFit:
        owners = np.array(self.problem.owners)
        targets = dict.fromkeys(owners[self.problem.entries_of(subset)].tolist())
        typical = [self.problem.typical * (owners == target) for target in targets]
        return self._begin_at(subset, half, [size * error for error in typical for size in CONFIG.start_errors])

    def _begin_at(self, subset: Subset, half: int, tries: Sequence[Array]) -> _RunningFit:
        free = self.problem.entries_of(subset)
        points = np.zeros((len(tries), len(self.problem.typical)))
        points[:, free] = np.stack(tries)[:, free]
        points = np.unique(np.clip(points, *self.problem.bounds), axis=0)
        return _RunningFit(subset, half, free, points, points[0], np.zeros(0))

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

    def _judge(self, fits: Sequence[_RunningFit]) -> Iterator[SubsetFit]:
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
            yield SubsetFit(first.subset, score_windows(squares), (first.point, second.point), squares, left)


def _choose(linear: LinearFits, subsets: Sequence[Subset], count: int) -> list[Subset]:
    """Returns the sets with the best scores less the price of their dimensions."""
    return sorted(subsets, key=lambda subset: CONFIG.price * len(subset) - linear[subset].total)[:count]
