"""Terms of Isaac Lab (2.3.2) as ranges."""

from collections.abc import Callable

import numpy as np

from gapless.core.errors import InputError
from gapless.randomize.foreign.drawn import Draw, distribution_of, draw_of, operation_of, pair_of
from gapless.randomize.foreign.reading import Reading
from gapless.randomize.foreign.selection import servos_of, shapes_of
from gapless.randomize.foreign.term import Written

FRICTION = "a friction of the joint in the unit of PhysX: a torque since Isaac Sim 5, before that a coefficient"


def _material(reading: Reading, term: Written) -> None:
    static, dynamic = (draw_of(term, f"{name}_friction_range", "abs") for name in ("static", "dynamic"))
    bounce = pair_of(term.params.get("restitution_range"), "restitution_range")
    geoms = shapes_of(reading.model, reading.chosen(term, "body").names)
    if static and dynamic and static.ends != dynamic.ends:
        reading.note(term, "static and dynamic friction differ; MuJoCo has one: the static one is read")
    for geom in geoms:
        reading.add(term, f"geom/{geom}/friction", static or dynamic)
        if bounce not in (None, (0.0, 0.0)):
            reading.add(term, f"geom/{geom}/restitution", Draw(bounce, "abs", "uniform"))


def _mass(reading: Reading, term: Written) -> None:
    draw = draw_of(term, "mass_distribution_params", "add", term.params.get("mass_range"))
    whole = term.params.get("recompute_inertia", True) is not False
    for body in reading.chosen(term, "body").names:
        payload = not whole and draw is not None and draw.operation == "add"
        if not whole and not payload:
            reading.note(term, f"body/{body}/mass: its inertia stays as it is there; here it goes along")
        reading.add(term, f"body/{body}/{'payload' if payload else 'mass'}", draw)


def _centre(reading: Reading, term: Written) -> None:
    axes = term.params.get("com_range")
    if not isinstance(axes, dict):
        raise InputError('com_range is no mapping of axes: write {"x": (low, high)}')
    for body in reading.chosen(term, "body").names:
        for axis in "xyz":
            ends = pair_of(axes.get(axis), f"com_range of {axis}")
            if ends not in (None, (0.0, 0.0)):
                reading.add(term, f"body/{body}/com/{axis}", Draw(ends, "add", "uniform"))


def _gains(reading: Reading, term: Written) -> None:
    joints = reading.chosen(term, "joint").names
    servos = servos_of(reading.model, joints)
    if joints and not servos:
        reading.note(term, f"no position actuator of the model drives {', '.join(joints)}")
    for field, name in (("kp", "stiffness"), ("kd", "damping")):
        draw = draw_of(term, f"{name}_distribution_params", "abs")
        for actuator, gear in servos.items():
            reading.add(term, f"actuator/{actuator}/{field}", draw, 1 / gear)


def _joint(reading: Reading, term: Written) -> None:
    joints = reading.chosen(term, "joint").names
    for field, name in (("frictionloss", "friction"), ("armature", "armature")):
        draw = draw_of(term, f"{name}_distribution_params", "abs")
        for joint in joints:
            reading.add(term, f"joint/{joint}/{field}", draw)
        if field == "frictionloss" and draw is not None and joints:
            reading.note(term, f"changed: {FRICTION}")
    for name in ("lower_limit_distribution_params", "upper_limit_distribution_params"):
        if term.params.get(name) is not None:
            reading.note(term, f"left out: {name}: limits of joints are no parameter here")


def _gravity(reading: Reading, term: Written) -> None:
    """Reads gravity along its own direction; across it there is no parameter."""
    said = term.params.get("gravity_distribution_params")
    rows = np.array(said, dtype=np.float64) if isinstance(said, (list, tuple)) else np.zeros(0)
    if rows.shape != (2, 3):
        raise InputError("gravity_distribution_params is no pair of three numbers: write ([x, y, z], [x, y, z])")
    operation, down = operation_of(term, "abs"), reading.model.opt.gravity
    axis = int(np.abs(down).argmax())
    others = np.delete(rows, axis, axis=1)
    if (others != (1.0 if operation == "scale" else 0.0)).any() and not (operation == "scale" and not others.any()):
        reading.note(term, "changed: gravity across its own direction is left out")
    sign = -1.0 if down[axis] < 0 and operation != "scale" else 1.0
    first, second = (float(number) for number in rows[:, axis])
    if distribution_of(term) == "gaussian":  # mean and standard deviation
        ends = (sign * first, second)
    else:
        ends = (sign * first, sign * second) if sign > 0 else (sign * second, sign * first)
    reading.add(term, "world/gravity", Draw(ends, operation, distribution_of(term)))


TERMS: dict[str, Callable[[Reading, Written], None]] = {
    "randomize_rigid_body_material": _material,
    "randomize_rigid_body_mass": _mass,
    "add_body_mass": _mass,  # its name in the first versions
    "randomize_rigid_body_com": _centre,
    "randomize_actuator_gains": _gains,
    "randomize_joint_parameters": _joint,
    "randomize_physics_scene_gravity": _gravity,
}
