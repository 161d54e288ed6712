"""Ranges as event terms of Isaac Lab (2.3.2), to paste into an environment's configuration."""

from pathlib import Path

import numpy as np

from gapless.core.distribution import Range
from gapless.randomize.export.entries import Entry, Job, driven_joint, is_position_servo, owner_of
from gapless.randomize.export.notes import as_comment, changed, left_out, uncorrelated
from gapless.randomize.export.terms import Term, drawn_alike, mode_of, names_text, only_uniform, pair, term_name

FAR = 4.0  # standard deviations that a bell which is not cut is taken to reach
BUCKETS = 250
HEAD = """
from isaaclab.envs import mdp
from isaaclab.managers import EventTermCfg as EventTerm
from isaaclab.managers import SceneEntityCfg
from isaaclab.utils import configclass

ROBOT = "robot"  # name of the asset in your scene
"""
WHY = {
    "damping": "Isaac's joint damping is that of the drive (kd); passive damping has no term",
    "gain": "Isaac draws stiffness and damping on their own, and a motor has no gain",
    "limit": "Isaac has no term for effort limits",
    "delay": "Isaac has no term for a delay; DelayedPDActuatorCfg has min_delay and max_delay in physics steps",
    "stiffness": "a contact or a passive spring has no term; joint stiffness of Isaac is that of the drive (kp)",
    "size/x": "randomize_rigid_body_scale scales whole assets before the simulation starts, not shapes",
}


