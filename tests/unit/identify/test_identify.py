import json
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.core.results import FitErrors, FittedParameter, IdentifyResult, from_json, to_json
from gapless.diagnose.verb import diagnose
from gapless.fit.data import read_project_data
from gapless.fit.scatter.estimate import ScatterEstimate
from gapless.identify.verb import identify
from gapless.identify.verdict import FitFindings, judge_fit
from unit.identify.realities import (
    ANGLE,
    CART,
    NOISE,
    PENDULUM,
    PLACE_AND_SPEED,
    WHATEVER,
    rewrite,
    write_csv,
    write_reality,
)

TRUTH = {
    "joint/hinge/damping": 0.12,
    "actuator/motor/gain": 0.8,
    "actuator/*/delay": 0.03,
    "measurement/q/bias": 0.05,
}
GAIN_AND_MASS = ("{target: actuator/motor/gain, low: 0.3, high: 2}", "{target: body/cart/mass, low: 0.3, high: 3}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_reality(tmp_path_factory.mktemp("noisy"), TRUTH, num_logs=5)


@pytest.fixture(scope="module")
def result(folder: Path) -> IdentifyResult:
    return identify(folder)


def value(result: IdentifyResult, target: str) -> FittedParameter:
    return next(p for p in result.parameters if p.target == target)


@pytest.mark.parametrize("target", sorted(TRUTH))
def test_the_fit_is_near_the_truth_and_its_interval_about_there(result: IdentifyResult, target: str) -> None:
    found = value(result, target)
    assert found.identifiable
    assert not found.at_bound
    assert found.low <= found.value <= found.high
    # One draw of a 95 % interval may miss; four standard deviations should not.
    assert abs(found.value - TRUTH[target]) <= found.high - found.low
    assert found.value == pytest.approx(TRUTH[target], rel=0.03)


def test_positions_alone_suffice_for_the_delay(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, TRUTH, measurements=ANGLE, noise=NOISE[:1])
    found = value(identify(folder), "actuator/*/delay")
    assert found.value == pytest.approx(TRUTH["actuator/*/delay"], rel=0.05)
    assert found.high - found.low < 0.1 * found.value


def test_the_fit_predicts_held_out_logs_better(result: IdentifyResult) -> None:
    assert result.held_out.after is not None
    assert result.held_out.before is not None
    assert result.held_out.after < 0.3 * result.held_out.before
    assert result.held_out.columns["q"]["after"] < result.held_out.columns["q"]["before"]


def test_the_corrected_model_compiles_with_the_fit_in_it(result: IdentifyResult) -> None:
    assert result.model is not None
    model = mujoco.MjModel.from_xml_path(result.model)
    assert model.joint("hinge").damping[0] == pytest.approx(value(result, "joint/hinge/damping").value, rel=1e-4)
    gain = model.actuator("motor").gainprm[0]
    assert gain == pytest.approx(value(result, "actuator/motor/gain").value, rel=1e-4)


def test_the_result_survives_json(result: IdentifyResult) -> None:
    text = json.dumps(to_json(result))
    assert json.dumps(to_json(from_json(json.loads(text)))) == text


def test_the_same_seed_gives_the_same_fit(folder: Path, result: IdentifyResult) -> None:
    assert identify(folder).parameters == result.parameters


def test_a_fit_can_be_watched_from_the_model_as_written_to_the_result(folder: Path, result: IdentifyResult) -> None:
    seen: list[tuple[tuple[str, ...], list[float]]] = []
    identify(folder, watch=lambda space, row: seen.append((space.targets, row.tolist())))
    whole = read_project_data(folder).whole
    assert {targets for targets, _ in seen} == {whole.targets}
    assert seen[0][1] == pytest.approx(whole.nominal.tolist())
    last = dict(zip(whole.targets, seen[-1][1], strict=True))
    assert {p.target: p.value for p in result.parameters} == pytest.approx(
        {p.target: last[p.target] for p in result.parameters}
    )
    assert len({tuple(row) for _, row in seen}) > 5  # every step, not only the ends


def test_by_default_every_fourth_log_is_held_out(folder: Path, result: IdentifyResult) -> None:
    # from the last backwards, never the first: of 5 logs the last one
    assert result.held_out.episodes == ("run4",)
    assert result.train.episodes == ("run0", "run1", "run2", "run3")
    evidence = read_project_data(folder)
    assert evidence.split(("run1", "run3.csv")) == ([0, 2, 4], [1, 3])


def test_wrong_hold_outs_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="no such log; choose from: run0"):
        identify(folder, ("walk0",))
    with pytest.raises(InputError, match="leave at least one"):
        identify(folder, tuple(f"run{k}" for k in range(5)))


def test_a_single_log_cannot_be_good(tmp_path: Path) -> None:
    result = identify(write_reality(tmp_path, TRUTH, num_logs=1))
    assert result.verdict == "poor"
    assert result.held_out.after is None
    assert any("nothing was held out" in reason for reason in result.reasons)


