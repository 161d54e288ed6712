"""Ranges as a Gymnasium wrapper in a file of its own: `gymnasium_wrapper.py` with these ranges in it."""

import re
from pathlib import Path

import mujoco

from gapless.core.results import plain
from gapless.randomize.export.job import ExportJob, header_comment, note_changed, note_left_out
from gapless.randomize.export.model_edits import ModelEdits, Place, find_element, find_model_edits, round_numbers

CARRIED_SIGNALS = ("signal.delay_s", "signal.target_offset", "signal.bias", "signal.scale")
REASONS = {
    "signal.lag_s": "a lag acts between the physics steps, which a wrapper does not see",
    "signal.backlash": "play in a joint is not part of the model, and no wrapper of actions has it",
    "signal.reading_delay_s": "observations are not kept",
}
SIMPLE_BODY = 'MuJoCo treats its body as simple, whose centre cannot move: write simple="false" on it in the model'


def write(job: ExportJob, _: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the source of the wrapper with these ranges in it."""
    edits = find_model_edits(job)
    stuck = _find_stuck_centres(job, edits)
    if stuck:
        job = job.without(stuck)
        edits = find_model_edits(job)
    notes = [*edits.notes, *(note_left_out(target, SIMPLE_BODY) for target in stuck)]
    for entry in job.entries:
        fields = edits.touched.get(entry.target, frozenset())
        missing = sorted(field for field in fields if not _is_carried(field))
        note = note_changed if len(missing) < len(fields) else note_left_out  # what is carried in part is not left out
        notes += [note(entry.target, REASONS.get(f, f"no wrapper of actions has it ({f})")) for f in missing]
        if entry.kind == "measurement" and fields & set(CARRIED_SIGNALS):
            how = "acts where you say which element of the observation it is: observation={...}"
            notes.append(note_changed(entry.target, how))
    source = Path(__file__).with_name("gymnasium_wrapper.py").read_text(encoding="utf-8")
    block = re.compile(r"# ranges: begin.*?# ranges: end\n", re.DOTALL)
    tables = header_comment(job, notes) + _write_tables(job, edits)
    return block.sub(lambda _: tables, source, count=1), tuple(notes)


def _is_carried(field: str) -> bool:
    return not field.startswith("signal.") or field in CARRIED_SIGNALS


def _find_stuck_centres(job: ExportJob, edits: ModelEdits) -> list[str]:
    """Returns parameters that move a centre which cannot move in the model as its file has it."""
    simple = job.model_as_filed.body_simple
    moving = {target for target, fields in edits.touched.items() if fields & {"body_ipos", "body_iquat"}}
    named = [e for e in job.entries if e.kind == "body" and e.name != "*" and e.target in moving]
    return [entry.target for entry in named if simple[job.model.body(entry.name).id]]


def _write_tables(job: ExportJob, edits: ModelEdits) -> str:
    """Returns the tables that the wrapper reads, as Python."""
    model, readings = job.model_as_filed, job.blueprint.project.measurement_names
    lines = ["RANGES = [", *(f"    {plain(entry.range) | {'unit': entry.unit}!r}," for entry in job.entries)]
    lines += ["]", "CORRELATIONS = ["]
    lines += [f"    {(pair.first, pair.second, pair.value)!r}," for pair in job.correlations]
    lines += ["]", "CONSTANTS = [  # field, kind and name of the element, what else indexes it, value"]
    for field, values in edits.constants.items():
        if _is_carried(field):
            lines += [f"    ({field!r}, {_place_text(field, p, model, readings)}, {v!r})," for p, v in values.items()]
    lines += ["]", "EDITS = [  # parameter, field, where in it as above; values of the one, and of the other"]
    for edit in edits.edits:
        if _is_carried(edit.field):
            for k, place in enumerate(edit.places):
                where = _place_text(edit.field, place, model, readings)
                table = f"{round_numbers(edit.knots)}, {round_numbers(edit.values[:, k])}"
                lines.append(f"    ({edit.target!r}, {edit.field!r}, {where}, {table}),")
    lines += ["]", f"PRODUCT = {edits.product!r}", f"READINGS = {list(readings)!r}", f"DERIVED = {edits.derived!r}", ""]
    return "\n".join(lines)


def _place_text(field: str, place: Place, model: mujoco.MjModel, readings: tuple[str, ...]) -> str:
    """Returns kind, name (number where it has none) and the other indices of a place, as Python."""
    if field in ("signal.bias", "signal.scale"):
        return f"'reading', {readings[place[0]]!r}, ()"
    if field.startswith("opt."):
        return f"'option', {place[0]}, {place[1:]}"
    kind, number = ("actuator", place[0]) if field.startswith("signal.") else find_element(model, field, place)
    return f"{kind!r}, {(getattr(model, kind)(number).name or place[0])!r}, {place[1:]}"
