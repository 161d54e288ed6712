import numpy as np
import pytest

from gapless.diagnose.counterfactual.repairs import paired_gain, rank_repairs
from unit.diagnose.lift import SPACE, make_simulate, row_of


def test_the_repair_that_recovers_success_comes_first(tmp_path_factory: pytest.TempPathFactory) -> None:
    # Delay alone makes every run fail; the bias, though it moved, makes none fail. The gain was not moved.
    simulate = make_simulate(tmp_path_factory.mktemp("lift"))
    fitted = row_of({"actuator/*/delay": 0.07, "measurement/q/bias": 0.05})
    found = rank_repairs(simulate, fitted, SPACE, np.random.default_rng(0), 48)
    assert [one.dimension for one in found] == ["latency", "sensor"]
    assert found[0].gain.low > 0.5
    assert found[0].success.low > 0.8
    assert found[1].gain.high < 0.3
    assert found == rank_repairs(simulate, fitted, SPACE, np.random.default_rng(0), 48)


def test_a_paired_gain_has_its_closed_form() -> None:
    # 10 pairs: 4 won, 1 lost. N = 12, centre 3/12, half width 1.96 sqrt(4 + 1 + 1 - 9/12) / 12 = 0.3742.
    before = np.array([1] * 3 + [0] * 7, dtype=bool)
    after = np.array([1] * 2 + [0] + [1] * 4 + [0] * 3, dtype=bool)
    gain = paired_gain(before, after)
    assert (gain.value, gain.low, gain.high) == pytest.approx((0.3, 0.25 - 0.3742, 0.25 + 0.3742), abs=1e-3)


def test_nothing_to_gain_has_an_interval_too() -> None:
    same = np.ones(20, dtype=bool)
    gain = paired_gain(same, same)
    assert gain.value == 0.0
    assert -0.1 < gain.low < 0.0 < gain.high < 0.1


def test_intervals_of_gains_cover_the_truth() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(1000):
        start = rng.random(48)  # a start's difficulty decides both runs: success from 0.6 down, then from 0.85 down
        gain = paired_gain(start < 0.6, start + 0.02 * rng.standard_normal(48) < 0.85)
        covered += gain.low <= 0.25 <= gain.high
    assert 0.93 <= covered / 1000 <= 0.985  # a little too wide, as published
