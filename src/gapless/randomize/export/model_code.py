"""Ranges as code that changes a MuJoCo model: a Gymnasium wrapper, and a randomisation function for Playground.

Both are a fixed text that reads tables of these ranges and of what they do to the model. The wrapper is
`gymnasium_wrapper.py`. The function was checked against Playground 0.2.0 and MuJoCo MJX 3.17: it gets a model and one
key per world, and returns the model with worlds as the first axis of the fields that vary, and which fields these are.
"""

import re
from collections.abc import Collection
from pathlib import Path

import mujoco
import numpy as np

from gapless.core.distribution.ranges import matrix_of
from gapless.core.results import plain
from gapless.randomize.export.job import ExportJob, header_comment, note_changed, note_left_out
from gapless.randomize.export.model_edits import ModelEdits, Place, find_element, find_model_edits, round_numbers

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
import math
from operator import attrgetter

import jax
import jax.numpy as jp
import numpy as np

{tables}

def domain_randomize(model, rng):
    """Returns the model with its worlds drawn, and the axes to map over."""
    assert (model.nbody, model.ngeom, model.nu) == MODEL_SIZE, "these ranges are for another model"
    for field, (_, _, place), value in CONSTANTS:
        values = attrgetter(field)(model)
        made = np.array(values)
        made[place] = value
        model = model.tree_replace({field: made if isinstance(values, np.ndarray) else jp.asarray(made)})
    base = {field: jp.asarray(attrgetter(field)(model)) for _, field, *_ in EDITS}

    @jax.vmap
    def rand_dynamics(rng):
        drawn, fields = draw_parameters(rng), dict(base)
        for target, field, places, knots, table in EDITS:
            index = tuple(jp.array(column) for column in zip(*(place for _, _, place in places)))
            now = jp.stack([jp.interp(drawn[target], jp.array(knots), jp.array(column)) for column in table])
            values, start = fields[field][index], base[field][index]
            added = values + now - start
            scaled = jp.where(start == 0, added, values * now / jp.where(start == 0, 1.0, start))
            fields[field] = fields[field].at[index].set(scaled if PRODUCT[field] else added)
        return fields

    fields = rand_dynamics(rng)
    in_axes = jax.tree_util.tree_map(lambda x: None, model)
    in_axes = in_axes.tree_replace({name: 0 for name in fields})
    return model.tree_replace(fields), in_axes


def draw_parameters(rng):
    """Each on its own, then the correlated ones: the first of 100 draws that is inside, or one that is cut."""
    keys = jax.random.split(rng, len(RANGES) + 1)
    drawn = {item["target"]: draw(key, item) for key, item in zip(keys, RANGES) if item["target"] not in CORRELATED}
    if CORRELATED:
        group = [item for item in RANGES if item["target"] in CORRELATED]
        mean, std, low, high = (jp.array([item[name] for item in group]) for name in ("mean", "std", "low", "high"))
        bells = jax.random.normal(keys[-1], (100, len(group))) @ jp.array(ROOT).T
        is_log = jp.array([item["kind"] == "log-normal" for item in group])
        values = jp.where(is_log, mean * jp.exp(std * bells), mean + std * bells)
        inside = ((values >= low) & (values <= high)).all(axis=1)
        drawn.update(zip(CORRELATED, jp.clip(values[jp.argmax(inside)], low, high)))
    return drawn


