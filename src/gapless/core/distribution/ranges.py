"""How parameters vary, one by one and together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from gapless.core.errors import InputError
from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array

Kind = Literal["fixed", "uniform", "log-uniform", "normal", "log-normal", "beta", "mixture"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Level = Literal["robot", "episode", "step"]
LEVELS: tuple[Level, ...] = get_args(Level)
MIN_CORRELATION = 0.2  # between two parameters, for ranges to keep it
MAX_REDRAWS = 100  # tries to draw inside the bounds before what is left is put on them


def draw_inside(draw: Callable[[int], Array], count: int, low: Array | float, high: Array | float) -> Array:
    """Returns `count` draws; whatever is not within [low, high] is drawn again, of several columns the whole row."""
    values = draw(count)
    for _ in range(MAX_REDRAWS):
        outside = (values < low) | (values > high)
        outside = outside if outside.ndim == 1 else outside.any(axis=1)
        if not outside.any():
            break
        values[outside] = draw(int(outside.sum()))
    return np.clip(values, low, high)


@dataclass(frozen=True)
class Part:
    """One bell of a mixture: `weight` among the others' [1], `mean` and `std` in the parameter's unit."""

    weight: float
    mean: float
    std: float


@dataclass(frozen=True)
class Range:
    """How one parameter varies. Everything is cut at [low, high], by drawing again."""

    target: str  # the parameter's target
    # `fixed` at `mean`; `uniform` on [low, high]; `log-uniform`: its logarithm is uniform; `normal`; `log-normal`: its
    # logarithm is normal; `beta` on [low, high] with that mean and deviation; `mixture` of the bells in `parts`
    kind: Kind
    low: float  # smallest value drawn
    high: float  # largest value drawn
    mean: float  # centre of `normal`, median of `log-normal`, value of `fixed`, mean of `beta`; else the middle
    # standard deviation of `normal` before it is cut and of `beta`; of the logarithm for `log-normal` [1]; 0 otherwise
    std: float = 0.0
    reason: str = ""  # why this range, for the reader
    per: Level = "episode"  # how often it is drawn; a world keeps what is drawn per `robot` while training
    parts: tuple[Part, ...] = ()  # the bells of `mixture`; empty otherwise

    def __post_init__(self) -> None:
        """Refuses what cannot be drawn from."""
        if self.kind not in KINDS:
            raise InputError(f"{self.target}: no kind {self.kind!r}; choose from: {', '.join(KINDS)}")
        if self.per not in LEVELS:
            raise InputError(f"{self.target}: no level {self.per!r}; write per one of: {', '.join(LEVELS)}")
        if not self.low <= self.mean <= self.high:
            outside = f"the centre {self.mean:g} is outside [{self.low:g}, {self.high:g}]"
            raise InputError(f"{self.target}: {outside}: move it inside")
        if self.std < 0:
            raise InputError(f"{self.target}: a standard deviation of {self.std:g} is negative: give one of at least 0")
        if self.kind in ("log-uniform", "log-normal") and self.low <= 0:
            text = f"{self.kind} needs a low end above 0, found {self.low:g}"
            raise InputError(f"{self.target}: {text}: raise it, or use uniform or normal")
        if self.kind == "beta":
            self.shape()
        if (self.kind == "mixture") != bool(self.parts):
            raise InputError(f"{self.target}: only a mixture has parts: give a mixture its parts, no other kind any")
        if self.parts and not (sum(p.weight for p in self.parts) > 0 and all(p.weight >= 0 for p in self.parts)):
            raise InputError(f"{self.target}: give a mixture weights of at least 0, one of them above 0")

    @property
    def bell(self) -> bool:
        """Whether it is a normal distribution, of the value or of its logarithm: such ranges may be correlated."""
        return self.kind in ("normal", "log-normal")

    @property
    def one_deviation(self) -> tuple[float, float] | None:
        """From one standard deviation below the centre to one above, within the bounds; None without a centre."""
        if self.kind == "log-normal":
            factor = float(np.exp(self.std))
            return max(self.low, self.mean / factor), min(self.high, self.mean * factor)
        if self.kind in ("normal", "beta"):
            return max(self.low, self.mean - self.std), min(self.high, self.mean + self.std)
        return None

    def shape(self) -> tuple[float, float]:
        """Returns a and b of the beta distribution on [low, high] that has this mean and standard deviation.

        With m and s on [0, 1]: a = m (m (1 - m) / s^2 - 1), b = (1 - m) (m (1 - m) / s^2 - 1). There is none, which is
        an `InputError`, unless s^2 is above 0 and below m (1 - m).
        """
        width = self.high - self.low
        mean = (self.mean - self.low) / width if width else 0.5
        variance = (self.std / width) ** 2 if width else 0.0
        if not 0 < variance < mean * (1 - mean):
            text = f"no beta distribution on [{self.low:g}, {self.high:g}] has mean {self.mean:g}, std {self.std:g}"
            raise InputError(f"{self.target}: {text}: give a smaller std")
        size = mean * (1 - mean) / variance - 1
        return mean * size, (1 - mean) * size

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Returns values, (count,), in the parameter's unit."""
        if self.kind == "fixed":
            return np.full(count, self.mean)
        if self.kind == "uniform":
            return rng.uniform(self.low, self.high, count)
        if self.kind == "log-uniform":
            return np.clip(np.exp(rng.uniform(np.log(self.low), np.log(self.high), count)), self.low, self.high)
        if self.kind == "beta":
            return self.low + (self.high - self.low) * rng.beta(*self.shape(), count)
        return draw_inside(lambda number: self._draw_once(rng, number), count, self.low, self.high)

    def from_standard_normal(self, values: Array) -> Array:
        """Returns standard normal values as values of a `normal` or `log-normal` range, not cut."""
        return self.mean * np.exp(self.std * values) if self.kind == "log-normal" else self.mean + self.std * values

    def _draw_once(self, rng: np.random.Generator, count: int) -> Array:
        if self.kind != "mixture":
            return self.from_standard_normal(rng.standard_normal(count))
        weights = np.array([part.weight for part in self.parts])
        which = rng.choice(len(self.parts), count, p=weights / weights.sum())
        mean, std = (np.array([getattr(part, name) for part in self.parts]) for name in ("mean", "std"))
        return mean[which] + std[which] * rng.standard_normal(count)


