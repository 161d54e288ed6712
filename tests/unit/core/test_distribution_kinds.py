import math

import numpy as np
import pytest

from gapless.core.distribution import (
    Correlation,
    Distribution,
    Part,
    Range,
    ranges_from_text,
    ranges_to_text,
)
from gapless.core.errors import InputError
from gapless.core.parameters import Parameter, ParameterSpace

A, B, C = "joint/elbow/damping", "geom/box/friction", "body/box/mass"
SPACE = ParameterSpace(
    (
        Parameter(A, "actuator", "N·m·s/rad", nominal=0.5, low=0.0, high=2.0),
        Parameter(B, "contact", "1", nominal=1.0, low=0.2, high=1.5),
        Parameter(C, "object", "kg", nominal=0.3, low=0.01, high=3.0),
    )
)
COUNT = 40_000


def draws(item: Range) -> np.ndarray:
    return Distribution(SPACE, (item,)).sample(np.random.default_rng(0), COUNT)[:, SPACE.index(item.target)]


def test_the_logarithm_of_log_uniform_is_even() -> None:
    # log of U on [log 0.1, log 1.6]: middle log 0.4, deviation log(16) / sqrt(12) = 0.80037.
    logs = np.log(draws(Range(A, "log-uniform", 0.1, 1.6, 0.4)))
    assert logs.mean() == pytest.approx(math.log(0.4), abs=4 * 0.8 / math.sqrt(COUNT))
    assert logs.std() == pytest.approx(math.log(16) / math.sqrt(12), rel=0.01)


def test_the_logarithm_of_log_normal_is_a_bell_about_the_median() -> None:
    logs = np.log(draws(Range(A, "log-normal", 1e-6, 1e6, 0.4, 0.25)))
    assert logs.mean() == pytest.approx(math.log(0.4), abs=4 * 0.25 / math.sqrt(COUNT))
    assert logs.std() == pytest.approx(0.25, rel=0.02)


def test_beta_has_the_mean_and_deviation_that_it_states() -> None:
    # On [0, 2] with mean 0.5, deviation 0.3: m = 0.25, s = 0.15, size = 0.1875 / 0.0225 - 1 = 7.3333.
    item = Range(A, "beta", 0.0, 2.0, 0.5, 0.3)
    assert item.shape() == pytest.approx((0.25 * 22 / 3, 0.75 * 22 / 3))
    values = draws(item)
    assert values.mean() == pytest.approx(0.5, abs=4 * 0.3 / math.sqrt(COUNT))
    assert values.std() == pytest.approx(0.3, rel=0.02)


def test_one_deviation_is_a_factor_where_the_logarithm_is_a_bell() -> None:
    assert Range(A, "log-normal", 0.1, 1.0, 0.5, math.log(2)).one_deviation == pytest.approx((0.25, 1.0))
    assert Range(A, "normal", 0.1, 1.0, 0.5, 0.2).one_deviation == pytest.approx((0.3, 0.7))
    assert Range(A, "uniform", 0.1, 1.0, 0.5).one_deviation is None


def test_a_mixture_draws_from_each_part_as_often_as_its_weight_says() -> None:
    item = Range(A, "mixture", 0.0, 2.0, 1.0, parts=(Part(3.0, 0.4, 0.05), Part(1.0, 1.5, 0.1)))
    values = draws(item)
    lower = values[values < 1.0]
    assert len(lower) / COUNT == pytest.approx(0.75, abs=4 * math.sqrt(0.1875 / COUNT))
    assert lower.mean() == pytest.approx(0.4, abs=0.002)
    assert values[values > 1.0].std() == pytest.approx(0.1, rel=0.03)


def test_correlated_ranges_are_drawn_together_and_stay_inside() -> None:
    ranges = (
        Range(A, "normal", 0.0, 2.0, 1.0, 0.1),
        Range(C, "log-normal", 0.1, 1.0, 0.3, 0.2),
        Range(B, "uniform", 0.5, 1.5, 1.0),
    )
    rows = Distribution(SPACE, ranges, (Correlation(A, C, -0.8),)).sample(np.random.default_rng(1), COUNT)
    # Cutting at 5 deviations and more changes nothing: the standard error of r is (1 - r^2) / sqrt(n) = 0.0018.
    assert np.corrcoef(rows[:, 0], np.log(rows[:, 2]))[0, 1] == pytest.approx(-0.8, abs=4 * 0.0018)
    assert abs(np.corrcoef(rows[:, 0], rows[:, 1])[0, 1]) < 4 / math.sqrt(COUNT)
    tight = (Range(A, "normal", 0.9, 1.1, 1.0, 0.1), Range(B, "normal", 0.9, 1.1, 1.0, 0.1))
    cut = Distribution(SPACE, tight, (Correlation(A, B, 0.9),)).sample(np.random.default_rng(1), 1000)[:, :2]
    assert cut.min() >= 0.9
    assert cut.max() <= 1.1
    assert np.corrcoef(cut.T)[0, 1] > 0.6


