"""Robots of strangers: models whose names and logs are as people have them, not as we would write them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gapless.core.signal import Array

UR_JOINTS = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")


def write_arm(path: Path, joints: Sequence[str], actuators: Sequence[str] | None = None, **servo: str) -> Path:
    """Writes a chain of links with one hinge each, and a position servo for each actuator's name."""
    inner = ""
    for name in reversed(joints):
        link = f'<joint name="{name}" axis="0 1 0" range="-180 180" limited="true"/><geom size=".03" mass="1"/>'
        inner = f'<body name="{name}_link" pos="0 0 .2">{link}{inner}</body>'
    named = zip(joints if actuators is None else actuators, joints, strict=False)
    keys = " ".join(f'{key}="{value}"' for key, value in {"kp": "100", **servo}.items())
    driven = "".join(f'<position name="{name}" joint="{joint}" {keys}/>' for name, joint in named)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<mujoco><worldbody>{inner}</worldbody><actuator>{driven}</actuator></mujoco>")
    return path


def moving(place: int, times_s: Array) -> Array:
    """Returns a motion [rad] unlike that of any other place."""
    rate = 1.0 + 0.37 * place
    return (0.4 + 0.05 * place) * np.sin(rate * times_s + place) + 0.2 * np.sin(2.7 * rate * times_s)


def speed(place: int, times_s: Array) -> Array:
    """Returns the derivative of `moving` [rad/s]."""
    return np.gradient(moving(place, times_s), times_s)


def ros_log(times_s: Array, joints: Sequence[str], order: Sequence[int] | None = None) -> Mapping[str, Array]:
    """Returns a log as PlotJuggler writes it: states by name, commands by number; `order` is the controller's."""
    columns: dict[str, Array] = {"__time": times_s + 1.7e9}
    states = "/joint_states"
    columns |= {f"{states}.header.stamp": times_s + 1.7e9, f"{states}.header.seq": np.arange(len(times_s)) * 1.0}
    for kind, signal in (("position", moving), ("velocity", speed)):
        columns |= {f"{states}.{kind}.{name}": signal(k, times_s) for k, name in enumerate(joints)}
    columns |= {f"{states}.effort.{name}": np.cos(times_s + k) for k, name in enumerate(joints)}
    for place, joint in enumerate(order or range(len(joints))):
        command = moving(joint, times_s + 0.05)
        columns[f"/forward_position_controller/commands.data[{place}]"] = command
    return columns
