"""Intervals and explanations agree on whether a value may be as the model has it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gapless.core.results import FittedParameter
from gapless.fit.mechanisms.evidence import estimate_probabilities
from gapless.fit.mechanisms.explain import MIN_REACH, SignalEvidence, agree_with_fit, find_reach, weigh_nominals
from unit.fit.mechanisms.explanations import MECHANISMS, explanations


def evidence(actuator: float, latency: float, both: float, left: float = 0.0) -> SignalEvidence:
    found = tuple(explanations(actuator, latency, both, left))
    return SignalEvidence(SimpleNamespace(), found, estimate_probabilities(found, MECHANISMS), SimpleNamespace())  # type: ignore[arg-type]


def fitted(dimension: str, value: float, low: float, high: float) -> FittedParameter:
    return FittedParameter(dimension, dimension, "1", 0.0, value, low, high, 0.95, True, False, -9.0, 9.0)  # type: ignore[arg-type]


def test_a_value_that_no_explanation_needs_may_be_the_models() -> None:
    (found,) = weigh_nominals([fitted("latency", 2.0, 1.0, 3.0)], evidence(300.0, 0.0, 301.0))
    assert (found.low, found.high) == (0.0, 3.0)


def test_an_interval_ends_before_a_value_that_explanations_exclude() -> None:
    # odds of exp(200 / 4): 1.96 / sqrt(2 * 50) of the way would do; what they say is of no single value
    known = evidence(300.0, 100.0, 300.0)
    (found,) = weigh_nominals([fitted("actuator", 2.0, -1.0, 5.0)], known)
    assert find_reach(known, "actuator") == MIN_REACH
    assert found.low == pytest.approx(2.0 * (1.0 - MIN_REACH))
    assert found.high == 5.0


def test_how_far_an_interval_reaches_follows_from_the_odds() -> None:
    # equal prices and rivals: 2 nats at a temperature of 4 are log odds of 0.5; 1.96 / sqrt(2 * 0.5) = 1.96
    assert find_reach(evidence(202.0, 200.0, 150.0), "actuator") == pytest.approx(1.96, rel=0.05)


def test_an_interval_stays_where_it_excludes_the_models_value_by_itself() -> None:
    parameter = fitted("actuator", 2.0, 1.9, 2.1)
    assert weigh_nominals([parameter], evidence(300.0, 100.0, 300.0)) == (parameter,)


def test_an_interval_stays_wide_where_explanations_are_undecided() -> None:
    # as good with latency as with the actuator: even odds say nothing about either value
    parameter = fitted("actuator", 2.0, -1.0, 5.0)
    (found,) = weigh_nominals([parameter], evidence(301.0, 300.0, 302.0))
    assert found.low <= 0.0


def test_of_explanations_about_as_good_that_is_fitted_which_frees_least() -> None:
    alike = evidence(200.0, 202.0, 202.0)
    assert alike.best.dimensions == ("latency",)
    assert alike.prefer_prediction(["actuator"]).fitted_targets == {"actuator"}
    assert alike.prefer_prediction([]).fitted_targets == {"latency"}


def test_what_predicts_better_is_fitted_although_it_is_not_believed() -> None:
    # 60 nats for another number are three prices; with errors of e^5 times the noise left they say little
    doubtful = evidence(1000.0, 0.0, 1060.0, left=30.0)
    assert doubtful.best.dimensions == ("actuator",)
    assert doubtful.prefer_prediction([]).fitted_targets == {"actuator", "latency"}


def test_a_dimension_that_the_fit_did_without_is_not_believed() -> None:
    # latency explains a little better, and the fit has the actuator away from the model's value instead
    agreed = agree_with_fit(evidence(200.0, 202.0, 202.0), [fitted("actuator", 2.0, 1.9, 2.1)])
    assert agreed.probabilities.causes["actuator"] > 0.5 > agreed.probabilities.causes["latency"]


def test_a_dimension_is_believed_whose_values_are_away_though_none_is_known_alone() -> None:
    # of a delay and a lag only the sum shows: neither is identifiable, and yet commands are late
    before = evidence(200.0, 202.0, 240.0)
    late = replace(fitted("latency", 2.0, 1.9, 2.1), identifiable=False)
    here = fitted("actuator", 2.0, 1.9, 2.1)
    assert before.probabilities.causes["latency"] > 0.5
    assert agree_with_fit(before, [here, late]).probabilities.causes["latency"] > 0.5
    unsure = replace(late, low=-0.1, high=4.0)
    assert agree_with_fit(before, [here, unsure]).probabilities.causes["latency"] < 0.5
