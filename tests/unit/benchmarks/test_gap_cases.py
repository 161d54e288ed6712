"""Cases of the benchmark of diagnosis are what they say they are."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from gapless.core.parameters import ParameterSpace
from gapless.fit.data import read_project_data
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import cut_windows
from gapless.project.load import load_project
from gapless.sim.auto import parameters_of
from unit.benchmarks.parts import part

EPISODES_S = np.array([4.0])


def named(robot: str) -> Any:
    return part("gap_robots").ROBOTS[robot]


def played(robot: str, **changes: Any) -> Any:
    return part("gap_world").play(named(robot), part("gap_world").Reality(**changes), "test", 7, EPISODES_S)[0]


def test_numbers_of_cases_are_those_promised() -> None:
    cases, kinds = part("gap_cases").cases, part("gap_cases").KINDS
    numbers = {kind: len(cases("test", kind)) for kind in kinds}
    assert numbers == {kind: 105 if kind == "single" else 60 for kind in kinds}
    assert {kind: len(cases("tuning", kind)) for kind in kinds} == {kind: -(-n // 2) for kind, n in numbers.items()}
    per_dimension = Counter(dimension for case in cases("test", "single") for dimension in case.causes)
    assert set(per_dimension.values()) == {15}
    assert len(per_dimension) == 7
    assert set(Counter(case.detail for case in cases("test", "unmodelled")).values()) == {12}
    assert all(len(case.causes) == 2 for case in cases("test", "pair"))
    assert {case.robot for case in cases("test", "pair")} == set(part("gap_robots").ROBOTS)


def test_tuning_and_test_share_no_seed_and_tuning_lacks_two_families() -> None:
    cases, kinds, motions = part("gap_cases").cases, part("gap_cases").KINDS, part("gap_motions")
    seeds = [case.seed for split in ("tuning", "test") for kind in kinds for case in cases(split, kind)]
    assert len(seeds) == len(set(seeds))
    drawn = {motions.families("tuning", np.random.default_rng(k), 5)[j] for k in range(20) for j in range(5)}
    assert drawn == {"multisine", "steps", "smooth"}
    assert set(motions.families("test", np.random.default_rng(0), 5)) == {*drawn, "chirp", "moves"}


@pytest.mark.parametrize("robot", ["arm", "pusher", "cartpole", "torquearm"])
def test_without_a_cause_the_model_predicts_reality(robot: str) -> None:
    model = mujoco.MjModel.from_xml_string(named(robot).text())
    off = part("gap_world").visibility(named(robot), model, [played(robot)])
    assert max(off.values()) < 0.6  # of the noise; contacts that just close may differ in their warm start


def test_a_command_delay_is_the_delay_that_it_says() -> None:
    # Under feed-forward commands, reality with a delay of 40 ms is what reality without was 4 rows before.
    prompt, late = played("arm"), played("arm", command_delay_s=0.04)
    assert late.commands == pytest.approx(prompt.commands)
    assert late.states[204:] == pytest.approx(prompt.states[200:-4], abs=5e-3)
    assert np.abs(late.states[204:] - prompt.states[204:]).max() > 0.02


def test_a_reading_delay_shifts_readings_and_nothing_else() -> None:
    prompt, late = played("arm"), played("arm", reading_delay_s=0.03)
    assert late.states[3:] == pytest.approx(prompt.states[:-3])
    assert late.commands == pytest.approx(prompt.commands)


def test_a_bias_and_a_scale_are_those_of_the_design() -> None:
    plain, wrong = played("arm"), played("arm", bias={"q_elbow": 0.05}, scale={"q_elbow": 1.1})
    assert wrong.states[:, 2] == pytest.approx(1.1 * plain.states[:, 2] + 0.05)
    assert wrong.states[:, :2] == pytest.approx(plain.states[:, :2])


def test_tilt_turns_gravity_as_the_design_has_it() -> None:
    reality, _ = part("gap_causes").tilt(part("gap_world").Reality(), named("arm"), np.random.default_rng(0), None)
    assert np.linalg.norm(reality.gravity) == pytest.approx(9.81)
    assert np.radians(3.0) <= np.arccos(-reality.gravity[2] / 9.81) <= np.radians(6.0)


def test_play_lets_the_joint_leave_its_motor_by_half_the_gap() -> None:
    causes, world = part("gap_causes"), part("gap_world")
    reality = causes.second_joint(world.Reality(), "yaw", gap=0.06, drag=0.0)
    model = reality.model(named("arm"))
    assert model.joint("yaw_second").range == pytest.approx([-0.03, 0.03])
    # Reversing targets move the joint through the play: it strays from the model by about half the gap.
    loose = world.play(named("arm"), reality, "test", 7, EPISODES_S)[0]
    assert 0.015 < np.abs(loose.states[:, 0] - played("arm").states[:, 0]).max() < 0.1


def test_a_case_is_a_sound_project_that_does_not_tell_its_truth(tmp_path: Path) -> None:
    cases = part("gap_cases")
    case = next(c for c in cases.cases("tuning", "pair") if c.robot == "arm" and "numerics" not in c.causes)
    null = next(c for c in cases.cases("tuning", "null") if c.robot == "arm")
    folder, plain = cases.write(case, tmp_path / case.name), cases.write(null, tmp_path / null.name)
    assert load_project(folder).parameters == "auto"
    files = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    assert files == {path.relative_to(plain) for path in plain.rglob("*") if path.is_file()}
    differ = {path for path in files if (folder / path).read_bytes() != (plain / path).read_bytes()}
    assert differ == {Path("logs") / f"run{k}.csv" for k in range(5)}  # and nothing else
    truth = json.loads((tmp_path / f"{case.name}.truth.json").read_text())
    assert len(truth["shown"]) == 2
    assert min(truth["shown"]) >= part("gap_cases").VISIBLE


def test_the_same_case_is_written_the_same_twice(tmp_path: Path) -> None:
    case = part("gap_cases").cases("test", "unmodelled")[0]
    one, other = (part("gap_cases").write(case, tmp_path / name) for name in ("one", "other"))
    assert (one / "logs" / "run3.csv").read_bytes() == (other / "logs" / "run3.csv").read_bytes()


def test_a_pushed_box_moves_and_stays_on_its_table() -> None:
    log = played("pusher")
    assert np.ptp(log.states[:, 2]) + np.ptp(log.states[:, 3]) > 0.05
    assert log.states[:, 4] == pytest.approx(0.025, abs=0.004)


def test_permuted_logs_hold_the_same_numbers_under_other_names(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "run0.csv").write_text("time_s,u,a,b,c\n0,9,1,2,3\n")
    part("diagnose").permute(tmp_path, ["a", "b", "c"])
    assert (tmp_path / "logs" / "run0.csv").read_text() == "time_s,u,b,c,a\n0,9,1,2,3\n"


def test_many_causes_are_of_different_dimensions_and_of_all_sizes() -> None:
    many = part("gap_cases").cases("test", "many")
    assert all(len(case.causes) == len(case.detail.split(" + ")) for case in many)
    assert Counter(len(case.causes) for case in many) == {3: 16, 4: 16, 5: 16, 6: 12}
    assert {case.robot for case in many if len(case.causes) == 6} == set(part("gap_robots").ROBOTS)


def test_far_models_are_off_by_3_to_10_in_all_but_contacts() -> None:
    robot = named("pusher")
    text, _ = part("gap_far").make_far(robot, np.random.default_rng(3))
    far, near = mujoco.MjModel.from_xml_string(text), robot.model()
    for field in (
        "dof_damping",
        "dof_frictionloss",
        "dof_armature",
        "body_mass",
        "actuator_gainprm",
        "actuator_biasprm",
    ):
        there = np.ravel(getattr(near, field)) != 0
        ratio = np.abs(np.log(np.ravel(getattr(far, field))[there] / np.ravel(getattr(near, field))[there]))
        assert np.log(3.0) - 1e-6 <= ratio.min(), field
        assert ratio.max() <= np.log(10.0) + 1e-6, field
    assert far.geom_friction == pytest.approx(near.geom_friction)
    assert far.geom_solref == pytest.approx(near.geom_solref)
    assert far.actuator_forcerange == pytest.approx(near.actuator_forcerange)


def test_causes_of_far_models_are_of_dimensions_that_are_else_right() -> None:
    cases = part("gap_cases")
    assert {d for case in cases.cases("test", "far") for d in case.causes} == set(cases.FAR)


def spoiled(name: str, seen: np.ndarray, robot: str = "cartpole") -> tuple[np.ndarray, dict[str, float]]:
    world, scene = part("gap_world"), part("gap_causes").Scene({"motor": 8.0}, {"cart": 1.0})
    change = part("gap_scatter").SCATTER[name][1]
    reality, _ = change(world.Reality(), named(robot), np.random.default_rng(1), scene)
    return reality.spoil(seen, np.random.default_rng(2)), reality.places


def test_dropouts_repeat_readings_as_often_as_they_say() -> None:
    seen = np.random.default_rng(0).standard_normal((20_000, 2))
    logged, places = spoiled("dropouts", seen)
    (target, share), column = next(iter(places.items())), int(np.argmax(np.any(logged != seen, axis=0)))
    assert target == f"measurement/{('cart', 'pole')[column]}/occlusion/share"
    repeats = np.diff(logged[:, column]) == 0
    assert repeats.mean() == pytest.approx(share, rel=0.15)
    assert np.all((logged[1:] == seen[1:]) | (logged[1:] == logged[:-1]))


def test_rounding_is_to_the_step_that_it_says() -> None:
    seen = np.random.default_rng(0).standard_normal((500, 2))
    logged, places = spoiled("quantisation", seen)
    (step,), column = places.values(), int(np.argmax(np.any(logged != seen, axis=0)))
    assert logged[:, column] / step == pytest.approx(np.round(logged[:, column] / step))
    assert np.abs(logged - seen).max() <= step / 2 + 1e-12


def test_jittered_commands_are_late_but_overtake_each_other() -> None:
    # |n| has the mean 0.8, so one command alone would be 24 ms late; newer ones come first now and then.
    jittered = played("arm", jitter_s=0.03)
    off = [np.abs(jittered.states - played("arm", command_delay_s=s).states).mean() for s in (0.0, 0.012, 0.024)]
    assert jittered.commands == pytest.approx(played("arm").commands)
    assert off[1] < min(off[0], off[2])


def test_gusts_push_now_and_then_and_differ_from_run_to_run() -> None:
    world, scene = part("gap_world"), part("gap_causes").Scene({"motor": 8.0}, {"cart": 1.0})
    change = part("gap_scatter").SCATTER["gusts"][1]
    reality, _ = change(world.Reality(), named("cartpole"), np.random.default_rng(1), scene)
    model = named("cartpole").model()
    runs = []
    for _ in range(2):
        data, act = mujoco.MjData(model), reality.effect(model, 0.002)
        forces = []
        for k in range(5000):
            act(model, data, 0.002 * k)
            forces.append(float(data.qfrc_applied[0]))
        runs.append(np.array(forces))
    rate_hz, strength = (reality.places[f"joint/cart/pushes/{name}"] for name in ("rate_hz", "strength"))
    assert all(0.02 < np.mean(run != 0) < 0.5 for run in runs)
    assert all(np.abs(run).max() < 4 * strength for run in runs)
    assert 0.5 <= rate_hz <= 2.0
    assert np.any(runs[0] != runs[1])


@pytest.mark.parametrize("robot", ["arm", "cartpole", "torquearm"])
def test_another_engine_moves_a_free_robot_alike(robot: str) -> None:
    pytest.importorskip("pybullet")
    free, world = replace(named(robot), free=True), part("gap_world")
    reality = world.Reality(engine=part("gap_bullet").make_step)
    log = world.play(free, reality, "test", 7, np.array([1.0]))[0]
    off = world.visibility(free, free.model(), [log])
    assert max(off.values()) < 0.05  # of the noise
    assert np.ptp(log.states, axis=0).max() > 0.1  # and it did move


def test_truth_names_what_expresses_a_cause() -> None:
    causes, reality = part("gap_causes"), part("gap_world").Reality()
    scene = causes.Scene({"yaw": 10.0, "shoulder": 10.0, "elbow": 10.0}, {"yaw": 1.0, "shoulder": 1.0, "elbow": 1.0})
    found, text = causes.damping(reality, named("arm"), np.random.default_rng(0), scene)
    joint = text.rsplit(" ", 1)[1]
    written, servo = {"yaw": (0.8, 5.0), "shoulder": (0.8, 5.0), "elbow": (0.4, 2.0)}[joint]
    more = found.places[f"joint/{joint}/damping"] - written
    assert more > 0
    assert found.places == {
        f"joint/{joint}/damping": pytest.approx(written + more),
        f"actuator/{joint}/kd": pytest.approx(servo + more),
    }
    for dimension, names in causes.CAUSES.items():
        for name, (change, robots) in names.items():
            robot = named(robots[0])
            forces = causes.Scene(dict.fromkeys(robot.drives.values(), 5.0), dict.fromkeys(robot.drives, 1.0))
            places = change(reality, robot, np.random.default_rng(0), forces)[0].places
            assert bool(places) == (dimension != "numerics"), name


def test_places_are_targets_whose_values_close_the_gap(tmp_path: Path) -> None:
    # A tilt acts about both axes; with both true values the model predicts to the noise, as with nothing wrong.
    cases = part("gap_cases")
    case = next(c for c in cases.cases("test", "single") if c.robot == "pusher" and c.detail == "environment/tilt")
    folder = cases.write(case, tmp_path / case.name)
    truth = json.loads((tmp_path / f"{case.name}.truth.json").read_text())
    data = read_project_data(folder)
    windows = cut_windows(data.project, data.tracks, 0.3)
    noise = np.array([column.noise for column in named("pusher").columns])

    def error(places: dict[str, float]) -> float:
        space = ParameterSpace(parameters_of(data.blueprint, data.tracks, list(places)))
        predicted = Predictor(data.blueprint, space).predict(windows, np.array([list(places.values())]))[0]
        off = (predicted - windows.measured)[..., :4] / noise[:4]  # yaw, the last, jumps
        return float(np.sqrt(np.nanmean(off[:, 1:] ** 2, axis=(0, 1))).max())

    assert set(truth["places"]) == {"world/tilt/x", "world/tilt/y"}
    assert error({}) > 3.0
    assert error(truth["places"]) < 2.0
