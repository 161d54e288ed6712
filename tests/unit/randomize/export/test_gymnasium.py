"""The exported wrapper, run around an environment of Gymnasium."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import mujoco
import numpy as np
import pytest

from gapless.core.distribution import Distribution, ranges_from_text
from gapless.core.protocols import Start
from gapless.randomize.export.job import ExportJob
from gapless.randomize.export.model_code import write_gymnasium
from gapless.sim.simulation import Simulation
from unit.randomize.export.robots import EVERYTHING, job

gymnasium = pytest.importorskip("gymnasium")


class ArmEnv(gymnasium.Env):
    """The arm, with what Gymnasium's MuJoCo environments have: controls in, positions and velocities out."""

    def __init__(self, model: Path) -> None:
        self.model = mujoco.MjModel.from_xml_path(str(model))
        self.data = mujoco.MjData(self.model)
        self.dt = 4 * self.model.opt.timestep
        self.action_space = gymnasium.spaces.Box(-10.0, 10.0, (self.model.nu,), np.float64)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (self.model.nq + self.model.nv,), np.float64)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.data.ctrl[:] = action
        mujoco.mj_step(self.model, self.data, nstep=4)
        return self._seen(), 0.0, False, False, {"sent": np.array(action)}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        mujoco.mj_forward(self.model, self.data)
        return self._seen(), {}

    def _seen(self) -> Any:
        return np.concatenate([self.data.qpos, self.data.qvel])


