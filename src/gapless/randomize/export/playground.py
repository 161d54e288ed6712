"""Ranges as a randomisation function for MuJoCo Playground.

Checked against Playground 0.2.0 and MuJoCo MJX 3.17: the function gets a model and one key per world, and returns the
model with worlds as the first axis of the fields that vary, and which fields these are.
"""

from collections.abc import Set
from pathlib import Path

import numpy as np
from scipy.stats import norm

from gapless.core.distribution import Range
from gapless.randomize.export.effects import Edit, Effects, Place, effects_of, short
from gapless.randomize.export.entries import Entry, Job
from gapless.randomize.export.notes import as_comment, changed, left_out

LATENT = "delays, play and readings belong to the step of the environment, not to its model"
FRICTIONLESS = "MJX fixes at its start which joints have friction: give this one a small frictionloss in the model"
HEAD = '''
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
TOGETHER = '''

def together(key, root, mean, std, is_log, low, high):
    """Correlated ranges: the first of 100 draws that lies inside, else one that is cut."""
    bells = jax.random.normal(key, (100, len(mean))) @ jp.array(root).T
    mean, std, low, high = jp.array(mean), jp.array(std), jp.array(low), jp.array(high)
    values = jp.where(jp.array(is_log), mean * jp.exp(std * bells), mean + std * bells)
    inside = ((values >= low) & (values <= high)).all(axis=1)
    return jp.clip(values[jp.argmax(inside)], low, high)
