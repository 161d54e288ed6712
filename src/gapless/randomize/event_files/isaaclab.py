"""Terms of Isaac Lab (2.3.2) as ranges."""

from collections.abc import Callable

import numpy as np

from gapless.core.errors import InputError
from gapless.randomize.event_files.term_reader import TermReader
from gapless.randomize.event_files.terms import EventTerm, TermDraw, read_pair
from gapless.sim.targets import driven_joint, is_position_servo

FRICTION_UNIT = "a friction of the joint in the unit of PhysX: a torque since Isaac Sim 5, before that a coefficient"


def _read_material(reader: TermReader, term: EventTerm) -> None:
    static, dynamic = (term.read_draw(f"{name}_friction_range", "abs") for name in ("static", "dynamic"))
    bounce = read_pair(term.params.get("restitution_range"), "restitution_range")
    model = reader.model
    bodies = {model.body(name).id for name in reader.select(term, "body")}
    touching = [g for g in range(model.ngeom) if model.geom_contype[g] or model.geom_conaffinity[g]]
    if static and dynamic and static.ends != dynamic.ends:
        reader.note(term, "static and dynamic friction differ; MuJoCo has one: the static one is read")
    for geom in [model.geom(g).name for g in touching if int(model.geom_bodyid[g]) in bodies]:
        if geom:
            reader.add(term, f"geom/{geom}/friction", static or dynamic)
            if bounce not in (None, (0.0, 0.0)):
                reader.add(term, f"geom/{geom}/restitution", TermDraw(bounce))


def _read_mass(reader: TermReader, term: EventTerm) -> None:
    draw = term.read_draw("mass_distribution_params", "add") or term.read_draw("mass_range", "add")
    with_inertia = term.params.get("recompute_inertia", True) is not False
    is_payload = not with_inertia and draw is not None and draw.operation == "add"
    for body in reader.select(term, "body"):
        if not with_inertia and not is_payload:
            reader.note(term, f"body/{body}/mass: its inertia stays as it is there; here it goes along")
        reader.add(term, f"body/{body}/{'payload' if is_payload else 'mass'}", draw)


def _read_centre(reader: TermReader, term: EventTerm) -> None:
    axes = term.params.get("com_range")
    if not isinstance(axes, dict):
        raise InputError('com_range is no mapping of axes: write {"x": (low, high)}')
    for body in reader.select(term, "body"):
        for axis in "xyz":
            ends = read_pair(axes.get(axis), f"com_range of {axis}")
            if ends not in (None, (0.0, 0.0)):
                reader.add(term, f"body/{body}/com/{axis}", TermDraw(ends, "add"))


def _read_gains(reader: TermReader, term: EventTerm) -> None:
    model, names = reader.model, reader.select(term, "joint")
    joints = {model.joint(name).id for name in names}
    servos = [a for a in range(model.nu) if driven_joint(model, a) in joints and is_position_servo(model, a)]
    if joints and not servos:
        reader.note(term, f"no position actuator of the model drives {', '.join(names)}")
    for field, name in (("kp", "stiffness"), ("kd", "damping")):
        draw = term.read_draw(f"{name}_distribution_params", "abs")
        for a in servos:
            reader.add(term, f"actuator/{model.actuator(a).name}/{field}", draw, float(model.actuator_gear[a, 0]) ** -2)


def _read_joint(reader: TermReader, term: EventTerm) -> None:
    joints = reader.select(term, "joint")
    for field, name in (("frictionloss", "friction"), ("armature", "armature")):
        draw = term.read_draw(f"{name}_distribution_params", "abs")
        for joint in joints:
            reader.add(term, f"joint/{joint}/{field}", draw)
        if field == "frictionloss" and draw is not None and joints:
            reader.note(term, f"changed: {FRICTION_UNIT}")
    for name in ("lower_limit_distribution_params", "upper_limit_distribution_params"):
        if term.params.get(name) is not None:
            reader.note(term, f"left out: {name}: limits of joints are no parameter here")


def _read_gravity(reader: TermReader, term: EventTerm) -> None:
    """Reads gravity along its own direction; across it there is no parameter."""
    value = term.params.get("gravity_distribution_params")
    rows = np.array(value, dtype=np.float64) if isinstance(value, (list, tuple)) else np.zeros(0)
    if rows.shape != (2, 3):
        raise InputError("gravity_distribution_params is no pair of three numbers: write ([x, y, z], [x, y, z])")
    operation, distribution, gravity = term.read_operation("abs"), term.distribution, reader.model.opt.gravity
    axis = int(np.abs(gravity).argmax())
    others = np.delete(rows, axis, axis=1)
    if (others != (1.0 if operation == "scale" else 0.0)).any() and not (operation == "scale" and not others.any()):
        reader.note(term, "changed: gravity across its own direction is left out")
    first, second = rows[:, axis].tolist()
    if gravity[axis] < 0 and operation != "scale":  # `gaussian` has mean and standard deviation, others have two ends
        first, second = (-first, second) if distribution == "gaussian" else (-second, -first)
    reader.add(term, "world/gravity", TermDraw((first, second), operation, distribution))


TERMS: dict[str, Callable[[TermReader, EventTerm], None]] = {
    "randomize_rigid_body_material": _read_material,
    "randomize_rigid_body_mass": _read_mass,
    "add_body_mass": _read_mass,  # its name in the first versions
    "randomize_rigid_body_com": _read_centre,
    "randomize_actuator_gains": _read_gains,
    "randomize_joint_parameters": _read_joint,
    "randomize_physics_scene_gravity": _read_gravity,
}