def test_logs_that_are_too_short_are_refused(tmp_path: Path) -> None:
    result = identify(write_reality(tmp_path, {}, num_logs=2, duration_s=1.0))
    assert result.verdict == "refused"
    # 1 s is 49 intervals of 20 ms, hence 3 whole windows of 15
    assert result.reasons == (
        "only 3 of at least 8 windows of 0.3 s to fit: record more than 2.4 s in which every mapped column is present",
    )
    assert result.model is None
    assert not any(p.identifiable for p in result.parameters)


def test_logs_in_which_nothing_moves_are_refused(tmp_path: Path) -> None:
    write_reality(tmp_path, {}, num_logs=2)
    time_s = np.arange(200) / 50.0
    for k in range(2):
        noise = 0.001 * np.random.default_rng(k).standard_normal(200)
        columns = {"time_s": time_s, "u": np.sin(time_s), "q": 0.4 + noise, "v": 10 * noise}
        write_csv(tmp_path / "logs" / f"run{k}.csv", columns)
    result = identify(tmp_path)
    assert result.verdict == "refused"
    assert "q does not respond to u" in result.reasons[0] or "nothing moves" in result.reasons[0]


def test_constant_signals_are_refused(tmp_path: Path) -> None:
    write_reality(tmp_path, {}, num_logs=2)
    time_s, one = np.arange(200) / 50.0, np.ones(200)
    for k in range(2):
        write_csv(tmp_path / "logs" / f"run{k}.csv", {"time_s": time_s, "u": 0 * one, "q": one, "v": 0 * one})
    assert identify(tmp_path).verdict == "refused"


def test_a_project_without_parameters_is_refused(tmp_path: Path) -> None:
    write_reality(tmp_path, {}, num_logs=2)
    text = (tmp_path / "gapless.yaml").read_text().split("parameters:")[0]
    (tmp_path / "gapless.yaml").write_text(text + "parameters: []\n")
    result = identify(tmp_path)
    assert result.verdict == "refused"
    assert "no parameter to fit" in result.reasons[0]


@pytest.mark.parametrize("noise", [(0.0, 0.0), (1e-4, 1e-3)], ids=["exact", "noisy"])
def test_of_a_product_neither_factor_is_claimed(tmp_path: Path, noise: tuple[float, float]) -> None:
    options = {"xml": CART, "measurements": PLACE_AND_SPEED, "parameters": GAIN_AND_MASS, "noise": noise}
    result = identify(write_reality(tmp_path, {"actuator/motor/gain": 0.7}, **options))
    assert [p.identifiable for p in result.parameters] == [False, False]
    assert len(result.combinations) == 1
    assert "body/cart/mass" in result.combinations[0]
    assert "actuator/motor/gain" in result.combinations[0]
    assert result.verdict == "refused"
    assert "combinations only" in result.reasons[0]
    # x'' = gain u / mass: their ratio is what the logs say
    gain, mass = result.parameters[0].value, result.parameters[1].value
    assert gain / mass == pytest.approx(0.7, rel=0.03)


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> IdentifyResult:
    entries = ("{target: actuator/motor/gain, low: 0.3, high: 1.4}", WHATEVER[0])
    return identify(write_reality(tmp_path_factory.mktemp("bound"), {"actuator/motor/gain": 1.9}, parameters=entries))


def test_a_fit_at_a_bound_is_flagged(bounded: IdentifyResult) -> None:
    assert value(bounded, "actuator/motor/gain").at_bound
    assert value(bounded, "actuator/motor/gain").value == pytest.approx(1.4)
    assert bounded.verdict != "good"


def test_a_fit_at_a_bound_says_so(bounded: IdentifyResult) -> None:
    assert any("at a bound: actuator/motor/gain" in reason for reason in bounded.reasons)


def test_zero_friction_is_a_value_not_a_bound(tmp_path: Path) -> None:
    entries = ("{target: joint/hinge/frictionloss, low: 0, high: 0.5}", WHATEVER[1])
    folder = write_reality(tmp_path, {"actuator/motor/gain": 0.8}, parameters=entries)
    found = value(identify(folder), "joint/hinge/frictionloss")
    assert found.value < 0.01
    assert not found.at_bound


def test_shuffled_commands_are_not_good(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {"actuator/motor/gain": 0.8})
    rewrite(folder, shuffle="u")
    assert identify(folder).verdict != "good"


def test_permuted_columns_are_not_good(tmp_path: Path) -> None:
    options = {"xml": CART, "measurements": PLACE_AND_SPEED, "parameters": GAIN_AND_MASS[:1], "noise": (1e-4, 1e-3)}
    folder = write_reality(tmp_path, {"actuator/motor/gain": 0.7}, **options)
    assert identify(folder).verdict == "good"
    rewrite(folder, {"x": "v", "v": "x"})
    assert identify(folder).verdict != "good"


def fitted(identifiable: bool = True, at_bound: bool = False) -> FittedParameter:
    return FittedParameter("joint/j/damping", "actuator", "1", 1, 2, 1.5, 2.5, 0.95, identifiable, at_bound, 0, 3)


