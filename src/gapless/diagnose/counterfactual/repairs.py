"""Which dimension, repaired, would recover the most success: what to fix first, not always the largest cause."""

from dataclasses import dataclass

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.interval import Interval, normal_quantile, wilson
from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array, Flags
from gapless.diagnose.counterfactual.simulate import Simulate


@dataclass(frozen=True)
class Repair:
    """What simulation says of putting one dimension right and leaving the others as fitted.

    Attributes:
        dimension: Which.
        success: Success with this dimension as the model has it, all others as fitted.
        before: Success with all as fitted.
        gain: Their difference, from pairs of runs with the same starts and noise.
    """

    dimension: Dimension
    success: Interval
    before: Interval
    gain: Interval


def rank_repairs(
    simulate: Simulate, fitted_row: Array, space: ParameterSpace, rng: np.random.Generator, num_runs: int = 96
) -> tuple[Repair, ...]:
    """Returns every repair, the one that recovers most success first.

    Only dimensions that the fit moved are tried. Cost: `num_runs` runs for each of them, and once more.

    Args:
        simulate: Runs the policy once per row; see `policy_simulator`.
        fitted_row: (num_parameters,) all fitted values.
        space: What the row holds.
        rng: Source of starts and noise.
        num_runs: Runs of each kind.
    """
    seed = int(rng.integers(2**32))

    def success(row: Array) -> Flags:
        return simulate(np.tile(row, (num_runs, 1)), np.random.default_rng(seed)).success

    before = success(fitted_row)
    found: list[Repair] = []
    for dimension in space.dimensions:
        here = np.array([p.dimension == dimension for p in space.parameters])
        repaired = np.where(here, space.nominal, fitted_row)
        if np.array_equal(repaired, fitted_row):
            continue
        after = success(repaired)
        found.append(Repair(dimension, _wilson(after), _wilson(before), paired_gain(before, after)))
    return tuple(sorted(found, key=lambda one: -one.gain.value))


def paired_gain(before: Flags, after: Flags, level: float = 0.95) -> Interval:
    """Returns the interval of a difference in success between paired runs.

    With b pairs lost and c won by the change, N = n + 2 and half a pair added to each of the four outcomes:
    (c - b) / N +- z sqrt(b + c + 1 - (c - b)^2 / N) / N. (Agresti and Min, 2005.) The value is (c - b) / n.
    """
    count = len(before)
    lost, won = int((before & ~after).sum()), int((after & ~before).sum())
    room = count + 2
    centre = (won - lost) / room
    half = normal_quantile((1 + level) / 2) * np.sqrt(lost + won + 1 - (won - lost) ** 2 / room) / room
    low, high = max(-1.0, centre - half), min(1.0, centre + half)
    value = (won - lost) / count
    return Interval(value, float(min(low, value)), float(max(high, value)), level, count, "agresti-min")


def _wilson(success: Flags) -> Interval:
    return wilson(int(success.sum()), len(success))
