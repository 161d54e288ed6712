"""What kind of joint, drive or body something is."""

import mujoco
import numpy as np

from gapless.core.signal import Array


def has_one_axis(model: mujoco.MjModel, joint: int) -> bool:
    """Tells whether a joint is a hinge or a slide."""
    kinds = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
    return mujoco.mjtJoint(int(model.jnt_type[joint])) in kinds


def is_hinge(model: mujoco.MjModel, joint: int | None) -> bool:
    """Tells whether a joint turns; False for None."""
    return joint is not None and bool(model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE)


def driven_joint(model: mujoco.MjModel, actuator: int) -> int | None:
    """Returns the hinge or slide joint that an actuator drives; None where it pulls on something else."""
    drives = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
    joint = int(model.actuator_trnid[actuator, 0])
    if mujoco.mjtTrn(int(model.actuator_trntype[actuator])) not in drives:
        return None
    return joint if has_one_axis(model, joint) else None


def is_dc_motor(model: mujoco.MjModel, actuator: int) -> bool:
    """Tells whether an actuator is the engine's DC motor."""
    return bool(model.actuator_gaintype[actuator] == mujoco.mjtGain.mjGAIN_DCMOTOR)


def is_filter(model: mujoco.MjModel, actuator: int) -> bool:
    """Tells whether an actuator has a first-order lag in the model as written."""
    filters = (mujoco.mjtDyn.mjDYN_FILTER, mujoco.mjtDyn.mjDYN_FILTEREXACT)
    return mujoco.mjtDyn(int(model.actuator_dyntype[actuator])) in filters


def is_position_servo(model: mujoco.MjModel, actuator: int) -> bool:
    """Tells whether an actuator is a position servo: force = kp (u - q) - kd v, or a DC motor that aims at it."""
    if is_dc_motor(model, actuator):
        aims = model.actuator_ctrlspec[actuator] & mujoco.mjtCtrlInput.mjINPUT_POS
        return bool(aims and model.actuator_gainprm[actuator, 4] > 0)
    gain, bias = model.actuator_gainprm[actuator, 0], model.actuator_biasprm[actuator]
    affine = model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_AFFINE
    return bool(affine and bias[1] != 0 and np.isclose(gain, -bias[1]))


def force_per_command(model: mujoco.MjModel, actuator: int) -> float:
    """Returns the size of the force that an actuator at rest exerts per unit of its command."""
    constants = model.actuator_gainprm[actuator]
    if not is_dc_motor(model, actuator):
        return abs(float(constants[0]))
    return abs(float(constants[4] if is_position_servo(model, actuator) else constants[1] / constants[0]))


def takes_force(model: mujoco.MjModel, actuator: int) -> bool:
    """Tells whether the command of an actuator is a force or torque as it is: one newton or N·m at a joint per unit.

    Not if commands are limited to -1 .. 1: then they are shares of something.
    """
    plain = force_per_command(model, actuator) == 1.0 and not is_dc_motor(model, actuator)
    plain = plain and model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_NONE
    share = model.actuator_ctrllimited[actuator] and model.actuator_ctrlrange[actuator].tolist() == [-1.0, 1.0]
    on_joint = driven_joint(model, actuator) is not None and model.actuator_gear[actuator, 0] == 1.0
    return bool(plain and not share and on_joint)


def engine_lag_remainder(model: mujoco.MjModel, time_constant_s: Array) -> Array:
    """Returns the share that lags of the model, (num_worlds, nu) [s], leave after a physics step of the engine."""
    ratio = model.opt.timestep / np.maximum(time_constant_s, 1e-15)
    exact = model.actuator_dyntype == mujoco.mjtDyn.mjDYN_FILTEREXACT
    return np.where(exact, np.exp(-ratio), 1 - ratio)


def free_joint_of(model: mujoco.MjModel, body: int) -> int | None:
    """Returns the free joint that carries a body, or None."""
    joint = int(model.body_jntadr[body])
    return joint if joint >= 0 and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE else None


def is_object(model: mujoco.MjModel, body: int) -> bool:
    """Tells whether a body is a thing of its own: carried by a free joint."""
    return free_joint_of(model, body) is not None
