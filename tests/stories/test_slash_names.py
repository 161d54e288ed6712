"""A project whose joints and columns have `/` in their names goes from `new` to `report`."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless import verbs
from gapless.core.results import to_json

MODEL = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body name="left/upper">
      <joint name="left/shoulder" axis="0 1 0" damping="0.3" range="-2 2" limited="true"/>
      <geom name="left/link" size="0.03" fromto="0 0 0 0 0 -0.3" type="capsule"/>
      <body name="left/fore" pos="0 0 -0.3">
        <joint name="left/elbow" axis="0 1 0" damping="0.3" range="-2 2" limited="true"/>
        <geom name="left/tip" size="0.03" fromto="0 0 0 0 0 -0.3" type="capsule" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="left/shoulder" joint="left/shoulder" kp="{kp}" kv="1"/>
    <position name="left/elbow" joint="left/elbow" kp="20" kv="0.5"/>
  </actuator>
</mujoco>
"""
JOINTS = ("left/shoulder", "left/elbow")


def record(path: Path, seed: int) -> None:
    """Writes ten seconds of the robot, whose shoulder is softer than the model says, at 100 Hz."""
    model = mujoco.MjModel.from_xml_string(MODEL.format(kp=25))
    data, rng, rows = mujoco.MjData(model), np.random.default_rng(seed), []
    phases, rates = rng.uniform(0, 6, (2, 3)), rng.uniform(1, 6, (2, 3))
    for step in range(1000):
        data.ctrl[:] = 0.25 * np.sin(rates * step / 100 + phases).sum(axis=1)
        rows.append([step / 100, *data.ctrl, *(data.qpos + 1e-4 * rng.standard_normal(2))])
        mujoco.mj_step(model, data, 5)
    names = [f"/{what}.{joint}" for what in ("command", "joint_states.position") for joint in JOINTS]
    np.savetxt(path, rows, delimiter=",", header=",".join(["time_s", *names]), comments="", fmt="%.8g")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project as `new` writes it, with two logs."""
    (tmp_path / "robot.xml").write_text(MODEL.format(kp=40))
    record(tmp_path / "run0.csv", 0)
    verbs.new(tmp_path / "robot.xml", tmp_path / "run0.csv", tmp_path / "project")
    record(tmp_path / "project" / "logs" / "run1.csv", 1)
    return tmp_path / "project"


def test_names_with_slashes_are_checked_and_measured(folder: Path) -> None:
    assert "parameters: auto" in (folder / "gapless.yaml").read_text()
    assert verbs.check(folder).sound
    assert set(verbs.measure(folder).columns) == {f"/joint_states.position.{joint}" for joint in JOINTS}


@pytest.mark.slow
def test_names_with_slashes_go_on_to_the_report(folder: Path) -> None:
    fit = verbs.identify(folder)
    found = {parameter.target: parameter for parameter in fit.parameters}
    shoulder = found["actuator/left/shoulder/kp"]
    assert shoulder.low <= 25 <= shoulder.high
    assert shoulder.high < 30
    assert verbs.diagnose(folder).causes[0].dimension == "actuator"
    ranges = verbs.randomize(folder)
    assert "actuator/left/shoulder/kp" in {item.target for item in ranges.ranges}
    assert to_json(fit)["verdict"] == "good"
    page = Path(verbs.report(folder).path).read_text()
    assert "left/shoulder actuator kp" in page
