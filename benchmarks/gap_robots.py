"""The four robots of `diagnose.py`: model, columns, noise, and who moves them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import gap_pilots
import mujoco
import numpy as np

from gapless.core.signal import Array

MODELS = Path(__file__).parent / "robots"


@dataclass(frozen=True)
class Column:
    """One measured column."""

    name: str
    element: str
    quantity: str
    noise: float
    """Standard deviation, in the column's unit."""
    kind: str = "joint"

    def index(self, model: mujoco.MjModel) -> int:
        """Returns where its value stands in a state, qpos then qvel."""
        if self.kind == "body":
            start = int(model.jnt_qposadr[model.body(self.element).jntadr[0]])
            return start + {"x": 0, "y": 1, "yaw": 3}[self.quantity]  # yaw: where the quaternion begins
        joint = model.joint(self.element)
        return int(joint.qposadr[0]) if self.quantity == "position" else model.nq + int(joint.dofadr[0])


@dataclass(frozen=True)
class Robot:
    """One kind of robot.

    Attributes:
        rate_hz: Control and log rate.
        commands: Column -> actuator.
        columns: What is measured; the pilot sees them in this order.
        drives: Actuated joint -> its actuator.
        pilot: (rng, family of motions, times) -> who moves it.
        start: Joint -> position where an episode begins, drawn.
        coarse: (time step [s], integrator) of the model in cases of `numerics`: for tuning and for test.
        free: Whether nothing of it touches anything.
    """

    name: str
    rate_hz: float
    commands: Mapping[str, str]
    columns: tuple[Column, ...]
    drives: Mapping[str, str]
    pilot: Callable[[np.random.Generator, str, Array], gap_pilots.Pilot]
    coarse: Mapping[str, tuple[float, str]]
    servo: bool = False
    box: str | None = None
    free: bool = False

    def text(self, coarse: tuple[float, str] | None = None) -> str:
        """Returns the model as its maker wrote it: converged, or with a coarse step."""
        text = (MODELS / f"{self.name}.xml").read_text(encoding="utf-8")
        if self.free:
            text = text.replace(' contype="1" conaffinity="1"', "")
        if coarse is None:
            return text
        fine = 'timestep="0.002" integrator="implicitfast"'
        if fine not in text:
            raise ValueError(f"{self.name}.xml has no {fine}")
        return text.replace(fine, f'timestep="{coarse[0]:g}" integrator="{coarse[1]}"')

    @property
    def has_one_drive(self) -> bool:
        """Whether one actuator is all that there are."""
        return len(self.drives) == 1

    def model(self) -> mujoco.MjModel:
        """Returns the model as its maker wrote it, compiled."""
        return mujoco.MjModel.from_xml_string(self.text())

    def yaml(self) -> str:
        """Returns the project file."""
        sent = [f"  {column}: {{actuator: {actuator}}}" for column, actuator in self.commands.items()]
        seen = [
            f"  {c.name}: {{{c.kind}: {c.element}, quantity: {c.quantity}, noise: {c.noise:g}}}" for c in self.columns
        ]
        head = ["gapless: 1", f"name: {self.name}", "model: robot.xml", f"rate_hz: {self.rate_hz:g}"]
        return "\n".join([*head, "commands:", *sent, "measurements:", *seen, "logs: logs", "parameters: auto", ""])


def _joints(names: tuple[str, ...], noise: float, quantity: str = "position", prefix: str = "q_") -> tuple[Column, ...]:
    return tuple(Column(prefix + name, name, quantity, noise) for name in names)


_ARM, _TIP, _PRESS = ("yaw", "shoulder", "elbow"), ("tip_x", "tip_y"), ("shoulder", "elbow")
ROBOTS: dict[str, Robot] = {
    robot.name: robot
    for robot in (
        Robot(
            "arm",
            100.0,
            {f"cmd_{name}": name for name in _ARM},
            _joints(_ARM, 0.0005),
            {name: name for name in _ARM},
            gap_pilots.follow,
            {"tuning": (0.01, "Euler"), "test": (0.01, "implicitfast")},
            servo=True,
        ),
        Robot(
            "pusher",
            50.0,
            {"cmd_x": "servo_x", "cmd_y": "servo_y"},
            (
                *_joints(_TIP, 0.0003, prefix=""),
                Column("box_x", "box", "x", 0.0007, "body"),
                Column("box_y", "box", "y", 0.0007, "body"),
                Column("box_yaw", "box", "yaw", 0.005, "body"),
            ),
            {"tip_x": "servo_x", "tip_y": "servo_y"},
            gap_pilots.push,
            {"tuning": (0.02, "implicitfast"), "test": (0.02, "Euler")},
            servo=True,
            box="box",
        ),
        Robot(
            "cartpole",
            100.0,
            {"force": "motor"},
            (Column("cart", "cart", "position", 0.0003), Column("pole", "pole", "position", 0.0007)),
            {"cart": "motor"},
            gap_pilots.swing,
            {"tuning": (0.01, "implicitfast"), "test": (0.01, "Euler")},
        ),
        Robot(
            "torquearm",
            100.0,
            {f"tau_{name}": name for name in _PRESS},
            (*_joints(_PRESS, 0.0003), *_joints(_PRESS, 0.01, "velocity", "v_")),
            {name: name for name in _PRESS},
            gap_pilots.press,
            {"tuning": (0.01, "implicitfast"), "test": (0.01, "Euler")},
        ),
    )
}
