"""The example `handover`: its arm, its judge, its people, and what it takes to meet them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.protocols import Moment, Task, World
from gapless.core.run import run_policy
from gapless.diagnose.verb import diagnose
from gapless.examples.handover.people import ranges_of, values_of
from gapless.examples.handover.task import ASK_M, Handover, angles_of, cup_of
from gapless.examples.record import record, take
from gapless.project.code import load_reality, load_task
from gapless.project.load import load_project
from gapless.project.records import Project
from gapless.sim.blueprint import EMPTY_SPACE, CompiledProject, compile_project
from gapless.sim.ranges import read_ranges
from gapless.sim.realism.human import ADULTS, Partners, partners, reach_share, steady
from gapless.sim.simulation import Simulation
from gapless.sim.targets import resolve
from gapless.verbs import EXAMPLES, copy_example

FOLDER = EXAMPLES / "handover"


@pytest.fixture(scope="module")
def project() -> Project:
    return load_project(FOLDER)


@pytest.fixture(scope="module")
def blueprint(project: Project) -> CompiledProject:
    return compile_project(project)


def simulation(blueprint: CompiledProject, num_worlds: int, **values: float) -> Simulation:
    """Returns worlds with values for some of a person's parameters: `delay`, `lag`, `load`, `grip`."""
    names = dict(zip(("delay", "lag", "load", "grip"), values_of(median(1)), strict=True))
    found = {key: resolve(names[key], blueprint.project, blueprint.model) for key in values}
    parameters = [Parameter(t.path, "human", t.unit, t.nominal, -1.0, values[key] + 1.0) for key, t in found.items()]
    world = Simulation(blueprint, num_worlds, ParameterSpace(tuple(parameters)))
    world.set_parameters(np.tile(list(values.values()), (num_worlds, 1)))
    return world


def median(num_people: int) -> Partners:
    everyone = np.arange(num_people)
    return partners(steady(ADULTS), 0, everyone, everyone)


def asked(world: World, seed: int, num_steps: int) -> np.ndarray:
    """Returns what a world shows while the robot stays where it is and asks, (num_steps, num_worlds, columns)."""
    task, rng = Handover(), np.random.default_rng(seed)
    start = task.start(rng, world.num_worlds)
    command = task.first_command(start)
    world.reset(start, rng)
    command[:, 3] = ASK_M
    return np.stack([world.step(command).measured for _ in range(num_steps)])


def moment(cup: tuple[float, float], aim: tuple[float, float], **measured: float) -> Moment:
    angles, sent = angles_of(np.array([cup])), angles_of(np.array([aim]))
    shown = {"q_shoulder": angles[0, 0], "q_elbow": angles[0, 1], "hand_x": ASK_M, "hand_y": 0.0, "hand_yaw": 0.0}
    columns = {name: np.array([value]) for name, value in (shown | {"parcel_out": 0.0} | measured).items()}
    return Moment(columns, np.concatenate([sent, [[1.0, ASK_M]]], axis=1), np.zeros((1, 0)), np.zeros(1))


def test_angles_bring_the_cup_where_it_shall_be() -> None:
    cup = np.random.default_rng(0).uniform([0.2, -0.25], [0.6, 0.25], (50, 2))
    np.testing.assert_allclose(cup_of(angles_of(cup)), cup, atol=1e-12)
    assert np.linalg.norm(cup_of(angles_of(np.array([[2.0, 0.0]])))) < 0.66  # as near as two links of 0.33 m reach


