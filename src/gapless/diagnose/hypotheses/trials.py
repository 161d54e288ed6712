"""Sets of dimensions, fitted for real: on each half of the episodes, judged on the other.

A picture about the model as written proposes sets; they are then fitted with steps that only a real evaluation
accepts. From the best set a new picture proposes what might be added, exchanged or left out, until nothing better is
found. All fits advance together: every step of all of them is two batched calls.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from gapless.core.signal import Array
from gapless.diagnose.hypotheses.frame import Frame, part_of
from gapless.diagnose.hypotheses.picture import (
    INDEPENDENT,
    MOST,
    Picture,
    Scores,
    Subset,
    Sums,
    ends,
    look,
    make_picture,
    real_level,
)

STEPS = 8  # Gauss-Newton steps of the first fits at most
FEWER_STEPS = 2  # of later ones, which begin near the best
SHARES = (1.0, 0.5, 0.2)  # of each step that are tried
SEVERITIES = (-1.5, -0.7, 0.7, 1.5)  # of each value of a dimension at which its fit may begin, in typical ones
SINGLES = 3  # dimensions that are fitted alone after the first look
PAIRS = 4  # pairs that are fitted with them
ELSEWHERE = 2  # of them that also begin elsewhere
AGAIN = 3  # new sets that are fitted after each further look
LOOKS = 4  # at most, besides the first
PER_DIMENSION = 6.0  # nats that a dimension must be worth to be proposed
ENOUGH = 2.0  # nats: a step that gains less is the last
Tell = Callable[[float], None]


@dataclass(frozen=True)
class Trial:
    """A set of dimensions after a real fit.

    Attributes:
        subset: The dimensions.
        parts: (num_windows,) score of each window under the fit to the other half [nats].
        halves: The points that suit the two halves of the windows.
        levels: (num_windows, num_measurements) mean square residual in units of noise, plus 1, on the other half.
        residual: (num_windows, num_steps, num_measurements) residuals behind them, in units of noise.
    """

    subset: Subset
    parts: Array
    halves: tuple[Array, Array]
    levels: Array
    residual: Array

    @property
    def total(self) -> float:
        """Its score [nats]."""
        return float(self.parts.sum())

    @property
    def point(self) -> Array:
        """The middle between the fits to both halves."""
        return (self.halves[0] + self.halves[1]) / 2


def best_of(trials: Iterable[Trial]) -> Trial:
    """Returns the set that is worth most; there must be one."""
    return max(trials, key=lambda trial: _worth(trial.subset, trial.total))


@dataclass(frozen=True)
class _Fit:
    """A fit under way: of a set, to one half.

    Attributes:
        subset: The dimensions.
        half: Which half.
        free: Entries of a point that may move.
        tries: (num_tries, num_entries) points to be evaluated next.
        point: (num_entries,) the best so far.
        residual: (num_windows, num_steps, num_measurements) there.
        cost: There [nats].
        done: Whether it goes on.
    """

    subset: Subset
    half: int
    free: NDArray[np.intp]
    tries: Array
    point: Array
    residual: Array
    cost: float = np.inf
    done: bool = False


class Trials:
    """Fits of one set of measured windows."""

    def __init__(self, frame: Frame, measured: Array, first: Picture | None = None, near: Array | None = None) -> None:
        """Prepares fits.

        Args:
            frame: The windows.
            measured: (num_windows, num_steps + 1, num_measurements) readings in them.
            first: The picture about the model as written, if it is known.
            near: A point at which something better is expected, if there is one.
        """
        self.frame, self.measured = frame, measured
        self.done: dict[Subset, Trial] = {}
        self._first, self._near = first, near
        self._here = [np.flatnonzero(frame.fold == half) for half in (0, 1)]
        self._parts = [part_of(frame, here) for here in self._here]

    def run(self, tell: Tell | None = None) -> tuple[Trial, ...]:
        """Returns every set that was fitted, the best first."""
        scores = self._scores(self._first or look(self.frame))
        _say(tell, 0.2)
        alone, pairs = ([subset for subset in scores.subsets if len(subset) == size] for size in (1, 2))
        self._fit([(), *_best(scores, alone, SINGLES)], scores, STEPS)
        _say(tell, 0.4)
        main = best_of(self.done.values()).subset
        told = [pair for pair in pairs if set(main) & set(pair)]
        self._fit(list(dict.fromkeys([*_best(scores, pairs, 2), *_best(scores, told, PAIRS)])), scores, FEWER_STEPS)
        if self._near is not None:
            self._fit(self._within(self._near), scores, FEWER_STEPS, self._near)
        for number in range(LOOKS):
            _say(tell, 0.6 + 0.1 * number)
            best = best_of(self.done.values())
            scores = self._scores(self._look(best.point))
            self._fit(self._proposed(scores, best.subset), scores, FEWER_STEPS, best.point)
            if best_of(self.done.values()) is best:
                break
        _say(tell, 1.0)
        return tuple(sorted(self.done.values(), key=lambda trial: -trial.total))

    def _within(self, point: Array) -> list[Subset]:
        """Returns the dimensions in which a point is furthest from the model as written, and all sets of them."""
        size = {
            d: float(np.abs(point / self.frame.typical)[self.frame.columns[d]].max()) for d in self.frame.dimensions
        }
        moved = sorted((d for d in size if size[d] > 0), key=lambda d: -size[d])[:MOST]
        ordered = [d for d in self.frame.dimensions if d in moved]
        return [subset for number in range(1, len(ordered) + 1) for subset in combinations(ordered, number)]

    def _proposed(self, scores: Scores, best: Subset) -> list[Subset]:
        """Returns the best set without one dimension, again where it was fitted from elsewhere, and new ones near it.

        New ones have one dimension more or one exchanged; those that look best are chosen.
        """
        apart = [(len(set(subset) - set(best)), len(set(best) - set(subset)), subset) for subset in scores.subsets]
        fewer = [subset for more, less, subset in apart if subset and (more, less) == (0, 1)]
        near = [subset for more, less, subset in apart if more == 1 and less <= 1 and subset not in self.done]
        return [*fewer, *_best(scores, near, AGAIN)]

    def _look(self, point: Array) -> Picture:
        """Returns the picture about a point, by steps to one side."""
        entries = np.arange(len(point))
        moved, width = ends(self.frame, point, entries)
        shown = self.frame.residuals(self.frame.predict(np.concatenate([point[None], moved])), self.measured)
        return make_picture(self.frame, point, entries, (shown[0] - shown[1:]) / width[:, None, None, None])

    def _scores(self, picture: Picture) -> Scores:
        predicted = self.frame.predict(picture.point[None]) if picture.point.any() else self.frame.written[None]
        return Sums(picture, picture.from_written(self.frame.residuals(predicted, self.measured)[0])).scores()

    def _fit(self, subsets: Sequence[Subset], scores: Scores, num_steps: int, *starts: Array) -> None:
        """Fits sets to each half, from the best of some points, and judges them on the other.

        Dimensions alone also begin at typical severities of each value. The first sets of two also begin where the
        best dimension alone does not lead: there its values are bent to stand in for the other one's.
        """
        main = best_of(self.done.values()).subset if self.done else ()
        wanted = [(subset, ()) for subset in subsets]
        twos = [subset for subset in subsets if len(subset) == 2 and len(main) == 1 and main[0] in subset]
        wanted += [(subset, main) for subset in twos[:ELSEWHERE]]
        wanted += [(subset, subset) for subset in subsets if len(subset) == 1 and subset not in self.done]
        fits = [self._begun(subset, half, scores, starts, apart) for subset, apart in wanted for half in (0, 1)]
        fits = self._evaluated(fits)
        for _ in range(num_steps):
            fits = self._evaluated(self._aimed(fits))
            if all(fit.done for fit in fits):
                break
        for trial in self._judged(fits):
            if trial.subset not in self.done or trial.total > self.done[trial.subset].total:
                self.done[trial.subset] = trial

    def _begun(self, subset: Subset, half: int, scores: Scores, starts: Sequence[Array], apart: Subset) -> _Fit:
        """Returns a fit that begins at whatever is known: by the picture, of smaller sets, with limits that bite."""
        free, zero = self.frame.entries(subset), np.zeros(len(self.frame.typical))
        smaller = [trial for trial in self.done.values() if set(trial.subset) <= set(subset) and trial.subset]
        smaller = [trial for trial in smaller if not apart or not set(apart) & set(trial.subset)]
        seen = scores.fits[scores.subsets.index(subset)]
        tries = [zero, seen, 0.5 * seen, *starts, *(trial.halves[half] for trial in smaller)]
        tries += [base + limited for base in _base(smaller, half, zero) for limited in self.frame.saturated]
        if subset and apart == subset:
            tries = [size * self.frame.typical * place for place in self.frame.places(free) for size in SEVERITIES]
        points = np.clip(_only(np.stack(tries), free), *self.frame.bounds)
        return _Fit(subset, half, free, np.unique(points, axis=0), zero, self._parts[half].written)

    def _evaluated(self, fits: list[_Fit]) -> list[_Fit]:
        """Returns fits at the best of the points that they try; those that gain too little are done."""
        residuals = self._residuals([(fit.half, fit.tries) for fit in fits if not fit.done])
        found: list[_Fit] = []
        for fit in fits:
            if fit.done:
                found.append(fit)
                continue
            left = next(residuals)
            cost = 0.5 * INDEPENDENT * np.log(real_level(self._parts[fit.half], left)).sum(axis=(1, 2))
            cost += 0.5 * np.sum((fit.tries / self.frame.typical) ** 2, axis=1)
            k = int(np.argmin(cost))
            done = cost[k] > fit.cost - ENOUGH or not len(fit.free)
            if cost[k] < fit.cost:
                fit = replace(fit, point=fit.tries[k], residual=left[k], cost=float(cost[k]))
            found.append(replace(fit, done=bool(done)))
        return found

    def _aimed(self, fits: list[_Fit]) -> list[_Fit]:
        """Returns fits that try shares of the way to where the slopes at their points lead."""
        going = [fit for fit in fits if not fit.done]
        moves = [ends(self.frame, fit.point, fit.free) for fit in going]
        shown = self._residuals([(fit.half, moved) for fit, (moved, _) in zip(going, moves, strict=True)])
        aimed = iter([self._aim(fit, width, left) for fit, (_, width), left in zip(going, moves, shown, strict=True)])
        return [fit if fit.done else next(aimed) for fit in fits]

    def _aim(self, fit: _Fit, width: Array, moved: Array) -> _Fit:
        """Returns a fit with its next tries, from the residuals after each free entry has moved by some width."""
        change = (fit.residual - moved) / width[:, None, None, None]
        picture = make_picture(self._parts[fit.half], fit.point, fit.free, change)
        way = Sums(picture, picture.from_written(fit.residual)).fit(fit.free) - fit.point
        return replace(fit, tries=np.stack([fit.point + share * way for share in SHARES]))

    def _residuals(self, asked: Sequence[tuple[int, Array]]) -> Iterator[Array]:
        """Yields the residuals of (num_points, num_entries) points on the windows of a half, for each question."""
        if not asked:
            return
        shown = self.frame.predict_parts([(points, self._here[half]) for half, points in asked])
        for (half, _), predicted in zip(asked, shown, strict=True):
            yield self._parts[half].residuals(predicted, self.measured[self._here[half]])

    def _judged(self, fits: Sequence[_Fit]) -> Iterator[Trial]:
        """Yields a trial for each two fits, of a set to either half: each half under the point that suits the other."""
        pairs = list(zip(fits[::2], fits[1::2], strict=True))
        if not pairs:
            return
        other = [np.array([pair[1 - half].point for pair in pairs]) for half in (0, 1)]
        answers = self._residuals([(half, other[half]) for half in (0, 1)])
        residuals = np.zeros((len(pairs), len(self.measured), self.measured.shape[1] - 1, self.measured.shape[2]))
        for here, left in zip(self._here, answers, strict=True):
            residuals[:, here] = left
        for (first, second), residual in zip(pairs, residuals, strict=True):
            levels = real_level(self.frame, residual[None])[0]
            parts = -0.5 * INDEPENDENT * np.log(levels).sum(axis=1)
            yield Trial(first.subset, parts, (first.point, second.point), levels, residual)


def _base(smaller: Sequence[Trial], half: int, zero: Array) -> list[Array]:
    """Returns where limits are tried: as written, and where the best smaller set has led."""
    return [zero, best_of(smaller).halves[half]] if smaller else [zero]


def _only(points: Array, free: NDArray[np.intp]) -> Array:
    """Returns points with all entries but some as written."""
    kept = np.zeros_like(points)
    kept[..., free] = points[..., free]
    return kept


def _best(scores: Scores, subsets: Sequence[Subset], count: int) -> list[Subset]:
    worth = {subset: _worth(subset, float(scores.totals[k])) for k, subset in enumerate(scores.subsets)}
    return sorted(subsets, key=lambda subset: -worth[subset])[:count]


def _worth(subset: Subset, total: float) -> float:
    """Returns a score less what the dimensions of a set cost where sets are proposed [nats]."""
    return total - PER_DIMENSION * len(subset)


def _say(tell: Tell | None, done: float) -> None:
    if tell is not None:
        tell(done)