def errors(before: float, after: float, ratio: float) -> FitErrors:
    return FitErrors(("run0",), {}, before, after, ratio)


def test_a_fit_to_data_with_faults_is_not_good() -> None:
    good = FitFindings(None, [fitted()], (), errors(10, 1, 1.0), errors(10, 1, 1.0), assumptions=["assumed"])
    word, reasons = judge_fit(good)
    assert (word, reasons[-1]) == ("good", "assumed")
    word, reasons = judge_fit(replace(good, faults=["swapped"]))
    assert (word, reasons[0]) == ("poor", "swapped")
    assert judge_fit(replace(good, refusal="still", faults=["swapped"])) == ("refused", ("swapped", "still", "assumed"))


def test_scatter_alone_can_be_good_and_never_turns_a_refused_fit_into_one() -> None:
    nothing = FitErrors((), {}, None, None, None)
    known, strange = (ScatterEstimate(fitted(), explains_logs=explains) for explains in (True, False))
    alone = FitFindings("no parameter to fit", (), (), nothing, nothing, [known])
    assert judge_fit(alone)[0] == "good"
    assert judge_fit(replace(alone, scatter=[strange]))[0] == "poor"
    assert judge_fit(replace(alone, scatter=[known], faults=["swapped"]))[0] == "poor"
    unknown = FitFindings(None, [fitted(identifiable=False)], (), nothing, nothing, [known])
    assert judge_fit(unknown)[0] == "refused"


@pytest.mark.parametrize(
    ("parameter", "held_out", "word", "reason"),
    [
        (fitted(), errors(10, 1, 1.0), "good", "0.10 of the model's"),
        (fitted(), errors(1, 2, 1.0), "poor", "worse than the model as written"),
        (fitted(), errors(10, 5, 3.5), "poor", "3.5 times what noise explains"),
        (fitted(at_bound=True), errors(10, 1, 1.0), "poor", "at a bound: joint/j/damping"),
        (fitted(identifiable=False), errors(10, 1, 1.0), "refused", "record a motion that moves more"),
        (fitted(identifiable=False, at_bound=True), errors(10, 1, 1.0), "refused", "at a bound"),
    ],
)
def test_the_verdict_follows_from_errors_and_bounds(
    parameter: FittedParameter, held_out: FitErrors, word: str, reason: str
) -> None:
    found, reasons = judge_fit(FitFindings(None, [parameter], (), errors(10, 1, 1.0), held_out))
    assert found == word
    assert any(reason in text for text in reasons)


def test_the_same_fit_is_taken_from_the_catalogue(
    folder: Path, result: IdentifyResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gapless.identify.verb.search_structure", lambda *_: pytest.fail("fitted again"))
    again = identify(folder)
    assert again.id == result.id
    assert again.parameters == result.parameters
    assert Path(again.model or "").read_bytes() == Path(result.model or "").read_bytes()


def test_a_fit_whose_model_was_deleted_is_made_again(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, TRUTH, measurements=ANGLE, noise=NOISE[:1])
    first = identify(folder)
    Path(first.model or "").unlink()
    assert Path(identify(folder).model or "").is_file()


def test_a_coarse_time_step_is_corrected_not_made_up_for(tmp_path: Path) -> None:
    fine = PENDULUM.replace('timestep="0.005"', 'timestep="0.0005"')
    write_reality(tmp_path, {}, parameters=(), xml=fine, num_logs=4)
    coarse = PENDULUM.replace('timestep="0.005" integrator="implicitfast"', 'timestep="0.01" integrator="Euler"')
    (tmp_path / "robot.xml").write_text(coarse)
    project = tmp_path / "gapless.yaml"
    project.write_text(project.read_text().split("parameters:")[0] + "parameters: auto\n")
    result = identify(tmp_path)
    assert result.model is not None
    assert mujoco.MjModel.from_xml_path(result.model).opt.timestep == pytest.approx(0.01 / 8)
    assert any("time step is a cause" in reason for reason in result.reasons)
    damping = next(p for p in result.parameters if p.target == "joint/hinge/damping")
    assert damping.low <= 0.05 <= damping.high  # by the coarse step alone the hinge seems to rub more or less
    assert result.train.residual_to_noise == pytest.approx(1.0, abs=0.1)


def test_a_coarse_encoder_is_reported_by_both_verbs(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {"joint/hinge/damping": 0.12}, parameters=WHATEVER[:1], num_logs=4)
    for path in sorted((folder / "logs").glob("*.csv")):
        names = path.read_text().splitlines()[0].split(",")
        columns = dict(zip(names, np.loadtxt(path, delimiter=",", skiprows=1).T, strict=True))
        write_csv(path, columns | {"q": 0.02 * np.round(columns["q"] / 0.02)})
    step = value(identify(folder), "measurement/q/quantisation/step")
    assert step.identifiable
    assert step.nominal < step.low <= step.value == pytest.approx(0.02)
    sensor = next(cause for cause in diagnose(folder).causes if cause.dimension == "sensor")
    assert sensor.probability > 0.5
    assert sensor.mechanisms[0].target == step.target
