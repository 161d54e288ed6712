"""Event terms of Isaac Lab (2.3.2): ranges written as terms, and terms read as ranges."""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.stats import norm

from gapless.core.errors import InputError
from gapless.randomize.event_terms.terms import MAX_STDS, EventTerm, TermDraw, read_pair
from gapless.randomize.event_terms.writer import EventFormat, TermWriter, pair_text, python_name, write_event_terms
from gapless.randomize.export.job import ExportedRange, get_element
from gapless.sim.targets import driven_joint, is_position_servo

FRICTION_UNIT = "a friction of the joint in the unit of PhysX: a torque since Isaac Sim 5, before that a coefficient"
NUM_BUCKETS = 250  # materials that PhysX draws at the start
FILE = '''
from isaaclab.envs import mdp
from isaaclab.managers import EventTermCfg as EventTerm
from isaaclab.managers import SceneEntityCfg
from isaaclab.utils import configclass

ROBOT = "robot"  # name of the asset in your scene
{entities}

@configclass
class EventCfg:
    """Training ranges that gapless found."""
{terms}'''
TERM = """
    {name} = EventTerm(  # {comment}
        func=mdp.{func},
{arguments}    )
"""
REASONS = {
    "measurement": "Isaac has no term for readings; its observation terms have noise",
    "damping": "Isaac's joint damping is that of the drive (kd); passive damping has no term",
    "gain": "Isaac draws stiffness and damping on their own, and a motor has no gain",
    "limit": "Isaac has no term for effort limits",
    "delay": "Isaac has no term for a delay; DelayedPDActuatorCfg has min_delay and max_delay in physics steps",
    "stiffness": "a contact or a passive spring has no term; joint stiffness of Isaac is that of the drive (kp)",
    "size/x": "randomize_rigid_body_scale scales whole assets before the simulation starts, not shapes",
}


def _draw_params(
    writer: TermWriter, entry: ExportedRange, name: str, operation: str = "abs", factor: float = 1.0
) -> dict[str, str]:
    """Returns the params that say what is drawn: two numbers times `factor`, operation and distribution.

    A normal range becomes `gaussian`, which is not cut, where none of its values beyond the ends has another sign;
    else uniform over its ends. With `scale` Isaac takes the two numbers for a range whatever the distribution, so that
    no normal range passes.
    """
    item, distribution = entry.range, "uniform"
    if item.kind == "log-uniform":
        numbers, distribution = pair_text(item.low, item.high, factor), "log_uniform"
    elif item.kind == "normal" and operation != "scale" and (item.mean - MAX_STDS * item.std > 0 or item.low < 0):
        numbers, distribution = f"({item.mean * factor!r}, {item.std * factor!r})", "gaussian"
        if min(item.high - item.mean, item.mean - item.low) < MAX_STDS * item.std:
            inside = norm.cdf(item.high, item.mean, item.std) - norm.cdf(item.low, item.mean, item.std)
            rarity = 1 / max(1 - float(inside), 1e-9)
            writer.note_change(f"gaussian without ends: 1 in {rarity:.0f} is outside them", entry)
    else:
        flat = writer.as_uniform(entry)
        numbers = pair_text(flat.low, flat.high, factor)
    return {name: numbers, "operation": f'"{operation}"', "distribution": f'"{distribution}"'}


def _write_mass(writer: TermWriter, entry: ExportedRange) -> None:
    others = [e for e in writer.job.select("body", "mass", "payload") if e.target != entry.target]
    if (entry.field == "payload" or entry.name == "*") and any(e.name in ("*", entry.name) for e in others):
        return writer.leave_out("Isaac's terms of a mass undo each other", entry)
    bodies = writer.job.elements(entry)
    if not bodies:
        return writer.leave_out("each body has a range of its own", entry)
    operation = "add" if entry.field == "payload" else "scale" if entry.name == "*" else "abs"
    params = _draw_params(writer, entry, "mass_distribution_params", operation)
    params |= {"recompute_inertia": repr(entry.field == "mass")}
    writer.add(entry, "randomize_rigid_body_mass", bodies, params)
    if entry.name == "*":
        writer.note_change("each body draws a factor of its own", entry)
    return None