# With the hand at 0.35 m the parcel's front is at 0.95 - 0.35 - 0.105 = 0.495 m, the cup's centre 0.018 m before it.
@pytest.mark.parametrize(
    ("cup", "aim", "out", "success", "failed", "phase"),
    [
        (0.300, 0.300, 0.0, False, False, "wait"),
        (0.477, 0.460, 0.0, False, False, "grasp"),
        (0.447, 0.430, 0.03, False, False, "pull"),
        (0.407, 0.400, 0.07, True, False, "pull"),
        (0.300, 0.300, 0.07, False, False, "pull"),  # out of the hand, but not on the cup
        (0.507, 0.500, -0.03, False, True, "wait"),  # met while the hand was still coming
        (0.477, 0.420, 0.0, False, True, "pull"),  # 57 mm behind its target: too hard
    ],
)
def test_the_judge(cup: float, aim: float, out: float, success: bool, failed: bool, phase: str) -> None:
    found = Handover().judge(moment((cup, 0.0), (aim, 0.0), parcel_out=out), np.zeros((1, 2)))
    assert (bool(found.success[0]), bool(found.failed[0])) == (success, failed)
    assert Handover.phases[found.phase[0]] == phase


def test_the_model_is_the_median_person_who_reacts_at_once(blueprint: CompiledProject) -> None:
    for target, values in values_of(median(1)).items():
        nominal = resolve(target, blueprint.project, blueprint.model).nominal
        assert nominal == (0.0 if target.endswith("/delay") else pytest.approx(values[0], abs=1e-9)), target
    everything = {p.target: p.dimension for p in blueprint.project.parameters}  # type: ignore[union-attr]
    assert {everything[target] for target in values_of(median(1))} == {"human"}


def test_the_parameters_of_a_person_do_what_they_say(blueprint: CompiledProject) -> None:
    plain = asked(simulation(blueprint, 1), 0, 100)[:, 0, 2]
    late = asked(simulation(blueprint, 1, delay=0.4), 0, 100)[:, 0, 2]
    far = asked(simulation(blueprint, 1, load=200 * 0.06), 0, 100)[:, 0, 2]
    np.testing.assert_allclose(late[10:], plain[:-10], atol=1e-6)  # 0.4 s are 10 control intervals
    assert plain[-1] == pytest.approx(ASK_M, abs=1e-3)
    assert far[-1] == pytest.approx(ASK_M + 0.06, abs=1e-3)


def test_a_parcel_comes_out_of_the_hand_only_if_the_pull_exceeds_the_grip(
    project: Project, blueprint: CompiledProject
) -> None:
    out = {
        grip: record(project, simulation(blueprint, 1, grip=grip), take, 7.0, 0).measurements.column("parcel_out")[-1]
        for grip in (4.0, 8.0, 40.0)
    }
    assert out[4.0] > 0.06
    assert out[8.0] > 0.06
    assert abs(out[40.0]) < 0.01  # the cup holds 25 N: it comes off


def test_people_reach_as_the_population_says(project: Project) -> None:
    shown = asked(load_reality(project, 3, 16), 5, 125)
    rng = np.random.default_rng(5)
    start = Handover().start(rng, 16)
    people = partners(ADULTS, 3, np.arange(16) % 8, rng.integers(0, 2**31, 16))
    there_m = ASK_M + people.reach_m - 0.55 + people.hand_m[:, 0]
    np.testing.assert_allclose(shown[-1, :, 2], np.clip(there_m, 0.0, 0.55), atol=0.006)  # 5 s: all have arrived
    np.testing.assert_allclose(shown[-1, :, 3], start.positions["hand_y"][:, 0] + people.hand_m[:, 1], atol=0.006)
    np.testing.assert_allclose(shown[0, :, 4], people.hand_rad[:, 2], atol=0.05)
    share = np.stack([reach_share(people, 0.04 * (k + 1)) for k in range(125)])
    np.testing.assert_allclose(shown[:, :, 2], np.clip(there_m, 0.0, 0.55) * share, atol=0.02)
    assert shown[:, :, 2].max() > 0.3


