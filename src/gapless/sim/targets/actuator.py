"""What can be wrong in an actuator."""

from dataclasses import replace

import mujoco
import numpy as np

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.fields import Fields
from gapless.sim.targets.target import Block, Place, Target, sized

_FIELDS = ("gain", "kp", "kd", "delay", "limit")
NO_LIMIT = 1e6  # stands for the limit of an actuator that has none [N·m or N]


def is_position_servo(model: mujoco.MjModel, actuator: int) -> bool:
    """Tells whether an actuator is a position servo: force = kp (u - q) - kd v."""
    gain, bias = model.actuator_gainprm[actuator, 0], model.actuator_biasprm[actuator]
    affine = model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_AFFINE
    return bool(affine and bias[1] != 0 and np.isclose(gain, -bias[1]))


def driven_joint(model: mujoco.MjModel, actuator: int) -> int | None:
    """Returns the hinge or slide joint that an actuator drives; None where it pulls on something else."""
    drives = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
    joint = int(model.actuator_trnid[actuator, 0])
    if mujoco.mjtTrn(int(model.actuator_trntype[actuator])) not in drives:
        return None
    one_axis = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
    return joint if mujoco.mjtJoint(int(model.jnt_type[joint])) in one_axis else None


def actuator_target(place: Place) -> Target:
    """Returns a target of actuators."""
    place.require(_FIELDS)
    if place.field == "delay":

        def write_delay(fields: Fields, values: Array) -> None:
            fields.delay_s[np.ix_(fields.ids, place.ids)] += values[:, None]

        return Target(place.path, "latency", "s", 0.0, write_delay)
    if place.field == "gain":

        def write_gain(fields: Fields, values: Array) -> None:
            here = np.ix_(fields.ids, place.ids)
            fields.of("actuator_gainprm")[here] *= values[:, None, None]
            fields.of("actuator_biasprm")[here] *= values[:, None, None]

        return Target(place.path, "actuator", "1", 1.0, write_gain)
    return _limit(place) if place.field == "limit" else _servo_gain(place)


def _limit(place: Place) -> Target:
    """Returns the target of the largest force; a range that is not symmetric keeps its shape."""
    model = place.model
    limited = model.actuator_forcelimited[place.ids].astype(bool)
    force = np.where(limited[:, None], model.actuator_forcerange[place.ids], [-NO_LIMIT, NO_LIMIT])
    base = np.abs(force).max(axis=1)
    base[base == 0] = NO_LIMIT

    def put(fields: Fields, here: Block, sizes: Array) -> None:
        fields.of("actuator_forcelimited")[here] = 1
        fields.of("actuator_forcerange")[here] = force * (sizes / base)[:, :, None]

    return sized(place, "actuator", "N·m" if _turns(place) else "N", base, put)


def _servo_gain(place: Place) -> Target:
    model, column = place.model, 1 if place.field == "kp" else 2
    servos = np.array([a for a in place.ids if is_position_servo(model, int(a))], np.intp)
    if not len(servos):
        name = model.actuator(int(place.ids[0])).name
        text = f"{name} is no position actuator; write actuator/{name}/gain"
        raise InputError(f"parameter {place.path}: {text}")

    def put(fields: Fields, here: Block, sizes: Array) -> None:
        fields.of("actuator_biasprm")[(*here, column)] = -sizes
        if column == 1:
            fields.of("actuator_gainprm")[(*here, 0)] = sizes

    turning, sliding = {"kp": ("N·m/rad", "N/m"), "kd": ("N·m·s/rad", "N·s/m")}[place.field]
    unit = turning if _turns(place) else sliding
    return sized(replace(place, ids=servos), "actuator", unit, -model.actuator_biasprm[servos, column], put)


def _turns(place: Place) -> bool:
    """Tells whether the first actuator drives a hinge."""
    joint = driven_joint(place.model, int(place.ids[0]))
    return joint is not None and place.model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE
