"""What ranges do to the numbers of a MuJoCo model, found by writing them: no second copy of what targets mean."""

from dataclasses import dataclass, replace

import numpy as np

from gapless.core.signal import Array
from gapless.randomize.export.entries import Job
from gapless.randomize.export.notes import changed, left_out
from gapless.sim.simulation import Simulation

NUM_KNOTS = 65  # values of a parameter between which effects that bend are taken as straight
ROUNDING = 1e-12  # share of the largest number of a field
STRAIGHT = 1e-9  # share of the change up to which an effect counts as straight
NUM_CHECKS = 64  # rows drawn together, to see how parameters that meet in one number go together
NUM_WORLDS = 256  # written at once
OFF = 0.01  # share of a number's whole change by which rows drawn together may differ from it untold
IDLE = "it moves no number of the model: fixed at the model's value, set by another range too, or acting elsewhere"
Place = tuple[int, ...]


@dataclass(frozen=True)
class Edit:
    """What one parameter does to one field.

    Attributes:
        target: The parameter's target.
        field: Field of MjModel, `opt.NAME` of its options, or `signal.NAME` of the signal path around it.
        places: (num_places) indices in the field.
        knots: (num_knots,) values of the parameter; two where the effect is straight.
        values: (num_knots, num_places) what the field holds there.
    """

    target: str
    field: str
    places: tuple[Place, ...]
    knots: Array
    values: Array


@dataclass(frozen=True)
class Effects:
    """What ranges do to a model.

    Attributes:
        constants: Field -> index -> value, of what is set once whatever is drawn.
        edits: What each parameter does.
        touched: Target -> fields that it moves.
        product: Field -> whether parameters that meet in it multiply; otherwise their changes add up.
        derived: Whether constants that the engine derives from the model must be computed anew.
        notes: Where rows drawn together differ from that.
    """

    constants: dict[str, dict[Place, float]]
    edits: tuple[Edit, ...]
    touched: dict[str, frozenset[str]]
    product: dict[str, bool]
    derived: bool
    notes: tuple[str, ...]


def effects_of(job: Job) -> Effects:
    """Returns what ranges do to the numbers of the model: every parameter alone, then all together."""
    if not job.entries:
        return Effects({}, (), {}, {}, False, ())
    distribution = job.distribution
    low, high = (np.array([getattr(e.range, name) for e in job.entries]) for name in ("low", "high"))
    knots = np.linspace(low, high, NUM_KNOTS, axis=1)
    alone = np.repeat(distribution.space.nominal[None], len(job.entries) * NUM_KNOTS, axis=0)
    for k in range(len(job.entries)):
        alone[k * NUM_KNOTS : (k + 1) * NUM_KNOTS, k] = knots[k]
    drawn = distribution.sample(np.random.default_rng(0), NUM_CHECKS)
    rows = np.concatenate([alone, drawn, distribution.space.nominal[None]])
    written, derived = _written(job, rows)
    jumping = _jumping(job, {name: values[: len(alone)] for name, (_, values) in written.items()})
    if jumping:
        return _without(job, jumping)
    constants: dict[str, dict[Place, float]] = {}
    edits: list[Edit] = []
    product: dict[str, bool] = {}
    notes: list[str] = []
    for field, (nominal, values) in written.items():
        tables = values[: len(alone)].reshape(len(job.entries), NUM_KNOTS, *nominal.shape)
        fixed = _constants(nominal, tables)
        base = nominal.astype(np.float64)
        for place, value in fixed.items():
            base[place] = value
        found = [edit for k in range(len(tables)) if (edit := _edit(job, k, field, tables[k], knots[k])) is not None]
        if fixed:
            constants[field] = fixed
        if found:
            checks = drawn, values[len(alone) : -1]
            product[field], note = _composed(field, base, found, checks, distribution.space.targets)
            notes += note
            edits += found
    order = {entry.target: k for k, entry in enumerate(job.entries)}
    edits.sort(key=lambda edit: order[edit.target])
    touched = {entry.target: _touched(k, written) for k, entry in enumerate(job.entries)}
    notes += [left_out(target, IDLE) for target, fields in touched.items() if not fields]
    return Effects(constants, tuple(edits), touched, product, derived, tuple(notes))