def test_another_seed_is_another_group_of_people(project: Project) -> None:
    first, again, other = (asked(load_reality(project, seed, 8), 0, 100)[-1, :, 2] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.all(np.abs(first - other) > 1e-3)


def test_the_twin_shows_what_a_robot_would_show(project: Project) -> None:
    shown = {name for name in dir(load_reality(project, 0, 1)) if not name.startswith("_")}
    parts = {"source", "num_worlds", "rate_hz", "command_names", "measurement_names", "reset", "step"}
    assert shown == parts


def test_ranges_hold_most_people_and_train_reads_them(tmp_path: Path) -> None:
    folder = copy_example("handover", tmp_path / "handover")
    subprocess.run([sys.executable, "people.py", "people.json"], cwd=folder, check=True)
    subprocess.run([sys.executable, "people.py", "median.json", "steady"], cwd=folder, check=True)
    blueprint = compile_project(load_project(folder))
    people = values_of(partners(ADULTS, 77, np.arange(1000), np.arange(1000)))  # other people than the ranges are from
    for item in read_ranges(folder / "people.json", blueprint).ranges:
        inside = (people[item.target] > item.low) & (people[item.target] < item.high)
        assert 0.93 < inside.mean() < 0.97
    rows = read_ranges(folder / "median.json", blueprint).sample(np.random.default_rng(0), 5)
    np.testing.assert_allclose(rows, np.tile([0.476, 0.171, 0.0, 8.0], (5, 1)))
    assert json.loads((folder / "people.json").read_text())["verb"] == "randomize"
    assert len(ranges_of(ADULTS)) == 4


class Taker:
    """Goes to the parcel and draws it out; a patient one waits until the hand has been still for 0.4 s."""

    history = 11

    def __init__(self, *, patient: bool) -> None:
        self._patient = patient

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Returns actions from stacked observations: cup, parcel - cup, target - cup, hand, yaw, out, nearness."""
        frames = observation.reshape(len(observation), self.history, -1)
        now, hand = frames[:, -1], frames[:, :, 6] * 0.15
        to_parcel, out = 0.1 * now[:, 2:4], 0.03 * now[:, 8]
        ahead = 0.02 * now[:, 4:6]
        press = (to_parcel - ahead + np.array([0.01, 0.0])) / 0.008
        draw = np.where(out[:, None] < 0.08, [-0.5, 0.0], 0.0)
        has = (np.linalg.norm(to_parcel, axis=1) < 0.004) | (out > 0.01) | (ahead[:, 0] < -0.006)
        action = np.where(has[:, None], draw, press)
        if self._patient:
            still = (np.ptp(hand, axis=1) < 0.012) & (hand[:, -1] > -0.05)
            action = np.where((still | has)[:, None], action, 0.0)
        return np.clip(action, -1.0, 1.0)


def success(world: World, task: Task, project: Project, *, patient: bool) -> float:
    units = (project.command_units, project.measurement_units)
    runs = run_policy(world, task, Taker(patient=patient), np.random.default_rng(0), world.num_worlds, units=units)
    return float(runs.success.mean())


def test_who_does_not_wait_fails_with_people(project: Project, blueprint: CompiledProject) -> None:
    task = load_task(project)
    model = success(Simulation(blueprint, 32, EMPTY_SPACE, noisy=True), task, project, patient=False)
    hasty, patient = (success(load_reality(project, 4, 64), task, project, patient=p) for p in (False, True))
    assert model > 0.9
    assert hasty < 0.65
    assert patient > hasty + 0.15


@pytest.mark.slow
def test_diagnose_names_people_and_what_of_them_varies(tmp_path: Path) -> None:
    found = diagnose(copy_example("handover", tmp_path / "handover"))
    assert found.causes[0].dimension == "human"
    assert found.causes[0].probability > 0.9
    assert all(cause.probability < 0.2 for cause in found.causes[1:])
    assert any("joint/hand_x/load" in text and "from run to run" in text for text in found.evidence)
    assert "identify" in {step.verb for step in found.advice}
    assert not any("swapped" in text for text in found.evidence)  # no shared grip suits all people
