"""How readings move with every parameter near one point, and what each set of dimensions explains there.

A window's column counts by the logarithm of its mean square, noise included: no signal and no window swamps another,
and halving an error counts the same wherever it is. What is fitted on one half of the episodes is judged on the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array
from gapless.diagnose.hypotheses.frame import Frame
from gapless.signals.track import subtract_readings

STEP = 0.4  # finite differences, as shares of the typical severity
INDEPENDENT = 4.0  # readings of a window and column that count as independent
ROUNDS = 3  # of weighting
MOST = 4  # dimensions that are asked about together
Subset = tuple[Dimension, ...]


@dataclass(frozen=True)
class Picture:
    """A linear model of the residuals about a point.

    Attributes:
        frame: The windows.
        point: (num_entries,) where.
        slopes: (num_entries, num_windows, num_steps, num_measurements) how predictions move, in units of noise.
        gram: (num_windows, num_measurements, num_entries, num_entries) sums of their products over a window.
    """

    frame: Frame
    point: Array
    slopes: Array
    gram: Array

    def from_written(self, residual: Array) -> Array:
        """Returns what the residual at the point would be at the model as written, were the picture true there."""
        return residual + np.einsum("p,pwtm->wtm", self.point, self.slopes)


def make_picture(frame: Frame, point: Array, entries: NDArray[np.intp], change: Array) -> Picture:
    """Returns a picture from how predictions move with some entries of a point; the others' slopes are 0.

    Args:
        frame: The windows.
        point: (num_entries,) where.
        entries: Which entries were looked at.
        change: (num_looked_at, num_windows, num_steps, num_measurements), as `slopes`.
    """
    slopes = np.zeros((len(point), *change.shape[1:]))
    slopes[entries] = change
    return Picture(frame, point, slopes, np.einsum("pwtm,qwtm->wmpq", slopes, slopes, optimize=True))


def ends(frame: Frame, point: Array, entries: NDArray[np.intp]) -> tuple[Array, Array]:
    """Returns one point per entry, in which that entry is moved within bounds, and by how much each was."""
    steps = np.append(frame.severities.side, 1.0) * STEP * frame.typical
    steps = np.where(frame.bites & (point == 0.0), steps / STEP, steps)
    low, high = frame.bounds
    moved = np.clip(point + np.diag(steps), low, high)
    moved = np.where(np.abs(moved - point) < 0.1 * np.abs(steps), np.clip(point - np.diag(steps), low, high), moved)
    return moved[entries], (np.diag(moved) - point)[entries]


def look(frame: Frame) -> Picture:
    """Returns the picture about the model as written, by steps to both sides where there is room."""
    zero = np.zeros(len(frame.typical))
    entries = np.arange(len(zero))
    moved, width = ends(frame, zero, entries)
    other = np.clip(-moved, *frame.bounds)
    width = width - np.diag(other)
    shown = frame.predict(np.concatenate([moved, other]))
    ahead, behind = np.split(shown, 2)
    change = subtract_readings(frame.evidence.project, ahead, behind)[:, :, 1:] / width[:, None, None, None]
    return make_picture(frame, zero, entries, frame.discounted(change / frame.windows.noise))


@dataclass(frozen=True)
class Scores:
    """What each set of dimensions explains.

    Attributes:
        subsets: Sets of dimensions, up to `MOST` of them; the first is empty.
        totals: (num_subsets,) score of all windows, each under a fit of the set to the other half [nats].
        fits: (num_subsets, num_entries) the point that suits all windows best.
    """

    subsets: tuple[Subset, ...]
    totals: Array
    fits: Array


def all_subsets(dimensions: Sequence[Dimension]) -> tuple[Subset, ...]:
    """Returns the sets that are asked about: up to `MOST` dimensions, in a fixed order."""
    return tuple(subset for size in range(MOST + 1) for subset in combinations(dimensions, size))


class Sums:
    """Sums over each window and column that all fits need: (num_windows, num_measurements, ...)."""

    def __init__(self, picture: Picture, residual: Array) -> None:
        """Sums residuals of the model as written, (num_windows, num_steps, num_measurements)."""
        self.frame, self.gram = picture.frame, picture.gram
        self.along = np.einsum("pwtm,wtm->wmp", picture.slopes, residual, optimize=True)
        self.square = np.einsum("wtm,wtm->wm", residual, residual)
        self.stiff = np.diag(1.0 / self.frame.typical**2)

    def fit(self, free: Array) -> Array:
        """Returns the point that suits all windows best if only some entries may move."""
        return self.solved(self.assembled(self.weights()), free)

    def scores(self) -> Scores:
        """Returns what each set of dimensions explains."""
        subsets, fold = all_subsets(self.frame.dimensions), self.frame.fold
        weight = self.weights()
        halves = [self.assembled(weight * (fold == half)[:, None]) for half in (0, 1)]
        whole = (halves[0][0] + halves[1][0], halves[0][1] + halves[1][1])
        fits, levels = list[Array](), list[Array]()
        for subset in subsets:
            free = self.frame.entries(subset)
            by_half = [self.level(self.solved(half, free)) for half in halves]
            levels.append(np.where((fold == 0)[:, None], by_half[1], by_half[0]))
            fits.append(self.solved(whole, free))
        totals = -0.5 * INDEPENDENT * np.log(np.stack(levels)).sum(axis=2).sum(axis=1)
        return Scores(subsets, totals, np.stack(fits))

    def weights(self) -> Array:
        """Returns the weight of each window and column: less where even all parameters together leave much."""
        level, free = self.square / self.frame.known + 1.0, np.arange(len(self.stiff))
        for _ in range(ROUNDS):
            weight = 1.0 / np.maximum(level, np.median(level, axis=0))
            level = self.level(self.solved(self.assembled(weight), free))
        return weight

    def assembled(self, weight: Array) -> tuple[Array, Array]:
        """Returns the normal equations under a weight of each window and column."""
        return np.einsum("wm,wmpq->pq", weight, self.gram), np.einsum("wm,wmp->p", weight, self.along)

    def solved(self, sums: tuple[Array, Array], free: Array) -> Array:
        """Returns the point that suits best if only some entries may move."""
        found = np.zeros(len(self.stiff))
        if len(free):
            here = np.ix_(free, free)
            found[free] = np.linalg.solve(sums[0][here] + self.stiff[here], sums[1][free])
        return np.clip(found, *self.frame.bounds)

    def level(self, point: Array) -> Array:
        """Returns the mean square residual of each window and column at a point, in units of noise, plus 1."""
        left = self.square - 2 * self.along @ point + np.einsum("p,q,wmpq->wm", point, point, self.gram, optimize=True)
        return np.maximum(left, 0.0) / self.frame.known + 1.0


def real_level(frame: Frame, residual: Array) -> Array:
    """Returns mean squares of real residuals, (num_points, num_windows, num_measurements), plus 1."""
    return np.einsum("cwtm,cwtm->cwm", residual, residual) / frame.known + 1.0
