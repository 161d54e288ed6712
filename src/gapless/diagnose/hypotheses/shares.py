"""Each dimension's share of the gap: what it adds to every set of the others, on average (Shapley's value)."""

from collections.abc import Sequence
from itertools import combinations
from math import factorial
from typing import NamedTuple

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array
from gapless.diagnose.hypotheses.trials import Trial

NUM_DRAWS = 300
MOST = 4  # dimensions that share the gap; others have none of it


class Share(NamedTuple):
    """A share of the gap with the ends of its interval [1]."""

    value: float
    low: float
    high: float


def shares(
    trials: Sequence[Trial], ranked: Sequence[Dimension], rng: np.random.Generator, level: float = 0.95
) -> dict[Dimension, Share]:
    """Returns the share of what all together explain that each dimension accounts for.

    A set that was not fitted is worth what the best fitted set within it is. Intervals are of draws of windows.

    Args:
        trials: The sets that were fitted.
        ranked: Dimensions, most probable first.
        rng: Draws windows.
        level: Of the intervals.
    """
    sharing = tuple(ranked[:MOST])
    parts = np.stack([trial.parts for trial in trials])
    count = parts.shape[1]
    drawn = rng.integers(0, count, (NUM_DRAWS, count))
    totals = np.stack([parts.sum(axis=1), *(parts[:, index].sum(axis=1) for index in drawn)])
    values = np.stack([_values(row, trials, sharing) for row in totals])
    outside = (1.0 - level) / 2
    found: dict[Dimension, Share] = {}
    for k, dimension in enumerate(sharing):
        low, high = np.quantile(values[1:, k], [outside, 1.0 - outside])
        value = float(values[0, k])
        found[dimension] = Share(value, min(value, float(low)), max(value, float(high)))
    return found


def _values(totals: Array, trials: Sequence[Trial], sharing: Sequence[Dimension]) -> Array:
    """Returns the shares under one draw of windows, (num_sharing,): they are not negative, and sum to 1 or to 0."""
    sets = [frozenset(trial.subset) for trial in trials]
    none = next(total for total, held in zip(totals, sets, strict=True) if not held)

    def worth(chosen: frozenset[Dimension]) -> float:
        return max(float(total - none) for total, held in zip(totals, sets, strict=True) if held <= chosen)

    number, found = len(sharing), np.zeros(len(sharing))
    for k, dimension in enumerate(sharing):
        others = [other for other in sharing if other != dimension]
        for size in range(number):
            weight = factorial(size) * factorial(number - size - 1) / factorial(number)
            for chosen in combinations(others, size):
                held = frozenset(chosen)
                found[k] += weight * (worth(held | {dimension}) - worth(held))
    return found / max(float(found.sum()), 1e-9)
