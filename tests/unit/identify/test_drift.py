from dataclasses import replace

import numpy as np
import pytest

from gapless.core.interval import normal_quantile
from gapless.core.results import Drift, FittedParameter, Since
from gapless.identify.drift import find_comparable, find_drifts, limits_at_level, subtract_limits

FRICTION = FittedParameter("joint/j/frictionloss", "actuator", "N·m", 0.0, 0.5, 0.45, 0.55, 0.95, True, False, 0.0, 4.0)
BIAS = FittedParameter("measurement/q/bias", "sensor", "rad", 0.0, 0.01, 0.008, 0.012, 0.95, True, False, -0.1, 0.1)
GAIN = FittedParameter("actuator/m/gain", "actuator", "1", 1.0, 0.8, 0.79, 0.81, 0.95, True, False, 0.5, 2.0)


def test_limits_of_a_difference_are_the_root_of_squared_distances() -> None:
    # 5 -+ 3 minus 3 -+ 4: 2 -+ sqrt(9 + 16)
    assert subtract_limits(np.array([5, 2, 8]), np.array([3, -1, 7])) == pytest.approx([2, -3, 7])
    # with unequal sides: 2 - sqrt(3^2 + 4^2), 2 + sqrt(12^2 + 5^2)
    assert subtract_limits(np.array([5, 2, 17]), np.array([3, -2, 7])) == pytest.approx([2, -3, 15])


def test_a_share_whose_value_may_be_nothing_goes_down_to_all() -> None:
    # The upper limit, from 0.5 -+ 0.05 to 0.02 [0, 0.07], at the level of the records: logs add up in squares.
    worn = replace(FRICTION, value=0.02, low=0.0, high=0.07)
    (found,) = find_drifts([(FRICTION, worn)])
    assert found.relative
    assert (found.change, found.low) == pytest.approx((-0.96, -1.0))
    assert -0.96 < found.high < 0.0


def test_a_level_of_its_own_gives_the_interval_of_the_record() -> None:
    assert limits_at_level(BIAS, 0.95) == pytest.approx((0.01, 0.008, 0.012))


def test_limits_at_another_level_are_wider_by_the_normal_quantiles() -> None:
    wide = 0.002 * normal_quantile(0.995) / normal_quantile(0.975)
    assert limits_at_level(BIAS, 0.99) == pytest.approx((0.01, 0.01 - wide, 0.01 + wide))  # bounds below 0: linear


def test_a_limit_cut_at_a_bound_is_not_taken_for_certainty() -> None:
    cut = replace(BIAS, value=0.099, low=0.079, high=0.1)
    # half width 0.02, not 0.001; at the same level the upper end stays cut
    assert limits_at_level(cut, 0.95) == pytest.approx((0.099, 0.079, 0.1))
    assert limits_at_level(cut, 0.5)[2] == pytest.approx(0.1)


def test_the_same_fit_has_not_drifted() -> None:
    assert find_drifts(find_comparable([FRICTION, BIAS, GAIN], [FRICTION, BIAS, GAIN])) == ()


def test_a_change_is_a_share_where_there_is_one() -> None:
    worn = replace(FRICTION, value=0.7, low=0.65, high=0.75)
    (found,) = find_drifts(find_comparable([FRICTION], [worn]), "2026-03-01T10:00:00")
    assert found.relative
    assert found.change == pytest.approx(0.4)
    assert 0.2 < found.low < found.change < found.high < 0.6
    assert (found.before, found.after, found.since) == (0.5, 0.7, "2026-03-01T10:00:00")


def test_of_what_can_have_either_sign_the_change_keeps_its_unit() -> None:
    moved = replace(BIAS, value=0.02, low=0.018, high=0.022)
    (found,) = find_drifts(find_comparable([BIAS], [moved]))
    assert not found.relative
    half = 0.002 * 2**0.5
    assert (found.change, found.low, found.high) == pytest.approx((0.01, 0.01 - half, 0.01 + half))


def test_from_nothing_no_share_can_be_told() -> None:
    none = replace(FRICTION, value=0.0, low=0.0, high=0.05)
    (found,) = find_drifts(find_comparable([none], [FRICTION]))
    assert not found.relative
    assert found.change == pytest.approx(0.5)


def test_many_comparisons_ask_for_larger_changes() -> None:
    # 0.0032 apart with 0.002 * sqrt(2) = 0.0028 of half width: enough for one comparison, not for one of twenty
    moved = replace(BIAS, value=0.0132, low=0.0112, high=0.0152)
    assert len(find_drifts([(BIAS, moved)])) == 1
    assert find_drifts([(BIAS, moved)] + 19 * [(GAIN, GAIN)]) == ()


@pytest.mark.parametrize(
    "changed",
    [
        replace(GAIN, value=1.6, low=1.59, high=1.61, identifiable=False),
        replace(GAIN, value=2.0, low=1.99, high=2.0, at_bound=True),
        replace(GAIN, value=1.6, low=1.59, high=1.61, unit="N"),
        replace(GAIN, value=1.6, low=1.59, high=1.61, nominal=2.0),  # a factor of another model
        replace(GAIN, value=1.6, low=1.59, high=1.61, target="actuator/other/gain"),
    ],
)
def test_what_cannot_be_compared_is_not(changed: FittedParameter) -> None:
    assert find_comparable([GAIN], [changed]) == []
    assert find_comparable([changed], [GAIN]) == []


def test_values_in_units_are_compared_whatever_the_model_says() -> None:
    assert len(find_comparable([FRICTION], [replace(FRICTION, nominal=0.3)])) == 1


def test_a_drift_reads_as_people_say_it() -> None:
    worn = Drift("joint/3/frictionloss", "N·m", 0.5, 0.7, 0.4, 0.28, 0.53, 0.95, True, "2026-03-01T10:00:00")
    assert worn.text() == "+40 % [28, 53]"
    assert replace(worn, change=-0.2, low=-0.3, high=-0.1, relative=False).text() == "-0.2 [-0.3, -0.1] N·m"
    assert Since("a", "2026-03-01T10:00:00", (), 0.95, False).when() == "2026-03-01"
    assert Since("a", None, (), 0.95, False).when() == "the earlier fit"
