"""What a curriculum is; where ranges begin and may grow to, in [0, 1] of what each parameter may span.

Ranges that are correlated do not grow: they come from evidence that knows them only together, and a curriculum that
moved each by itself would go where success is easy and reality cannot be (strong motors on light arms).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from gapless.core.distribution import Distribution, Range
from gapless.core.signal import Array, Flags


class Curriculum(Protocol):
    """Draws the rows of runs, learns how they ended, and moves its ranges between rollouts."""

    @property
    def distribution(self) -> Distribution:
        """What is trained on now."""
        ...

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Returns rows to train in, (count, num_parameters)."""
        ...

    def record_outcomes(self, rows: Array, success: Flags) -> None:
        """Takes note of how runs in these rows ended, (num_runs, num_parameters) and (num_runs,)."""
        ...

    def advance(self) -> None:
        """Moves the ranges, if enough runs ended since they moved last; called after each rollout."""
        ...

    def restore(self, distribution: Distribution) -> None:
        """Goes on from ranges that it had before it was interrupted."""
        ...


@dataclass(frozen=True)
class GrowthLimits:
    """The box in which ranges may grow; arrays are (num_ranges,)."""

    columns: list[int]  # columns of the ranges that may grow
    low: Array  # least values
    high: Array  # greatest values
    start: Array  # where each begins, in [0, 1]
    ranges: tuple[Range, ...]  # the ranges that may grow
    held: Distribution  # the others, drawn as they are: single values, and ranges that are correlated

    @classmethod
    def of(cls, limits: Distribution) -> "GrowthLimits":
        """Reads ranges; bells begin at their centre, even ranges at the model's own value if it lies inside."""
        correlated = {target for pair in limits.correlations for target in (pair.first, pair.second)}
        growing = tuple(item for item in limits.ranges if item.high > item.low and item.target not in correlated)
        columns = [limits.space.index(item.target) for item in growing]
        low, high = np.array([item.low for item in growing]), np.array([item.high for item in growing])
        centre = np.array([item.mean for item in growing])
        even = np.array([item.kind in ("uniform", "log-uniform") for item in growing], dtype=bool)
        begin = np.clip(np.where(even, limits.space.nominal[columns], centre), low, high)
        held = replace(limits, ranges=tuple(item for item in limits.ranges if item not in growing))
        return cls(columns, low, high, (begin - low) / (high - low), growing, held)

    def with_ranges(self, ranges: Sequence[Range]) -> Distribution:
        """Returns what is trained on when the ranges that may grow have become these."""
        return replace(self.held, ranges=(*self.held.ranges, *ranges))

    def rows(self, unit: Array, rng: np.random.Generator) -> Array:
        """Returns whole rows for numbers in [0, 1], (num_rows, num_ranges), with what is held drawn anew."""
        rows = self.held.sample(rng, len(unit))
        rows[:, self.columns] = self.low + (self.high - self.low) * unit
        return rows

    def unit(self, rows: Array) -> Array:
        """Returns rows as numbers in [0, 1], (num_rows, num_ranges)."""
        return np.clip((rows[:, self.columns] - self.low) / (self.high - self.low), 0.0, 1.0)

    def find_own(self, distribution: Distribution) -> list[Range]:
        """Returns the ranges of a distribution that may grow, in the order of `ranges`."""
        by_target = {item.target: item for item in distribution.ranges}
        return [by_target[item.target] for item in self.ranges]
