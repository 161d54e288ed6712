import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.core.interval import Interval, normal_quantile, wilson


def test_normal_quantile_at_known_points() -> None:
    assert normal_quantile(0.5) == pytest.approx(0.0, abs=1e-9)
    assert normal_quantile(0.975) == pytest.approx(1.959963984540054, abs=1e-9)
    assert normal_quantile(0.025) == pytest.approx(-1.959963984540054, abs=1e-9)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, 1.1, math.nan])
def test_normal_quantile_refuses_what_is_no_probability(probability: float) -> None:
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        normal_quantile(probability)


def test_wilson_of_eight_in_ten() -> None:
    # z^2 = 3.841459, n = 10, p = 0.8.
    # shrink = 1 + 0.3841459                                = 1.3841459
    # centre = (0.8 + 3.841459/20) / 1.3841459              = 0.9920729 / 1.3841459 = 0.7167401
    # half   = 1.959964 sqrt(0.16/10 + 3.841459/400) / 1.3841459
    #        = 1.959964 * sqrt(0.016 + 0.00960365) / 1.3841459
    #        = 1.959964 * 0.1600114 / 1.3841459             = 0.2265776
    interval = wilson(8, 10)
    assert interval.value == 0.8
    assert interval.low == pytest.approx(0.7167401 - 0.2265776, abs=1e-5)
    assert interval.high == pytest.approx(0.7167401 + 0.2265776, abs=1e-5)
    assert (interval.level, interval.n, interval.method) == (0.95, 10, "wilson")


def test_wilson_without_success_begins_at_zero() -> None:
    # p = 0: centre = half = (z^2/2n) / (1 + z^2/n), so high = (z^2/n) / (1 + z^2/n) = z^2 / (n + z^2)
    #      = 3.841459 / 23.841459 = 0.1611252 for n = 20.
    interval = wilson(0, 20)
    assert interval.low == pytest.approx(0.0, abs=1e-12)
    assert interval.high == pytest.approx(0.1611252, abs=1e-6)


def test_wilson_without_trials_knows_nothing() -> None:
    interval = wilson(0, 0)
    assert math.isnan(interval.value)
    assert (interval.low, interval.high, interval.n) == (0.0, 1.0, 0)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 5), (6, 5), (0, -1)])
def test_wilson_refuses_impossible_counts(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="give at most as many successes"):
        wilson(successes, trials)


@given(trials=st.integers(1, 5000), data=st.data())
def test_wilson_holds_its_value_inside_zero_and_one_and_mirrors(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    interval = wilson(successes, trials)
    mirrored = wilson(trials - successes, trials)
    assert 0.0 <= interval.low <= interval.value + 1e-12
    assert interval.value - 1e-12 <= interval.high <= 1.0
    assert mirrored.low == pytest.approx(1 - interval.high, abs=1e-9)


def test_wilson_widens_with_the_level_and_narrows_with_trials() -> None:
    def width(interval: Interval) -> float:
        return interval.high - interval.low

    assert width(wilson(5, 10, level=0.99)) > width(wilson(5, 10)) > width(wilson(50, 100))


def test_percent_reads_like_people_write() -> None:
    assert Interval(0.41, 0.284, 0.556, 0.95, 50, "wilson").percent() == "41 % [28, 56]"
