"""Logs of real robots, measured by others, as project folders: what `gapless new` and its owner would have made.

The data lie in a folder beside the repository and are never copied into it; `data_folder()` says where.
"""

import os
import shutil
from pathlib import Path

import numpy as np
import yaml

SO101_JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
JAW_RANGE = (-0.174533, 1.7453292)  # the jaw is logged as 0..1 of it [rad]

QUBE_XML = """<mujoco model="qube">
  <option integrator="implicitfast" timestep="0.002" gravity="0 0 -9.81"/>
  <worldbody>
    <body name="arm">
      <joint name="theta" type="hinge" axis="0 0 1" damping="{arm_damping}"/>
      <geom name="arm" type="cylinder" fromto="0 0 0 0.085 0 0" size="0.003" mass="0.095" contype="0" conaffinity="0"/>
      <body name="pendulum" pos="0.085 0 0">
        <joint name="alpha" type="hinge" axis="1 0 0" damping="1e-6"/>
        <geom name="pendulum" type="capsule" fromto="0 0 0 0 0 -0.129" size="0.004" mass="0.024"
              contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><general name="motor" joint="theta" gainprm="{gain}"/></actuator>
</mujoco>
"""

CARTPOLE_XML = """<mujoco model="cartpole">
  <option integrator="implicitfast" timestep="0.002" gravity="0 0 -9.81"/>
  <worldbody>
    <body name="cart">
      <joint name="x" type="slide" axis="1 0 0" damping="{damping}" frictionloss="0.02" armature="{armature}"/>
      <geom name="cart" type="box" size="0.05 0.03 0.02" mass="0.38" contype="0" conaffinity="0"/>
      <body name="pole">
        <joint name="theta" type="hinge" axis="0 -1 0" damping="0.0024"/>
        <geom name="pole" type="cylinder" fromto="0 0 0 0 0 -0.336" size="0.006" mass="0.127"
              contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><general name="motor" joint="x" gainprm="{gain}"/></actuator>
</mujoco>
"""


def data_folder() -> Path:
    """Returns the folder of the real logs: $GAPLESS_DATA, or `shared/data` beside the repository."""
    return Path(os.environ.get("GAPLESS_DATA", Path(__file__).parents[2] / "shared" / "data"))


def _write_project(place: Path, content: dict) -> None:
    (place / "logs").mkdir(parents=True, exist_ok=True)
    (place / "gapless.yaml").write_text(yaml.safe_dump({"gapless": 1, **content}, sort_keys=False))


def so101(place: Path, motions: list[str], seconds: float | None = None) -> Path:
    """Makes a project of some motions of the SO-101 arm, the stock model, all six joints mapped."""
    source = data_folder() / "so101"
    _write_project(
        place,
        {
            "name": "SO-101",
            "model": "model/so101.xml",
            "rate_hz": 50,
            "commands": {f"cmd_{j}": {"actuator": j} | _jaw(j) for j in SO101_JOINTS},
            "measurements": {f"q_{j}": {"joint": j, "quantity": "position"} | _jaw(j) for j in SO101_JOINTS},
            "logs": "logs",
            "parameters": "auto",
        },
    )
    shutil.copytree(next((source / "model").iterdir()), place / "model", dirs_exist_ok=True)
    for path in [*(place / "model").rglob("*"), place / "model"]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    for name in motions:
        with np.load(source / "npz" / f"{name}.npz") as data:
            keep = slice(None) if seconds is None else data["t"] - data["t"][0] <= seconds
            columns = {"time_s": data["t"][keep]}
            columns |= {f"cmd_{j}": data["q_cmd"][keep, k] for k, j in enumerate(SO101_JOINTS)}
            columns |= {f"q_{j}": data["q"][keep, k] for k, j in enumerate(SO101_JOINTS)}
        np.savez(place / "logs" / f"{name}.npz", **columns)
    return place


def _jaw(joint: str) -> dict:
    low, high = JAW_RANGE
    return {"scale": high - low, "offset": low} if joint == "gripper" else {}


def so101_motions() -> list[str]:
    """Returns the names of all motions."""
    return sorted(path.stem for path in (data_folder() / "so101" / "npz").glob("*.npz"))


def qube(place: Path, logs: list[Path]) -> Path:
    """Makes a project of runs of the Qube: nominal values of its maker, angles only, volts as commands."""
    motor = 0.042 / 8.4
    return _pendulum(
        place, "Qube", QUBE_XML.format(gain=motor, arm_damping=5e-6 + 0.042 * motor), "theta", "alpha", logs
    )


def cartpole(place: Path, logs: list[Path]) -> Path:
    """Makes a project of runs of the cart-pole: nominal values of its maker, positions only, volts as commands."""
    eta, gear, km, ohm, radius = 0.9 * 0.9, 3.71, 7.67e-3, 2.6, 6.35e-3
    gain = eta * gear * km / (ohm * radius)
    damping = 5.4 + eta * (gear * km / radius) ** 2 / ohm
    armature = 0.9 * gear**2 * 3.9e-7 / radius**2
    xml = CARTPOLE_XML.format(gain=gain, damping=damping, armature=armature)
    return _pendulum(place, "cart-pole", xml, "x", "theta", logs)


def _pendulum(place: Path, name: str, xml: str, driven: str, hanging: str, logs: list[Path]) -> Path:
    _write_project(
        place,
        {
            "name": name,
            "model": "robot.xml",
            "rate_hz": 250,
            "commands": {"volt": {"actuator": "motor"}},
            "measurements": {f"q_{j}": {"joint": j, "quantity": "position"} for j in (driven, hanging)},
            "logs": "logs",
            "parameters": "auto",
        },
    )
    (place / "robot.xml").write_text(xml)
    for path in logs:
        with np.load(path) as data:
            states, actions = data["states"], data["actions_applied"][:, 0]
            columns = {
                "time_s": np.arange(len(actions)) / 250.0,
                "volt": actions,
                f"q_{driven}": states[: len(actions), 0],
                f"q_{hanging}": states[: len(actions), 1],
            }
        np.savez(place / "logs" / f"{path.parent.name}_{path.stem}.npz".replace("+", "p").replace("-", "m"), **columns)
    return place


def ready_project(name: str, place: Path, logs: list[Path]) -> Path:
    """Makes a project of some logs of a set that is a project as it stands: the double pendulum, the cube."""
    source = data_folder() / name
    (place / "logs").mkdir(parents=True, exist_ok=True)
    for path in [source / "gapless.yaml", source / "model.xml", *logs]:
        shutil.copyfile(path, place / ("logs" if path in logs else "") / path.name)
    return place


def runs(name: str, pattern: str) -> list[Path]:
    """Returns the paths of the runs of one robot whose folder matches a pattern."""
    return sorted((data_folder() / name).glob(f"{pattern}/*.npz"))