def test_each_level_is_drawn_anew_on_its_own() -> None:
    both = Distribution(SPACE, (Range(A, "uniform", 0.0, 1.0, 0.5, per="robot"), Range(B, "uniform", 0.5, 1.0, 0.75)))
    rng = np.random.default_rng(0)
    first = both.sample(rng, 5)
    again = both.redrawn(first, rng, "episode")
    np.testing.assert_array_equal(again[:, 0], first[:, 0])
    assert (again[:, 1] != first[:, 1]).all()
    assert both.has("robot")
    assert not both.has("step")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "log-uniform", "low": 0.0}, "low end above 0"),
        ({"kind": "beta", "std": 0.9}, "no beta distribution"),
        ({"kind": "triangle"}, "no kind 'triangle'"),
        ({"kind": "mixture"}, "a mixture has parts"),
        ({"std": -0.1}, "is negative: give"),
        ({"per": "day"}, "write per one of: robot, episode, step"),
    ],
)
def test_what_cannot_be_drawn_is_refused(changes: dict[str, object], said: str) -> None:
    values: dict[str, object] = {"target": A, "kind": "normal", "low": 0.0, "high": 1.0, "mean": 0.5, "std": 0.1}
    with pytest.raises(InputError, match=said):
        Range(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([(A, "geom/none/friction", 0.5)], "no range of geom/none"),
        ([(A, B, 1.0)], "between -1 and 1"),
        ([(A, C, 0.5)], "only normal"),
        ([(A, B, 0.9), (B, "body/box/com/x", 0.9), (A, "body/box/com/x", -0.9)], "contradict"),
    ],
)
def test_correlations_that_cannot_be_are_refused(pairs: list[tuple[str, str, float]], said: str) -> None:
    bells = [Range(t, "normal", 0.0, 1.0, 0.5, 0.1) for t in (A, B, "body/box/com/x")]
    ranges = (*bells, Range(C, "uniform", 0.1, 1.0, 0.5))
    space = ParameterSpace(tuple(Parameter(r.target, "object", "1", 0.5, 0.0, 1.0) for r in ranges))
    with pytest.raises(InputError, match=said):
        Distribution(space, ranges, tuple(Correlation(*pair) for pair in pairs))


RANGES = (
    Range("actuator/*/delay", "uniform", 0.02, 0.06, 0.04, 0.0, "measured on three robots", "robot"),
    Range(B, "normal", 0.1, 1.0, 0.25, 0.03),
    Range(C, "log-normal", 0.1, 1.0, 0.25, 0.2, per="step"),
    Range(A, "fixed", 0.3, 0.3, 0.3),
    Range("world/tilt/x", "mixture", -0.02, 0.02, 0.0, parts=(Part(0.7, -0.01, 0.002), Part(0.3, 0.01, 0.002))),
    Range("world/tilt/y", "beta", -1e-5, 0.02, 0.01, 0.003),
    Range("world/gravity", "log-uniform", 9.0, 10.0, 9.5),
)


def test_text_comes_back_unchanged() -> None:
    pairs = (Correlation(B, "joint/a/damping", -0.8),)
    ranges = (*RANGES, Range("joint/a/damping", "normal", 0.0, 1.0, 0.123456, 0.1))
    assert ranges_from_text(ranges_to_text(ranges, pairs)) == (ranges, pairs)


def test_text_is_one_readable_line_per_parameter() -> None:
    lines = ranges_to_text(RANGES).splitlines()
    assert lines[0] == "actuator/*/delay     uniform 0.02 .. 0.06 per robot    # measured on three robots"
    assert lines[2] == "body/box/mass        log-normal 0.25 +- 20 % within 0.1 .. 1 per step"
    assert lines[4] == "world/tilt/x         mixture 0.7: -0.01 +- 0.002, 0.3: 0.01 +- 0.002 within -0.02 .. 0.02"


def test_text_has_six_digits() -> None:
    (found,), _ = ranges_from_text(ranges_to_text([Range(A, "normal", 0.0, 1.0, 1 / 3, 1 / 7)]))
    assert (found.mean, found.std) == (0.333333, 0.142857)


def test_text_holds_plain_numbers_whatever_they_were_made_with() -> None:
    low, high = np.float64(0.25), np.float64(0.5)
    assert ranges_to_text([Range("a/b/c", "uniform", low, high, low)]) == "a/b/c  uniform 0.25 .. 0.5\n"


def test_text_by_hand_may_have_remarks_and_empty_lines() -> None:
    ranges, pairs = ranges_from_text("# mine\n\n  a/b/c   uniform 1..2   # why\n")
    assert ranges == (Range("a/b/c", "uniform", 1.0, 2.0, 1.5, reason="why"),)
    assert pairs == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a/b/c", "line 1: a/b/c: no kind ''"),
        ("a/b/c triangle 1 .. 2", "no kind 'triangle'"),
        ("a/b/c uniform 2 .. 1", "goes backwards"),
        ("a/b/c normal 0.3 within 0 .. 1", "write it like `normal 0.3"),
        ("a/b/c normal 0.3 +- 10 % within 0 .. 1", "% is for log-normal"),
        ("a/b/c uniform 0 .. 1 per day", "write per one of: robot, episode, step"),
        ("correlation a/b/c 0.5", "write a correlation like"),
        ("a/b/c fixed 1\na/b/c fixed 2", "two ranges"),
    ],
)
def test_text_that_cannot_be_read_says_where_and_how(line: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ranges_from_text(line)
