import json
import shutil
from pathlib import Path

import pytest

from gapless.core.errors import InputError
from gapless.core.interval import wilson
from gapless.core.results import DiagnoseResult
from gapless.data.catalogue import Catalogue
from gapless.diagnose import verb
from gapless.diagnose.counterfactual.compare import Counterfactuals
from gapless.diagnose.hypotheses import rehearsal
from gapless.diagnose.hypotheses.probability import SignalCalibration
from gapless.diagnose.verb import diagnose
from unit.fit_file import fitted, write_fit
from unit.identify.realities import ANGLE, NOISE, PENDULUM, WHATEVER, write_reality

SERVO = '<position name="motor" joint="hinge" kp="40" kv="2" ctrlrange="-2 2"/>'

PLANTED = {
    "latency": {"actuator/*/delay": 0.04},
    "actuator": {"actuator/motor/gain": 0.7},
    "sensor": {"measurement/q/bias": 0.08},
}


@pytest.fixture(autouse=True)
def _rehearsed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "rehearse", lambda *_: SignalCalibration())


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
    first = diagnose(folder, seed=3)
    shutil.rmtree(folder / ".gapless")
    assert diagnose(folder, seed=3) == first


def test_the_same_diagnosis_is_taken_from_the_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_reality(tmp_path, PLANTED["actuator"], num_logs=2)
    first = diagnose(folder)
    monkeypatch.setattr("gapless.diagnose.verb.weigh_signals", lambda *_: pytest.fail("fitted again"))
    assert diagnose(folder) == first


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


def test_two_planted_causes_are_both_found(tmp_path: Path) -> None:
    both = {**PLANTED["latency"], **PLANTED["sensor"]}
    result = diagnose(write_reality(tmp_path, both))
    check_form(result)
    assert {cause.dimension for cause in result.causes[:2]} == {"latency", "sensor"}
    assert all(cause.probability > 0.5 for cause in result.causes[:2])
    assert all(cause.probability < 0.5 for cause in result.causes[2:])
    assert {moment.dimension for moment in result.moments} == {"latency", "sensor"}
    assert all(moment.with_it < moment.without for moment in result.moments)


@pytest.mark.slow
def test_a_fit_shows_causes_that_are_too_far_off_to_be_reached(tmp_path: Path) -> None:
    """A servo twenty times softer than the model's, with a shifted reading: steps from the model lead elsewhere."""
    servo = PENDULUM.replace('<motor name="motor" joint="hinge" ctrlrange="-2 2"/>', SERVO)
    truth = {"actuator/motor/kp": 2.0, "actuator/motor/kd": 0.1, "measurement/q/bias": 0.04}
    folder = write_reality(tmp_path, truth, xml=servo, parameters=None, size=0.4)
    fit = write_fit(tmp_path / "fit.json", *(fitted(target, value) for target, value in truth.items()))
    without, with_fit = diagnose(folder), diagnose(folder, fit=fit)
    check_form(with_fit)
    assert {cause.dimension for cause in with_fit.causes if cause.probability > 0.5} == {"actuator", "sensor"}
    assert with_fit.unexplained < 0.5 * without.unexplained


def test_a_fit_that_is_none_gets_one_line(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {}, num_logs=2)
    (tmp_path / "fit.json").write_text(json.dumps({"format": 1, "verb": "diagnose"}))
    with pytest.raises(InputError, match="identify"):
        diagnose(folder, fit=tmp_path / "fit.json")


def test_outcomes_alone_point_at_a_condition(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {}, num_logs=24, duration_s=0.1)
    for k, log in enumerate(sorted((folder / "logs").glob("*.csv"))):
        dim = k % 2 == 0
        outcome = {"outcome": "failure", "failed_in": "approach"} if dim else {"outcome": "success"}
        log.with_suffix(".json").write_text(
            json.dumps({**outcome, "conditions": {"light": "dim" if dim else "bright"}})
        )
    result = diagnose(folder)
    assert result.causes[0].dimension == "visual"
    assert result.causes[0].probability > 0.5
    assert result.no_gap.probability < 0.5
    assert {(rate.value, rate.runs, rate.failures) for rate in result.conditions} == {
        ("dim", 12, 12),
        ("bright", 12, 0),
    }