'''


def write(job: Job, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the source of `domain_randomize`, with indices that were looked up by name."""
    del folder
    effects = effects_of(job)
    notes = list(effects.notes)
    often = [entry.target for entry in job.entries if entry.range.per != "robot"]
    if often:
        notes.append(changed("all", "drawn once per world, when training starts: Playground has no other level"))
    for entry in job.entries:
        fields = effects.touched.get(entry.target, frozenset())
        if "dof_frictionloss" in fields and entry.nominal == 0:
            notes.append(changed(entry.target, FRICTIONLESS))
        latent = [field for field in fields if field.startswith("signal.")]
        if latent:
            notes.append((changed if len(latent) < len(fields) else left_out)(entry.target, LATENT))
    if effects.derived:
        notes.append(changed("all", "constants that MuJoCo derives from masses and sizes keep their nominal values"))
    body = [*_constants(effects, job), "", "    @jax.vmap", "    def rand_dynamics(rng):"]
    body += [f"        keys = jax.random.split(rng, {len(job.entries) + 1})", "        drawn = {}"]
    edits = [edit for edit in effects.edits if not edit.field.startswith("signal.")]
    body += _draws(job, {edit.target for edit in edits})
    fields = list(dict.fromkeys(edit.field for edit in edits))
    body += [f"        fields = {{name: base[name] for name in {fields!r}}}"]
    for edit in edits:
        body += _edit(edit, effects.product[edit.field], job)
    body += ["        return fields", "", "    fields = rand_dynamics(rng)"]
    body += ["    in_axes = jax.tree_util.tree_map(lambda x: None, model)"]
    body += ["    in_axes = in_axes.tree_replace({name: 0 for name in fields})"]
    body += ["    return model.tree_replace(fields), in_axes", ""]
    about = '    """Returns the model with its worlds drawn, and the axes to map over."""'
    head = ["", "", "def domain_randomize(model, rng):", about, *body]
    text = as_comment(job, notes) + HEAD + (TOGETHER if job.correlations else "") + "\n".join(head)
    return text, tuple(notes)


def _constants(effects: Effects, job: Job) -> list[str]:
    """Returns lines that set what does not vary, and take hold of the fields that do."""
    lines = [f"    assert (model.nbody, model.ngeom, model.nu) == {_size(job)}, 'these ranges are for another model'"]
    for field, values in effects.constants.items():
        if not field.startswith("signal."):
            for place, value in values.items():
                said = f"put(model.{field}, {place}, {_number(value)})"
                lines.append(f"    model = model.tree_replace({{{field!r}: {said}}})  # {_named(field, place, job)}")
    names = dict.fromkeys(edit.field for edit in effects.edits if not edit.field.startswith("signal."))
    lines += ["    base = {", *(f"        {name!r}: jp.asarray(model.{name})," for name in names), "    }"]
    return lines


def _size(job: Job) -> tuple[int, int, int]:
    return job.model.nbody, job.model.ngeom, job.model.nu


def _number(value: float) -> str:
    return repr(int(value)) if float(value).is_integer() else repr(value)


def _draws(job: Job, used: Set[str]) -> list[str]:
    correlated = {target for pair in job.correlations for target in (pair.first, pair.second)}
    lines = []
    for k, entry in enumerate(job.entries):
        if entry.target in used - correlated:
            said = f"{entry.unit}, {entry.range.kind}"
            lines.append(f"        drawn[{entry.target!r}] = {_draw(entry.range, f'keys[{k}]')}  # {said}")
    group = [entry for entry in job.entries if entry.target in correlated]
    return lines + (_group(group, job) if group else [])


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
    return _mixture(item, key)


def _mixture(item: Range, key: str) -> str:
    """Returns the draw of a mixture: a bell by how much of it lies inside, then inside that bell."""
    parts = [part for part in item.parts if part.weight > 0]
    means, stds = [part.mean for part in parts], [max(part.std, 1e-9) for part in parts]
    inside = norm.cdf(item.high, means, stds) - norm.cdf(item.low, means, stds)
    weights = np.maximum(np.array([part.weight for part in parts]) * inside, 1e-300)
    logits = np.log(weights / weights.sum()).tolist()
    which = f"jax.random.categorical(jax.random.fold_in({key}, 1), jp.array({logits}))"
    pick = f"jp.array({means})[which], jp.array({stds})[which], {item.low!r}, {item.high!r}"
    return f"(lambda which: within({key}, {pick}))({which})"


def _group(group: list[Entry], job: Job) -> list[str]:
    place = {entry.target: k for k, entry in enumerate(group)}
    matrix = np.eye(len(group))
    for pair in job.correlations:
        a, b = place[pair.first], place[pair.second]
        matrix[a, b] = matrix[b, a] = pair.value
    ranges = [entry.range for entry in group]
    columns = [[getattr(item, name) for item in ranges] for name in ("mean", "std")]
    columns += [[item.kind == "log-normal" for item in ranges]]
    columns += [[getattr(item, name) for item in ranges] for name in ("low", "high")]
    said = ", ".join(repr(column) for column in [np.linalg.cholesky(matrix).tolist(), *columns])
    names = [item.target for item in ranges]
    line = f"        drawn.update(zip({names!r}, together(keys[-1], {said}), strict=True))"
    return [line]


def _edit(edit: Edit, product: bool, job: Job) -> list[str]:
    """Returns lines that write one parameter into one field."""
    index = tuple(np.array(column).tolist() for column in zip(*edit.places, strict=True))
    said = ", ".join(f"jp.array({column})" for column in index)
    names = ", ".join(dict.fromkeys(_named(edit.field, place, job) for place in edit.places))
    table = [short(column) for column in edit.values.T]
    return [
        f"        # {edit.target}: {edit.field} of {names}",
        f"        fields[{edit.field!r}] = change(",
        f"            fields[{edit.field!r}], base[{edit.field!r}], ({said},),",
        f"            {short(edit.knots)}, {table}, drawn[{edit.target!r}], multiply={product},",
        "        )",
    ]


def _named(field: str, place: Place, job: Job) -> str:
    """Returns the name of what a place in a field belongs to."""
    model, number = job.model, place[0]
    if field.startswith("opt."):
        return "the world"
    group = field.partition("_")[0]
    if group == "dof":
        return model.joint(int(model.dof_jntid[number])).name
    if group == "qpos":
        return model.joint([int(k) for k in model.jnt_qposadr].index(number)).name
    kind = {"jnt": "joint"}.get(group, group)
    return getattr(model, kind)(number).name or str(number)
