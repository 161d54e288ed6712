"""Ranges as event terms of mjlab (1.6.0), to paste into an environment's configuration."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np

from gapless.core.distribution import Range
from gapless.randomize.export.entries import Entry, Job, is_position_servo, owner_of
from gapless.randomize.export.notes import as_comment, changed, left_out, uncorrelated
from gapless.randomize.export.terms import Term, drawn_alike, mode_of, names_text, only_uniform, pair, term_name

JOINT_TERMS = {
    "damping": "joint_damping",
    "frictionloss": "joint_friction",
    "armature": "joint_armature",
    "stiffness": "joint_stiffness",
}
PRIORITY = "of two geoms MuJoCo takes the larger friction: give this one a `priority` in the model, or it shows less"
NAMED = "each of them has a range of its own"
WHOLE = "give each actuator an ActuatorCfg of its own, in the model's order: this term picks configurations"
APART = "each draws a factor of its own: this term has no shared_random"
HEAD = '''
import math

import torch
from mjlab.envs.mdp import dr
from mjlab.managers.event_manager import EventTermCfg
from mjlab.managers.scene_entity_config import SceneEntityCfg


def normal(mean, std):
    """Normal, cut at the term's range. (mjlab's own "gaussian" draws one value for all worlds.)"""

    def sample(low, high, shape, device):
        ends = [torch.special.ndtr((end.double() - mean) / std) for end in (low, high)]
        place = ends[0] + (ends[1] - ends[0]) * torch.rand(shape, device=device, dtype=torch.double)
        return torch.clamp(mean + std * torch.special.ndtri(place), low, high).float()

    return dr.Distribution("normal", sample)


def log_normal(median, std):
    """The logarithm is normal; cut at the term's range."""
    bell = normal(math.log(median), std)
    return dr.Distribution("log_normal", lambda lo, hi, *to: torch.exp(bell.sample(torch.log(lo), torch.log(hi), *to)))


def beta(a, b):
    """Beta on the term's range."""
    inside = torch.distributions.Beta(a, b)
    return dr.Distribution("beta", lambda lo, hi, shape, device: lo + (hi - lo) * inside.sample(shape).to(device))


def mixture(*parts):
    """Bells (weight, mean, std), cut at the term's range."""

    def sample(low, high, shape, device):
        bells = [torch.distributions.Normal(mean, std) for _, mean, std in parts]
        inside = [float(bell.cdf(high.cpu()) - bell.cdf(low.cpu())) for bell in bells]
        weights = torch.tensor([part[0] * share for part, share in zip(parts, inside)])
        which = torch.multinomial(weights, math.prod(shape), replacement=True).reshape(shape).to(device)
        drawn = [normal(mean, std).sample(low, high, shape, device) for _, mean, std in parts]
        return torch.stack(drawn).gather(0, which[None])[0]

    return dr.Distribution("mixture", sample)


def of_mass(distribution, mass):
    """Draws a mass [kg] where pseudo_inertia wants alpha: mass and inertia grow by exp(2 alpha)."""

    def sample(low, high, shape, device):
        drawn = distribution.sample(mass * torch.exp(2 * low), mass * torch.exp(2 * high), shape, device)
        return torch.where(low == high, low.expand(shape), 0.5 * torch.log(drawn / mass))

    return dr.Distribution(f"{distribution.name} mass", sample)


def apart(*choices):
    """A distribution for each range, for terms that draw two things: (range, distribution) each."""

    def sample(low, high, shape, device):
        off = [abs(float(low) - ends[0]) + abs(float(high) - ends[1]) for ends, _ in choices]
        return choices[off.index(min(off))][1].sample(low, high, shape, device)

    return dr.Distribution("apart", sample)


