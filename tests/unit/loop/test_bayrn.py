"""Bayesian optimisation of ranges."""

import math

import numpy as np
import pytest

from gapless.core.distribution import Distribution, Range
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.loop.search import MAX_SHIFT, RangeShifts, pick_best, suggest_next

SPACE = ParameterSpace(
    (
        Parameter("actuator/m/gain", "actuator", "1", nominal=1.0, low=0.1, high=10.0),
        Parameter("joint/j/frictionloss", "actuator", "N·m", nominal=0.0, low=0.0, high=5.0),
        Parameter("actuator/*/delay", "latency", "s", nominal=0.0, low=0.0, high=0.2),
    )
)
RANGES = Distribution(
    SPACE,
    (
        Range("actuator/m/gain", "log-normal", 0.5 * math.exp(-0.2), 0.5 * math.exp(0.2), 0.5, 0.1),
        Range("joint/j/frictionloss", "uniform", 0.2, 0.6, 0.4),
        Range("actuator/*/delay", "normal", 0.03, 0.05, 0.04, 0.005),
    ),
)
SHIFTS = RangeShifts.of(RANGES)


def test_the_search_begins_at_the_ranges_themselves() -> None:
    assert SHIFTS.dimensions == ("actuator", "latency")
    assert len(SHIFTS.unchanged) == 3
    for one, other in zip(SHIFTS.apply(SHIFTS.unchanged).ranges, RANGES.ranges, strict=True):
        assert (one.low, one.high, one.mean, one.std) == pytest.approx((other.low, other.high, other.mean, other.std))


def test_a_dimension_moves_as_a_group_from_the_model_to_beyond_the_fit() -> None:
    none = SHIFTS.apply(np.array([0.0, SHIFTS.unchanged[1], SHIFTS.unchanged[2]]))
    assert [item.mean for item in none.ranges] == pytest.approx([1.0, 0.1, 0.04])  # friction: 0 +- 0.2, cut at 0
    assert none.ranges[1].low == 0.0
    # Half as far again: gain 0.5^1.5, delay as fitted.
    far = SHIFTS.apply(np.array([1.0, SHIFTS.unchanged[1], SHIFTS.unchanged[2]]))
    assert far.ranges[0].mean == pytest.approx(0.5**MAX_SHIFT)
    assert far.ranges[2] == RANGES.ranges[2]


def test_one_factor_widens_all() -> None:
    wide = SHIFTS.apply(np.append(SHIFTS.unchanged[:2], 1.0))
    assert wide.ranges[0].std == pytest.approx(0.3)
    assert wide.ranges[2].high - wide.ranges[2].low == pytest.approx(0.06)


def test_it_finds_the_best_of_a_noisy_hill_in_few_tries() -> None:
    # Success falls from 0.95 at (0.3, 0.7) to 0.15 at a distance of 0.5. Over 10 seeds, 14 tries of 50 trials each.
    def height(point: np.ndarray) -> float:
        return 0.15 + 0.8 * math.exp(-8 * float(np.sum((point - [0.3, 0.7]) ** 2)))

    reached = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        tried, success = [np.array([0.9, 0.2])], []
        for k in range(14):
            if k:
                tried.append(suggest_next(np.stack(tried), np.array(success), 50, rng))
            success.append(rng.binomial(50, height(tried[k])) / 50)
        reached.append(height(tried[pick_best(np.stack(tried), np.array(success), 50)]))
    assert np.median(reached) > 0.85
    # As many tries at random get this far, by simulation of the same hill.
    chance = [max(height(p) for p in np.random.default_rng(seed).random((14, 2))) for seed in range(10)]
    assert np.median(reached) > np.median(chance)


def test_a_lucky_neighbour_of_failures_is_not_the_best() -> None:
    tried = np.array([[0.50, 0.50], [0.51, 0.50], [0.50, 0.51], [0.10, 0.10], [0.11, 0.10], [0.10, 0.11]])
    success = np.array([0.6, 0.1, 0.1, 0.5, 0.5, 0.5])
    assert pick_best(tried, success, 10) in (3, 4, 5)
