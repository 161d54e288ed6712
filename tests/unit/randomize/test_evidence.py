"""Ranges about a fit."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gapless.core.distribution import Distribution
from gapless.core.interval import normal_quantile
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.results import FittedParameter
from gapless.randomize.evidence import evidence_ranges
from unit.fit_file import fitted

Z = normal_quantile(0.975)


def entry(**changes: Any) -> FittedParameter:
    made = {"target": "joint/j/damping", "nominal": 2.0, "value": 1.0, "low": 1.0 - 0.3 * Z, "high": 1.0 + 0.3 * Z}
    return fitted(**made | changes)


def by_factor(target: str, value: float, std: float, **changes: Any) -> FittedParameter:
    ends = {"low": value * math.exp(-std * Z), "high": value * math.exp(std * Z), "prior_low": 0.1, "prior_high": 10.0}
    return entry(**{"target": target, "nominal": 1.0, "value": value} | ends | changes)


def test_a_determined_parameter_becomes_normal_about_its_fit() -> None:
    # The interval is 1 +- z 0.3, so std 0.3, times 2 unexplained = 0.6; cut at two of them: [-0.2, 2.2] -> [0, 2.2]
    (found,), _ = evidence_ranges([entry()], 2.0)
    assert found.kind == "normal"
    assert (found.mean, found.std) == (1.0, pytest.approx(0.6))
    assert (found.low, found.high) == (0.0, pytest.approx(2.2))
    assert "2.0 times" in found.reason


def test_what_each_run_has_its_own_of_is_as_wide_as_runs_lie_apart() -> None:
    # 5 runs: Student's t at 0.975 with 4 degrees of freedom is 2.776, 1.417 times the normal's; the mean's own 0.3 is
    # not widened: std = sqrt((1.417 * 0.8)^2 + 0.3^2)
    runs = {f"run{k}": 1.0 for k in range(5)}
    (found,), _ = evidence_ranges([entry(spread=0.8, by_run=runs, unit="N")], 4.0)
    assert found.std == pytest.approx(math.hypot(2.776445 / Z * 0.8, 0.3), rel=1e-5)
    assert "5 runs differ by 0.8 N" in found.reason
    assert found.per == "episode"


def test_what_is_never_zero_lies_apart_by_factors() -> None:
    # (e^0.5 - e^-0.5) / 2 = 0.5211 of the value: a standard deviation of 0.5 of the logarithm
    runs = {f"run{k}": 2.0 for k in range(1001)}
    spread = 2.0 * math.sinh(0.5)
    (found,), _ = evidence_ranges([by_factor("a/a/a", 2.0, 0.0, spread=spread, by_run=runs, unit="1")], 1.0)
    assert found.kind == "log-normal"
    assert found.std == pytest.approx(0.5, rel=2e-3)


def test_a_mean_that_is_known_does_not_narrow_what_runs_to_come_have() -> None:
    open_ones = entry(identifiable=False, value=2.0, low=1.9, high=2.1, spread=0.0)
    (shared,), _ = evidence_ranges([open_ones], 1.0)
    (own,), _ = evidence_ranges([replace(open_ones, by_run={"a": 2.0, "b": 2.0})], 1.0)
    assert (shared.low, shared.high) == (1.9, 2.1)
    assert (own.low, own.high) == (pytest.approx(0.5), pytest.approx(3.5))  # 2 +- 15 % of 10


def test_widening_ends_where_it_would_no_longer_help() -> None:
    (found,), _ = evidence_ranges([entry(low=1.0 - 0.05 * Z, high=1.0 + 0.05 * Z)], 30.0)
    assert found.std == pytest.approx(5 * 0.05)
    assert "5.0 times" in found.reason


def test_no_fit_is_surer_than_a_tenth_of_its_value() -> None:
    (found,), _ = evidence_ranges([entry(value=5.0, low=5.0, high=5.0)], 1.0)
    assert found.std == pytest.approx(0.5)
    assert (found.low, found.high) == (pytest.approx(4.0), pytest.approx(6.0))
    assert found.reason.endswith("10 % of the value")


def test_near_zero_the_floor_is_a_share_of_the_range() -> None:
    # 1 % of 10
    (found,), _ = evidence_ranges([entry(value=0.0, low=0.0, high=0.0)], 1.0)
    assert found.std == pytest.approx(0.1)
    assert found.reason.endswith("1 % of the prior range")


def test_what_is_never_zero_varies_by_factors_whatever_its_prior_range() -> None:
    # 0.46 to 2 %: the floor of 10 % decides, not 1 % of 0.1 .. 10.
    (found,), _ = evidence_ranges([by_factor("actuator/m/gain", 0.46, 0.02)], 1.0)
    assert (found.kind, found.mean, found.std) == ("log-normal", 0.46, pytest.approx(0.1))
    assert (found.low, found.high) == (pytest.approx(0.46 * math.exp(-0.2)), pytest.approx(0.46 * math.exp(0.2)))


def test_an_undetermined_parameter_is_even_about_the_model_within_what_the_logs_leave() -> None:
    # 2 +- 0.15 * 10, and of that what the interval leaves.
    (found,), _ = evidence_ranges([entry(identifiable=False, value=9.0, low=0.0, high=10.0)], 3.0)
    assert (found.kind, found.low, found.high, found.mean) == ("uniform", 0.5, 3.5, 2.0)
    (found,), _ = evidence_ranges([entry(identifiable=False, value=1.0, low=0.0, high=1.5)], 3.0)
    assert (found.low, found.high) == (0.5, 1.5)
    # Between 0.1 and 10 it goes by factors: ln 100 * 0.15 to each side of 1.
    (found,), _ = evidence_ranges([by_factor("actuator/m/gain", 1.0, 2.0, identifiable=False)], 1.0)
    assert found.kind == "log-uniform"
    assert (found.low, found.high) == (pytest.approx(100**-0.15), pytest.approx(100**0.15))


def samples(rho: float, std: tuple[float, float]) -> np.ndarray:
    rng = np.random.default_rng(0)
    bells = rng.multivariate_normal([0.0, 0.0], [[1.0, rho], [rho, 1.0]], 4000)
    return np.stack([1.0 + std[0] * bells[:, 0], 0.5 * np.exp(std[1] * bells[:, 1])], axis=1)


def test_what_the_fit_knows_together_is_drawn_together() -> None:
    # Widths of 0.3 and 0.4 are far above the floors of 0.1: the correlation of the samples stays whole.
    entries = [entry(), by_factor("actuator/m/gain", 0.5, 0.4)]
    ranges, pairs = evidence_ranges(entries, 1.0, samples(-0.9, (0.3, 0.4)))
    assert [(p.first, p.second) for p in pairs] == [("joint/j/damping", "actuator/m/gain")]
    assert pairs[0].value == pytest.approx(-0.9, abs=0.02)
    space = ParameterSpace(tuple(Parameter(r.target, "actuator", "1", 1.0, 0.0, 10.0) for r in ranges))
    rows = Distribution(space, ranges, pairs).sample(np.random.default_rng(0), 1000)
    assert np.corrcoef(rows[:, 0], np.log(rows[:, 1]))[0, 1] < -0.7


def test_the_floor_is_independent_and_weakens_correlations() -> None:
    # Fitted to 0.02 each and widened to 0.1 each: covariance -0.9 * 0.02^2 over 0.1^2 is -0.036, not worth a line.
    entries = [entry(low=1 - 0.02 * Z, high=1 + 0.02 * Z), by_factor("actuator/m/gain", 0.5, 0.02)]
    assert evidence_ranges(entries, 1.0, samples(-0.9, (0.02, 0.02)))[1] == ()


def test_what_is_known_only_together_keeps_its_combination() -> None:
    # Neither is told alone, but their samples go together: bells with that correlation, not two even ranges.
    entries = [
        by_factor("body/b/mass", 1.0, 0.5, identifiable=False),
        by_factor("actuator/m/gain", 0.5, 0.5, identifiable=False),
    ]
    bells = samples(0.99, (0.5, 0.5))
    bells[:, 0] = np.exp(bells[:, 0] - 1.0)
    ranges, pairs = evidence_ranges(entries, 1.0, bells)
    assert {r.kind for r in ranges} == {"log-normal"}
    assert pairs[0].value > 0.85


def test_parameters_of_other_dimensions_are_fixed() -> None:
    entries = [
        entry(target="joint/j/damping", dimension="actuator"),
        entry(target="joint/j/frictionloss", dimension="contact"),
        entry(target="joint/j/stiffness", dimension="contact", identifiable=False),
    ]
    (free, *fixed), _ = evidence_ranges(entries, 2.0, dimensions=("actuator",))
    assert free == evidence_ranges(entries[:1], 2.0)[0][0]
    assert [(r.kind, r.low, r.mean, r.high) for r in fixed] == 2 * [("fixed", 1.0, 1.0, 1.0)]  # as fitted


def test_what_goes_with_a_fixed_parameter_narrows() -> None:
    # correlation 0.8, both std 0.3, unexplained 1: given the other, std is 0.3 sqrt(1 - 0.64) = 0.18
    entries = [entry(target="a/a/a", dimension="actuator"), entry(target="b/b/b", dimension="object")]
    normal = np.random.default_rng(0).standard_normal((2, 400_000))
    samples = 1.0 + 0.3 * np.stack([normal[0], 0.8 * normal[0] + 0.6 * normal[1]], axis=1)
    (free, fixed), pairs = evidence_ranges(entries, 1.0, samples, ("actuator",))
    assert free.std == pytest.approx(0.18, rel=0.01)
    assert fixed.kind == "fixed"
    assert pairs == ()