def loaded(text: str, folder: Path) -> ModuleType:
    (folder / "exported.py").write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("exported", folder / "exported.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wrapped(folder: Path, text: str, **options: Any) -> tuple[Any, ExportJob, tuple[str, ...]]:
    worked = job(folder, text)
    source, notes = write_gymnasium(worked, folder)
    return loaded(source, folder).RandomizedModel(ArmEnv(folder / "robot.xml"), **options), worked, notes


def fields_of(worked: ExportJob, row: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the model fields that gapless itself gives a row."""
    world = Simulation(worked.blueprint, 1, worked.distribution.space, num_threads=1)
    world.set_parameters(row[None])
    return {name: np.array(world.fields.of(name)[0], dtype=float) for name in world.fields.expanded}


MODEL_RANGES = """
joint/shoulder/damping       uniform 0.2 .. 0.8 per robot
joint/shoulder/frictionloss  normal 0.1 +- 0.02 within 0.04 .. 0.16
joint/elbow/armature         log-uniform 0.005 .. 0.02
actuator/elbow/kp            beta 40 +- 4 within 30 .. 50
actuator/elbow/gain          uniform 0.7 .. 1
body/fore/mass               log-normal 0.6 +- 20 % within 0.3 .. 1.2
body/wrist/payload           uniform 0 .. 0.1
geom/box/friction            normal 0.5 +- 0.1 within 0.3 .. 0.7
world/gravity                uniform 9.7 .. 9.9 per step
correlation joint/shoulder/frictionloss geom/box/friction 0.5
"""


def test_after_each_reset_the_model_is_the_one_that_gapless_makes_of_what_was_drawn(tmp_path: Path) -> None:
    env, worked, notes = wrapped(tmp_path, MODEL_RANGES, seed=3)
    assert notes == ()
    targets = [entry.target for entry in worked.entries]
    seen = []
    for _ in range(5):
        _, info = env.reset(seed=0)
        row = np.array([info["parameters"][target] for target in targets])
        for name, true in fields_of(worked, row).items():
            holder = env.unwrapped.model.opt if name.startswith("opt.") else env.unwrapped.model
            assert getattr(holder, name.removeprefix("opt.")) == pytest.approx(true, rel=1e-3, abs=1e-9), name
        seen.append(row)
    drawn = np.array(seen)
    assert (drawn[:, 0] == drawn[0, 0]).all()  # per robot: kept
    assert len(np.unique(drawn[:, 1])) == 5  # per episode: anew
    before = info["parameters"]["world/gravity"]
    after = env.step(np.zeros(3))[4]["parameters"]
    assert after["world/gravity"] != before  # per step: anew
    assert after["body/fore/mass"] == row[targets.index("body/fore/mass")]


def test_masses_bring_the_constants_that_derive_from_them(tmp_path: Path) -> None:
    env, _, _ = wrapped(tmp_path, "body/fore/mass fixed 1.6\n")
    env.reset()
    model = env.unwrapped.model
    assert model.body_mass[2] == 1.6
    assert model.body_subtreemass[1] == pytest.approx(1.2 + 1.6 + 0.2)
    assert model.body_inertia[2] == pytest.approx(
        mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml")).body_inertia[2] * 1.6 / 0.6
    )


def test_an_episode_moves_as_in_gapless(tmp_path: Path) -> None:
    env, worked, _ = wrapped(tmp_path, MODEL_RANGES.replace(" per step", ""), seed=5)
    _, info = env.reset(seed=0)
    row = np.array([info["parameters"][entry.target] for entry in worked.entries])
    world = Simulation(worked.blueprint, 1, worked.distribution.space, num_threads=1)
    world.set_parameters(row[None])
    world.reset(Start({}, np.zeros((1, 0))), np.random.default_rng(0))
    moved = 0.0
    for k in range(40):
        action = np.array([0.3 * np.sin(0.3 * k), -0.4, 0.02])
        observation = env.step(action)[0]
        reading = world.step(action[None]).measured[0]
        assert observation[:2] == pytest.approx(reading[:2], abs=1e-6)
        moved = max(moved, abs(observation[0]))
    assert moved > 0.05


def test_a_centre_that_cannot_move_is_told(tmp_path: Path) -> None:
    # A free body whose frame is its inertial frame is "simple" to MuJoCo, which refuses to move its centre.
    text = "body/box/com/x uniform 0.004 .. 0.01\n"
    env, _, notes = wrapped(tmp_path, text)
    env.reset()
    assert [note.split(" MuJoCo")[0] for note in notes] == ["body/box/com/x: left out:"]
    worked = job(tmp_path, text)
    model = (tmp_path / "robot.xml").read_text().replace('<body name="box"', '<body name="box" simple="false"')
    (tmp_path / "robot.xml").write_text(model)
    source, notes = write_gymnasium(worked, tmp_path)
    assert notes == ()
    env = loaded(source, tmp_path).RandomizedModel(ArmEnv(tmp_path / "robot.xml"))
    _, info = env.reset()
    assert env.unwrapped.model.body("box").ipos[0] == info["parameters"]["body/box/com/x"] >= 0.004


def test_elements_without_a_name_are_found_by_their_number(tmp_path: Path) -> None:
    worked = job(tmp_path, "geom/*/friction fixed 0.5\n")
    model = (
        (tmp_path / "robot.xml")
        .read_text()
        .replace('<geom name="wrist"', "<geom")
        .replace('<geom name="floor"', "<geom")
    )
    (tmp_path / "robot.xml").write_text(model)
    source, notes = write_gymnasium(job(tmp_path, "geom/*/friction fixed 0.5\n", model), tmp_path)
    env = loaded(source, tmp_path).RandomizedModel(ArmEnv(tmp_path / "robot.xml"))
    env.reset()
    assert env.unwrapped.model.geom_friction[:, 0] == pytest.approx(0.5 * worked.model.geom_friction[:, 0])
    assert notes == ()


def test_a_delay_brings_actions_later_and_mixes_within_a_step(tmp_path: Path) -> None:
    env, _, _ = wrapped(tmp_path, "actuator/shoulder/delay fixed 0.03\n")  # one and a half steps of 0.02 s
    env.reset()
    sent = [env.step(np.array([value, value, 0.0]))[4]["sent"] for value in (1.0, 2.0, 4.0, 8.0)]
    assert [round(float(one[0]), 9) for one in sent] == [1.0, 1.0, 1.5, 3.0]
    assert [float(one[1]) for one in sent] == [1.0, 2.0, 4.0, 8.0]


def test_readings_are_biased_only_where_asked(tmp_path: Path) -> None:
    text = "measurement/q_elbow/bias fixed 0.25\nmeasurement/q_elbow/scale fixed 2\n"
    plain, _, notes = wrapped(tmp_path, text)
    assert plain.reset()[0][1] == 0.0
    assert len(notes) == 2
    asked, _, _ = wrapped(tmp_path, text, observation={"q_elbow": 1})
    asked.reset()
    true = asked.unwrapped.data.qpos[1]
    assert asked.step(np.array([0.0, 0.5, 0.0]))[0][1] == pytest.approx(2 * asked.unwrapped.data.qpos[1] + 0.25)
    assert true == 0.0
    with pytest.raises(ValueError, match="no reading 'elbow'"):
        wrapped(tmp_path, text, observation={"elbow": 1})


def test_another_model_is_refused(tmp_path: Path) -> None:
    worked = job(tmp_path, "joint/elbow/damping uniform 0.1 .. 0.5\n")
    module = loaded(write_gymnasium(worked, tmp_path)[0], tmp_path)
    other = (tmp_path / "robot.xml").read_text().replace('"elbow"', '"knee"')
    (tmp_path / "other.xml").write_text(other)
    with pytest.raises(ValueError, match="has no joint 'elbow'"):
        module.RandomizedModel(ArmEnv(tmp_path / "other.xml"))


def test_it_needs_no_gapless(tmp_path: Path) -> None:
    lines = write_gymnasium(job(tmp_path, EVERYTHING), tmp_path)[0].splitlines()
    assert not [line for line in lines if line.startswith(("import gapless", "from gapless"))]


def test_it_draws_just_as_gapless_does(tmp_path: Path) -> None:
    worked = job(tmp_path, EVERYTHING)
    module = loaded(write_gymnasium(worked, tmp_path)[0], tmp_path)
    ours, theirs = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(50):
        carried = {entry.target: entry for entry in worked.entries}
        for item in module.RANGES:
            assert item.draw(theirs, 1) == carried[item.target].range.draw(ours, 1)


def test_correlated_draws_are_those_of_gapless(tmp_path: Path) -> None:
    text = "joint/elbow/damping normal 0.2 +- 0.1 within 0.1 .. 0.3\n"
    text += "joint/wrist/damping log-normal 0.1 +- 30 % within 0.05 .. 0.2\n"
    text += "correlation joint/elbow/damping joint/wrist/damping -0.9\n"
    worked = job(tmp_path, text)
    module = loaded(write_gymnasium(worked, tmp_path)[0], tmp_path)
    rng = np.random.default_rng(4)
    theirs = np.stack(list(module.draw_ranges(module.RANGES, module.CORRELATIONS, rng, 4000).values()), axis=1)
    ranges, correlations = ranges_from_text(text)
    ours = Distribution(worked.distribution.space, ranges, correlations).sample(np.random.default_rng(5), 4000)
    assert theirs.mean(axis=0) == pytest.approx(ours.mean(axis=0), rel=0.02)
    assert theirs.std(axis=0) == pytest.approx(ours.std(axis=0), rel=0.05)
    assert np.corrcoef(theirs.T)[0, 1] == pytest.approx(np.corrcoef(ours.T)[0, 1], abs=0.03)


def test_every_range_acts_or_has_a_note(tmp_path: Path) -> None:
    worked = job(tmp_path, EVERYTHING)
    source, notes = write_gymnasium(worked, tmp_path)
    module = loaded(source, tmp_path)
    acting = {edit.target for edit in module.EDITS} - {""}
    told = {note.split(": ")[0] for note in notes}
    assert {entry.target for entry in worked.entries} == acting | (told & {entry.target for entry in worked.entries})
    assert told - acting == {
        "actuator/elbow/lag",
        "body/box/com/x",
        "body/box/com/z",
        "body/box/spread/x",
        "joint/elbow/backlash",
        "measurement/box_x/delay",
    }
    for note in notes:
        assert f"#   {note}" in source
