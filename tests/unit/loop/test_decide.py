"""What the loop decides from trials, findings of `check`, and a diagnosis."""

import pytest

from gapless.core.dimensions import Dimension
from gapless.core.interval import wilson
from gapless.core.results import Cause, DiagnoseResult, Probability
from gapless.loop.verb import decide

FAILS = wilson(10, 50)


def diagnosis(
    causes: dict[Dimension, float],
    no_gap: float = 0.0,
    unmodelled: float = 0.0,
    ambiguous: tuple[tuple[Dimension, ...], ...] = (),
) -> DiagnoseResult:
    found = tuple(Cause(dimension, probability, 0.0, 0.0, 1.0) for dimension, probability in causes.items())
    return DiagnoseResult((), found, Probability(no_gap), Probability(unmodelled), (), ambiguous, (), 0)


@pytest.mark.parametrize("known", [None, diagnosis({"actuator": 0.9}, unmodelled=0.9)])
def test_a_target_that_is_met_ends_it_whatever_the_diagnosis(known: DiagnoseResult | None) -> None:
    found = decide(known, wilson(43, 50), 0.86)
    assert (found.action, found.dimensions) == ("done", ())
    assert "86 % [74, 93] of 50 real trials: the target of 86 % is met" in found.reason


def test_below_the_target_and_without_a_diagnosis_it_goes_on() -> None:
    assert decide(None, wilson(42, 50), 0.86).action == "train"


def test_mistakes_in_the_data_stop_it_and_are_named() -> None:
    found = decide(None, FAILS, 0.85, faults=["q_elbow: its sign is turned", "u: in degrees"])
    assert found.action == "stop"
    assert "q_elbow: its sign is turned; u: in degrees" in found.reason
    assert "Correct them" in found.reason


def test_no_gap_and_failing_anyway_stops_it() -> None:
    found = decide(diagnosis({"actuator": 0.05}, no_gap=0.8), FAILS, 0.85)
    assert found.action == "stop"
    assert "no gap between model and logs is found (probability 0.80)" in found.reason
    assert "20 % [11, 33] of 50 real trials" in found.reason


def test_an_unmodelled_gap_stops_it() -> None:
    found = decide(diagnosis({"actuator": 0.4}, unmodelled=0.7), FAILS, 0.85)
    assert found.action == "stop"
    assert "the gap is unmodelled (probability 0.70): no parameter of this model expresses it" in found.reason


def test_an_unmodelled_part_beside_a_cause_is_mentioned() -> None:
    found = decide(diagnosis({"actuator": 0.9, "latency": 0.02}, unmodelled=0.7), FAILS, 0.85)
    assert (found.action, found.dimensions) == ("train", ("actuator",))
    assert "something unmodelled also takes part, and training does not close that part" in found.reason


@pytest.mark.parametrize("dimension", ["visual", "human", "numerics"])
def test_a_cause_that_no_parameter_expresses_stops_it(dimension: Dimension) -> None:
    known = diagnosis({dimension: 0.9, "actuator": 0.3})
    found = decide(known, FAILS, 0.85, expressed=("actuator", "latency"))
    assert found.action == "stop"
    assert f"the gap comes from {dimension}, which no parameter of this project expresses" in found.reason
    assert decide(known, FAILS, 0.85, expressed=("actuator", dimension)).action == "train"


def test_a_cause_that_no_parameter_expresses_is_mentioned_beside_one_that_training_closes() -> None:
    known = diagnosis({"visual": 0.9, "actuator": 0.8})
    found = decide(known, FAILS, 0.85, expressed=("actuator", "latency"))
    assert (found.action, found.dimensions) == ("train", ("actuator",))
    assert "visual also takes part" in found.reason


def test_dimensions_that_may_take_part_are_randomised_and_those_that_look_like_them() -> None:
    known = diagnosis(
        {"actuator": 0.9, "object": 0.2, "latency": 0.05, "sensor": 0.02}, ambiguous=(("object", "sensor"),)
    )
    assert decide(known, FAILS, 0.85).dimensions == ("actuator", "object", "sensor")


def test_where_nothing_stands_out_all_dimensions_are_randomised() -> None:
    known = diagnosis({"actuator": 0.08, "latency": 0.05})
    assert decide(known, FAILS, 0.85, expressed=("actuator", "latency")).dimensions == ("actuator", "latency")