ROBOT = "robot"  # name of the entity in your scene
'''


def write(job: Job, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Returns a Python file with the dictionary `EVENTS`."""
    del folder
    terms: list[Term] = []
    notes: list[str] = []
    ordered = sorted(job.entries, key=lambda e: e.field not in ("mass", "payload"))  # masses put centres back
    for entry in ordered:
        made, said = _terms(entry, job)
        terms += made
        notes += said
    notes += uncorrelated(job)
    named = {owner_of(job.model, k) for k in range(1, job.model.nbody)} - {"robot"}
    head = as_comment(job, notes) + HEAD + "".join(f"{n.upper()} = {n!r}\n" for n in sorted(map(term_name, named)))
    body = "".join(_text(term) for term in terms)
    return f"{head}\nEVENTS = {{\n{body}}}\n", tuple(notes)


def _text(term: Term) -> str:
    lines = [f'    "{term.name}": EventTermCfg(  # {term.comment}', f"        func=dr.{term.func},"]
    lines += [f'        mode="{term.mode}",', "        params={"]
    lines += [f'            "{name}": {value},' for name, value in term.params.items()]
    return "\n".join([*lines, "        },", "    ),", ""])


def _terms(entry: Entry, job: Job) -> tuple[list[Term], list[str]]:
    """Returns the terms of one range, and what to say about them."""
    if entry.kind == "joint" and entry.field in JOINT_TERMS:
        return _joint(entry, job)
    if entry.kind == "joint" and entry.field == "offset":
        return _offset(entry, job)
    if entry.kind == "actuator" and entry.field in ("kp", "kd"):
        return _gains(entry, job)
    if entry.kind == "actuator" and entry.field == "limit":
        return _limit(entry, job)
    if entry.kind == "body" and entry.field in ("mass", "payload"):
        return _mass(entry, job)
    if entry.kind == "body" and entry.field.startswith("com/"):
        return _centre(entry, job)
    if entry.kind == "geom" and (entry.field == "friction" or entry.field.startswith("size/")):
        return _geom(entry, job)
    return [], [left_out(entry.target, _why(entry, job))]


def _why(entry: Entry, job: Job) -> str:
    if entry.kind == "actuator" and entry.field == "delay":
        step_s = float(job.model.opt.timestep)
        lags = [round(max(end, 0.0) / step_s) for end in (entry.range.low, entry.range.high)]
        said = f"delay_min_lag={lags[0]}, delay_max_lag={lags[1]} of the ActuatorCfg at steps of {step_s:g} s"
        return f"mjlab has no term for a delay; {said} come near"
    if entry.kind == "measurement":
        return "mjlab has no term for readings; its observation terms have noise and delay"
    return f"mjlab has no term for {entry.kind} {entry.field}"


def drawn_as(item: Range, factor: float = 1.0) -> str:
    """Returns the distribution of a range as Python, with its values times `factor`."""
    if item.kind in ("uniform", "fixed") or item.low == item.high:
        return '"uniform"'
    if item.kind == "log-uniform":
        return '"log_uniform"'
    if item.kind == "normal":
        return f"normal({item.mean * factor!r}, {item.std * factor!r})"
    if item.kind == "log-normal":
        return f"log_normal({item.mean * factor!r}, {item.std!r})"
    if item.kind == "beta":
        return "beta({!r}, {!r})".format(*item.shape())
    parts = ", ".join(f"({p.weight!r}, {p.mean * factor!r}, {p.std * factor!r})" for p in item.parts)
    return f"mixture({parts})"


def _made(said: str) -> str:
    """Returns a distribution as an object: mjlab's own where `drawn_as` gives its name."""
    return {'"uniform"': "dr.uniform", '"log_uniform"': "dr.log_uniform"}.get(said, said)


def _entities(job: Job, bodies: Sequence[int], names: Sequence[str]) -> dict[str, list[str]]:
    """Returns entity -> the names that belong to it; elements without a name are passed over."""
    found: dict[str, list[str]] = {}
    for body, name in zip(bodies, names, strict=True):
        if name:
            found.setdefault(owner_of(job.model, body), []).append(name)
    return found


def _asset(entity: str, kind: str, names: list[str]) -> str:
    constant = "ROBOT" if entity == "robot" else term_name(entity).upper()
    return f"SceneEntityCfg({constant}, {kind}_names={names_text(names)})"


def _field(
    entry: Entry, job: Job, func: str, kind: str, bodies: Sequence[int], names: Sequence[str], axis: int | None = None
) -> tuple[list[Term], list[str]]:
    """Returns terms that set one number of named elements, or multiply that of all by one factor."""
    item, shared = entry.range, entry.name == "*"
    ends = pair(item.low, item.high)
    terms: list[Term] = []
    if not names:
        return [], [left_out(entry.target, NAMED)]
    found = _entities(job, bodies, names)
    for entity, those in found.items():
        params = {"asset_cfg": _asset(entity, kind, those), "operation": '"scale"' if shared else '"abs"'}
        params |= {"distribution": drawn_as(item), "ranges": ends if axis is None else f"{{{axis}: {ends}}}"}
        params |= {"shared_random": "True"} if shared else {}
        name = term_name(entry.target) + ("" if len(found) == 1 else f"_{term_name(entity)}")
        terms.append(Term(name, func, mode_of(item.per, "step"), params, f"{entry.target} [{entry.unit}]"))
    notes = [changed(entry.target, "each entity draws a factor of its own")] if len(found) > 1 else []
    nameless = sum(not name for name in names)
    if nameless:
        notes.append(changed(entry.target, f"not for {nameless} {kind}s that have no name in the model"))
    return terms, notes if terms else [left_out(entry.target, f"the model's {kind}s have no names")]


def _joint(entry: Entry, job: Job) -> tuple[list[Term], list[str]]:
    model = job.model
    single = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
    joints = [j for j in range(model.njnt) if mujoco.mjtJoint(int(model.jnt_type[j])) in single]
    joints = [j for j in joints if job.covers(entry, model.joint(j).name)]
    bodies, names = [int(model.jnt_bodyid[j]) for j in joints], [model.joint(j).name for j in joints]
    return _field(entry, job, JOINT_TERMS[entry.field], "joint", bodies, names)


def _offset(entry: Entry, job: Job) -> tuple[list[Term], list[str]]:
    if entry.name == "*":
        return [], [left_out(entry.target, "encoder_bias draws for each joint on its own")]
    item, notes = only_uniform(entry, "mjlab")
    entity = owner_of(job.model, int(job.model.jnt_bodyid[job.model.joint(entry.name).id]))
    params = {"asset_cfg": _asset(entity, "joint", [entry.name]), "bias_range": pair(item.low, item.high)}
    said = f"{entry.target} [{entry.unit}]"
    return [Term(term_name(entry.target), "encoder_bias", mode_of(item.per, "step"), params, said)], notes


def _gains(entry: Entry, job: Job) -> tuple[list[Term], list[str]]:
    """Returns the one term of both gains of an actuator: the term writes both, so that two would undo each other."""
    model = job.model
    both = {e.field: e for e in job.of("actuator", "kp", "kd") if e.name == entry.name}
    if len(both) == 2 and entry.field == "kd":
        return [], []
    if entry.name == "*" and len(both) < len(job.of("actuator", "kp", "kd")):
        return [], [left_out(e.target, "the terms of single actuators would undo it") for e in both.values()]
    actuators = [a for a in range(model.nu) if entry.name in ("*", model.actuator(a).name)]
    kp, kd = (-model.actuator_biasprm[actuators[0], 1:3]).tolist()
    nominal: dict[str, float] = {"kp": kp, "kd": kd}
    if not all(is_position_servo(model, a) for a in actuators) or any(nominal[name] <= 0 for name in both):
        return [], [left_out(e.target, "pd_gains scales what position actuators have") for e in both.values()]
    notes = [changed(e.target, APART if entry.name == "*" else WHOLE) for e in both.values()]
    notes += drawn_alike(entry, list(both.values()))
    factor = {name: 1.0 if entry.name == "*" else 1 / nominal[name] for name in both}
    ends = {name: pair(e.range.low, e.range.high, factor[name]) for name, e in both.items()}
    drawn = {name: drawn_as(e.range, factor[name]) for name, e in both.items()}
    each = ", ".join(f"({ends[name]}, {_made(said)})" for name, said in drawn.items())
    first = entry.range
    params = {"asset_cfg": _asset("robot", "actuator", [model.actuator(a).name for a in actuators])}
    params |= {"operation": '"scale"'}
    params |= {"distribution": f"apart({each})" if len(set(drawn.values())) > 1 else drawn[entry.field]}
    params |= {f"{name}_range": ends.get(name, "(1.0, 1.0)") for name in ("kp", "kd")}
    said = ", ".join(e.target for e in both.values()) + ": factors"
    return [Term(term_name(entry.target), "pd_gains", mode_of(first.per, "step"), params, said)], notes


def _limit(entry: Entry, job: Job) -> tuple[list[Term], list[str]]:
    model = job.model
    actuators = [a for a in range(model.nu) if job.covers(entry, model.actuator(a).name)]
    if not actuators:
        return [], [left_out(entry.target, NAMED)]
    if not model.actuator_forcelimited[actuators].all() or not all(is_position_servo(model, a) for a in actuators):
        return [], [left_out(entry.target, "effort_limits is for position actuators with a forcerange")]
    factor = 1.0 if entry.name == "*" else 1 / entry.nominal
    params = {"asset_cfg": _asset("robot", "actuator", [model.actuator(a).name for a in actuators])}
    params |= {"operation": '"scale"', "distribution": drawn_as(entry.range, factor)}
    params |= {"effort_limit_range": pair(entry.range.low, entry.range.high, factor)}
    mode, said = mode_of(entry.range.per, "step"), f"{entry.target}: factor"
    term = Term(term_name(entry.target), "effort_limits", mode, params, said)
    return [term], [changed(entry.target, APART if entry.name == "*" else WHOLE)]


def _mass(entry: Entry, job: Job) -> tuple[list[Term], list[str]]:
    model, item = job.model, entry.range
    bodies = [b for b in range(1, model.nbody) if entry.name in ("*", model.body(b).name) and model.body_mass[b] > 0]
    names = [model.body(b).name for b in bodies]
    others = [e for e in job.of("body", "mass", "payload") if e.target != entry.target]
    if entry.field == "payload" and any(e.name in ("*", entry.name) for e in others):
        return [], [left_out(entry.target, "mjlab's terms of a mass undo each other")]
    if entry.name == "*" and others:
        return [], [left_out(entry.target, "the terms of single bodies would undo it")]
    mass = 1.0 if entry.name == "*" else entry.nominal
    terms: list[Term] = []
    for entity, those in _entities(job, bodies, names).items():
        params = {"asset_cfg": _asset(entity, "body", those)}
        if entry.field == "payload":
            params |= {"operation": '"add"', "distribution": drawn_as(item), "ranges": pair(item.low, item.high)}
        elif item.low <= 0:
            return [], [left_out(entry.target, "a mass must be above 0")]
        else:
            ends = [0.5 * float(np.log(end / mass)) for end in (item.low, item.high)]
            params |= {
                "distribution": f"of_mass({_made(drawn_as(item))}, {mass!r})",
                "alpha_range": f"({ends[0]!r}, {ends[1]!r})",
            }
        name = term_name(entry.target) + ("" if entry.name != "*" else f"_{term_name(entity)}")
        func = "body_mass" if entry.field == "payload" else "pseudo_inertia"
        terms.append(Term(name, func, mode_of(item.per, "step"), params, f"{entry.target} [{entry.unit}]"))
    return terms, [changed(entry.target, "each body draws a factor of its own")] if entry.name == "*" else []


def _centre(entry: Entry, job: Job) -> tuple[list[Term], list[str]]:
    """Returns the term of a centre; drawn as often as the mass of its body, whose term puts centres back."""
    body = job.model.body(entry.name).id
    masses = [e for e in job.of("body", "mass") if e.name in ("*", entry.name)]
    per = masses[0].range.per if masses and entry.range.per == "robot" else entry.range.per
    notes = [changed(entry.target, f"drawn per {per}, as the mass is")] if per != entry.range.per else []
    moved = replace(entry, range=replace(entry.range, per=per))
    made, said = _field(moved, job, "body_com_offset", "body", [body], [entry.name], "xyz".index(entry.field[-1]))
    return made, notes + said


def _geom(entry: Entry, job: Job) -> tuple[list[Term], list[str]]:
    model = job.model
    geoms = [g for g in range(model.ngeom) if job.covers(entry, model.geom(g).name)]
    bodies, names = [int(model.geom_bodyid[g]) for g in geoms], [job.as_filed.geom(g).name for g in geoms]
    if entry.field == "friction":
        made, notes = _field(entry, job, "geom_friction", "geom", bodies, names)
        others = [g for g in range(model.ngeom) if g not in geoms]
        alone = entry.name == "*" or all(model.geom_priority[g] < model.geom_priority[geoms[0]] for g in others)
        return made, notes + ([] if alone else [changed(entry.target, PRIORITY)])
    return _field(entry, job, "geom_size", "geom", bodies, names, "xyz".index(entry.field[-1]))