@dataclass(frozen=True)
class Correlation:
    """How two ranges that are normal, or whose logarithms are, go together: `value` in (-1, 1), before cutting."""

    first: str
    second: str
    value: float


@dataclass(frozen=True)
class Distribution:
    """Ranges for some parameters of a space; the others stay nominal."""

    space: ParameterSpace
    ranges: tuple[Range, ...] = ()
    correlations: tuple[Correlation, ...] = ()

    def __post_init__(self) -> None:
        """Refuses ranges for parameters that the space does not have, and what `check_ranges` refuses."""
        for item in self.ranges:
            self.space.index(item.target)
        check_ranges(self.ranges, self.correlations)

    def sample(self, rng: np.random.Generator, num_worlds: int) -> Array:
        """Draws rows, (num_worlds, num_parameters), each column in its parameter's unit."""
        return self._draw_into(np.tile(self.space.nominal, (num_worlds, 1)), rng, self.ranges)

    def redrawn(self, rows: Array, rng: np.random.Generator, *levels: Level) -> Array:
        """Returns rows of which what is drawn per robot, episode or step (`levels`) is drawn anew."""
        return self._draw_into(rows.copy(), rng, tuple(item for item in self.ranges if item.per in levels))

    def has(self, level: Level) -> bool:
        """Returns whether anything is drawn this often."""
        return any(item.per == level for item in self.ranges)

    def _draw_into(self, rows: Array, rng: np.random.Generator, ranges: tuple[Range, ...]) -> Array:
        """Writes fresh values of some ranges into rows."""
        for target, values in draw_ranges(ranges, self.correlations, rng, len(rows)).items():
            rows[:, self.space.index(target)] = values
        return rows


