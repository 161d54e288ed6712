"""Two small projects: an arm with every kind of element, and a thrown box."""

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

ARM = """<mujoco><worldbody>
<body name="upper"><joint name="shoulder" axis="0 1 0" range="-120 120" limited="true"/>
<geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".6"/><site name="tip"/>
<body name="lower" pos="0 0 -.3"><joint name="elbow" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass=".4"/></body></body>
<body name="rail"><joint name="slider" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body>
<body name="wrist" pos="1 0 0"><joint name="swivel" type="ball"/><geom size=".1" mass="1"/></body>
<body name="box" pos="0 0 2"><freejoint name="box_free"/><geom size=".1" mass="1"/></body>
</worldbody>
<actuator><motor name="m1" joint="shoulder"/><position name="m2" joint="elbow" kp="5"/></actuator>
<sensor><force name="tip_force" site="tip"/></sensor></mujoco>"""

BOX = """<mujoco><worldbody><geom type="plane" size="0 0 .1"/>
<body name="box" pos="0 0 .2"><freejoint/><geom type="box" size=".05 .04 .03" mass=".3"/></body>
</worldbody></mujoco>"""

YAML = """gapless: 1
name: arm
model: robot.xml
rate_hz: 100
commands:
  u1: {actuator: m1}
  u2: {actuator: m2}
measurements:
  q1: {joint: shoulder, quantity: position, noise: 5e-4}
  q2_deg: {joint: elbow, quantity: position, scale: 0.5, offset: 1}
logs: logs
parameters: auto
"""

Writer = Callable[[Path, Mapping[str, Sequence[object]]], Path]


def table(count: int = 200, rate_hz: float = 100.0) -> dict[str, list[object]]:
    """Returns columns of a sound arm log."""
    times_s = np.arange(count) / rate_hz
    return {
        "time_s": list(times_s + 7.0),
        "u1": list(np.sin(times_s)),
        "u2": list(np.cos(3 * times_s)),
        "q1": list(0.3 * np.sin(2 * times_s)),
        "q2_deg": list(0.1 * np.cos(times_s)),
    }


def write_csv(path: Path, columns: Mapping[str, Sequence[object]]) -> Path:
    """Writes a log."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    """A sound project folder."""
    folder = tmp_path / "arm"
    folder.mkdir()
    (folder / "robot.xml").write_text(ARM)
    (folder / "gapless.yaml").write_text(YAML)
    write_csv(folder / "logs" / "run0.csv", table())
    return folder


@pytest.fixture
def box_files(tmp_path: Path) -> tuple[Path, Path]:
    """Model and log of a thrown box, whose time is in milliseconds under another name."""
    model = tmp_path / "given" / "box.xml"
    model.parent.mkdir()
    model.write_text(BOX)
    times_ms = np.arange(100) * 20.0 + 1e6
    columns: dict[str, list[object]] = {"timestamp": list(times_ms)}
    for place, name in enumerate(("x", "y", "z", "qw", "qx", "qy", "qz", "vx", "vy", "vz", "wx", "wy", "wz")):
        columns[name] = list(np.sin(times_ms / 1000 + place))
    return model, write_csv(model.parent / "toss.csv", columns)
