"""What can be wrong in a joint."""

from dataclasses import replace

import numpy as np

from gapless.core.signal import Array
from gapless.sim.targets.drive import driven_joint, has_one_axis, is_position_servo
from gapless.sim.targets.target import Fields, Index, NamedElements, Target, field_target, size_target

LOAD_STIFFNESS = 1e-4  # stiffness that a load needs, as a share of it per rad or m: too soft to matter
_UNITS = {  # field -> units of a hinge and of a slide
    "damping": "N·m·s/rad, N·s/m",
    "frictionloss": "N·m, N",
    "armature": "kg·m², kg",
    "stiffness": "N·m/rad, N/m",
    "load": "N·m, N",
    "offset": "rad, m",
    "backlash": "rad, m",
    "creep": "1",
}


def joint_target(named: NamedElements) -> Target:
    """Returns a target of hinge and slide joints."""
    model, field, joints = named.model, named.field, named.select(has_one_axis)
    if not len(joints):
        raise named.error(f"only hinge and slide joints have a {field}: name one of these")
    on_joints = replace(named, ids=joints)
    unit = on_joints.choose_unit(_UNITS[field])
    on_dofs = replace(named, ids=model.jnt_dofadr[joints].astype(np.intp))
    if field in ("offset", "backlash"):
        return _servo_target(on_joints, unit)
    if field == "creep":
        return _creep_target(on_dofs)
    if field in ("stiffness", "load"):
        return _spring_target(on_joints, unit)
    return field_target(on_dofs, unit, f"dof_{field}", constants=field == "armature")


def _creep_target(named: NamedElements) -> Target:
    """Returns the target of how much joints creep that friction should hold, as a factor of what the engine lets them.

    The engine's friction is soft: below its limit it lets a joint move at a speed of load * (1 - d) / d times a
    constant, d = solimpfriction[0]. The factor is on (1 - d) / d; a real joint that sticks is near 0.
    """
    impedance = named.model.dof_solimp[named.ids, :2].copy()
    softness = (1 - impedance) / impedance

    def write(fields: Fields, values: Array) -> None:
        here = np.ix_(fields.ids, named.ids)
        fields.of("dof_solimp")[(*here, slice(0, 2))] = 1 / (1 + values[:, None, None] * softness)

    return Target(named.path, "actuator", "1", 1.0, write)


def _spring_target(named: NamedElements, unit: str) -> Target:
    """Returns the target of a spring's stiffness, or of a constant load: a cable, a spring that was left out.

    The engine has springs, force = k (rest - q), and a load is one that is far stretched: rest = load / k. A joint
    without stiffness gets one of `LOAD_STIFFNESS`.
    """
    model, is_load = named.model, named.field == "load"
    base = model.jnt_stiffness[named.ids].copy()
    rest = model.qpos_spring[model.jnt_qposadr[named.ids]].copy()

    def write_sizes(fields: Fields, here: Index, sizes: Array) -> None:
        stiffness, middle = fields.of("jnt_stiffness"), fields.of("qpos_spring")
        there = (here[0], model.jnt_qposadr[here[1]])
        load = stiffness[here] * (middle[there] - rest)
        load, hardness = (sizes, stiffness[here]) if is_load else (load, sizes)
        hardness = np.maximum(hardness, LOAD_STIFFNESS * np.abs(load))
        stiffness[here] = hardness
        middle[there] = rest + np.divide(load, hardness, out=np.zeros(load.shape), where=hardness > 0)

    if is_load:
        return size_target(named, "environment", unit, np.zeros(len(base)), write_sizes)
    return size_target(named, "actuator", unit, base, write_sizes)


def _servo_target(named: NamedElements, unit: str) -> Target:
    """Returns the target of play before a joint, or of an encoder's zero, with which reading and servo both shift."""
    model = named.model
    on_joints = [driven_joint(model, a) in named.ids and is_position_servo(model, a) for a in range(model.nu)]
    servos = np.flatnonzero(on_joints)
    gear = model.actuator_gear[servos, 0].copy()  # the actuator's travel per joint travel
    encoders = {("joint", model.joint(int(j)).name, "position") for j in named.ids}
    measured = [(item.element, item.name, item.quantity) for item in named.project.measurements]
    columns = np.flatnonzero([item in encoders for item in measured])

    def write_backlash(fields: Fields, values: Array) -> None:
        fields.backlash[np.ix_(fields.ids, servos)] = values[:, None] * np.abs(gear)

    def write_offset(fields: Fields, values: Array) -> None:
        fields.bias[np.ix_(fields.ids, columns)] += values[:, None]
        fields.target_offset[np.ix_(fields.ids, servos)] -= values[:, None] * gear

    if named.field == "offset":
        return Target(named.path, "sensor", unit, 0.0, write_offset)
    if not len(servos):
        raise named.error("backlash needs a position actuator on the joint, it has none: add one, or leave this out")
    return Target(named.path, "actuator", unit, 0.0, write_backlash)
