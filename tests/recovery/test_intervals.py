"""Intervals cover the truth as often as they say.

The coverage of any interval of a binomial share jumps up and down with the true share, because the count is a
whole number; what the level promises is the coverage on average over shares. So the truth is drawn too.
"""

from math import comb

import numpy as np
import pytest

from gapless.core.interval import wilson

NUM_DRAWS = 4000  # standard error of a 95 % coverage: sqrt(0.95 * 0.05 / 4000) = 0.34 %


def covered_share(trials: int, level: float, seed: int) -> float:
    """Returns how often the interval covers, over truths uniform in (0.05, 0.95)."""
    rng = np.random.default_rng(seed)
    truths = rng.uniform(0.05, 0.95, NUM_DRAWS)
    ends = np.array([(i.low, i.high) for i in (wilson(k, trials, level) for k in range(trials + 1))])
    low, high = ends[rng.binomial(trials, truths)].T
    return float(np.mean((low <= truths) & (truths <= high)))


@pytest.mark.parametrize("trials", [10, 20, 50, 100, 400])
def test_wilson_95_covers_93_to_97_percent(trials: int) -> None:
    assert 0.93 <= covered_share(trials, 0.95, seed=trials) <= 0.97


@pytest.mark.parametrize("level", [0.8, 0.9, 0.99])
def test_wilson_keeps_other_levels_within_two_points(level: float) -> None:
    shares = [covered_share(trials, level, seed=trials) for trials in (20, 50, 100)]
    assert abs(np.mean(shares) - level) <= 0.02


@pytest.mark.parametrize("trials", [10, 30, 100])
def test_wilson_never_falls_far_below_its_level_away_from_the_ends(trials: int) -> None:
    # Exact, not drawn: sum of C(n, k) p^k (1-p)^(n-k) over the counts k whose interval holds p.
    intervals = [wilson(k, trials) for k in range(trials + 1)]
    for truth in np.linspace(0.1, 0.9, 161):
        weights = [comb(trials, k) * truth**k * (1 - truth) ** (trials - k) for k in range(trials + 1)]
        inside = [i.low <= truth <= i.high for i in intervals]
        assert float(np.dot(weights, inside)) >= 0.90


def test_the_test_itself_notices_an_interval_that_is_too_narrow() -> None:
    # An 85 % interval sold as 95 % must fall outside the band.
    assert covered_share(50, 0.85, seed=0) < 0.93