def write(job: Job, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Returns a Python file with the class `EventCfg`."""
    del folder
    terms: list[Term] = []
    notes: list[str] = []
    for entry in job.entries:
        made, said = _terms(entry, job)
        terms += made
        notes += said
    notes += uncorrelated(job)
    named = {owner_of(job.model, k) for k in range(1, job.model.nbody)} - {"robot"}
    head = as_comment(job, notes) + HEAD + "".join(f"{n.upper()} = {n!r}\n" for n in sorted(map(term_name, named)))
    body = "\n".join(_text(term, job) for term in terms) or "    pass\n"
    about = '    """Training ranges that gapless found."""'
    return f"{head}\n\n@configclass\nclass EventCfg:\n{about}\n\n{body}", tuple(notes)


def _text(term: Term, job: Job) -> str:
    interval_s = job.blueprint.interval_s
    every = f"        interval_range_s=({interval_s!r}, {interval_s!r}),\n" if term.mode == "interval" else ""
    params = "".join(f'            "{name}": {value},\n' for name, value in term.params.items())
    head = f"    {term.name} = EventTerm(  # {term.comment}\n        func=mdp.{term.func},\n"
    return f'{head}        mode="{term.mode}",\n{every}        params={{\n{params}        }},\n    )\n'


def _terms(entry: Entry, job: Job) -> tuple[list[Term], list[str]]:
    """Returns the terms of one range, and what to say about them."""
    if entry.kind == "body" and entry.field in ("mass", "payload"):
        return _mass(entry, job)
    if entry.kind == "body" and entry.field.startswith("com/"):
        return _centre(entry, job)
    if entry.kind == "joint" and entry.field in ("frictionloss", "armature"):
        return _joint(entry, job)
    if entry.kind == "actuator" and entry.field in ("kp", "kd"):
        return _gain(entry, job)
    if entry.kind == "geom" and entry.field in ("friction", "restitution") and entry.name != "*":
        return _material(entry, job)
    if entry.target == "world/gravity":
        return _gravity(entry, job)
    why = WHY.get(entry.field, f"Isaac has no term for {entry.kind} {entry.field}")
    if entry.kind == "measurement":
        why = "Isaac has no term for readings; its observation terms have noise"
    if entry.field == "friction":
        why = "one factor on all frictions has no term; name the geoms"
    return [], [left_out(entry.target, why)]


def _drawn(entry: Entry, factor: float = 1.0, operation: str = "abs") -> tuple[str, str, list[str]]:
    """Returns the pair of numbers, the distribution, and what to say about them.

    A bell becomes `gaussian`, which is not cut, where none of its values beyond the ends has another sign; else
    uniform over its ends. With `scale` Isaac takes the pair for a range whatever the distribution, so that no bell
    passes.
    """
    item = entry.range
    if item.kind == "log-uniform":
        return pair(item.low, item.high, factor), "log_uniform", []
    same_sign = item.mean - FAR * item.std > 0 or item.low < 0
    if item.kind == "normal" and same_sign and operation != "scale":
        inside = (item.high - item.mean, item.mean - item.low)
        text = f"gaussian without ends: 1 in {_rarity(item):.0f} is outside them"
        notes = [] if min(inside) >= FAR * item.std else [changed(entry.target, text)]
        return f"({item.mean * factor!r}, {item.std * factor!r})", "gaussian", notes
    flat, notes = only_uniform(entry, "Isaac Lab")
    return pair(flat.low, flat.high, factor), "uniform", notes


def _rarity(item: Range) -> float:
    from scipy.stats import norm

    inside = norm.cdf(item.high, item.mean, item.std) - norm.cdf(item.low, item.mean, item.std)
    return float(1 / max(1 - inside, 1e-9))


def _asset(entity: str, kind: str, names: list[str]) -> str:
    constant = "ROBOT" if entity == "robot" else term_name(entity).upper()
    return f"SceneEntityCfg({constant}, {kind}_names={names_text(names)})"


def _made(entry: Entry, func: str, params: dict[str, str], per: str | None = None) -> Term:
    mode = per or mode_of(entry.range.per, "interval")
    return Term(term_name(entry.target), func, mode, params, f"{entry.target} [{entry.unit}]")


def _mass(entry: Entry, job: Job) -> tuple[list[Term], list[str]]:
    model = job.model
    bodies = [b for b in range(1, model.nbody) if job.covers(entry, model.body(b).name) and model.body_mass[b] > 0]
    others = [e for e in job.of("body", "mass", "payload") if e.target != entry.target]
    if (entry.field == "payload" or entry.name == "*") and any(e.name in ("*", entry.name) for e in others):
        return [], [left_out(entry.target, "Isaac's terms of a mass undo each other")]
    if not bodies:
        return [], [left_out(entry.target, "each body has a range of its own")]
    operation = "add" if entry.field == "payload" else "scale" if entry.name == "*" else "abs"
    numbers, distribution, notes = _drawn(entry, operation=operation)
    groups: dict[str, list[str]] = {}
    for body in bodies:
        groups.setdefault(owner_of(job.model, body), []).append(model.body(body).name)
    terms = []
    for entity, names in groups.items():
        params = {"asset_cfg": _asset(entity, "body", names), "mass_distribution_params": numbers}
        params |= {"operation": repr(operation), "distribution": repr(distribution)}
        params |= {"recompute_inertia": repr(entry.field == "mass")}
        term = _made(entry, "randomize_rigid_body_mass", params)
        suffix = f"_{term_name(entity)}" if len(groups) > 1 else ""
        terms.append(Term(term.name + suffix, term.func, term.mode, params, term.comment))
    if entry.name == "*":
        notes.append(changed(entry.target, "each body draws a factor of its own"))
    return terms, notes


def _centre(entry: Entry, job: Job) -> tuple[list[Term], list[str]]:
    """Returns one term for all axes of a body's centre: it adds to the centre, and once only."""
    axes = {e.field[-1]: e for e in job.of("body", "com/x", "com/y", "com/z") if e.name == entry.name}
    if entry.field[-1] != next(iter(axes)):
        return [], []
    notes: list[str] = []
    said: list[str] = []
    for axis, one in axes.items():
        flat, note = only_uniform(one, "Isaac Lab")
        notes += note
        if flat.per != "robot":
            notes.append(changed(one.target, "drawn per robot: called again, the term adds to what it added before"))
        said.append(f'"{axis}": {pair(flat.low, flat.high, shift=-one.nominal)}')
    entity = owner_of(job.model, job.model.body(entry.name).id)
    params = {"asset_cfg": _asset(entity, "body", [entry.name]), "com_range": "{" + ", ".join(said) + "}"}
    term = _made(entry, "randomize_rigid_body_com", params, "startup")
    comment = f"body/{entry.name}/com [m], added to the centre"
    return [Term(f"body_{term_name(entry.name)}_com", term.func, term.mode, params, comment)], notes


def _joint(entry: Entry, job: Job) -> tuple[list[Term], list[str]]:
    model = job.model
    if entry.name == "*":
        return [], [left_out(entry.target, "each joint would draw a factor of its own; name the joints")]
    entity = owner_of(job.model, int(model.jnt_bodyid[model.joint(entry.name).id]))
    params = {"asset_cfg": _asset(entity, "joint", [entry.name])}
    if entry.field == "armature":
        numbers, distribution, notes = _drawn(entry)
        params |= {"armature_distribution_params": numbers, "operation": "'abs'", "distribution": repr(distribution)}
        return [_made(entry, "randomize_joint_parameters", params)], notes
    if entry.nominal <= 0:
        text = "set absolutely, Isaac gives viscous friction the same number; give the model a frictionloss to scale"
        return [], [left_out(entry.target, text)]
    numbers, distribution, notes = _drawn(entry, 1 / entry.nominal, "scale")
    params |= {"friction_distribution_params": numbers, "operation": "'scale'", "distribution": repr(distribution)}
    text = f"a factor on the joint friction of Isaac's asset, which must be {entry.nominal:g} {entry.unit} there"
    return [_made(entry, "randomize_joint_parameters", params)], [*notes, changed(entry.target, text)]


def _gain(entry: Entry, job: Job) -> tuple[list[Term], list[str]]:
    model = job.model
    if entry.name == "*":
        return [], [left_out(entry.target, "each actuator would draw a factor of its own; name the actuators")]
    actuator = model.actuator(entry.name).id
    joint = driven_joint(model, actuator)
    if joint is None or not is_position_servo(model, actuator):
        return [], [left_out(entry.target, "randomize_actuator_gains is for position drives of joints")]
    gear = float(model.actuator_gear[actuator, 0]) ** 2
    numbers, distribution, notes = _drawn(entry, gear)
    name = {"kp": "stiffness", "kd": "damping"}[entry.field]
    params = {"asset_cfg": _asset("robot", "joint", [model.joint(joint).name])}
    params |= {f"{name}_distribution_params": numbers, "operation": "'abs'", "distribution": repr(distribution)}
    return [_made(entry, "randomize_actuator_gains", params)], notes


def _material(entry: Entry, job: Job) -> tuple[list[Term], list[str]]:
    """Returns one term for friction and restitution of a geom's body."""
    model = job.model
    both = {e.field: e for e in job.of("geom", "friction", "restitution") if e.name == entry.name}
    if "friction" not in both:
        return [], [left_out(entry.target, "the term sets friction too; give friction a range")]
    if entry.field == "restitution":
        return [], []
    body = int(model.geom_bodyid[model.geom(entry.name).id])
    if not body:
        why = "it belongs to the world: set it in the physics_material of the ground"
        return [], [left_out(one.target, why) for one in both.values()]
    notes = []
    ends = {}
    for name, one in both.items():
        flat, said = only_uniform(one, "Isaac Lab")
        ends[name], notes = pair(flat.low, flat.high), notes + said
        smaller = "; dynamic friction is the smaller of two draws" if name == "friction" else ""
        text = f"one of {BUCKETS} drawn at the start for each shape of the body{smaller}; PhysX averages both surfaces"
        notes.append(changed(one.target, text))
    notes += drawn_alike(entry, list(both.values()))
    params = {"asset_cfg": _asset(owner_of(job.model, body), "body", [model.body(body).name])}
    params |= {"static_friction_range": ends["friction"], "dynamic_friction_range": ends["friction"]}
    params |= {"restitution_range": ends.get("restitution", "(0.0, 0.0)"), "num_buckets": str(BUCKETS)}
    params |= {"make_consistent": "True"}
    return [_made(entry, "randomize_rigid_body_material", params)], notes


def _gravity(entry: Entry, job: Job) -> tuple[list[Term], list[str]]:
    flat, notes = only_uniform(entry, "Isaac Lab")
    down = job.model.opt.gravity / np.linalg.norm(job.model.opt.gravity)
    ends = np.sort(np.stack([down * flat.low, down * flat.high]), axis=0) + 0.0
    numbers = f"({ends[0].tolist()}, {ends[1].tolist()})"
    params = {"gravity_distribution_params": numbers, "operation": "'abs'", "distribution": "'uniform'"}
    notes.append(changed(entry.target, "all worlds share one draw with PhysX"))
    return [_made(entry, "randomize_physics_scene_gravity", params)], notes
