"""Terms of mjlab (1.6.0, and `randomize_field` of earlier ones) as ranges."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gapless.core.errors import InputError
from gapless.randomize.foreign.drawn import Draw, distribution_of, draw_of, operation_of, pair_of
from gapless.randomize.foreign.reading import Reading
from gapless.randomize.foreign.term import Asset, Called, Unread, Written, said_as

_FIELDS = {  # function -> kind, fields by axis, operation where none is said, axes where none are said
    "joint_damping": ("joint", ("damping",), "abs", (0,)),
    "dof_damping": ("joint", ("damping",), "abs", (0,)),
    "joint_friction": ("joint", ("frictionloss",), "abs", (0,)),
    "dof_frictionloss": ("joint", ("frictionloss",), "abs", (0,)),
    "joint_armature": ("joint", ("armature",), "abs", (0,)),
    "dof_armature": ("joint", ("armature",), "abs", (0,)),
    "joint_stiffness": ("joint", ("stiffness",), "abs", (0,)),
    "jnt_stiffness": ("joint", ("stiffness",), "abs", (0,)),
    "geom_friction": ("geom", ("friction", None, None), "abs", (0,)),
    "geom_size": ("geom", ("size/x", "size/y", "size/z"), "scale", (0, 1, 2)),
    "body_com_offset": ("body", ("com/x", "com/y", "com/z"), "add", (0, 1, 2)),
    "body_ipos": ("body", ("com/x", "com/y", "com/z"), "add", (0, 1, 2)),
    "body_mass": ("body", ("mass",), "scale", (0,)),
}


def _field(reading: Reading, term: Written) -> None:
    """Reads a term that sets one field of the model, for elements, axes or patterns."""
    kind, fields, operation, axes = _FIELDS[term.func]
    said = term.params.get("ranges")
    axes = term.params.get("axes") or axes
    if isinstance(said, dict) and said and all(isinstance(key, str) for key in said):
        asset = term.params.get("asset_cfg")
        for pattern, ends in said.items():
            name = asset.name if isinstance(asset, Asset) else "robot"
            part = {**term.params, "ranges": ends, "asset_cfg": Asset(name, {kind: (pattern,)})}
            _field(reading, replace(term, params=part))
        return
    by_axis: dict[Any, Any] = said if isinstance(said, dict) else dict.fromkeys(axes, said)
    found = reading.chosen(term, kind)
    shared = term.params.get("shared_random") is True and len(found.names) > 1
    for axis, ends in by_axis.items():
        field = fields[axis] if isinstance(axis, int) and 0 <= axis < len(fields) else None
        if field is None:
            reading.note(term, f"left out: axis {axis} is no parameter here")
            continue
        pair = pair_of(ends, "ranges")
        if pair is None:
            raise InputError("it has no ranges: write ranges=(low, high)")
        draw = Draw(pair, operation_of(term, operation), distribution_of(term))
        if shared and found.whole and draw.operation == "scale" and not field.startswith(("com", "size")):
            reading.add(term, f"{kind}/*/{field}", draw)
            continue
        if shared:
            reading.note(term, f"changed: {', '.join(found.names)} draw one value there, each its own here")
        for name in found.names:
            _element(reading, term, f"{kind}/{name}/{field}", draw)


def _element(reading: Reading, term: Written, path: str, draw: Draw) -> None:
    if path.endswith("/mass"):
        if draw.operation == "add":
            path = path.removesuffix("mass") + "payload"
            draw = replace(draw, operation="abs")
        else:
            reading.note(term, f"{path}: its inertia stays as it is there; here it goes along")
    reading.add(term, path, draw)


def _inertia(reading: Reading, term: Written) -> None:
    """Reads alpha of a pseudo-inertia: mass and inertia grow by exp(2 alpha)."""
    others = [name for name in term.params if name.endswith("_range") and name != "alpha_range"]
    for name in others:
        if pair_of(term.params[name], name) not in (None, (0.0, 0.0)):
            reading.note(term, f"left out: {name}: no parameter here stretches, shears or shifts like that")
    alpha = pair_of(term.params.get("alpha_range"), "alpha_range")
    if alpha in (None, (0.0, 0.0)):
        return
    said = distribution_of(term)
    mass, inner = 1.0, "log_uniform"
    if isinstance(said, Called) and said.name == "of_mass":
        inner, mass = said.arguments[0], float(said.arguments[1])
        inner = inner.text.split(".")[-1] if isinstance(inner, Unread) else inner
    elif said != "uniform":
        raise InputError(f"a pseudo-inertia that is {said_as(said)} is not known here: write the range by hand")
    ends = (mass * math.exp(2 * alpha[0]), mass * math.exp(2 * alpha[1]))
    for body in reading.chosen(term, "body").names:
        nominal = float(reading.model.body(body).mass[0])
        reading.add(term, f"body/{body}/mass", Draw(ends, "abs", inner), nominal / mass)


def _gains(reading: Reading, term: Written) -> None:
    for field in ("kp", "kd"):
        draw = draw_of(term, f"{field}_range", "scale")
        if draw is not None and isinstance(draw.distribution, Called) and draw.distribution.name == "apart":
            draw = replace(draw, distribution=_of_range(draw.distribution, draw.ends))
        if draw is not None and draw == replace(draw, ends=(1.0, 1.0), operation="scale"):
            continue
        for actuator in reading.chosen(term, "actuator").names:
            reading.add(term, f"actuator/{actuator}/{field}", draw)


def _of_range(said: Called, ends: tuple[float, float]) -> Any:
    """Returns the distribution that `apart` has for a range."""
    for own, distribution in said.arguments:
        if tuple(own) == ends:
            return distribution.text.split(".")[-1] if isinstance(distribution, Unread) else distribution
    return "uniform"  # a gain that is left as it is


def _limits(reading: Reading, term: Written) -> None:
    for actuator in reading.chosen(term, "actuator").names:
        reading.add(term, f"actuator/{actuator}/limit", draw_of(term, "effort_limit_range", "scale"))


def _encoder(reading: Reading, term: Written) -> None:
    ends = pair_of(term.params.get("bias_range"), "bias_range")
    for joint in reading.chosen(term, "joint").names:
        reading.add(term, f"joint/{joint}/offset", Draw(ends, "abs", "uniform") if ends else None)


def _any_field(reading: Reading, term: Written) -> None:
    """Reads `randomize_field` of mjlab before 1.2, which names the field in its params."""
    field = str(term.params.get("field"))
    if field not in _FIELDS:
        reading.note(term, f"left out: {field} is no parameter here")
        return
    params = {"operation": "abs"} | term.params
    _field(reading, replace(term, func=field, params=params))


TERMS: dict[str, Callable[[Reading, Written], None]] = dict.fromkeys(_FIELDS, _field) | {
    "pseudo_inertia": _inertia,
    "pd_gains": _gains,
    "effort_limits": _limits,
    "encoder_bias": _encoder,
    "randomize_pd_gains": _gains,
    "randomize_effort_limits": _limits,
    "randomize_encoder_bias": _encoder,
    "randomize_field": _any_field,
}
