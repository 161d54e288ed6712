"""Engine states to the measurements that a project maps, and measurements to engine states."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from gapless.core.signal import Array
from gapless.project.records import MeasurementMap, Project
from gapless.sim.targets.drive import free_joint_of

_POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")
_TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")
GetField = Callable[[str], Array]  # of the engine's data, one row per world, or per world and time
ReadColumn = Callable[[GetField], Array]


@dataclass(frozen=True)
class MeasurementReader:
    """Reads all mapped measurements of a batch."""

    columns: tuple[ReadColumn, ...]  # one reading function per measurement
    stage: mujoco.mjtStage  # forward stage that the engine must have computed at the current state before reading

    @classmethod
    def of(cls, project: Project, model: mujoco.MjModel) -> "MeasurementReader":
        """Returns the reader of a project's measurements."""
        columns = tuple(_column_reader(item, model) for item in project.measurements)
        stage = mujoco.mjtStage.mjSTAGE_NONE
        for item in project.measurements:
            if item.element in ("sensor", "actuator") or item.quantity == "effort":
                return cls(columns, mujoco.mjtStage.mjSTAGE_ACC)
            if item.element == "body" and free_joint_of(model, model.body(item.name).id) is None:
                stage = mujoco.mjtStage.mjSTAGE_VEL
        return cls(columns, stage)

    def read(self, batch: Batch, ids: NDArray[np.intp] | None = None) -> Array:
        """Returns the true values, (num_worlds, num_measurements), in model units, `ids` having moved (None: all).

        All columns show one instant: the current state, with the last commands still in force. `ids` are sorted.
        """
        if self.stage != mujoco.mjtStage.mjSTAGE_NONE:
            batch.forward(ids, stage=self.stage.value)
        out = np.empty((batch.nsim, len(self.columns)))
        for k, column in enumerate(self.columns):
            out[:, k] = column(batch.bind)
        return out

    def read_records(self, records: Mapping[str, Array]) -> Array:
        """Returns the true values at all times of some records, (num_worlds, num_times, num_measurements).

        It needs a `stage` of none: records hold positions and velocities, (num_worlds, num_times, ...).
        """
        return np.stack([column(records.__getitem__) for column in self.columns], axis=-1)


def yaw_of(quaternion: Array) -> Array:
    """Returns the rotation about the vertical of wxyz quaternions (..., 4) [rad]."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def _column_reader(item: MeasurementMap, model: mujoco.MjModel) -> ReadColumn:
    if item.element == "joint":
        joint = model.joint(item.name)
        if item.quantity == "position":
            return _read_field("qpos", int(joint.qposadr[0]))
        return _read_field("qvel" if item.quantity == "velocity" else "qfrc_actuator", int(joint.dofadr[0]))
    if item.element == "actuator":
        return _read_field("actuator_force", model.actuator(item.name).id)
    if item.element == "sensor":
        return _read_field("sensordata", int(model.sensor(item.name).adr[0]) + item.axis)
    body, quantity = model.body(item.name).id, item.quantity
    joint = free_joint_of(model, body)
    if joint is not None:
        position, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        if quantity == "yaw":
            return lambda field: yaw_of(field("qpos")[..., position + 3 : position + 7])
        if quantity in _POSE:
            return _read_field("qpos", position + _POSE.index(quantity))
        return _read_field("qvel", dof + _TWIST.index(quantity))
    if quantity == "yaw":
        return lambda field: yaw_of(field("xquat")[:, body])
    if quantity in _POSE:
        place = _POSE.index(quantity)
        return _read_field("xpos", body, place) if place < 3 else _read_field("xquat", body, place - 3)
    root, axis = int(model.body_rootid[body]), _TWIST.index(quantity)

    def read_linear(field: GetField) -> Array:
        twist = field("cvel")[:, body]
        arm = field("xpos")[:, body] - field("subtree_com")[:, root]
        return (twist[:, 3:] + np.cross(twist[:, :3], arm))[:, axis]

    def read_angular(field: GetField) -> Array:
        frame = field("xmat")[:, body].reshape(-1, 3, 3)
        return np.einsum("nji,nj->ni", frame, field("cvel")[:, body, :3])[:, axis - 3]

    return read_linear if axis < 3 else read_angular


def _read_field(name: str, *place: int) -> ReadColumn:
    return lambda field: field(name)[(..., *place)]


@dataclass(frozen=True)
class StateReader:
    """Fills engine states from readings; what is not measured stays as the model has it, at rest.

    `find_assumptions` says what that is for a project. Components of a quaternion that are not mapped are 0.
    """

    model: mujoco.MjModel
    # (column, position address, velocity address, quantity) of each measured joint
    joints: tuple[tuple[int, int, int, str], ...]
    # per free body: position address, velocity address, quantity -> column
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
        """Returns positions (num_worlds, nq) and velocities (num_worlds, nv) for true values and their rates [unit/s].

        Both are (num_worlds, num_measurements).
        """
        qpos = np.tile(self.model.qpos0, (len(value), 1))
        qvel = np.zeros((len(value), self.model.nv))
        for column, position, dof, quantity in self.joints:
            if quantity == "position":
                qpos[:, position], qvel[:, dof] = value[:, column], rate[:, column]
            else:
                qvel[:, dof] = value[:, column]
        for position, dof, columns in self.bodies:
            _fill_free_state(qpos[:, position : position + 7], qvel[:, dof : dof + 6], columns, value, rate)
        return qpos, qvel


def _fill_free_state(pose: Array, twist: Array, columns: dict[str, int], value: Array, rate: Array) -> None:
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
        # Turned about the vertical until it has the yaw: it leans as before.
        half = (value[:, columns["yaw"]] - yaw_of(pose[:, 3:])) / 2
        (w, x, y, z), c, s = pose[:, 3:].T, np.cos(half), np.sin(half)
        pose[:, 3:] = np.stack([c * w - s * z, c * x - s * y, c * y + s * x, c * z + s * w], axis=1)
        w, x, y, z = pose[:, 3:].T
        vertical = 2 * np.stack([x * z - w * y, y * z + w * x, 0.5 - x * x - y * y], axis=1)  # in the body's frame
        twist[:, 3:] = rate[:, columns["yaw"], None] * vertical
    for k, quantity in enumerate(_TWIST):
        if quantity in columns:
            twist[:, k] = value[:, columns[quantity]]


def body_rate(quaternion: Array, slope: Array) -> Array:
    """Returns the angular velocity in the body frame: the vector part of 2 q* dq/dt."""
    w, v = quaternion[:, :1], quaternion[:, 1:]
    return 2 * (w * slope[:, 1:] - slope[:, :1] * v - np.cross(v, slope[:, 1:]))
