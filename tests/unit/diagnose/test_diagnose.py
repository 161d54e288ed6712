from pathlib import Path

import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.core.results import DiagnoseResult
from gapless.diagnose.subsets import Losses
from gapless.diagnose.verb import diagnose, weigh
from unit.identify.realities import ANGLE, NOISE, write_reality

PLANTED = {
    "latency": {"actuator/*/delay": 0.04},
    "actuator": {"actuator/motor/gain": 0.7},
    "sensor": {"measurement/q/bias": 0.08},
}


def check_form(result: DiagnoseResult) -> None:
    probabilities = [cause.probability for cause in result.causes]
    assert probabilities == sorted(probabilities, reverse=True)
    everything = [*probabilities, result.no_gap.probability, result.unmodelled.probability]
    assert all(0.0 <= value <= 1.0 for value in everything)
    assert all(0.0 <= cause.low <= cause.share <= cause.high <= 1.0 for cause in result.causes)
    assert result.advice


@pytest.mark.parametrize("dimension", sorted(PLANTED))
def test_a_planted_cause_comes_first(dimension: str, tmp_path: Path) -> None:
    result = diagnose(write_reality(tmp_path, PLANTED[dimension]))
    check_form(result)
    assert result.causes[0].dimension == dimension
    assert result.causes[0].probability > 0.9
    assert all(cause.probability < 0.5 for cause in result.causes[1:])
    assert result.no_gap.probability < 0.1
    assert result.unmodelled.probability < 0.5
    assert result.advice[0].verb == "identify"


def test_a_perfect_model_has_no_gap(tmp_path: Path) -> None:
    result = diagnose(write_reality(tmp_path, {}))
    check_form(result)
    assert result.no_gap.probability > 0.5
    assert all(cause.probability < 0.5 for cause in result.causes)
    assert result.advice[0].verb == "evaluate"


def test_a_perfect_model_has_no_gap_in_positions_alone(tmp_path: Path) -> None:
    assert diagnose(write_reality(tmp_path, {}, measurements=ANGLE, noise=NOISE[:1])).no_gap.probability > 0.5


def test_the_same_seed_gives_the_same_answer(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, PLANTED["actuator"], num_logs=2)
    assert diagnose(folder, seed=3) == diagnose(folder, seed=3)


def test_logs_that_are_too_short_decide_nothing(tmp_path: Path) -> None:
    result = diagnose(write_reality(tmp_path, PLANTED["actuator"], num_logs=2, duration_s=1.0))
    check_form(result)
    assert {cause.probability for cause in result.causes} == {0.5}
    assert set(result.ambiguous[0]) == {"actuator", "latency", "sensor"}
    assert "of at least 8 windows" in result.evidence[0]


def test_a_project_without_parameters_is_refused(tmp_path: Path) -> None:
    write_reality(tmp_path, {}, num_logs=2)
    text = (tmp_path / "gapless.yaml").read_text().split("parameters:")[0]
    (tmp_path / "gapless.yaml").write_text(text + "parameters: []\n")
    with pytest.raises(InputError, match="no parameter to judge by"):
        diagnose(tmp_path)


def losses(alone: dict[str, float], without: dict[str, float], full: float) -> Losses:
    one = np.ones(20)
    return Losses(
        none=10 * one,
        alone={d: value * one for d, value in alone.items()},  # type: ignore[misc]
        without={d: value * one for d, value in without.items()},  # type: ignore[misc]
        full=full * one,
        noise_before=5.0,
        noise_after=1.0,
    )


def test_shares_have_their_closed_form() -> None:
    # Gap 10 - 2 = 8. Actuator: alone (10 - 4)/8 = 0.75, needed (9 - 2)/8 = 0.875, share their mean 0.8125.
    found, groups = weigh(
        losses({"actuator": 4.0, "latency": 10.0}, {"actuator": 9.0, "latency": 2.0}, 2.0), np.random.default_rng(0)
    )
    assert [(c.dimension, c.probability) for c in found] == [("actuator", 1.0), ("latency", 0.0)]
    assert found[0].share == pytest.approx(0.8125)
    assert groups == ()


def test_what_either_explains_alone_is_ambiguous() -> None:
    found, groups = weigh(
        losses({"actuator": 2.0, "latency": 2.0}, {"actuator": 2.0, "latency": 2.0}, 2.0), np.random.default_rng(0)
    )
    assert groups == (("actuator", "latency"),)
    assert [c.probability for c in found] == [0.4, 0.4]
