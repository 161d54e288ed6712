"""Engine states from measurements: where a prediction window begins."""

from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.targets.body import free_joint_of

_POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")
_LINEAR = ("vx", "vy", "vz")
_ANGULAR = ("wx", "wy", "wz")


@dataclass(frozen=True)
class StateReader:
    """Fills engine states from readings; what is not measured stays as the model has it, at rest.

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
    if all(quantity in columns for quantity in _POSE[3:]):
        index = [columns[quantity] for quantity in _POSE[3:]]
        length = np.linalg.norm(value[:, index], axis=1, keepdims=True)
        pose[:, 3:] = value[:, index] / np.maximum(length, 1e-9)
        twist[:, 3:] = body_rate(pose[:, 3:], rate[:, index])
    elif "yaw" in columns:
        half = value[:, columns["yaw"]] / 2
        pose[:, 3:] = np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], axis=1)
        twist[:, 5] = rate[:, columns["yaw"]]
    for k, quantity in enumerate(_LINEAR + _ANGULAR):
        if quantity in columns:
            twist[:, k] = value[:, columns[quantity]]


def body_rate(quaternion: Array, slope: Array) -> Array:
    """Returns the angular velocity in the body frame: the vector part of 2 q* dq/dt."""
    w, v = quaternion[:, :1], quaternion[:, 1:]
    return 2 * (w * slope[:, 1:] - slope[:, :1] * v - np.cross(v, slope[:, 1:]))
