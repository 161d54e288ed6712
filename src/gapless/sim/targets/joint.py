"""What can be wrong in a joint."""

from dataclasses import replace

import mujoco
import numpy as np

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.fields import Fields
from gapless.sim.targets.actuator import driven_joint, is_position_servo
from gapless.sim.targets.target import Block, Place, Target, sized

_FIELDS = ("damping", "frictionloss", "armature", "stiffness", "offset", "backlash")
_UNITS = {
    "damping": ("N·m·s/rad", "N·s/m"),
    "frictionloss": ("N·m", "N"),
    "armature": ("kg·m²", "kg"),
    "stiffness": ("N·m/rad", "N/m"),
    "offset": ("rad", "m"),
    "backlash": ("rad", "m"),
}


def has_one_axis(model: mujoco.MjModel, joint: int) -> bool:
    """Tells whether a joint is a hinge or a slide."""
    return mujoco.mjtJoint(int(model.jnt_type[joint])) in (
        mujoco.mjtJoint.mjJNT_HINGE,
        mujoco.mjtJoint.mjJNT_SLIDE,
    )


def joint_target(place: Place) -> Target:
    """Returns a target of hinge and slide joints."""
    place.require(_FIELDS)
    model, field = place.model, place.field
    joints = np.array([j for j in place.ids if has_one_axis(model, int(j))], np.intp)
    if not len(joints):
        raise InputError(f"parameter {place.path}: only hinge and slide joints have a {field}")
    unit = _UNITS[field][0 if model.jnt_type[joints[0]] == mujoco.mjtJoint.mjJNT_HINGE else 1]
    if field == "offset":
        return _offset(replace(place, ids=joints), unit)
    if field == "backlash":
        return _backlash(replace(place, ids=joints), unit)
    name = "jnt_stiffness" if field == "stiffness" else f"dof_{field}"
    index = joints if field == "stiffness" else model.jnt_dofadr[joints].astype(np.intp)

    def put(fields: Fields, here: Block, sizes: Array) -> None:
        fields.of(name, constants=field == "armature")[here] = sizes

    return sized(replace(place, ids=index), "actuator", unit, getattr(model, name)[index].copy(), put)


def _servos(place: Place) -> tuple[list[int], Array]:
    """Returns the position actuators on these joints, and the actuator's travel per joint travel."""
    model = place.model
    found = [a for a in range(model.nu) if driven_joint(model, a) in place.ids and is_position_servo(model, a)]
    return found, model.actuator_gear[found, 0].copy()


def _backlash(place: Place, unit: str) -> Target:
    servos, gear = _servos(place)
    if not servos:
        text = "backlash needs a position actuator on the joint, it has none"
        raise InputError(f"parameter {place.path}: {text}")

    def write(fields: Fields, values: Array) -> None:
        fields.backlash[np.ix_(fields.ids, servos)] = values[:, None] * np.abs(gear)

    return Target(place.path, "actuator", unit, 0.0, write)


def _offset(place: Place, unit: str) -> Target:
    """Returns the target of an encoder's zero: the reading and the servo that follows it both shift."""
    servos, gear = _servos(place)
    names = {place.model.joint(int(j)).name for j in place.ids}
    columns = [
        k
        for k, item in enumerate(place.project.measurements)
        if item.element == "joint" and item.quantity == "position" and item.name in names
    ]

    def write(fields: Fields, values: Array) -> None:
        fields.bias[np.ix_(fields.ids, columns)] += values[:, None]
        fields.target_offset[np.ix_(fields.ids, servos)] -= values[:, None] * gear

    return Target(place.path, "sensor", unit, 0.0, write)