def draw_ranges(
    ranges: Sequence[Range], correlations: Sequence[Correlation], rng: np.random.Generator, count: int
) -> dict[str, Array]:
    """Returns target -> values, (count,); of correlated ranges, what is not inside is drawn again for all of them."""
    correlated = {target for pair in correlations for target in (pair.first, pair.second)}
    drawn = {item.target: item.draw(rng, count) for item in ranges if item.target not in correlated}
    group = [item for item in ranges if item.target in correlated]
    if not group:
        return drawn
    root = np.linalg.cholesky(matrix_of(group, correlations))
    low, high = np.array([item.low for item in group]), np.array([item.high for item in group])

    def draw_once(number: int) -> Array:
        bells = rng.standard_normal((number, len(group))) @ root.T
        return np.stack([item.from_standard_normal(bells[:, k]) for k, item in enumerate(group)], axis=1)

    values = draw_inside(draw_once, count, low, high)
    return drawn | {item.target: values[:, k] for k, item in enumerate(group)}


def matrix_of(group: Sequence[Range], correlations: Sequence[Correlation]) -> Array:
    """Returns the correlation matrix of some ranges, (num_ranges, num_ranges)."""
    place = {item.target: k for k, item in enumerate(group)}
    matrix = np.eye(len(group))
    for pair in correlations:
        if pair.first in place and pair.second in place:
            a, b = place[pair.first], place[pair.second]
            matrix[a, b] = matrix[b, a] = pair.value
    return matrix


def check_ranges(ranges: tuple[Range, ...], correlations: tuple[Correlation, ...]) -> None:
    """Raises an `InputError` for two ranges of one parameter, and for correlations that nothing can have."""
    known: dict[str, Range] = {}
    for item in ranges:
        if item.target in known:
            raise InputError(f"{item.target} has two ranges: keep one")
        known[item.target] = item
    for pair in correlations:
        name = f"the correlation of {pair.first} and {pair.second}"
        missing = [target for target in (pair.first, pair.second) if target not in known]
        if missing:
            raise InputError(f"{name}: there is no range of {missing[0]}: add one, or delete the correlation")
        if pair.first == pair.second or not -1 < pair.value < 1:
            raise InputError(f"{name} is {pair.value:g}: give two parameters and a number between -1 and 1")
        first, second = known[pair.first], known[pair.second]
        if not (first.bell and second.bell):
            raise InputError(f"{name}: only normal and log-normal ranges can be correlated: choose one of these kinds")
        if first.per != second.per:
            raise InputError(f"{name}: one is drawn per {first.per}, the other per {second.per}: give both the same")
    named = {target for pair in correlations for target in (pair.first, pair.second)}
    group = [item for item in ranges if item.target in named]
    if group and np.linalg.eigvalsh(matrix_of(group, correlations)).min() < 1e-9:
        raise InputError("the correlations contradict each other: no distribution has all of them; leave some out")


def correlations_of(names: Sequence[str], matrix: Array) -> tuple[Correlation, ...]:
    """Returns the pairs of targets that go together by `MIN_CORRELATION` or more, of a (num_names, num_names) matrix.

    Leaving weak pairs out may leave a matrix that nothing can have: then all that stay are weakened alike.
    """
    kept = np.where(np.abs(matrix) >= MIN_CORRELATION, matrix, 0.0)
    np.fill_diagonal(kept, 0.0)
    lowest = float(np.linalg.eigvalsh(kept).min()) if len(names) else 0.0
    kept = np.round(kept * min(1.0, 0.99 / max(-lowest, 1e-12)), 3)
    pairs = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names)) if kept[a, b]]
    return tuple(Correlation(names[a], names[b], float(kept[a, b])) for a, b in pairs)
