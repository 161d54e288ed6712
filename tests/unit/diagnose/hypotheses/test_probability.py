import numpy as np
import pytest

from gapless.core.dimensions import Dimension
from gapless.diagnose.hypotheses.mechanisms import Mechanism
from gapless.diagnose.hypotheses.probability import (
    RehearsedCase,
    SignalCalibration,
    calibrate_probabilities,
    estimate_probabilities,
    estimate_shares,
    measure_lasting_errors,
)
from gapless.diagnose.hypotheses.search import SetFit

DIMENSIONS: tuple[Dimension, ...] = ("actuator", "latency", "sensor")


def trial(dimensions: tuple[Dimension, ...], score: float, left: float = 0.0, lasts: bool = True) -> SetFit:
    """A set of one mechanism per dimension with a total score; `left`: mean logarithm of what remains above noise."""
    mean_squares = np.full((10, 2), 2.0 * np.exp(left))
    rng = np.random.default_rng(0)
    residual = np.ones((10, 30, 2)) if lasts else rng.standard_normal((10, 30, 2))
    mechanisms = tuple(Mechanism(d, (f"target/of/{d}",), (DIMENSIONS.index(d),)) for d in dimensions)
    return SetFit(mechanisms, np.full(10, score / 10), (np.zeros(4), np.zeros(4)), mean_squares, residual)


def fits(actuator: float, latency: float, both: float, left: float = 0.0) -> list[SetFit]:
    return [
        trial((), 0.0, left),
        trial(("actuator",), actuator, left),
        trial(("latency",), latency, left),
        trial(("actuator", "latency"), both, left),
    ]


def test_the_set_that_predicts_best_is_believed() -> None:
    found = estimate_probabilities(fits(300.0, 100.0, 305.0), DIMENSIONS, SignalCalibration())
    assert found.causes["actuator"] > 0.9
    assert found.causes["latency"] < 0.1
    assert found.no_gap < 0.1


def test_a_second_cause_must_pay_its_price() -> None:
    calibration = SignalCalibration(temperature=1.0, price=30.0)
    assert estimate_probabilities(fits(300.0, 100.0, 320.0), DIMENSIONS, calibration).causes["latency"] < 0.1
    assert estimate_probabilities(fits(300.0, 100.0, 340.0), DIMENSIONS, calibration).causes["latency"] > 0.9


def test_nothing_to_explain_is_no_gap_and_errors_that_last_are_none() -> None:
    calm = estimate_probabilities(fits(1.0, 2.0, 3.0), DIMENSIONS, SignalCalibration())
    assert calm.no_gap > 0.9
    assert calm.unmodelled < 0.1
    strange = estimate_probabilities(fits(1.0, 2.0, 3.0, left=1.0), DIMENSIONS, SignalCalibration())
    assert strange.no_gap < 0.1
    assert strange.unmodelled > 0.9


def test_errors_that_do_not_last_are_noise() -> None:
    assert measure_lasting_errors(trial((), 0.0, left=1.0, lasts=False)) < 0.1 * measure_lasting_errors(
        trial((), 0.0, left=1.0)
    )


def test_rehearsed_cases_that_were_lost_make_it_less_sure() -> None:
    won = [RehearsedCase(fits(300.0, 280.0, 301.0), ("actuator",))] * 12
    lost = [RehearsedCase(fits(300.0, 280.0, 301.0), ("latency",))] * 12
    sure, unsure = (calibrate_probabilities(cases, DIMENSIONS, SignalCalibration()) for cases in (won, won + lost))
    assert unsure.temperature > 1.5 * sure.temperature
    chances = [
        estimate_probabilities(fits(300.0, 280.0, 301.0), DIMENSIONS, one).causes["latency"] for one in (sure, unsure)
    ]
    assert chances[0] < 0.1 < chances[1]


def test_rehearsed_fits_that_end_aside_raise_what_counts_as_strange() -> None:
    cases = [RehearsedCase(fits(300.0, 100.0, 305.0, left=0.8), ("actuator",))] * 6
    found = calibrate_probabilities(cases, DIMENSIONS, SignalCalibration())
    assert found.unmodelled_from > 0.8
    assert found.num_cases == 6


def test_shares_of_causes_that_add_up() -> None:
    found = estimate_shares(fits(200.0, 100.0, 300.0), DIMENSIONS, np.random.default_rng(0))
    assert found["actuator"].value == pytest.approx(2 / 3)
    assert found["latency"].value == pytest.approx(1 / 3)
    assert found["sensor"].value == pytest.approx(0.0)
    assert all(share.low <= share.value <= share.high for share in found.values())


def test_causes_that_stand_in_for_each_other_share_alike() -> None:
    found = estimate_shares(fits(200.0, 200.0, 200.0), DIMENSIONS, np.random.default_rng(0))
    assert found["actuator"].value == pytest.approx(0.5)
    assert found["latency"].value == pytest.approx(0.5)
