"""Event terms of mjlab (1.6.0): ranges written as terms, and terms read as ranges, also those of earlier versions."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gapless.core.distribution import Range
from gapless.core.errors import InputError
from gapless.randomize.event_terms.terms import EventTerm, SourceText, TermDraw, read_pair, short_name
from gapless.randomize.event_terms.writer import EventFormat, TermWriter, pair_text, write_event_terms
from gapless.randomize.export.job import ExportedRange, list_elements
from gapless.sim.targets import is_position_servo

FIELDS = {  # function -> kind, fields by axis, operation where none is given
    "joint_damping": ("joint", ("damping",), "abs"),
    "joint_friction": ("joint", ("frictionloss",), "abs"),
    "joint_armature": ("joint", ("armature",), "abs"),
    "joint_stiffness": ("joint", ("stiffness",), "abs"),
    "geom_friction": ("geom", ("friction", None, None), "abs"),
    "geom_size": ("geom", ("size/x", "size/y", "size/z"), "scale"),
    "body_com_offset": ("body", ("com/x", "com/y", "com/z"), "add"),
    "body_mass": ("body", ("mass",), "scale"),
}
PARAMS = {  # function -> kind, operation where none is given, field of each param
    "pd_gains": ("actuator", "scale", {"kp_range": "kp", "kd_range": "kd"}),
    "effort_limits": ("actuator", "scale", {"effort_limit_range": "limit"}),
    "encoder_bias": ("joint", "abs", {"bias_range": "offset"}),
}
OTHER_NAMES = {  # of MuJoCo, in earlier versions
    "dof_damping": "joint_damping",
    "dof_frictionloss": "joint_friction",
    "dof_armature": "joint_armature",
    "jnt_stiffness": "joint_stiffness",
    "body_ipos": "body_com_offset",
}
PRIORITY = "of two geoms MuJoCo takes the larger friction: give this one a `priority` in the model, or it shows less"
OWN_RANGES = "each of them has a range of its own"
ONE_CONFIGURATION = "give each actuator an ActuatorCfg of its own, in the model's order: this term picks configurations"
OWN_FACTORS = "each draws a factor of its own: this term has no shared_random"
FILE = '''
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


def by_range(*choices):
    """A distribution for each range, for terms that draw two things: (range, distribution) each."""

    def sample(low, high, shape, device):
        off = [abs(float(low) - ends[0]) + abs(float(high) - ends[1]) for ends, _ in choices]
        return choices[off.index(min(off))][1].sample(low, high, shape, device)

    return dr.Distribution("by_range", sample)


ROBOT = "robot"  # name of the entity in your scene
{entities}
EVENTS = {
{terms}}
'''
TERM = """    "{name}": EventTermCfg(  # {comment}
        func=dr.{func},
{arguments}    ),
"""


def _distribution_text(item: Range, factor: float = 1.0) -> str:
    """Returns the distribution of a range as Python, with its values times `factor`."""
    if item.kind in ("uniform", "fixed") or item.low == item.high:
        return "dr.uniform"
    if item.kind == "log-uniform":
        return "dr.log_uniform"
    if item.kind == "normal":
        return f"normal({item.mean * factor!r}, {item.std * factor!r})"
    if item.kind == "log-normal":
        return f"log_normal({item.mean * factor!r}, {item.std!r})"
    if item.kind == "beta":
        return "beta({!r}, {!r})".format(*item.shape())
    parts = ", ".join(f"({p.weight!r}, {p.mean * factor!r}, {p.std * factor!r})" for p in item.parts)
    return f"mixture({parts})"


def _write_field(writer: TermWriter, entry: ExportedRange) -> None:
    """Writes terms that set one number of named elements, or multiply that of all by one factor."""
    item, shared, job = entry.range, entry.name == "*", writer.job
    elements = job.elements(entry)
    if entry.kind == "geom":  # gapless names geoms that have no name in the file
        elements = [e._replace(name=job.model_as_filed.geom(e.id).name) for e in elements]
    named = [e for e in elements if e.name]
    if not named:
        return writer.leave_out(f"the model's {entry.kind}s have no names" if elements else OWN_RANGES, entry)
    ends = pair_text(item.low, item.high)
    if "/" in entry.field:
        ends = f"{{{'xyz'.index(entry.field[-1])}: {ends}}}"
    params = {"operation": '"scale"' if shared else '"abs"', "distribution": _distribution_text(item), "ranges": ends}
    params |= {"shared_random": "True"} if shared else {}
    func = next(name for name, (kind, fields, _) in FIELDS.items() if kind == entry.kind and entry.field in fields)
    writer.add(entry, func, named, params)
    if len({e.owner for e in named}) > 1:
        writer.note_change("each entity draws a factor of its own", entry)
    if len(named) < len(elements):
        writer.note_change(f"not for {len(elements) - len(named)} {entry.kind}s that have no name in the model", entry)
    if entry.field == "friction" and not shared:
        priority = job.model.geom_priority
        if any(priority[g] >= priority[named[0].id] for g in range(job.model.ngeom) if g != named[0].id):
            writer.note_change(PRIORITY, entry)
    return None


def _write_centre(writer: TermWriter, entry: ExportedRange) -> None:
    """Writes the term of a centre; drawn as often as the mass of its body, whose term resets centres."""
    masses = [e for e in writer.job.select("body", "mass") if e.name in ("*", entry.name)]
    per = masses[0].range.per if masses and entry.range.per == "robot" else entry.range.per
    if per != entry.range.per:
        writer.note_change(f"drawn per {per}, as the mass is", entry)
    _write_field(writer, replace(entry, range=replace(entry.range, per=per)))


def _write_offset(writer: TermWriter, entry: ExportedRange) -> None:
    item = writer.as_uniform(entry)
    params = {"bias_range": pair_text(item.low, item.high)}
    writer.add(entry, "encoder_bias", writer.job.elements(entry), params)


def _write_servo(writer: TermWriter, entry: ExportedRange) -> None:
    """Writes the one term of the gains of an actuator, or of its limit: a term sets all its params, as factors."""
    job, model = writer.job, writer.job.model
    func, fields = next((name, fields) for name, (_, _, fields) in PARAMS.items() if entry.field in fields.values())
    group = {e.field: e for e in job.select("actuator", *fields.values()) if e.name == entry.name}
    if entry.field != next(iter(group)):
        return None
    actuators = job.elements(entry)
    if not actuators:
        return writer.leave_out(OWN_RANGES, *group.values())
    if entry.name == "*" and any(
        e.name in {a.name for a in actuators} for e in job.select("actuator", *fields.values())
    ):
        return writer.leave_out("the terms of single actuators would undo it", *group.values())
    limited = all(model.actuator_forcelimited[a.id] for a in actuators) or "limit" not in group
    is_servo = all(is_position_servo(model, a.id) for a in actuators)
    if not (limited and is_servo and all(e.nominal > 0 for e in group.values())):
        return writer.leave_out(f"{func} is for position actuators that have it, with a forcerange", *group.values())
    writer.note_change(OWN_FACTORS if entry.name == "*" else ONE_CONFIGURATION, *group.values())
    writer.note_shared_term(entry, *group.values())
    ends = {name: pair_text(e.range.low, e.range.high, 1 / e.nominal) for name, e in group.items()}
    texts = {name: _distribution_text(e.range, 1 / e.nominal) for name, e in group.items()}
    each = ", ".join(f"({ends[name]}, {text})" for name, text in texts.items())
    distribution = f"by_range({each})" if len(set(texts.values())) > 1 else texts[entry.field]
    params = {"operation": '"scale"', "distribution": distribution}
    params |= {param: ends.get(name, "(1.0, 1.0)") for param, name in fields.items()}
    comment = ", ".join(e.target for e in group.values()) + ": factors"
    return writer.add(entry, func, actuators, params, comment=comment)


def _write_mass(writer: TermWriter, entry: ExportedRange) -> None:
    item, bodies = entry.range, writer.job.elements(entry)
    others = [e for e in writer.job.select("body", "mass", "payload") if e.target != entry.target]
    if entry.field == "payload" and any(e.name in ("*", entry.name) for e in others):
        return writer.leave_out("mjlab's terms of a mass undo each other", entry)
    if entry.name == "*" and others:
        return writer.leave_out("the terms of single bodies would undo it", entry)
    if entry.field == "payload":
        params = {"operation": '"add"', "distribution": _distribution_text(item)}
        return writer.add(entry, "body_mass", bodies, params | {"ranges": pair_text(item.low, item.high)})
    if item.low <= 0:
        return writer.leave_out("a mass must be above 0", entry)
    mass = 1.0 if entry.name == "*" else entry.nominal
    low, high = (0.5 * float(np.log(end / mass)) for end in (item.low, item.high))
    params = {"distribution": f"of_mass({_distribution_text(item)}, {mass!r})"}
    writer.add(entry, "pseudo_inertia", bodies, params | {"alpha_range": f"({low!r}, {high!r})"})
    if entry.name == "*":
        writer.note_change("each body draws a factor of its own", entry)
    return None


def _explain_delay(writer: TermWriter, entry: ExportedRange) -> None:
    step_s = float(writer.job.model.opt.timestep)
    low, high = (round(max(end, 0.0) / step_s) for end in (entry.range.low, entry.range.high))
    lags = f"delay_min_lag={low}, delay_max_lag={high} of the ActuatorCfg at steps of {step_s:g} s"
    writer.leave_out(f"mjlab has no term for a delay; {lags} come near", entry)


def _read_field(term: EventTerm) -> None:
    """Reads a term that sets one field of the model, for elements, axes or patterns."""
    name = str(term.params.get("field", term.func))  # `randomize_field` of mjlab before 1.2 names it in its params
    name = OTHER_NAMES.get(name, name)
    if name not in FIELDS:
        return term.note(f"left out: {name} is no parameter here")
    kind, fields, operation = FIELDS[name]
    operation = "abs" if "field" in term.params else operation
    value = term.params.get("ranges")
    if isinstance(value, dict) and value and all(isinstance(key, str) for key in value):
        entity = term.params.get("asset_cfg")
        entity = entity if isinstance(entity, dict) else {}
        for pattern, ends in value.items():
            part = term.params | {"ranges": ends, "asset_cfg": entity | {f"{kind}_names": [pattern]}}
            _read_field(replace(term, arguments={**term.arguments, "params": part}))
        return None
    axes = term.params.get("axes") or [k for k, name in enumerate(fields) if name]
    by_axis: dict[Any, Any] = value if isinstance(value, dict) else dict.fromkeys(axes, value)
    names = term.select(kind)
    shared = term.params.get("shared_random") is True and len(names) > 1
    for axis, ends in by_axis.items():
        field = fields[axis] if isinstance(axis, int) and 0 <= axis < len(fields) else None
        if field is None:
            term.note(f"left out: axis {axis} is no parameter here")
            continue
        pair = read_pair(ends, "ranges")
        if pair is None:
            raise InputError("it has no ranges: write ranges=(low, high)")
        draw = TermDraw(pair, term.read_operation(operation), term.distribution)
        is_factor = draw.operation == "scale" and "/" not in field
        if shared and is_factor and len(names) == sum(bool(e.name) for e in list_elements(term.model, kind)):
            term.add(f"{kind}/*/{field}", draw)
            continue
        if shared:
            term.note(f"changed: {', '.join(names)} draw one value there, each its own here")
        for name in names:
            if field == "mass":
                term.add_mass(name, draw, with_inertia=False)
            else:
                term.add(f"{kind}/{name}/{field}", draw)


def _read_inertia(term: EventTerm) -> None:
    """Reads alpha of a pseudo-inertia: mass and inertia grow by exp(2 alpha)."""
    for name in [name for name in term.params if name.endswith("_range") and name != "alpha_range"]:
        if read_pair(term.params[name], name) not in (None, (0.0, 0.0)):
            term.note(f"left out: {name}: no parameter here stretches, shears or shifts like that")
    alpha = read_pair(term.params.get("alpha_range"), "alpha_range")
    if alpha is None or alpha == (0.0, 0.0):
        return
    given, mass, distribution = term.distribution, 1.0, "log_uniform"
    if isinstance(given, SourceText) and given.call == "of_mass":
        distribution, mass = short_name(given.arguments[0]), float(given.arguments[1])
    elif given != "uniform":
        raise InputError(f"a pseudo-inertia that is {given} is not known here: write the range by hand")
    ends = (mass * math.exp(2 * alpha[0]), mass * math.exp(2 * alpha[1]))
    for body in term.select("body"):
        nominal = float(term.model.body(body).mass[0])
        term.add(f"body/{body}/mass", TermDraw(ends, "abs", distribution), nominal / mass)


def _read_params(term: EventTerm) -> None:
    """Reads a term that has a param for each field."""
    kind, operation, fields = PARAMS[term.func.removeprefix("randomize_")]
    for param, field in fields.items():
        draw = term.read_draw(param, operation)
        if draw is None or (len(fields) > 1 and draw.ends == (1.0, 1.0) and draw.operation == "scale"):
            continue
        if isinstance(draw.distribution, SourceText) and draw.distribution.call == "by_range":
            choices = {tuple(ends): short_name(one) for ends, one in draw.distribution.arguments}
            draw = replace(draw, distribution=choices.get(draw.ends, "uniform"))
        for name in term.select(kind):
            term.add(f"{kind}/{name}/{field}", draw)


WRITERS = {
    (kind, field): _write_centre if kind == "body" else _write_field
    for kind, fields, _ in FIELDS.values()
    for field in fields
    if field
} | {
    ("joint", "offset"): _write_offset,
    **dict.fromkeys((("actuator", "kp"), ("actuator", "kd"), ("actuator", "limit")), _write_servo),
    ("actuator", "delay"): _explain_delay,
    ("body", "mass"): _write_mass,
    ("body", "payload"): _write_mass,
}
REASONS = {"measurement": "mjlab has no term for readings; its observation terms have noise and delay"}
MASSES = ("mass", "payload")  # come first: their terms reset centres
FORMAT = EventFormat("mjlab", "step", FILE, TERM, WRITERS, REASONS, frozenset({("joint", "offset")}), MASSES)
write = partial(write_event_terms, FORMAT)  # writes a job
READERS: dict[str, Callable[[EventTerm], None]] = {
    **dict.fromkeys((*FIELDS, *OTHER_NAMES, "randomize_field"), _read_field),
    **dict.fromkeys((*PARAMS, *(f"randomize_{name}" for name in PARAMS)), _read_params),
    "pseudo_inertia": _read_inertia,
}
