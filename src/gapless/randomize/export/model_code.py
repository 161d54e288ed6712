"""Ranges as code that changes a MuJoCo model: a Gymnasium wrapper, and a randomisation function for Playground.

Both are a fixed text that reads tables of these ranges and of what they do to the model. The wrapper is
`gymnasium_wrapper.py`. The function was checked against Playground 0.2.0 and MuJoCo MJX 3.17: it gets a model and one
key per world, and returns the model with worlds as the first axis of the fields that vary, and which fields these are.
"""

import inspect
import re
from collections.abc import Collection
from pathlib import Path

from gapless.core.distribution.ranges import Distribution, Range, draw_ranges, matrix_of
from gapless.randomize.export.job import ExportJob, header_comment, note_changed, note_left_out
from gapless.randomize.export.model_edits import FieldEdit, ModelEdits, edit_fields, find_model_edits

WRAPPER_SIGNALS = ("signal.delay_s", "signal.target_offset", "signal.bias", "signal.scale")
REASONS = {
    "signal.lag_s": "a lag acts between the physics steps, which a wrapper does not see",
    "signal.backlash": "play in a joint is not part of the model, and no wrapper of actions has it",
    "signal.reading_delay_s": "observations are not kept",
}
SIMPLE_BODY = 'MuJoCo treats its body as simple, whose centre cannot move: write simple="false" on it in the model'
SIGNAL_PATH = "delays, play and readings belong to the step of the environment, not to its model"
FRICTIONLESS = "MJX fixes at its start which joints have friction: give this one a small frictionloss in the model"
PLAYGROUND = '''
from operator import attrgetter

import jax
import jax.numpy as jp
import numpy as np

{code}

def domain_randomize(model, rng):
    """Returns the model with its worlds drawn, and the axes to map over; `rng` is a key per world."""
    assert (model.nbody, model.ngeom, model.nu) == MODEL_SIZE, "these ranges are for another model"
    seed = np.asarray(jax.random.key_data(rng)).ravel()
    drawn = draw_ranges(RANGES, CORRELATIONS, np.random.default_rng(seed), len(rng))
    nominal = {edit.field: np.asarray(attrgetter(edit.field)(model)) for edit in EDITS}
    fields = edit_fields(nominal, EDITS, drawn)
    varied = {edit.field for edit in EDITS if not edit.is_constant}
    for name in fields.keys() - varied:
        value, is_static = fields[name][0].astype(nominal[name].dtype), isinstance(attrgetter(name)(model), np.ndarray)
        model = model.tree_replace({name: value if is_static else jp.asarray(value)})
    in_axes = jax.tree_util.tree_map(lambda x: None, model).tree_replace(dict.fromkeys(varied, 0))
    return model.tree_replace({name: jp.asarray(fields[name]) for name in varied}), in_axes
'''


def write_gymnasium(job: ExportJob, _: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the source of the wrapper with these ranges in it."""
    edits = find_model_edits(job)
    moving = {edit.target for edit in edits.edits if edit.field in ("body_ipos", "body_iquat")}
    named = [e for e in job.entries if e.kind == "body" and e.name != "*" and e.target in moving]
    stuck = [e.target for e in named if job.model_as_filed.body_simple[job.model.body(e.name).id]]
    if stuck:
        job = job.without(stuck)
        edits = find_model_edits(job)
    notes = [*edits.notes, *(note_left_out(target, SIMPLE_BODY) for target in stuck)]
    for entry in job.entries:
        fields = edits.find_fields(entry.target)
        missing = sorted(field for field in fields if not _is_carried(field, WRAPPER_SIGNALS))
        note = note_changed if len(missing) < len(fields) else note_left_out  # what is carried in part is not left out
        notes += [note(entry.target, REASONS.get(f, f"no wrapper of actions has it ({f})")) for f in missing]
        if entry.kind == "measurement" and fields & set(WRAPPER_SIGNALS):
            how = "acts where you say which element of the observation it is: observation={...}"
            notes.append(note_changed(entry.target, how))
    source = Path(__file__).with_name("gymnasium_wrapper.py").read_text(encoding="utf-8")
    block = re.compile(r"# ranges: begin.*?# ranges: end\n", re.DOTALL)
    more = f"READINGS = {tuple(job.blueprint.project.measurement_names)!r}\nDERIVED = {edits.derived!r}\n"
    code = header_comment(job, notes) + _write_code(job, edits, WRAPPER_SIGNALS) + more
    return block.sub(lambda _: code, source, count=1), tuple(notes)


def write_playground(job: ExportJob, _: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the source of `domain_randomize`, with indices that were looked up by name."""
    edits = find_model_edits(job)
    notes = list(edits.notes)
    if any(entry.range.per != "robot" for entry in job.entries):
        notes.append(note_changed("all", "drawn once per world, when training starts: Playground has no other level"))
    for entry in job.entries:
        fields = edits.find_fields(entry.target)
        if "dof_frictionloss" in fields and entry.nominal == 0:
            notes.append(note_changed(entry.target, FRICTIONLESS))
        signals = [field for field in fields if not _is_carried(field)]
        if signals:
            notes.append((note_changed if len(signals) < len(fields) else note_left_out)(entry.target, SIGNAL_PATH))
    if edits.derived:
        notes.append(note_changed("all", "constants that MuJoCo derives from masses and sizes stay nominal"))
    size = f"MODEL_SIZE = {(job.model.nbody, job.model.ngeom, job.model.nu)}  # bodies, geoms, actuators\n"
    code = _write_code(job, edits) + size
    return header_comment(job, notes) + PLAYGROUND.replace("{code}", code), tuple(notes)


def _is_carried(field: str, signals: Collection[str] = ()) -> bool:
    """Says whether a field is one of the model, or one of some signals around it."""
    return not field.startswith("signal.") or field in signals


def _write_code(job: ExportJob, edits: ModelEdits, signals: Collection[str] = ()) -> str:
    """Returns the code of gapless that draws and edits fields, and its tables; only some signals are carried."""
    text = Path(inspect.getfile(Range)).read_text(encoding="utf-8").partition(inspect.getsource(Distribution))[0]
    own = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("from gapless"))
    more = [inspect.getsource(item) for item in (draw_ranges, matrix_of, FieldEdit, edit_fields)]
    tables = ["RANGES = (", *(f"    {entry.range!r},  # {entry.unit}" for entry in job.entries), ")"]
    tables += [f"CORRELATIONS = {job.distribution.correlations!r}", "EDITS = ("]
    tables += [f"    {edit!r}," for edit in edits.edits if _is_carried(edit.field, signals)]
    imports = "from collections.abc import Mapping, Sequence\n\nArray, InputError = np.ndarray, ValueError\n"
    return "\n\n".join([imports, own, *more, "\n".join([*tables, ")", ""])])
