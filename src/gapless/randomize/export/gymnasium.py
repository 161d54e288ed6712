"""Ranges as a Gymnasium wrapper in a file of its own."""

import re
from pathlib import Path
from typing import Any

import mujoco

from gapless.core.results import plain
from gapless.randomize.export.effects import Effects, effects_of, short
from gapless.randomize.export.entries import Job
from gapless.randomize.export.notes import as_comment, changed, left_out

CARRIED = ("signal.delay_s", "signal.target_offset", "signal.bias", "signal.scale")
WHY = {
    "signal.lag_s": "a lag acts between the physics steps, which a wrapper does not see",
    "signal.backlash": "play in a joint is not part of the model, and no wrapper of actions has it",
    "signal.reading_delay_s": "observations are not kept",
}
SIMPLE = 'MuJoCo takes its body for a simple one, whose centre cannot move: write simple="false" on it in the model'
_OBJECTS = {"dof": "joint", "jnt": "joint", "qpos": "joint"}


def write(job: Job, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the source of the wrapper with these ranges in it."""
    del folder
    effects = effects_of(job)
    stuck = _stuck(job, effects)
    if stuck:
        job = job.without(stuck)
        effects = effects_of(job)
    notes = [*effects.notes, *(left_out(target, SIMPLE) for target in stuck)]
    for entry in job.entries:
        fields = effects.touched.get(entry.target, frozenset())
        others = sorted(field for field in fields if field.startswith("signal.") and field not in CARRIED)
        say = changed if len(others) < len(fields) else left_out  # what is carried in part is not left out
        notes += [say(entry.target, WHY.get(field, f"no wrapper of actions has it ({field})")) for field in others]
        if entry.kind == "measurement" and fields & set(CARRIED):
            text = "acts where the wrapper is told which element of the observation it is: observation={...}"
            notes.append(changed(entry.target, text))
    source = Path(__file__).with_name("wrapper.py").read_text(encoding="utf-8")
    block = re.compile(r"# ranges: begin.*?# ranges: end\n", re.DOTALL)
    data = as_comment(job, notes) + _data(job, effects)
    return block.sub(lambda _: data, source, count=1), tuple(notes)


def _stuck(job: Job, effects: Effects) -> list[str]:
    """Returns parameters that move a centre which cannot move in the model as its file has it."""
    simple = job.as_filed.body_simple
    named = [entry for entry in job.entries if entry.kind == "body" and entry.name != "*"]
    bodies = {entry.target: job.model.body(entry.name).id for entry in named}
    moving = [t for t, fields in effects.touched.items() if fields & {"body_ipos", "body_iquat"} and t in bodies]
    return [target for target in moving if simple[bodies[target]]]


def _data(job: Job, effects: Effects) -> str:
    """Returns the tables that the wrapper reads, as Python."""
    named = job.as_filed
    readings = job.blueprint.project.measurement_names
    lines = ["RANGES = ["]
    for entry in job.entries:
        lines.append(f"    {plain(entry.range) | {'unit': entry.unit}!r},")
    lines += ["]", "CORRELATIONS = ["]
    lines += [f"    {(pair.first, pair.second, pair.value)!r}," for pair in job.correlations]
    lines += ["]", "CONSTANTS = [  # field, kind and name of the element, what else indexes it, value"]
    for field, values in effects.constants.items():
        if not field.startswith("signal.") or field in CARRIED:
            lines += [f"    ({field!r}, {_where(field, p, named, readings)}, {v!r})," for p, v in values.items()]
    lines += ["]", "EDITS = [  # parameter, field, where in it as above; values of the one, and of the other"]
    for edit in effects.edits:
        if not edit.field.startswith("signal.") or edit.field in CARRIED:
            for k, place in enumerate(edit.places):
                where = _where(edit.field, place, named, readings)
                table = f"{short(edit.knots)}, {short(edit.values[:, k])}"
                lines.append(f"    ({edit.target!r}, {edit.field!r}, {where}, {table}),")
    lines += ["]", f"PRODUCT = {effects.product!r}", f"READINGS = {list(readings)!r}"]
    lines += [f"DERIVED = {effects.derived!r}", ""]
    return "\n".join(lines)


def _where(field: str, place: tuple[int, ...], named: mujoco.MjModel, readings: tuple[str, ...]) -> str:
    """Returns kind, name or number, and the other indices of a place, as Python."""
    group = field.removeprefix("signal.").partition("_")[0]
    if field in ("signal.bias", "signal.scale"):
        return f"'reading', {readings[place[0]]!r}, ()"
    if field.startswith("signal."):
        return f"'actuator', {_name(named, 'actuator', place[0])!r}, ()"
    if field.startswith("opt."):
        return f"'option', {place[0]}, {place[1:]}"
    kind, number = _OBJECTS.get(group, group), place[0]
    if group == "dof":
        number = int(named.dof_jntid[number])
    if group == "qpos":
        number = [int(k) for k in named.jnt_qposadr].index(number)
    name: Any = _name(named, kind, number)
    return f"{kind!r}, {name!r}, {place[1:]}" if isinstance(name, str) else f"{kind!r}, {place[0]}, {place[1:]}"


def _name(model: mujoco.MjModel, kind: str, number: int) -> str | int:
    """Returns the name that an element has in the model's file, or its number where it has none."""
    return getattr(model, kind)(number).name or number
