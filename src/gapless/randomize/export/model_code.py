"""Ranges as code that changes a MuJoCo model: a Gymnasium wrapper, and a randomisation function for Playground.

The wrapper is `gymnasium_wrapper.py` with these ranges in it. The function was checked against Playground 0.2.0 and
MuJoCo MJX 3.17: it gets a model and one key per world, and returns the model with worlds as the first axis of the
fields that vary, and which fields these are.
"""

import re
from pathlib import Path

import mujoco
import numpy as np
from scipy.stats import norm

from gapless.core.distribution import Range
from gapless.core.distribution.joint import matrix_of
from gapless.core.results import plain
from gapless.randomize.export.job import ExportJob, header_comment, note_changed, note_left_out
from gapless.randomize.export.model_edits import (
    FieldEdit,
    ModelEdits,
    Place,
    find_element,
    find_model_edits,
    round_numbers,
)

CARRIED_SIGNALS = ("signal.delay_s", "signal.target_offset", "signal.bias", "signal.scale")
REASONS = {
    "signal.lag_s": "a lag acts between the physics steps, which a wrapper does not see",
    "signal.backlash": "play in a joint is not part of the model, and no wrapper of actions has it",
    "signal.reading_delay_s": "observations are not kept",
}
SIMPLE_BODY = 'MuJoCo treats its body as simple, whose centre cannot move: write simple="false" on it in the model'
SIGNAL_PATH = "delays, play and readings belong to the step of the environment, not to its model"
FRICTIONLESS = "MJX fixes at its start which joints have friction: give this one a small frictionloss in the model"
FUNCTIONS = '''
import jax
import jax.numpy as jp
import numpy as np


def within(key, mean, std, low, high):
    """Normal, cut at [low, high]."""
    return mean + std * jax.random.truncated_normal(key, (low - mean) / std, (high - mean) / std)


def change(values, base, index, knots, table, value, multiply):
    """Field values after one parameter: what the table says at `value`, straight lines between its knots."""
    now = jp.stack([jp.interp(value, jp.array(knots), jp.array(column)) for column in table])
    start = base[index]
    if multiply:
        scaled = values[index] * now / jp.where(start == 0, 1.0, start)
        return values.at[index].set(jp.where(start == 0, values[index] + now, scaled))
    return values.at[index].add(now - start)


def put(values, index, number):
    """Values with one number set, whatever is drawn."""
    made = np.array(values)
    made[index] = number
    return made if isinstance(values, np.ndarray) else jp.asarray(made)
'''
DRAW_TOGETHER = '''

def draw_together(key, root, mean, std, is_log, low, high):
    """Correlated ranges: the first of 100 draws that lies inside, else one that is cut."""
    bells = jax.random.normal(key, (100, len(mean))) @ jp.array(root).T
    mean, std, low, high = jp.array(mean), jp.array(std), jp.array(low), jp.array(high)
    values = jp.where(jp.array(is_log), mean * jp.exp(std * bells), mean + std * bells)
    inside = ((values >= low) & (values <= high)).all(axis=1)
    return jp.clip(values[jp.argmax(inside)], low, high)
'''
HEAD = '''

def domain_randomize(model, rng):
    """Returns the model with its worlds drawn, and the axes to map over."""'''
TAIL = """        return fields

    fields = rand_dynamics(rng)
    in_axes = jax.tree_util.tree_map(lambda x: None, model)
    in_axes = in_axes.tree_replace({name: 0 for name in fields})
    return model.tree_replace(fields), in_axes
"""


