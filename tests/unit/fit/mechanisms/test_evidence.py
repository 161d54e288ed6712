from dataclasses import replace

import numpy as np
import pytest

from gapless.fit.mechanisms.evidence import WEIGHING, estimate_probabilities, measure_lasting_errors
from gapless.fit.mechanisms.search import measure_prior_cost
from unit.fit.mechanisms.explanations import MECHANISMS, explanation, explanations


def test_the_set_that_predicts_best_is_believed() -> None:
    found = estimate_probabilities(explanations(300.0, 100.0, 305.0), MECHANISMS)
    assert found.causes["actuator"] > 0.9
    assert found.causes["latency"] < 0.2
    assert found.no_gap < 0.1


def test_a_second_cause_must_pay_its_price() -> None:
    for more, believed in ((0.4 * WEIGHING.price, False), (2.5 * WEIGHING.price, True)):
        found = estimate_probabilities(explanations(300.0, 100.0, 300.0 + more, left=7.5), MECHANISMS)
        assert (found.causes["latency"] > 0.5) == believed


def test_an_error_that_is_left_makes_all_less_sure() -> None:
    """Scores are the same; what even the best explanation leaves is not."""
    chances = [
        estimate_probabilities(explanations(60.0, 0.0, 60.0, left), MECHANISMS).causes["actuator"]
        for left in (0.5, 3.0)
    ]
    assert 0.5 < chances[1] < chances[0]


def test_nothing_to_explain_is_no_gap_and_errors_that_last_are_none() -> None:
    calm = estimate_probabilities(explanations(1.0, 2.0, 3.0), MECHANISMS)
    assert calm.no_gap > 0.8
    assert calm.unmodelled < 0.1
    strange = estimate_probabilities(explanations(1.0, 2.0, 3.0, left=1.0), MECHANISMS)
    assert strange.no_gap < 0.1
    assert strange.unmodelled > 0.9


def test_errors_that_do_not_last_are_noise() -> None:
    calm, strange = (explanation((), 0.0, left=1.0, lasts=lasts) for lasts in (False, True))
    assert measure_lasting_errors(calm) < 0.1 * measure_lasting_errors(strange)


def test_mechanisms_have_the_chance_of_the_explanations_that_hold_them() -> None:
    found = estimate_probabilities(explanations(300.0, 100.0, 305.0), MECHANISMS)
    assert {mechanism.dimension for mechanism in found.mechanisms} == {"actuator", "latency"}
    for mechanism, chance in found.mechanisms.items():
        assert abs(chance - found.causes[mechanism.dimension]) < 0.01


def test_a_needless_number_is_no_likelier_for_what_is_left_unexplained() -> None:
    # the same score with latency beside the actuator; errors of e^3 times the noise make the choice doubtful, not that
    found = estimate_probabilities(explanations(300.0, 0.0, 300.0, left=3.0), MECHANISMS)
    assert found.causes["actuator"] > 0.9
    assert found.causes["latency"] < 0.02


def test_of_two_that_show_alike_the_one_is_likelier_that_moved_less() -> None:
    written, actuator, latency, _ = explanations(900.0, 900.0, 900.0)
    told = (written, replace(actuator, prior_cost=0.2), replace(latency, prior_cost=2.2))
    found = estimate_probabilities(told, MECHANISMS)  # exp(2.2 - 0.2) = 7.4
    assert found.causes["actuator"] > 4 * found.causes["latency"]


def test_what_is_far_off_is_not_impossible() -> None:
    # log(1 + 10^2 / 2) = 3.93 for one number of ten typical errors; a normal distribution would take 50
    (mechanism,) = MECHANISMS[:1]
    sizes = np.zeros(4)
    sizes[list(mechanism.entries)] = 10.0
    assert measure_prior_cost([mechanism], sizes) == pytest.approx(3.93 * mechanism.price, rel=1e-2)
