"""Ranges of many parameters together, with what they have to do with each other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapless.core.distribution.range import Level, Range, draw_inside
from gapless.core.errors import InputError
from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array


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
    ranges: tuple[Range, ...]
    correlations: tuple[Correlation, ...] = ()

    def __post_init__(self) -> None:
        """Refuses ranges for parameters that the space does not have, and correlations that cannot be."""
        seen: set[str] = set()
        for item in self.ranges:
            self.space.index(item.target)
            if item.target in seen:
                raise InputError(f"{item.target} has two ranges: keep one")
            seen.add(item.target)
        check_correlations(self.ranges, self.correlations)

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


def check_correlations(ranges: tuple[Range, ...], correlations: tuple[Correlation, ...]) -> None:
    """Refuses correlations that nothing can have.

    Raises:
        InputError: If one names a range that is not there or no bell, if it is not in (-1, 1), if both are not drawn
            equally often, or if all together cannot be.
    """
    known = {item.target: item for item in ranges}
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


def correlations_of(names: Sequence[str], matrix: Array, least: float = 0.2) -> tuple[Correlation, ...]:
    """Returns the pairs that go together by at least so much.

    Leaving weak pairs out may leave a matrix that nothing can have: then all that stay are weakened alike.

    Args:
        names: The targets.
        matrix: (num_names, num_names) their correlations.
        least: Weaker pairs are left out.
    """
    kept = np.where(np.abs(matrix) >= least, matrix, 0.0)
    np.fill_diagonal(kept, 0.0)
    lowest = float(np.linalg.eigvalsh(kept).min()) if len(names) else 0.0
    kept = np.round(kept * min(1.0, 0.99 / max(-lowest, 1e-12)), 3)
    pairs = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names)) if kept[a, b]]
    return tuple(Correlation(names[a], names[b], float(kept[a, b])) for a, b in pairs)


def nominal_only(space: ParameterSpace) -> Distribution:
    """Returns the distribution that always draws the model as it was written."""
    return Distribution(space, ())