def write_gymnasium(job: ExportJob, _: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the source of the wrapper with these ranges in it."""
    edits = find_model_edits(job)
    moving = {target for target, fields in edits.touched.items() if fields & {"body_ipos", "body_iquat"}}
    named = [e for e in job.entries if e.kind == "body" and e.name != "*" and e.target in moving]
    stuck = [e.target for e in named if job.model_as_filed.body_simple[job.model.body(e.name).id]]
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


def write_playground(job: ExportJob, _: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the source of `domain_randomize`, with indices that were looked up by name."""
    found = find_model_edits(job)
    notes = list(found.notes)
    if any(entry.range.per != "robot" for entry in job.entries):
        notes.append(note_changed("all", "drawn once per world, when training starts: Playground has no other level"))
    for entry in job.entries:
        fields = found.touched.get(entry.target, frozenset())
        if "dof_frictionloss" in fields and entry.nominal == 0:
            notes.append(note_changed(entry.target, FRICTIONLESS))
        signals = [field for field in fields if field.startswith("signal.")]
        if signals:
            notes.append((note_changed if len(signals) < len(fields) else note_left_out)(entry.target, SIGNAL_PATH))
    if found.derived:
        notes.append(note_changed("all", "constants that MuJoCo derives from masses and sizes stay nominal"))
    model, edits = job.model, [edit for edit in found.edits if not edit.field.startswith("signal.")]
    fields = list(dict.fromkeys(edit.field for edit in edits))
    size = model.nbody, model.ngeom, model.nu
    lines = [HEAD, f"    assert (model.nbody, model.ngeom, model.nu) == {size}, 'these ranges are for another model'"]
    for field, values in found.constants.items():
        if not field.startswith("signal."):
            for place, value in values.items():
                put = f"put(model.{field}, {place}, {int(value) if float(value).is_integer() else value!r})"
                name = _element_name(field, place, job)
                lines.append(f"    model = model.tree_replace({{{field!r}: {put}}})  # {name}")
    lines += ["    base = {", *(f"        {name!r}: jp.asarray(model.{name})," for name in fields), "    }", ""]
    lines += ["    @jax.vmap", "    def rand_dynamics(rng):"]
    lines += [f"        keys = jax.random.split(rng, {len(job.entries) + 1})", "        drawn = {}"]
    lines += _write_draws(job, {edit.target for edit in edits})
    lines += [f"        fields = {{name: base[name] for name in {fields!r}}}"]
    for edit in edits:
        lines += _write_edit(edit, found.product[edit.field], job)
    lines.append(TAIL)
    functions = FUNCTIONS + (DRAW_TOGETHER if job.correlations else "")
    return header_comment(job, notes) + functions + "\n".join(lines), tuple(notes)


def _write_draws(job: ExportJob, used: set[str]) -> list[str]:
    """Returns the lines that draw parameters: each on its own, then those that are correlated."""
    correlated = {target for pair in job.correlations for target in (pair.first, pair.second)}
    lines: list[str] = []
    for k, entry in enumerate(job.entries):
        if entry.target in used - correlated:
            draw = _draw(entry.range, f"keys[{k}]")
            lines.append(f"        drawn[{entry.target!r}] = {draw}  # {entry.unit}, {entry.range.kind}")
    group = [entry.range for entry in job.entries if entry.target in correlated]
    if group:
        root = np.linalg.cholesky(matrix_of(group, job.correlations)).tolist()
        numbers = [(item.mean, item.std, item.kind == "log-normal", item.low, item.high) for item in group]
        columns = [root, *map(list, zip(*numbers, strict=True))]
        arguments, names = ", ".join(repr(column) for column in columns), [item.target for item in group]
        lines.append(f"        drawn.update(zip({names!r}, draw_together(keys[-1], {arguments}), strict=True))")
    return lines


def _draw(item: Range, key: str) -> str:
    low, high, mean, std = item.low, item.high, item.mean, item.std
    if item.kind == "fixed" or low == high:
        return repr(mean)
    if item.kind == "uniform":
        return f"jax.random.uniform({key}, minval={low!r}, maxval={high!r})"
    if item.kind == "log-uniform":
        return f"jp.exp(jax.random.uniform({key}, minval={np.log(low)}, maxval={np.log(high)}))"
    if item.kind == "normal":
        return f"within({key}, {mean!r}, {std!r}, {low!r}, {high!r})" if std else repr(mean)
    if item.kind == "log-normal":
        bounds = f"{float(np.log(mean))!r}, {std!r}, {float(np.log(low))!r}, {float(np.log(high))!r}"
        return f"jp.exp(within({key}, {bounds}))" if std else repr(mean)
    if item.kind == "beta":
        a, b = item.shape()
        return f"{low!r} + {high - low!r} * jax.random.beta({key}, {a!r}, {b!r})"
    return _draw_mixture(item, key)


def _draw_mixture(item: Range, key: str) -> str:
    """Returns the draw of a mixture: a bell by how much of it lies inside, then inside that bell."""
    parts = [part for part in item.parts if part.weight > 0]
    means, stds = [part.mean for part in parts], [max(part.std, 1e-9) for part in parts]
    inside = norm.cdf(item.high, means, stds) - norm.cdf(item.low, means, stds)
    weights = np.maximum(np.array([part.weight for part in parts]) * inside, 1e-300)
    logits = np.log(weights / weights.sum()).tolist()
    which = f"jax.random.categorical(jax.random.fold_in({key}, 1), jp.array({logits}))"
    pick = f"jp.array({means})[which], jp.array({stds})[which], {item.low!r}, {item.high!r}"
    return f"(lambda which: within({key}, {pick}))({which})"


def _write_edit(edit: FieldEdit, product: bool, job: ExportJob) -> list[str]:
    """Returns lines that write one parameter into one field."""
    index = ", ".join(f"jp.array({list(column)})" for column in zip(*edit.places, strict=True))
    names = ", ".join(dict.fromkeys(_element_name(edit.field, place, job) for place in edit.places))
    table = [round_numbers(column) for column in edit.values.T]
    return [
        f"        # {edit.target}: {edit.field} of {names}",
        f"        fields[{edit.field!r}] = change(",
        f"            fields[{edit.field!r}], base[{edit.field!r}], ({index},),",
        f"            {round_numbers(edit.knots)}, {table}, drawn[{edit.target!r}], multiply={product},",
        "        )",
    ]


def _element_name(field: str, place: Place, job: ExportJob) -> str:
    """Returns the name of what a place in a field belongs to."""
    if field.startswith("opt."):
        return "the world"
    kind, number = find_element(job.model, field, place)
    return getattr(job.model, kind)(number).name or str(number)
