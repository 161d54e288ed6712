"""What ranges do to the numbers of a MuJoCo model, found by writing them: no second copy of what targets mean."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from gapless.core.signal import Array
from gapless.randomize.export.job import ExportJob, note_changed, note_left_out
from gapless.sim.simulation import Simulation

NUM_KNOTS = 65  # values of a parameter, between which its effect is taken as straight
NUM_CHECKS = 64  # rows drawn together, to see how parameters that meet in one number combine
NUM_WORLDS = 256  # written at once
MAX_ROUNDING = 1e-12  # share of the largest number of a field up to which numbers count as equal
MAX_BEND = 1e-9  # share of the change up to which an effect counts as straight
MAX_DIFFERENCE = 0.01  # share of a number's change by which rows drawn together may differ from it without a note
READING_SIGNALS = ("signal.bias", "signal.scale", "signal.reading_delay_s")  # of readings; others are of actuators
NO_EFFECT = "it moves no number of the model: fixed at the model's value, set by another range too, or acting elsewhere"


@dataclass(frozen=True)
class FieldEdit:
    """What one parameter does to one field of a model."""

    target: str  # the parameter's target; empty for what all parameters at their nominal values set
    field: str  # field of MjModel, `opt.NAME` of its options, or `signal.NAME` of the signal path around it
    places: tuple[tuple[int, ...], ...]  # (num_places) indices in the field
    elements: tuple[tuple[str, str], ...]  # (num_places) kind and name of the element; empty: found by its number
    # (num_knots,) values of the parameter: two where the effect is straight, one where it is the same for all of them
    knots: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]  # (num_knots, num_places) what the field holds there
    multiplies: bool = False  # with others that meet it in this field; otherwise their changes add up

    @property
    def is_constant(self) -> bool:
        """Whether it sets something once, whatever is drawn."""
        return len(self.knots) == 1


def edit_fields(
    nominal: Mapping[str, Array], edits: Sequence[FieldEdit], parameters: Mapping[str, Array]
) -> dict[str, Array]:
    """Returns field -> `nominal` with edits, (num_worlds, ...), for parameters of worlds, (num_worlds,) each."""
    num_worlds = max(map(len, parameters.values()), default=1)
    base = {name: np.array(value, dtype=np.float64) for name, value in nominal.items()}
    for edit in edits:
        if edit.is_constant:
            base[edit.field][tuple(np.transpose(edit.places))] = edit.values[0]
    fields = {name: np.repeat(value[None], num_worlds, axis=0) for name, value in base.items()}
    for edit in edits:
        if not edit.is_constant:
            index = tuple(np.transpose(edit.places))
            start, here = base[edit.field][index], (slice(None), *index)
            columns = [np.interp(parameters[edit.target], edit.knots, column) for column in np.transpose(edit.values)]
            now, before = np.stack(columns, axis=1), fields[edit.field][here]
            scaled = before * now / np.where(start == 0, 1.0, start)
            fields[edit.field][here] = np.where(edit.multiplies & (start != 0), scaled, before + now - start)
    return fields


@dataclass(frozen=True)
class ModelEdits:
    """What ranges do to a model."""

    edits: tuple[FieldEdit, ...]  # what each parameter does
    derived: bool  # whether constants that the engine derives from the model must be computed anew
    notes: tuple[str, ...]  # where rows drawn together differ from that

    def find_fields(self, target: str) -> set[str]:
        """Returns the fields that a parameter sets."""
        return {edit.field for edit in self.edits if edit.target == target}


def find_model_edits(job: ExportJob) -> ModelEdits:
    """Returns what ranges do to the numbers of the model: every parameter alone, then all together."""
    if not job.entries:
        return ModelEdits((), False, ())
    distribution, targets = job.distribution, [entry.target for entry in job.entries]
    low, high = (np.array([getattr(e.range, name) for e in job.entries]) for name in ("low", "high"))
    knots = np.linspace(low, high, NUM_KNOTS, axis=1)
    alone = np.tile(distribution.space.nominal, (len(targets), NUM_KNOTS, 1))
    for k in range(len(targets)):
        alone[k, :, k] = knots[k]
    alone = alone.reshape(-1, len(targets))
    drawn = distribution.sample(np.random.default_rng(0), NUM_CHECKS)
    written, derived = _write_rows(job, np.concatenate([distribution.space.nominal[None], alone, drawn]))
    tables = {
        field: values[1 : 1 + len(alone)].reshape(len(targets), NUM_KNOTS, *nominal.shape)
        for field, (nominal, values) in written.items()
    }
    jumping = [target for k, target in enumerate(targets) if any(_jumps(table[k]) for table in tables.values())]
    if jumping:
        found = find_model_edits(job.without(jumping))
        notes = [note_left_out(target, "its effect on the model jumps") for target in jumping]
        return replace(found, notes=(*notes, *found.notes))
    edits: list[FieldEdit] = []
    notes: list[str] = []
    parameters = dict(zip(targets, drawn.T, strict=True))
    for field, (nominal, values) in written.items():
        made = _find_edits("", field, values[:1], np.zeros(1), nominal, job.model_as_filed)
        for k, target in enumerate(targets):
            made += _find_edits(target, field, tables[field][k], knots[k], values[0], job.model_as_filed)
        combined, note = _combine_edits(field, nominal, made, parameters, values[1 + len(alone) :])
        edits += combined
        notes += note
    edits.sort(key=lambda edit: ["", *targets].index(edit.target))
    acting = {edit.target for edit in edits}
    notes += [note_left_out(target, NO_EFFECT) for target in targets if target not in acting]
    return ModelEdits(tuple(edits), derived, tuple(notes))


def _write_rows(job: ExportJob, rows: Array) -> tuple[dict[str, tuple[Array, Array]], bool]:
    """Returns field -> its value as written and with rows in it, and whether constants are derived."""
    found: dict[str, tuple[Array, Array]] = {}
    world = Simulation(job.blueprint, min(len(rows), NUM_WORLDS), job.distribution.space, num_threads=1)
    fields = world.fields
    per_world = {name: value for name, value in vars(fields).items() if isinstance(value, np.ndarray)}
    ideal = {name: value[0].copy() for name, value in per_world.items() if value.dtype == np.float64}
    for begin in range(0, len(rows), NUM_WORLDS):
        part = rows[begin : begin + NUM_WORLDS]
        world.set_parameters(part, np.arange(len(part)))
        live = {name: (fields.nominal(name), fields.of(name)) for name in fields.expanded}
        live |= {f"signal.{name}": (nominal, getattr(fields, name)) for name, nominal in ideal.items()}
        for name, (nominal, values) in live.items():
            if name not in found:
                found[name] = (nominal.copy(), np.repeat(nominal[None].astype(np.float64), len(rows), axis=0))
            found[name][1][begin : begin + len(part)] = values[: len(part)]
    return found, fields.needs_constants


def _rounding(values: Array) -> float:
    """Returns the difference up to which numbers of a field count as equal."""
    return MAX_ROUNDING * float(np.abs(values).max(initial=0.0)) + 1e-300


def _jumps(table: Array) -> bool:
    """Says whether an effect, (num_knots, ...), is far from straight between every second knot."""
    change = np.abs(table - table[0]).max(axis=0)
    off = np.abs(table[1::2] - (table[:-1:2] + table[2::2]) / 2).max(axis=0)
    return bool((off > MAX_DIFFERENCE * np.maximum(change, 1e3 * _rounding(table))).any())


def _find_edits(
    target: str, field: str, table: Array, knots: Array, before: Array, model: mujoco.MjModel
) -> list[FieldEdit]:
    """Returns what a parameter does to a field: to places that it sets to one value, and to those that it moves."""
    moves = (np.abs(table - table[0]) > _rounding(table)).any(axis=0)
    differs = (np.abs(table[0] - before) > _rounding(table)) & ~moves
    found: list[FieldEdit] = []
    for chosen in (differs, moves):
        places = tuple(tuple(int(k) for k in place) for place in np.argwhere(chosen))
        values = table[:, chosen].astype(np.float64)
        share = np.linspace(0.0, 1.0, len(knots))[:, None]
        line = values[0] + share * (values[-1] - values[0])
        change = np.abs(values - values[0]).max(axis=0)
        is_straight = (np.abs(values - line) <= MAX_BEND * np.maximum(change, np.abs(values).max(axis=0))).all()
        kept = [0] if chosen is differs else [0, -1] if is_straight else slice(None)
        if places:
            elements = tuple(_find_element(model, field, place[0]) for place in places)
            rows = tuple(tuple(row) for row in values[kept].tolist())
            found.append(FieldEdit(target, field, places, elements, tuple(knots[kept].tolist()), rows))
    return found


def _find_element(model: mujoco.MjModel, field: str, number: int) -> tuple[str, str]:
    """Returns kind and name of the element that a row of a field belongs to; empty where it is found by its number."""
    if field.startswith("opt.") or field in READING_SIGNALS:
        return "", ""
    group = "actuator" if field.startswith("signal.") else field.partition("_")[0]
    if group == "dof":
        number = int(model.dof_jntid[number])
    elif group == "qpos":
        number = [int(k) for k in model.jnt_qposadr].index(number)
    kind = "joint" if group in ("jnt", "dof", "qpos") else group
    return kind, getattr(model, kind)(number).name


def _combine_edits(
    field: str, nominal: Array, edits: list[FieldEdit], parameters: Mapping[str, Array], true: Array
) -> tuple[list[FieldEdit], list[str]]:
    """Returns edits of a field that multiply or add, as rows drawn together do; and a note where neither is right.

    `true`, (num_rows, ...), is the field under all parameters drawn together, (num_rows,) each.
    """
    moving = [edit for edit in edits if not edit.is_constant]
    if not moving:
        return edits, []
    base = edit_fields({field: nominal}, [edit for edit in edits if edit.is_constant], parameters)[field]
    span = np.maximum(np.abs(true - base).max(axis=0), 1e3 * _rounding(true))
    tried = {product: [replace(edit, multiplies=product) for edit in edits] for product in (True, False)}
    made = {product: edit_fields({field: nominal}, some, parameters)[field] for product, some in tried.items()}
    worst = {product: float((np.abs(values - true) / span).max()) for product, values in made.items()}
    product = worst[True] <= max(worst[False], MAX_BEND)
    if worst[product] <= MAX_DIFFERENCE:
        return tried[product], []
    names = ", ".join(edit.target for edit in moving)
    text = f"drawn together they differ by up to {100 * worst[product]:.0f} % of the change in {field}"
    return tried[product], [note_changed(names, text)]
