import json
import shutil
from pathlib import Path

import pytest

from gapless.core.errors import InputError
from gapless.core.interval import wilson
from gapless.core.results import DiagnoseResult
from gapless.diagnose import verb
from gapless.diagnose.counterfactual.compare import Counterfactuals
from gapless.diagnose.verb import diagnose
from gapless.identify.verb import identify
from unit.identify.realities import ANGLE, NOISE, WHATEVER, write_reality

SERVO = '<position name="motor" joint="hinge" kp="40" kv="2" ctrlrange="-2 2"/>'
# What an accelerometer feels of a thing in the air is its thrust over its mass; no joint is measured.
HOVER = """<mujoco><option timestep="0.005" integrator="implicitfast"/><worldbody><body name="quad"><freejoint/>
<geom name="quad" size=".05" mass=".5"/><site name="centre"/></body></worldbody>
<actuator><motor name="motor" site="centre" gear="0 0 1 0 0 0" ctrlrange="-20 20"/></actuator>
<sensor><accelerometer name="felt" site="centre"/></sensor></mujoco>"""
FELT = {"a": "{sensor: felt, axis: 2, noise: 0.05}"}

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


def test_a_sensor_may_be_off_where_no_joint_is_measured(tmp_path: Path) -> None:
    truth = {"measurement/a/bias": 0.6}
    write_reality(tmp_path, truth, xml=HOVER, measurements=FELT, noise=(0.05,), parameters=None)
    (sensor, *others) = diagnose(tmp_path).causes
    assert sensor.dimension == "sensor"
    assert sensor.probability > 0.9
    assert sensor.mechanisms[0].target == "measurement/a/bias"
    assert sensor.mechanisms[0].low < 0.6 < sensor.mechanisms[0].high
    assert all(cause.probability < 0.5 for cause in others)


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
    monkeypatch.setattr("gapless.diagnose.verb.explain_project", lambda *_: pytest.fail("searched again"))
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


@pytest.mark.parametrize("dimension", sorted(PLANTED))
def test_the_value_is_named_with_the_interval_that_identify_gives(dimension: str, tmp_path: Path) -> None:
    folder = write_reality(tmp_path, PLANTED[dimension])
    ((target, truth),) = PLANTED[dimension].items()
    named = diagnose(folder).causes[0].mechanisms[0]
    fitted = next(p for p in identify(folder).parameters if p.target == target)
    assert named.target == target
    assert abs(named.value - truth) < named.high - named.low  # twice its half width: one in 20 is beyond one
    assert (named.value, named.low, named.high, named.unit) == (fitted.value, fitted.low, fitted.high, fitted.unit)


@pytest.mark.parametrize("truth", [{}, *PLANTED.values(), {**PLANTED["latency"], **PLANTED["sensor"]}])
def test_the_two_verbs_do_not_contradict_each_other(truth: dict[str, float], tmp_path: Path) -> None:
    folder = write_reality(tmp_path, truth)
    causes = {cause.dimension: cause.probability for cause in diagnose(folder).causes}
    moved = {p.dimension for p in identify(folder).parameters if p.identifiable and not p.low <= p.nominal <= p.high}
    assert {d for d, chance in causes.items() if chance > 0.5 and d != "numerics"} == moved


def test_logs_are_searched_once_for_both_verbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_reality(tmp_path, PLANTED["actuator"], num_logs=2)
    identify(folder)
    monkeypatch.setattr("gapless.fit.mechanisms.explain.MechanismSearch", lambda *_: pytest.fail("searched again"))
    assert diagnose(folder).causes[0].dimension == "actuator"


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