def _write_centre(writer: TermWriter, entry: ExportedRange) -> None:
    """Writes one term for all axes of a body's centre: it adds to the centre, and once only."""
    axes = [e for e in writer.job.select("body", "com/x", "com/y", "com/z") if e.name == entry.name]
    if entry.field != axes[0].field:
        return
    ends: list[str] = []
    for one in axes:
        flat = writer.as_uniform(one)
        if flat.per != "robot":
            writer.note_change("drawn per robot: called again, the term adds to what it added before", one)
        ends.append(f'"{one.field[-1]}": {pair_text(flat.low, flat.high, shift=-one.nominal)}')
    params = {"com_range": "{" + ", ".join(ends) + "}"}
    name, comment = f"body_{python_name(entry.name)}_com", f"body/{entry.name}/com [m], added to the centre"
    bodies = writer.job.elements(entry)
    writer.add(entry, "randomize_rigid_body_com", bodies, params, name=name, mode="startup", comment=comment)


def _write_joint(writer: TermWriter, entry: ExportedRange) -> None:
    if entry.field == "armature":
        params = _draw_params(writer, entry, "armature_distribution_params")
    elif entry.nominal <= 0:
        why = "set absolutely, Isaac gives viscous friction the same number; give the model a frictionloss to scale"
        return writer.leave_out(why, entry)
    else:
        params = _draw_params(writer, entry, "friction_distribution_params", "scale", 1 / entry.nominal)
        how = f"a factor on the joint friction of Isaac's asset, which must be {entry.nominal:g} {entry.unit} there"
        writer.note_change(how, entry)
    return writer.add(entry, "randomize_joint_parameters", writer.job.elements(entry), params)


def _write_gain(writer: TermWriter, entry: ExportedRange) -> None:
    model = writer.job.model
    actuator = model.actuator(entry.name).id
    joint = driven_joint(model, actuator)
    if joint is None or not is_position_servo(model, actuator):
        return writer.leave_out("randomize_actuator_gains is for position drives of joints", entry)
    name = {"kp": "stiffness", "kd": "damping"}[entry.field]
    gear = float(model.actuator_gear[actuator, 0])
    params = _draw_params(writer, entry, f"{name}_distribution_params", factor=gear**2)
    return writer.add(entry, "randomize_actuator_gains", [get_element(model, "joint", joint)], params)


def _write_material(writer: TermWriter, entry: ExportedRange) -> None:
    """Writes one term for friction and restitution of a geom's body."""
    model = writer.job.model
    both = {e.field: e for e in writer.job.select("geom", "friction", "restitution") if e.name == entry.name}
    if "friction" not in both:
        return writer.leave_out("the term sets friction too; give friction a range", entry)
    if entry.field == "restitution":
        return None
    body = int(model.geom_bodyid[model.geom(entry.name).id])
    if not body:
        why = "it belongs to the world: set it in the physics_material of the ground"
        return writer.leave_out(why, *both.values())
    ends: dict[str, str] = {}
    for field, one in both.items():
        flat = writer.as_uniform(one)
        ends[field] = pair_text(flat.low, flat.high)
        smaller = "; dynamic friction is the smaller of two draws" if field == "friction" else ""
        how = f"one of {NUM_BUCKETS} drawn at the start for each shape of the body{smaller}"
        writer.note_change(f"{how}; PhysX averages both surfaces", one)
    writer.note_shared_term(entry, *both.values())
    params = {"static_friction_range": ends["friction"], "dynamic_friction_range": ends["friction"]}
    params |= {"restitution_range": ends.get("restitution", "(0.0, 0.0)"), "num_buckets": str(NUM_BUCKETS)}
    params |= {"make_consistent": "True"}
    return writer.add(entry, "randomize_rigid_body_material", [get_element(model, "body", body)], params)


def _write_gravity(writer: TermWriter, entry: ExportedRange) -> None:
    flat, gravity = writer.as_uniform(entry), writer.job.model.opt.gravity
    ends = np.sort(np.outer((flat.low, flat.high), gravity / np.linalg.norm(gravity)), axis=0) + 0.0
    params = {"gravity_distribution_params": f"({ends[0].tolist()}, {ends[1].tolist()})"}
    writer.note_change("all worlds share one draw with PhysX", entry)
    params |= {"operation": '"abs"', "distribution": '"uniform"'}
    writer.add(entry, "randomize_physics_scene_gravity", [], params)


def _read_material(term: EventTerm) -> None:
    static, dynamic = (term.read_draw(f"{name}_friction_range", "abs") for name in ("static", "dynamic"))
    bounce = read_pair(term.params.get("restitution_range"), "restitution_range")
    model = term.model
    bodies = {model.body(name).id for name in term.select("body")}
    touching = [g for g in range(model.ngeom) if model.geom_contype[g] or model.geom_conaffinity[g]]
    if static and dynamic and static.ends != dynamic.ends:
        term.note("static and dynamic friction differ; MuJoCo has one: the static one is read")
    for geom in [model.geom(g).name for g in touching if int(model.geom_bodyid[g]) in bodies]:
        if geom:
            term.add(f"geom/{geom}/friction", static or dynamic)
            if bounce not in (None, (0.0, 0.0)):
                term.add(f"geom/{geom}/restitution", TermDraw(bounce))


