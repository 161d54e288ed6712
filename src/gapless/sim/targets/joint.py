"""What can be wrong in a joint."""

from dataclasses import replace

import mujoco
import numpy as np

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.targets.actuators.drive import driven_joint, is_position_servo
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.target import Block, Place, Target, sized

SOFT = 1e-4  # stiffness that a load needs, as a share of it per rad or m
_UNITS = {
    "damping": ("N·m·s/rad", "N·s/m"),
    "frictionloss": ("N·m", "N"),
    "armature": ("kg·m²", "kg"),
    "stiffness": ("N·m/rad", "N/m"),
    "load": ("N·m", "N"),
    "offset": ("rad", "m"),
    "backlash": ("rad", "m"),
    "creep": ("1", "1"),
}


def has_one_axis(model: mujoco.MjModel, joint: int) -> bool:
    """Tells whether a joint is a hinge or a slide."""
    return mujoco.mjtJoint(int(model.jnt_type[joint])) in (
        mujoco.mjtJoint.mjJNT_HINGE,
        mujoco.mjtJoint.mjJNT_SLIDE,
    )


def joint_target(place: Place) -> Target:
    """Returns a target of hinge and slide joints."""
    place.require_field()
    model, field = place.model, place.field
    joints = np.array([j for j in place.ids if has_one_axis(model, int(j))], np.intp)
    if not len(joints):
        raise InputError(f"parameter {place.path}: only hinge and slide joints have a {field}: name one of these")
    unit = _UNITS[field][0 if model.jnt_type[joints[0]] == mujoco.mjtJoint.mjJNT_HINGE else 1]
    if field == "offset":
        return _offset(replace(place, ids=joints), unit)
    if field == "backlash":
        return _backlash(replace(place, ids=joints), unit)
    if field == "creep":
        return _creep(replace(place, ids=model.jnt_dofadr[joints].astype(np.intp)))
    if field in ("stiffness", "load"):
        return _spring(replace(place, ids=joints), unit)
    name, index = f"dof_{field}", model.jnt_dofadr[joints].astype(np.intp)

    def put(fields: Fields, here: Block, sizes: Array) -> None:
        fields.of(name, constants=field == "armature")[here] = sizes

    return sized(replace(place, ids=index), "actuator", unit, getattr(model, name)[index].copy(), put)


def _creep(place: Place) -> Target:
    """Returns the target of how much joints creep that friction should hold, as a factor of what the engine lets them.

    The engine's friction is soft: below its limit it lets a joint move at a speed of load * (1 - d) / d times a
    constant, d = solimpfriction[0]. The factor is on (1 - d) / d; a real joint that sticks is near 0.
    """
    impedance = place.model.dof_solimp[place.ids, :2].copy()
    softness = (1 - impedance) / impedance

    def write(fields: Fields, values: Array) -> None:
        here = np.ix_(fields.ids, place.ids)
        fields.of("dof_solimp")[(*here, slice(0, 2))] = 1 / (1 + values[:, None, None] * softness)

    return Target(place.path, "actuator", "1", 1.0, write)


def _spring(place: Place, unit: str) -> Target:
    """Returns the target of a spring's stiffness, or of a constant load: a cable, a spring that was left out.

    The engine has springs, force = k (rest - q), and a load is one that is far stretched: rest = load / k. A joint
    without stiffness gets one too soft to matter, `SOFT` of the load per unit of travel.
    """
    model, is_load = place.model, place.field == "load"
    base = model.jnt_stiffness[place.ids].copy()
    rest = model.qpos_spring[model.jnt_qposadr[place.ids]].copy()

    def put(fields: Fields, here: Block, sizes: Array) -> None:
        stiffness, worlds = fields.of("jnt_stiffness"), here[0]
        middle = fields.of("qpos_spring")
        address = model.jnt_qposadr[here[1]]
        load = stiffness[here] * (middle[worlds, address] - rest)
        load, hardness = (sizes, stiffness[here]) if is_load else (load, sizes)
        hardness = np.maximum(hardness, SOFT * np.abs(load))
        stiffness[here] = hardness
        middle[worlds, address] = rest + np.divide(load, hardness, out=np.zeros(load.shape), where=hardness > 0)

    return sized(place, "environment" if is_load else "actuator", unit, np.zeros(len(base)) if is_load else base, put)


def _servos(place: Place) -> tuple[list[int], Array]:
    """Returns the position actuators on these joints, and the actuator's travel per joint travel."""
    model = place.model
    found = [a for a in range(model.nu) if driven_joint(model, a) in place.ids and is_position_servo(model, a)]
    return found, model.actuator_gear[found, 0].copy()


def _backlash(place: Place, unit: str) -> Target:
    servos, gear = _servos(place)
    if not servos:
        text = "backlash needs a position actuator on the joint, it has none: add one, or leave this out"
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
