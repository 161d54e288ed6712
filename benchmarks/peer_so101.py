"""The peer on the SO-101 arm: whole motions; per joint damping, friction, armature, kp, kv and bias; one delay."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import mujoco
import numpy as np
import score
import sets
from mujoco import sysid
from peer import Task, bias_parameter, delay_parameter, positive, set_joint

MAX_ITERS = 12
START_KP = 17.8
"""Stiffness to start from [N·m/rad], hand-picked for the peer.

The Robot Studio's own MJCF of this servo, which the stock model derives from, has it (`joints_properties.xml` of
SO-ARM100); the stock model, Menagerie's, has 998.22.
"""
_JOINT_FIELDS = (("damping", 0.6, 0.005, 20.0), ("frictionloss", 0.1, 0.001, 2.0), ("armature", 0.028, 0.001, 0.5))


def model_path() -> Path:
    """Returns the arm's stock MJCF."""
    return next((sets.data_folder() / "so101" / "model").glob("*/so101.xml"))


def parameters(delay: sysid.Parameter, only: Sequence[str] | None = None) -> sysid.ParameterDict:
    """Returns the parameters of the five arm joints and the delay; or those of some names."""
    found = []
    for joint in score.SO101_SCORED:
        for field, start, low, high in _JOINT_FIELDS:
            found.append(positive(f"{field} {joint}", start, low, high, partial(set_joint, joint, field)))
        found.append(positive(f"kp {joint}", START_KP, 2.0, 2000.0, partial(_set_kp, joint)))
        found.append(positive(f"kv {joint}", 0.5, 0.01, 20.0, partial(_set_kv, joint)))
        found.append(bias_parameter(joint, 0.15))
    params = sysid.ParameterDict()
    for parameter in [*found, delay]:
        if only is None or parameter.name in only:
            params.add(parameter)
    return params


def task(logs: list[str], seconds: float = 40.0, only: Sequence[str] | None = None) -> Task:
    """Returns the arm's set-up: the first seconds of some motions, by name; all parameters, or those of some names.

    The delay is always there: predictions are shifted by it.
    """
    stock = mujoco.MjSpec.from_file(str(model_path()))
    delay = delay_parameter(stock, 0.02, 0.1)
    mount = stock.body("camera_mount")  # its mass is in a visual geom, which `remove_visuals` would take away
    full = stock.compile().body("camera_mount")
    mount.explicitinertial, mount.mass = True, full.mass[0]
    mount.ipos, mount.iquat, mount.inertia = full.ipos, full.iquat, full.inertia
    spec = sysid.remove_visuals(stock)
    for actuator in spec.actuators:
        actuator.nsample, actuator.delay = 0, 0.0
    delay.min_value = np.zeros(1)
    pieces = [score.so101_run(name, seconds) for name in logs]
    starts = [(run.readings[0], np.zeros(len(run.joints)), run.commands[:1]) for run in pieces]
    weights = np.array([100.0] * 5 + [0.0])
    return Task(spec, stock, parameters(delay, only), pieces, starts, weights, late_readings=True)


def _set_kp(actuator: str, spec: mujoco.MjSpec, value: float) -> None:
    """Writes a servo's stiffness."""
    sysid.apply_pgain(spec, actuator, value)


def _set_kv(actuator: str, spec: mujoco.MjSpec, value: float) -> None:
    """Writes a servo's damping."""
    sysid.apply_dgain(spec, actuator, value)