def _read_mass(term: EventTerm) -> None:
    draw = term.read_draw("mass_distribution_params", "add") or term.read_draw("mass_range", "add")
    for body in term.select("body"):
        term.add_mass(body, draw, with_inertia=term.params.get("recompute_inertia", True) is not False)


def _read_centre(term: EventTerm) -> None:
    axes = term.params.get("com_range")
    if not isinstance(axes, dict):
        raise InputError('com_range is no mapping of axes: write {"x": (low, high)}')
    for body in term.select("body"):
        for axis in "xyz":
            ends = read_pair(axes.get(axis), f"com_range of {axis}")
            if ends not in (None, (0.0, 0.0)):
                term.add(f"body/{body}/com/{axis}", TermDraw(ends, "add"))


def _read_gains(term: EventTerm) -> None:
    model, names = term.model, term.select("joint")
    joints = {model.joint(name).id for name in names}
    servos = [a for a in range(model.nu) if driven_joint(model, a) in joints and is_position_servo(model, a)]
    if joints and not servos:
        term.note(f"no position actuator of the model drives {', '.join(names)}")
    for field, name in (("kp", "stiffness"), ("kd", "damping")):
        draw = term.read_draw(f"{name}_distribution_params", "abs")
        for a in servos:
            term.add(f"actuator/{model.actuator(a).name}/{field}", draw, float(model.actuator_gear[a, 0]) ** -2)


def _read_joint(term: EventTerm) -> None:
    joints = term.select("joint")
    for field, name in (("frictionloss", "friction"), ("armature", "armature")):
        draw = term.read_draw(f"{name}_distribution_params", "abs")
        for joint in joints:
            term.add(f"joint/{joint}/{field}", draw)
        if field == "frictionloss" and draw is not None and joints:
            term.note(f"changed: {FRICTION_UNIT}")
    for name in ("lower_limit_distribution_params", "upper_limit_distribution_params"):
        if term.params.get(name) is not None:
            term.note(f"left out: {name}: limits of joints are no parameter here")


def _read_gravity(term: EventTerm) -> None:
    """Reads gravity along its own direction; across it there is no parameter."""
    value = term.params.get("gravity_distribution_params")
    rows = np.array(value, dtype=np.float64) if isinstance(value, (list, tuple)) else np.zeros(0)
    if rows.shape != (2, 3):
        raise InputError("gravity_distribution_params is no pair of three numbers: write ([x, y, z], [x, y, z])")
    operation, distribution, gravity = term.read_operation("abs"), term.distribution, term.model.opt.gravity
    axis = int(np.abs(gravity).argmax())
    others = np.delete(rows, axis, axis=1)
    if (others != (1.0 if operation == "scale" else 0.0)).any() and not (operation == "scale" and not others.any()):
        term.note("changed: gravity across its own direction is left out")
    first, second = rows[:, axis].tolist()
    if gravity[axis] < 0 and operation != "scale":  # `gaussian` has mean and standard deviation, others have two ends
        first, second = (-first, second) if distribution == "gaussian" else (-second, -first)
    term.add("world/gravity", TermDraw((first, second), operation, distribution))


WRITERS = {
    **dict.fromkeys((("body", "mass"), ("body", "payload")), _write_mass),
    **dict.fromkeys((("body", "com/x"), ("body", "com/y"), ("body", "com/z")), _write_centre),
    **dict.fromkeys((("joint", "frictionloss"), ("joint", "armature")), _write_joint),
    **dict.fromkeys((("actuator", "kp"), ("actuator", "kd")), _write_gain),
    **dict.fromkeys((("geom", "friction"), ("geom", "restitution")), _write_material),
    ("world", "gravity"): _write_gravity,
}
ONLY_NAMED = frozenset(place for place in WRITERS if place[0] != "body")
FORMAT = EventFormat("Isaac Lab", "interval", FILE, TERM, WRITERS, REASONS, ONLY_NAMED)
write = partial(write_event_terms, FORMAT)  # writes a job
READERS: dict[str, Callable[[EventTerm], None]] = {
    "randomize_rigid_body_material": _read_material,
    "randomize_rigid_body_mass": _read_mass,
    "add_body_mass": _read_mass,  # its name in the first versions
    "randomize_rigid_body_com": _read_centre,
    "randomize_actuator_gains": _read_gains,
    "randomize_joint_parameters": _read_joint,
    "randomize_physics_scene_gravity": _read_gravity,
}
