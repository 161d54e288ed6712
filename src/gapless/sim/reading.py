"""Turns engine state into the measurements that a project maps."""

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from gapless.core.signal import Array
from gapless.project.records import MeasurementMap, Project
from gapless.sim.targets.body import free_joint_of

_POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")
_TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")
ReadColumn = Callable[[Batch], Array]


@dataclass(frozen=True)
class Reader:
    """Reads all mapped measurements of a batch.

    Attributes:
        columns: One reading function per measurement.
        stage: Forward stage that the engine must have computed at the current state before reading.
    """

    columns: tuple[ReadColumn, ...]
    stage: mujoco.mjtStage

    @classmethod
    def of(cls, project: Project, model: mujoco.MjModel) -> "Reader":
        """Returns the reader of a project's measurements."""
        columns = tuple(_column(item, model) for item in project.measurements)
        stages = [_stage(item, model).value for item in project.measurements]
        return cls(columns, mujoco.mjtStage(max(stages, default=mujoco.mjtStage.mjSTAGE_NONE.value)))

    def read(self, batch: Batch, ids: NDArray[np.intp] | None = None) -> Array:
        """Returns the true values, (num_worlds, num_measurements), in model units.

        All columns show one instant: the current state, with the last commands still in force.

        Args:
            batch: The worlds.
            ids: Worlds that moved since the last reading, sorted; None for all.
        """
        if self.stage != mujoco.mjtStage.mjSTAGE_NONE:
            batch.forward(ids, stage=self.stage.value)
        out = np.empty((batch.nsim, len(self.columns)))
        for k, column in enumerate(self.columns):
            out[:, k] = column(batch)
        return out


def yaw_of(quaternion: Array) -> Array:
    """Returns the rotation about the vertical of wxyz quaternions (..., 4) [rad]."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def _stage(item: MeasurementMap, model: mujoco.MjModel) -> mujoco.mjtStage:
    if item.element in ("sensor", "actuator") or item.quantity == "effort":
        return mujoco.mjtStage.mjSTAGE_ACC
    if item.element == "body" and free_joint_of(model, model.body(item.name).id) is None:
        return mujoco.mjtStage.mjSTAGE_VEL
    return mujoco.mjtStage.mjSTAGE_NONE


def _column(item: MeasurementMap, model: mujoco.MjModel) -> ReadColumn:
    if item.element == "joint":
        return _joint_column(item, model)
    if item.element == "actuator":
        actuator = model.actuator(item.name).id
        return lambda batch: batch.bind("actuator_force")[:, actuator]
    if item.element == "sensor":
        address = int(model.sensor(item.name).adr[0]) + item.axis
        return lambda batch: batch.bind("sensordata")[:, address]
    body = model.body(item.name).id
    joint = free_joint_of(model, body)
    return _body_column(item.quantity, body, model) if joint is None else _free_column(item.quantity, joint, model)


def _joint_column(item: MeasurementMap, model: mujoco.MjModel) -> ReadColumn:
    joint = model.joint(item.name)
    position, dof = int(joint.qposadr[0]), int(joint.dofadr[0])
    if item.quantity == "position":
        return lambda batch: batch.bind("qpos")[:, position]
    if item.quantity == "velocity":
        return lambda batch: batch.bind("qvel")[:, dof]
    return lambda batch: batch.bind("qfrc_actuator")[:, dof]


def _free_column(quantity: str, joint: int, model: mujoco.MjModel) -> ReadColumn:
    position, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
    if quantity == "yaw":
        return lambda batch: yaw_of(batch.bind("qpos")[:, position + 3 : position + 7])
    if quantity in _POSE:
        place = position + _POSE.index(quantity)
        return lambda batch: batch.bind("qpos")[:, place]
    speed = dof + _TWIST.index(quantity)
    return lambda batch: batch.bind("qvel")[:, speed]


def _body_column(quantity: str, body: int, model: mujoco.MjModel) -> ReadColumn:
    if quantity == "yaw":
        return lambda batch: yaw_of(batch.bind("xquat")[:, body])
    if quantity in _POSE:
        place = _POSE.index(quantity)
        if place < 3:
            return lambda batch: batch.bind("xpos")[:, body, place]
        return lambda batch: batch.bind("xquat")[:, body, place - 3]
    root, axis = int(model.body_rootid[body]), _TWIST.index(quantity)

    def linear(batch: Batch) -> Array:
        twist = batch.bind("cvel")[:, body]
        arm = batch.bind("xpos")[:, body] - batch.bind("subtree_com")[:, root]
        return (twist[:, 3:] + np.cross(twist[:, :3], arm))[:, axis]

    def angular(batch: Batch) -> Array:
        frame = batch.bind("xmat")[:, body].reshape(-1, 3, 3)
        return np.einsum("nji,nj->ni", frame, batch.bind("cvel")[:, body, :3])[:, axis - 3]

    return linear if axis < 3 else angular
