"""How much of the gap each dimension has, and the moments that show each cause best."""

from collections.abc import Sequence
from itertools import combinations
from math import factorial
from typing import NamedTuple

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.results import TellingMoment
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.mechanisms.evidence import find_best
from gapless.fit.mechanisms.explain import SignalEvidence
from gapless.fit.mechanisms.search import Explanation

NUM_BOOTSTRAPS = 300
MAX_SHARING = 4  # dimensions that share the gap; the others have no share
MAX_MOMENTS = 3  # of each cause


class GapShare(NamedTuple):
    """A share of the gap with the ends of its interval [1]."""

    share: float
    low: float
    high: float


def estimate_shares(
    found: Sequence[Explanation], ranked: Sequence[Dimension], rng: np.random.Generator, level: float = 0.95
) -> dict[Dimension, GapShare]:
    """Returns each dimension's share of what all together explain: what it adds to every set of the others, on average.

    That is Shapley's value. A set that was not fitted scores like the best fitted set within it. Intervals are of a
    bootstrap over windows. `ranked` has the dimensions, most probable first.
    """
    sharing = tuple(ranked[:MAX_SHARING])
    scores = np.stack([one.window_scores for one in found])
    drawn = rng.integers(0, scores.shape[1], (NUM_BOOTSTRAPS, scores.shape[1]))
    totals = np.stack([scores.sum(axis=1), *(scores[:, index].sum(axis=1) for index in drawn)])
    values = _shapley_shares(totals, [frozenset(one.dimensions) for one in found], sharing)
    lows, highs = np.quantile(values[1:], [(1.0 - level) / 2, (1.0 + level) / 2], axis=0)
    return {
        d: GapShare(float(value), float(min(value, low)), float(max(value, high)))
        for d, value, low, high in zip(sharing, values[0], lows, highs, strict=True)
    }


def _shapley_shares(totals: Array, sets: Sequence[frozenset[Dimension]], sharing: Sequence[Dimension]) -> Array:
    """Returns (num_draws, num_sharing) shares, which sum to 1 or to 0, from (num_draws, num_sets) scores."""

    def worth(chosen: tuple[Dimension, ...]) -> Array:
        return totals[:, [held <= set(chosen) for held in sets]].max(axis=1)

    number, found = len(sharing), np.zeros((len(totals), len(sharing)))
    for k, dimension in enumerate(sharing):
        others: list[Dimension] = [other for other in sharing if other != dimension]
        for size in range(number):
            weight = factorial(size) * factorial(number - size - 1) / factorial(number)
            for chosen in combinations(others, size):
                found[:, k] += weight * np.maximum(worth((*chosen, dimension)) - worth(chosen), 0.0)
    return found / np.maximum(found.sum(axis=1, keepdims=True), 1e-9)


def find_best_without(evidence: SignalEvidence, dimension: Dimension) -> Explanation:
    """Returns the explanation that is worth most among those that leave a dimension out."""
    return find_best([one for one in evidence.explanations if dimension not in one.dimensions])


def find_moments(data: ProjectData, evidence: SignalEvidence, cause: Dimension) -> list[TellingMoment]:
    """Returns the windows whose prediction a cause improves most."""
    best, without = evidence.best, find_best_without(evidence, cause)
    gain = np.log(without.held_out) - np.log(best.held_out)
    project, windows = data.project, evidence.problem.windows
    found: list[TellingMoment] = []
    for window in np.argsort(-gain.max(axis=1), kind="stable")[:MAX_MOMENTS]:
        column = int(np.argmax(gain[window]))
        if gain[window, column] < np.log(2.0):
            break
        found.append(
            TellingMoment(
                data.episodes[int(windows.track[window])].name,
                float(windows.first_row[window] / project.rate_hz),
                float(windows.num_steps / project.rate_hz),
                project.measurement_names[column],
                cause,
                float(np.sqrt(without.held_out[window, column] - 1.0)),
                float(np.sqrt(best.held_out[window, column] - 1.0)),
            )
        )
    return found
