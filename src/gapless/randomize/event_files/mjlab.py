"""Terms of mjlab (1.6.0, and `randomize_field` of earlier ones) as ranges."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gapless.core.errors import InputError
from gapless.randomize.event_files.term_reader import TermReader
from gapless.randomize.event_files.terms import (
    EventTerm,
    SceneEntity,
    SourceCall,
    TermDraw,
    read_pair,
    short_name,
    source_text,
)

_FIELDS = {  # function -> kind, fields by axis, operation where none is given, axes where none are given
    "joint_damping": ("joint", ("damping",), "abs", (0,)),
    "joint_friction": ("joint", ("frictionloss",), "abs", (0,)),
    "joint_armature": ("joint", ("armature",), "abs", (0,)),
    "joint_stiffness": ("joint", ("stiffness",), "abs", (0,)),
    "geom_friction": ("geom", ("friction", None, None), "abs", (0,)),
    "geom_size": ("geom", ("size/x", "size/y", "size/z"), "scale", (0, 1, 2)),
    "body_com_offset": ("body", ("com/x", "com/y", "com/z"), "add", (0, 1, 2)),
    "body_mass": ("body", ("mass",), "scale", (0,)),
}
_FIELDS |= {  # by the names of MuJoCo
    "dof_damping": _FIELDS["joint_damping"],
    "dof_frictionloss": _FIELDS["joint_friction"],
    "dof_armature": _FIELDS["joint_armature"],
    "jnt_stiffness": _FIELDS["joint_stiffness"],
    "body_ipos": _FIELDS["body_com_offset"],
}


def _read_field(reader: TermReader, term: EventTerm) -> None:
    """Reads a term that sets one field of the model, for elements, axes or patterns."""
    kind, fields, operation, axes = _FIELDS[term.func]
    value = term.params.get("ranges")
    if isinstance(value, dict) and value and all(isinstance(key, str) for key in value):
        entity = term.params.get("asset_cfg")
        owner = entity.name if isinstance(entity, SceneEntity) else "robot"
        for pattern, ends in value.items():
            part = {"ranges": ends, "asset_cfg": SceneEntity(owner, {kind: (pattern,)})}
            _read_field(reader, replace(term, params=term.params | part))
        return
    axes = term.params.get("axes") or axes
    by_axis: dict[Any, Any] = value if isinstance(value, dict) else dict.fromkeys(axes, value)
    names = reader.select(term, kind)
    shared = term.params.get("shared_random") is True and len(names) > 1
    for axis, ends in by_axis.items():
        field = fields[axis] if isinstance(axis, int) and 0 <= axis < len(fields) else None
        if field is None:
            reader.note(term, f"left out: axis {axis} is no parameter here")
            continue
        pair = read_pair(ends, "ranges")
        if pair is None:
            raise InputError("it has no ranges: write ranges=(low, high)")
        draw = TermDraw(pair, term.read_operation(operation), term.distribution)
        is_factor = draw.operation == "scale" and "/" not in field
        if shared and is_factor and reader.is_every(kind, names):
            reader.add(term, f"{kind}/*/{field}", draw)
            continue
        if shared:
            reader.note(term, f"changed: {', '.join(names)} draw one value there, each its own here")
        for name in names:
            if field == "mass" and draw.operation == "add":
                reader.add(term, f"body/{name}/payload", replace(draw, operation="abs"))
                continue
            if field == "mass":
                reader.note(term, f"body/{name}/mass: its inertia stays as it is there; here it goes along")
            reader.add(term, f"{kind}/{name}/{field}", draw)


def _read_inertia(reader: TermReader, term: EventTerm) -> None:
    """Reads alpha of a pseudo-inertia: mass and inertia grow by exp(2 alpha)."""
    for name in [name for name in term.params if name.endswith("_range") and name != "alpha_range"]:
        if read_pair(term.params[name], name) not in (None, (0.0, 0.0)):
            reader.note(term, f"left out: {name}: no parameter here stretches, shears or shifts like that")
    alpha = read_pair(term.params.get("alpha_range"), "alpha_range")
    if alpha is None or alpha == (0.0, 0.0):
        return
    given, mass, distribution = term.distribution, 1.0, "log_uniform"
    if isinstance(given, SourceCall) and given.name == "of_mass":
        distribution, mass = short_name(given.arguments[0]), float(given.arguments[1])
    elif given != "uniform":
        raise InputError(f"a pseudo-inertia that is {source_text(given)} is not known here: write the range by hand")
    ends = (mass * math.exp(2 * alpha[0]), mass * math.exp(2 * alpha[1]))
    for body in reader.select(term, "body"):
        nominal = float(reader.model.body(body).mass[0])
        reader.add(term, f"body/{body}/mass", TermDraw(ends, "abs", distribution), nominal / mass)


def _read_gains(reader: TermReader, term: EventTerm) -> None:
    for field in ("kp", "kd"):
        draw = term.read_draw(f"{field}_range", "scale")
        if draw is None or (draw.ends == (1.0, 1.0) and draw.operation == "scale"):
            continue
        if isinstance(draw.distribution, SourceCall) and draw.distribution.name in ("by_range", "apart"):  # formerly
            choices = {tuple(ends): short_name(one) for ends, one in draw.distribution.arguments}
            draw = replace(draw, distribution=choices.get(draw.ends, "uniform"))
        for actuator in reader.select(term, "actuator"):
            reader.add(term, f"actuator/{actuator}/{field}", draw)


def _read_limits(reader: TermReader, term: EventTerm) -> None:
    for actuator in reader.select(term, "actuator"):
        reader.add(term, f"actuator/{actuator}/limit", term.read_draw("effort_limit_range", "scale"))


def _read_encoder_bias(reader: TermReader, term: EventTerm) -> None:
    ends = read_pair(term.params.get("bias_range"), "bias_range")
    for joint in reader.select(term, "joint"):
        reader.add(term, f"joint/{joint}/offset", TermDraw(ends) if ends else None)


def _read_any_field(reader: TermReader, term: EventTerm) -> None:
    """Reads `randomize_field` of mjlab before 1.2, which names the field in its params."""
    field = str(term.params.get("field"))
    if field in _FIELDS:
        _read_field(reader, replace(term, func=field, params={"operation": "abs"} | term.params))
    else:
        reader.note(term, f"left out: {field} is no parameter here")


TERMS: dict[str, Callable[[TermReader, EventTerm], None]] = dict.fromkeys(_FIELDS, _read_field) | {
    "pseudo_inertia": _read_inertia,
    "pd_gains": _read_gains,
    "effort_limits": _read_limits,
    "encoder_bias": _read_encoder_bias,
    "randomize_pd_gains": _read_gains,
    "randomize_effort_limits": _read_limits,
    "randomize_encoder_bias": _read_encoder_bias,
    "randomize_field": _read_any_field,
}