def draw(key, item):
    """One value of a range, cut at its ends."""
    kind, low, high, mean, std = (item[name] for name in ("kind", "low", "high", "mean", "std"))
    if kind == "fixed" or low == high:
        return mean
    if kind == "uniform":
        return jax.random.uniform(key, minval=low, maxval=high)
    if kind == "log-uniform":
        return jp.exp(jax.random.uniform(key, minval=math.log(low), maxval=math.log(high)))
    if kind == "log-normal":
        return jp.exp(cut_normal(key, math.log(mean), max(std, 1e-9), math.log(low), math.log(high)))
    if kind == "beta":
        centre = (mean - low) / (high - low)
        size = centre * (1 - centre) * ((high - low) / std) ** 2 - 1
        return low + (high - low) * jax.random.beta(key, centre * size, (1 - centre) * size)
    bells = [(p["weight"], p["mean"], max(p["std"], 1e-9)) for p in item["parts"]] or [(1.0, mean, max(std, 1e-9))]
    # one of the bells, by how much of it lies inside
    ends = [[math.erf((end - m) / s / math.sqrt(2)) for end in (low, high)] for _, m, s in bells]
    weights = np.array([max(bell[0] * (b - a), 1e-300) for bell, (a, b) in zip(bells, ends)])
    which = jax.random.categorical(jax.random.fold_in(key, 1), jp.array(np.log(weights / weights.sum())))
    means, stds = (jp.array([bell[k] for bell in bells]) for k in (1, 2))
    return cut_normal(key, means[which], stds[which], low, high)


def cut_normal(key, mean, std, low, high):
    """Normal, cut at [low, high]."""
    return mean + std * jax.random.truncated_normal(key, (low - mean) / std, (high - mean) / std)
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
    more = f"READINGS = {list(job.blueprint.project.measurement_names)!r}\nDERIVED = {edits.derived!r}\n"
    tables = header_comment(job, notes) + _write_tables(job, edits, WRAPPER_SIGNALS) + more
    return block.sub(lambda _: tables, source, count=1), tuple(notes)


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
    tables = _write_tables(job, edits) + size
    return header_comment(job, notes) + PLAYGROUND.replace("{tables}", tables), tuple(notes)


def _is_carried(field: str, signals: Collection[str] = ()) -> bool:
    """Says whether a field is one of the model, or one of some signals around it."""
    return not field.startswith("signal.") or field in signals


def _write_tables(job: ExportJob, edits: ModelEdits, signals: Collection[str] = ()) -> str:
    """Returns the tables of ranges and of what they do to the model and to some signals, as Python."""
    together = {target for pair in job.correlations for target in (pair.first, pair.second)}
    group = [entry.range for entry in job.entries if entry.target in together]
    root = np.linalg.cholesky(matrix_of(group, job.correlations)).tolist() if group else []
    lines = ["RANGES = [", *(f"    {plain(entry.range) | {'unit': entry.unit}!r}," for entry in job.entries)]
    lines += ["]", f"CORRELATED = {[item.target for item in group]!r}"]
    lines += [f"ROOT = {root!r}  # of the correlation matrix of these: root times its transpose"]
    carried = [edit for edit in edits.edits if _is_carried(edit.field, signals)]
    lines += ["CONSTANTS = [  # field, place (kind and name of its element, index), value"]
    for edit in (edit for edit in carried if edit.is_constant):
        for place, value in zip(edit.places, edit.values[0].tolist(), strict=True):
            number = int(value) if value.is_integer() else value
            lines.append(f"    ({edit.field!r}, {_place_text(edit.field, place, job.model_as_filed)}, {number!r}),")
    lines += ["]", "EDITS = [  # parameter, field, places in it; values of the parameter, and at each place"]
    for edit in (edit for edit in carried if not edit.is_constant):
        places = ", ".join(_place_text(edit.field, place, job.model_as_filed) for place in edit.places)
        table = [round_numbers(column) for column in edit.values.T]
        lines += [f"    ({edit.target!r}, {edit.field!r}, [{places}],"]
        lines += [f"     {round_numbers(edit.knots)}, {table}),"]
    return "\n".join([*lines, "]", f"PRODUCT = {edits.product!r}  # whether they multiply in a field, or add", ""])


def _place_text(field: str, place: Place, model: mujoco.MjModel) -> str:
    """Returns kind and name of an element, empty where it is found by number, and the index of a place, as Python."""
    if field.startswith("opt.") or field in ("signal.bias", "signal.scale"):
        return f"('', '', {place})"
    kind, number = ("actuator", place[0]) if field.startswith("signal.") else find_element(model, field, place)
    return f"({kind!r}, {getattr(model, kind)(number).name!r}, {place})"