def _touched(number: int, written: dict[str, tuple[Array, Array]]) -> frozenset[str]:
    """Returns the fields that a parameter moves from where they are with all at their nominal values."""
    rows = slice(number * NUM_KNOTS, (number + 1) * NUM_KNOTS)
    moved = {name: np.abs(values[rows] - values[-1]).max(initial=0.0) for name, (_, values) in written.items()}
    return frozenset(name for name, change in moved.items() if change > _noise(written[name][1]))


def _jumping(job: Job, written: dict[str, Array]) -> list[str]:
    """Returns parameters whose effect is not straight between knots: the values tried between them tell."""
    found: list[str] = []
    for values in written.values():
        tables = values.reshape(len(job.entries), NUM_KNOTS, *values.shape[1:])
        change = np.abs(tables - tables[:, :1]).max(axis=1)
        off = np.abs(tables[:, 1::2] - (tables[:, :-1:2] + tables[:, 2::2]) / 2).max(axis=1)
        bad = (off > OFF * np.maximum(change, 1e3 * _noise(tables))).reshape(len(tables), -1).any(axis=1)
        found += [entry.target for entry, jumps in zip(job.entries, bad, strict=True) if jumps]
    return found


def _without(job: Job, targets: list[str]) -> Effects:
    """Returns the effects of the other ranges, with a note on each that is left out."""
    notes = tuple(left_out(target, "its effect on the model jumps") for target in dict.fromkeys(targets))
    found = effects_of(job.without(targets))
    return replace(found, notes=(*notes, *found.notes))


def short(values: Array) -> list[float]:
    """Returns numbers with ten digits, for files that people look at; two of them as they are."""
    return [float(value) if len(values) == 2 else float(f"{value:.10g}") for value in values]


def _written(job: Job, rows: Array) -> tuple[dict[str, tuple[Array, Array]], bool]:
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


def _constants(nominal: Array, tables: Array) -> dict[Place, float]:
    """Returns what some parameter sets to one value, other than the model's, wherever it is itself."""
    ends = tables[:, 0]
    noise = _noise(tables)
    still = (np.abs(tables - ends[:, None]) <= noise).all(axis=1) & (np.abs(ends - nominal) > noise)
    return {tuple(int(k) for k in place[1:]): float(ends[tuple(place)]) for place in np.argwhere(still)}


def _noise(values: Array) -> float:
    """Returns the difference up to which numbers of a field count as equal: rounding."""
    return ROUNDING * float(np.abs(values).max(initial=0.0)) + 1e-300


def _edit(job: Job, number: int, field: str, table: Array, knots: Array) -> Edit | None:
    """Returns what a parameter does to a field; None where it does nothing."""
    moves = (np.abs(table - table[0]) > _noise(table)).any(axis=0)
    places = [tuple(int(k) for k in place) for place in np.argwhere(moves)]
    if not places:
        return None
    values = np.stack([table[(slice(None), *place)] for place in places], axis=1).astype(np.float64)
    share = ((knots - knots[0]) / (knots[-1] - knots[0]))[:, None]
    line = values[0] + share * (values[-1] - values[0])
    change = np.abs(values - values[0]).max(axis=0)
    if (np.abs(values - line) <= STRAIGHT * np.maximum(change, np.abs(values).max(axis=0))).all():
        knots, values = knots[[0, -1]], values[[0, -1]]
    return Edit(job.entries[number].target, field, tuple(places), knots, values)


def _composed(
    field: str, base: Array, edits: list[Edit], checks: tuple[Array, Array], targets: tuple[str, ...]
) -> tuple[bool, list[str]]:
    """Returns whether parameters multiply in a field rather than add, and a note where neither is right."""
    worst: dict[bool, float] = {}
    rows, true = checks
    span = np.maximum(np.abs(true - base).max(axis=0), 1e3 * _noise(true))
    for product in (True, False):
        made = np.repeat(base[None], len(rows), axis=0)
        for edit in edits:
            drawn = rows[:, targets.index(edit.target)]
            for k, place in enumerate(edit.places):
                here, value = (slice(None), *place), np.interp(drawn, edit.knots, edit.values[:, k])
                if product and base[place] != 0:
                    made[here] *= value / base[place]
                else:
                    made[here] += value - base[place]
        worst[product] = float((np.abs(made - true) / span).max())
    product = worst[True] <= max(worst[False], STRAIGHT)
    if worst[product] <= OFF:
        return product, []
    names = ", ".join(edit.target for edit in edits)
    text = f"drawn together they differ by up to {100 * worst[product]:.0f} % of the change in {field}"
    return product, [changed(names, text)]
