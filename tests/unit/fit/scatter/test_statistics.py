"""Values are told back from statistics of known distributions, as surely as intervals say."""

import numpy as np

from gapless.core.signal import Array
from gapless.fit.scatter.statistics import LEVEL, invert

NUM_RUNS = 256


def counts(shares: Array, rng: np.random.Generator) -> Array:
    """Returns statistics of a share: how often something happened in 100 tries, and a number that says nothing."""
    happened = rng.binomial(100, shares) / 100
    return np.stack([np.arcsin(np.sqrt(happened)), rng.normal(size=len(shares))], axis=1)


def evenly(rng: np.random.Generator) -> Array:
    return (np.arange(NUM_RUNS) + rng.uniform(size=NUM_RUNS)) / NUM_RUNS


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    # Of 1000 intervals 95 % +- 0.7 % hold. Counts are whole numbers and RESOLUTION is added to their scatter of
    # 1 / (2 sqrt(100)) = 0.05, which makes 1.96 standard deviations 1.96 * sqrt(1 + 0.6^2) = 2.29, and that is 97.8 %.
    rng = np.random.default_rng(0)
    held = []
    for _ in range(1000):
        truth = rng.uniform(0.15, 0.85)
        values = evenly(rng)
        told = invert(values, counts(values, rng), counts(np.array([truth]), rng)[0])
        held.append(told.low <= truth <= told.high)
    assert LEVEL <= np.mean(held) <= 0.99


def test_the_value_is_that_of_the_count() -> None:
    # 30 of 100: 0.3, uncertain by sqrt(0.3 * 0.7 / 100) = 0.046
    rng = np.random.default_rng(1)
    values = evenly(rng)
    told = invert(values, counts(values, rng), np.array([np.arcsin(np.sqrt(0.3)), 0.0]))
    assert abs(told.value - 0.3) < 0.03
    assert 0.15 < told.high - told.low < 0.3
    assert told.left < told.low < told.value < told.high < told.right


def test_statistics_that_jump_with_the_value_are_as_unsure_as_the_jumps() -> None:
    # A hold of 5 steps or of 5.2 differs by more than both do from noise: a line between them says nothing.
    rng = np.random.default_rng(2)
    values = evenly(rng)
    jumps = 0.1 * np.sin(1e4 * values)
    told = invert(values, (values + jumps)[:, None], np.array([0.5]))
    assert 0.2 < told.high - told.low < 0.4  # +- 0.1, and RESOLUTION


def test_noise_tells_nothing() -> None:
    rng = np.random.default_rng(3)
    told = invert(evenly(rng), rng.normal(size=(NUM_RUNS, 8)), np.zeros(8))
    assert told.high - told.low > 0.8


def test_logs_unlike_any_run_are_far_from_all() -> None:
    rng = np.random.default_rng(4)
    values = evenly(rng)
    statistics = np.stack([values, rng.normal(size=NUM_RUNS)], axis=1)
    near, far = (invert(values, statistics, np.array([0.5, other])).distance for other in (0.0, 9.0))
    assert near < 1.0
    assert far > 60.0  # 9 standard deviations, squared