def test_a_policy_needs_a_task(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--policy needs a task"):
        diagnose(write_reality(tmp_path, {}, num_logs=2), policy=tmp_path / "policy.npz")


def test_the_first_diagnosis_of_a_model_is_rehearsed_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(rehearsal, "rehearse", lambda *_: calls.append(1) or SignalCalibration(num_cases=1))
    folder = write_reality(tmp_path / "one", PLANTED["actuator"], num_logs=2)
    assert diagnose(folder) == diagnose(folder)
    assert len(calls) == 1
    kept = list((folder / ".gapless" / "calibration").glob("*.json"))
    assert [json.loads(path.read_text())["num_cases"] for path in kept] == [1]
    other = tmp_path / "other"
    shutil.copytree(folder, other, ignore=shutil.ignore_patterns(".gapless"))
    assert diagnose(other).causes == diagnose(folder).causes
    assert len(calls) == 1


def test_an_edited_file_that_the_model_includes_is_rehearsed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(rehearsal, "rehearse", lambda *_: calls.append(1) or SignalCalibration(num_cases=len(calls)))
    folder = write_reality(tmp_path / "one", PLANTED["actuator"], num_logs=2)
    model = next(folder.glob("*.xml"))
    inside = model.read_text().replace("<mujoco>", "<mujocoinclude>").replace("</mujoco>", "</mujocoinclude>")
    (folder / "body.xml").write_text(inside)
    model.write_text('<mujoco><include file="body.xml"/></mujoco>')
    diagnose(folder)
    diagnose(folder)
    assert len(calls) == 1
    (folder / "body.xml").write_text(inside.replace('damping="0.05"', 'damping="0.06"'))
    diagnose(folder)
    assert len(calls) == 2


def test_a_diagnosis_names_the_calibration_that_it_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = write_reality(tmp_path / "one", PLANTED["actuator"], num_logs=2)
    used: list[object] = []
    for temperature in (2.0, 2.0, 4.0):
        monkeypatch.setattr(rehearsal, "rehearse", lambda *_, t=temperature: SignalCalibration(temperature=t))
        shutil.rmtree(folder / ".gapless", ignore_errors=True)
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        identity = diagnose(folder).id
        assert identity is not None
        used.append(Catalogue.open(folder).artefact(identity).provenance.config["calibration"])
    assert used[0] == used[1]
    assert used[0] != used[2]


@pytest.mark.parametrize(("fails", "shifts"), [(0.02, True), (0.97, False)])
def test_a_policy_speaks_only_if_it_works_in_the_model_as_written(
    fails: float, shifts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = round(100 * fails)
    found = Counterfactuals(wilson(failed, 100), {"sensor": 6.0}, ("as the real one does",))
    monkeypatch.setattr(verb, "_load_player", lambda *_: (None, None))
    monkeypatch.setattr(verb, "make_policy_simulator", lambda *_: None)
    monkeypatch.setattr(verb, "compare_failures", lambda *_, **__: found)
    monkeypatch.setattr(verb, "rank_repairs", lambda *_: ())
    outcomes = ["success"] * verb.MIN_REAL_RUNS
    folder = write_reality(tmp_path, PLANTED["actuator"], num_logs=len(outcomes), outcomes=outcomes)
    before, after = diagnose(folder), diagnose(folder, policy="policy.npz")
    chance = [next(c.probability for c in result.causes if c.dimension == "sensor") for result in (before, after)]
    assert (chance[1] > 2 * chance[0]) == shifts
    assert any("fails in the model as written too" in text for text in after.evidence) == (not shifts)


def say_outcomes(folder: Path, num_runs: int = 24) -> Path:
    """Adds runs without a log that fail in dim light."""
    for k in range(num_runs):
        failed = {"outcome": "failure", "failed_in": "approach"} if k % 2 else {"outcome": "success"}
        conditions = {"light": "dim" if k % 2 else "bright"}
        (folder / "logs" / f"trial{k}.json").write_text(json.dumps({**failed, "conditions": conditions}))
    return folder


def without_logs(folder: Path) -> Path:
    for log in (folder / "logs").glob("*.csv"):
        log.unlink()
        log.with_suffix(".json").unlink(missing_ok=True)
    return folder


@pytest.mark.parametrize("parameters", [WHATEVER, None])
def test_outcomes_without_any_log_are_diagnosed(parameters: tuple[str, ...] | None, tmp_path: Path) -> None:
    folder = say_outcomes(write_reality(tmp_path, {}, num_logs=1, duration_s=0.1, parameters=parameters))
    result = diagnose(without_logs(folder))
    check_form(result)
    assert (result.causes[0].dimension, result.causes[0].probability > 0.5) == ("visual", True)
    assert result.evidence[0] == "signals were not judged: no run has a log"
    assert result.evidence[1].startswith("12 of 24 runs failed")
    assert len(result.inputs) == 24


@pytest.mark.parametrize(("parameters", "num_runs"), [(WHATEVER, 3), (None, 1)])
def test_too_few_outcomes_without_any_log_decide_nothing(
    parameters: tuple[str, ...] | None, num_runs: int, tmp_path: Path
) -> None:
    folder = write_reality(tmp_path, {}, num_logs=1, duration_s=0.1, parameters=parameters)
    say_outcomes(folder, num_runs)
    result = diagnose(without_logs(folder))
    check_form(result)
    assert {cause.probability for cause in result.causes} == {0.5}


def test_outcomes_without_a_log_count_beside_logs(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, PLANTED["actuator"], num_logs=2)
    before, after = diagnose(folder), diagnose(say_outcomes(folder))
    assert "visual" not in {cause.dimension for cause in before.causes}
    assert [cause.dimension for cause in after.causes[:2]] == ["actuator", "visual"]
    assert after.moments == before.moments


def test_a_policy_is_not_tried_on_runs_without_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "_load_player", lambda *_: (None, None))
    folder = without_logs(say_outcomes(write_reality(tmp_path, {}, num_logs=1, duration_s=0.1)))
    with_it, alone = diagnose(folder, policy="policy.npz"), diagnose(folder)
    assert with_it.causes == alone.causes
    assert any(text.startswith("the policy was not tried in simulation") for text in with_it.evidence)
