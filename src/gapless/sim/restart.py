"""Engine states from measurements: where a prediction window begins."""

from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.sim.reading import yaw_of
from gapless.sim.targets.body import free_joint_of

_POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")
_LINEAR = ("vx", "vy", "vz")
_ANGULAR = ("wx", "wy", "wz")


@dataclass(frozen=True)
class StateReader:
    """Fills engine states from readings; what is not measured stays as the model has it, at rest.

    `find_assumptions` says what that is for a project. Components of a quaternion that are not mapped are 0.

    Attributes:
        model: The compiled model.
        joints: (column, position address, velocity address, quantity) of each measured joint.
        bodies: Per free body: position address, velocity address, quantity -> column.
    """

    model: mujoco.MjModel
    joints: tuple[tuple[int, int, int, str], ...]
    bodies: tuple[tuple[int, int, dict[str, int]], ...]

    @classmethod
    def of(cls, project: Project, model: mujoco.MjModel) -> "StateReader":
        """Returns the state reader of a project."""
        joints: list[tuple[int, int, int, str]] = []
        bodies: dict[int, dict[str, int]] = {}
        for column, item in enumerate(project.measurements):
            if item.element == "joint" and item.quantity in ("position", "velocity"):
                joint = model.joint(item.name)
                joints.append((column, int(joint.qposadr[0]), int(joint.dofadr[0]), item.quantity))
            if item.element == "body":
                free = free_joint_of(model, model.body(item.name).id)
                if free is not None:
                    bodies.setdefault(free, {})[item.quantity] = column
        joints.sort(key=lambda entry: entry[3])  # positions first, so that measured velocities win
        addressed = tuple((int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j]), c) for j, c in bodies.items())
        return cls(model, tuple(joints), addressed)

    def state(self, value: Array, rate: Array) -> tuple[Array, Array]:
        """Returns positions (num_worlds, nq) and velocities (num_worlds, nv).

        Args:
            value: (num_worlds, num_measurements) true values of the measured quantities.
            rate: (num_worlds, num_measurements) their time derivatives [unit/s].
        """
        qpos = np.tile(self.model.qpos0, (len(value), 1))
        qvel = np.zeros((len(value), self.model.nv))
        for column, position, dof, quantity in self.joints:
            if quantity == "position":
                qpos[:, position], qvel[:, dof] = value[:, column], rate[:, column]
            else:
                qvel[:, dof] = value[:, column]
        for position, dof, columns in self.bodies:
            _free_state(qpos[:, position : position + 7], qvel[:, dof : dof + 6], columns, value, rate)
        return qpos, qvel


def _free_state(pose: Array, twist: Array, columns: dict[str, int], value: Array, rate: Array) -> None:
    """Fills the pose (num_worlds, 7) and twist (num_worlds, 6) of a free body, in place."""
    for k, quantity in enumerate(_POSE[:3]):
        if quantity in columns:
            pose[:, k], twist[:, k] = value[:, columns[quantity]], rate[:, columns[quantity]]
    mapped = [k for k, quantity in enumerate(_POSE[3:]) if quantity in columns]
    if mapped:
        index = [columns[_POSE[3 + k]] for k in mapped]
        quaternion, slope = np.zeros((2, len(value), 4))  # components that are not mapped are 0
        quaternion[:, mapped], slope[:, mapped] = value[:, index], rate[:, index]
        length = np.linalg.norm(quaternion, axis=1, keepdims=True)
        pose[:, 3:] = quaternion / np.maximum(length, 1e-9)
        twist[:, 3:] = body_rate(pose[:, 3:], slope)
    elif "yaw" in columns:
        pose[:, 3:] = _turn_to_yaw(pose[:, 3:], value[:, columns["yaw"]])
        twist[:, 3:] = rate[:, columns["yaw"], None] * _vertical_in_body(pose[:, 3:])
    for k, quantity in enumerate(_LINEAR + _ANGULAR):
        if quantity in columns:
            twist[:, k] = value[:, columns[quantity]]


def _turn_to_yaw(quaternion: Array, yaw_rad: Array) -> Array:
    """Returns quaternions (num_worlds, 4) turned about the vertical until they have a yaw: they lean as before."""
    half = (yaw_rad - yaw_of(quaternion)) / 2
    (w, x, y, z), c, s = quaternion.T, np.cos(half), np.sin(half)
    return np.stack([c * w - s * z, c * x - s * y, c * y + s * x, c * z + s * w], axis=1)


def _vertical_in_body(quaternion: Array) -> Array:
    """Returns the world's vertical in the frame of bodies, (num_worlds, 3): the third row of their rotation matrix."""
    w, x, y, z = quaternion.T
    return 2 * np.stack([x * z - w * y, y * z + w * x, 0.5 - x * x - y * y], axis=1)


def body_rate(quaternion: Array, slope: Array) -> Array:
    """Returns the angular velocity in the body frame: the vector part of 2 q* dq/dt."""
    w, v = quaternion[:, :1], quaternion[:, 1:]
    return 2 * (w * slope[:, 1:] - slope[:, :1] * v - np.cross(v, slope[:, 1:]))
