"""Where ranges may grow to, and where they begin: all in [0, 1] of what each parameter may span.

Ranges that are correlated do not grow: they come from evidence that knows them only together, and a curriculum that
moved each by itself would go where success is easy and reality cannot be (strong motors on light arms).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.core.distribution import Distribution, Range
from gapless.core.signal import Array


@dataclass(frozen=True)
class Limits:
    """Ranges as boxes.

    Attributes:
        columns: (num_ranges,) their columns.
        low: (num_ranges,) least values.
        high: (num_ranges,) greatest values.
        start: (num_ranges,) where each begins, in [0, 1].
        ranges: The ranges that may grow.
        held: The others, drawn as they are: single values, and ranges that are correlated.
    """

    columns: tuple[int, ...]
    low: Array
    high: Array
    start: Array
    ranges: tuple[Range, ...]
    held: Distribution

    @classmethod
    def of(cls, limits: Distribution) -> "Limits":
        """Reads ranges; bells begin at their centre, even ranges at the model's own value if it lies inside."""
        together = {target for pair in limits.correlations for target in (pair.first, pair.second)}
        moving = tuple(item for item in limits.ranges if item.high > item.low and item.target not in together)
        columns = tuple(limits.space.index(item.target) for item in moving)
        low, high = np.array([item.low for item in moving]), np.array([item.high for item in moving])
        nominal = limits.space.nominal[list(columns)]
        centre = np.array([item.mean for item in moving])
        even = np.array([item.kind in ("uniform", "log-uniform") for item in moving], dtype=bool)
        begin = np.clip(np.where(even, nominal, centre), low, high)
        held = replace(limits, ranges=tuple(item for item in limits.ranges if item not in moving))
        return cls(columns, low, high, (begin - low) / (high - low), moving, held)

    def grown(self, ranges: Sequence[Range]) -> Distribution:
        """Returns what is trained on when the ranges that may grow have become these."""
        return replace(self.held, ranges=(*self.held.ranges, *ranges))

    def rows(self, unit: Array, rng: np.random.Generator) -> Array:
        """Returns whole rows for numbers in [0, 1], (num_rows, num_ranges), with what is held drawn anew."""
        rows = self.held.sample(rng, len(unit))
        rows[:, list(self.columns)] = self.low + (self.high - self.low) * unit
        return rows

    def unit(self, rows: Array) -> Array:
        """Returns rows as numbers in [0, 1], (num_rows, num_ranges)."""
        return np.clip((rows[:, list(self.columns)] - self.low) / (self.high - self.low), 0.0, 1.0)
