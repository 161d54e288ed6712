"""The contract of a layer as a check that anyone can run on a layer of their own.

    from gapless.sim.realism.contract import check_layer

    check_layer(MY_LAYER)

It plays the layer with many knobs over its stated ranges, on small and large signals, at two step lengths.
"""

from dataclasses import dataclass, replace

import numpy as np

from gapless.core.dimensions import DIMENSIONS
from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.realism.draws import Draws
from gapless.sim.realism.layer import NEEDS, TARGETS, Knob, Layer, Moment, State, restarted

NUM_STEPS = 30
REPEATED = (0, 1, NUM_STEPS - 1)  # steps that are taken twice from the same state
ROUNDING = 1e-12  # of the largest output: numpy may round a long array otherwise than a short one
NUM_ROWS = 48  # worlds with knobs drawn at random, besides those at the ends of the ranges
STEPS_S = (0.001, 0.02)
SCALES = (0.0, 1e-3, 1.0, 1e3)  # of signals and of what moments tell
WIDTHS = (1, 4)  # of layers that take any number of columns


@dataclass(frozen=True)
class _Case:
    """One stretch of time to play: what goes in, for every world."""

    layer: Layer
    knobs: dict[str, Array]
    signals: Array  # (num_steps, num_worlds, num_columns)
    seen: dict[str, Array]  # each (num_steps, num_worlds, ...)
    step_s: float
    seed: int

    def rows(self, ids: slice) -> "_Case":
        """Returns the same for some worlds."""
        knobs = {name: values[ids] for name, values in self.knobs.items()}
        seen = {name: values[:, ids] for name, values in self.seen.items()}
        return _Case(self.layer, knobs, self.signals[:, ids], seen, self.step_s, self.seed)


def check_layer(layer: Layer, seed: int = 0) -> None:
    """Checks that a layer keeps the contract; returns nothing if it does.

    Checked are its description; that with all knobs at ideal its signal comes out bit for bit as it went in; that what
    comes out is finite, of the same shape and float64 over the whole stated range of its knobs, their ends and their
    ideal values in any combination; that it writes to none of its arguments; that the same state and seed give the
    same; that a batch of one gives what its row gives in a batch, up to 1e-12; and that single worlds can begin anew.

    Args:
        layer: The layer.
        seed: Of the signals, the knobs and the layer's own draws.

    Raises:
        InputError: At the first breach, with its likely cause.
    """
    _check_description(layer)
    widths = (len(layer.columns),) if layer.columns else WIDTHS
    for width in widths:
        for step_s in STEPS_S:
            for scale in SCALES:
                rng = np.random.default_rng(seed)
                _check_identity(_case(layer, layer.ideal(3), width, step_s, scale, rng, seed))
                own = width if step_s == STEPS_S[-1] else 1  # knobs that differ by column, and knobs that do not
                everything = _case(layer, _over_the_range(layer, rng, own), width, step_s, scale, rng, seed)
                _check_range(everything, worlds=np.arange(everything.signals.shape[1]))


def _require(kept: bool, layer: Layer, found: str, cause: str) -> None:
    if not kept:
        raise InputError(f"the layer {layer.name!r} breaks the contract: {found}; correct the likely cause: {cause}")


def _check_description(layer: Layer) -> None:
    known = (*DIMENSIONS, "spread")
    _require(bool(layer.name), layer, "it has no name", "write what it is called")
    _require(layer.dimension in known, layer, f"its dimension is {layer.dimension!r}", f"one of {', '.join(known)}")
    _require(layer.acts_on in TARGETS, layer, f"it acts on {layer.acts_on!r}", f"one of {', '.join(TARGETS)}")
    unknown = [name for name in layer.needs if name not in NEEDS]
    _require(not unknown, layer, f"it needs {unknown}", f"a Moment has {', '.join(NEEDS)}")
    names = [knob.name for knob in layer.knobs]
    _require(len({*names}) == len(names), layer, f"a knob's name stands twice: {names}", "name each after what it does")
    _require(len(names) > 0, layer, "it has no knobs", "what cannot be set can be neither ideal nor fitted")
    for knob in layer.knobs:
        _check_knob(layer, knob)


def _check_knob(layer: Layer, knob: Knob) -> None:
    what = f"its knob {knob.name!r}"
    _require(bool(knob.unit and knob.source), layer, f"{what} has no unit or no source", "unit 1; rule of thumb")
    bounded = np.isfinite(knob.low) and np.isfinite(knob.high) and knob.low < knob.high
    _require(bool(bounded), layer, f"{what} has the range [{knob.low}, {knob.high}]", "state a finite range")
    inside = knob.low <= knob.typical <= knob.high
    _require(inside, layer, f"{what} is typically {knob.typical:g}, outside its range", "widen the range")
    ideal = knob.low <= knob.ideal <= knob.high or np.isinf(knob.ideal)
    _require(
        bool(ideal), layer, f"{what} is {knob.ideal:g} at ideal, outside its range", "widen it, or infinite for none"
    )


def _over_the_range(layer: Layer, rng: np.random.Generator, width: int) -> dict[str, Array]:
    """Returns rows of knobs: all at one end, each alone off ideal, and random mixtures of ends, ideal and inside."""
    low, high, ideal = (np.array([getattr(k, side) for k in layer.knobs]) for side in ("low", "high", "ideal"))
    alone = np.where(np.eye(len(low), dtype=bool), high, ideal)
    ends = np.repeat(np.stack([low, high, *alone])[:, None], width, axis=1)
    inside = rng.uniform(low, high, (NUM_ROWS, width, len(low)))
    kind = rng.integers(0, 4, inside.shape)
    sides = [np.broadcast_to(side, inside.shape) for side in (low, high, ideal)]
    rows = np.concatenate([ends, np.choose(kind, [*sides, inside])])
    return {knob.name: rows[:, : width if knob.per_column else 1, k].copy() for k, knob in enumerate(layer.knobs)}


def _case(
    layer: Layer, knobs: dict[str, Array], width: int, step_s: float, scale: float, rng: np.random.Generator, seed: int
) -> _Case:
    """Returns random walks as signals and as what the moments tell."""
    num_worlds = len(next(iter(knobs.values())))

    def walk(*shape: int) -> Array:
        steps = rng.normal(size=(NUM_STEPS, num_worlds, *shape))
        return scale * (rng.normal(size=(1, num_worlds, *shape)) + 0.3 * np.cumsum(steps, axis=0))

    shapes = {"place": (width, 2), "warmth_k": (1,)}
    seen = {name: walk(*shapes.get(name, (width,))) for name in layer.needs}
    if "warmth_k" in seen:
        seen["warmth_k"] = np.clip(seen["warmth_k"], -40.0, 60.0)
    return _Case(layer, knobs, walk(width), seen, step_s, seed)


def _moment(case: _Case, k: int, worlds: Array) -> Moment:
    draws = Draws(case.seed, worlds.astype(np.uint64), k)
    return Moment(case.step_s, draws, **{name: values[k] for name, values in case.seen.items()})


def _same(one: State, other: State) -> bool:
    """Tells whether all arrays are equal bit for bit (NaN equals NaN; the sign of zero does not count)."""
    return len(one) == len(other) and all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


def _copied(case: _Case, state: State) -> State:
    return (*(part.copy() for part in state), *(values.copy() for values in case.knobs.values()))


def _run(case: _Case, worlds: Array) -> Array:
    """Returns what comes out, checked step by step, (num_steps, num_worlds, num_columns)."""
    return _advance(case, worlds, range(NUM_STEPS))[1]


def _begun(case: _Case, worlds: Array, k: int) -> State:
    return case.layer.begin(case.signals[k].copy(), case.knobs, _moment(case, k, worlds))


def _advance(case: _Case, worlds: Array, steps: range, state: State | None = None) -> tuple[State, Array]:
    """Returns the state after some steps and what comes out in them; begins anew without a state."""
    layer, out = case.layer, np.empty_like(case.signals[steps.start : steps.stop])
    state = _begun(case, worlds, steps.start) if state is None else state
    for row, k in enumerate(steps):
        signal, moment = case.signals[k].copy(), _moment(case, k, worlds)
        before = _copied(case, state)
        after, out_signal = layer.act(state, signal, case.knobs, moment)
        kept = np.array_equal(signal, case.signals[k]) and _same(before, _copied(case, state))
        _require(kept, layer, "it writes to its arguments", "an operation in place; make a new array")
        _check_shapes(layer, signal, out_signal, after)
        if k in REPEATED:
            again, again_signal = layer.act(state, signal, case.knobs, moment)
            repeated = _same((*after, out_signal), (*again, again_signal))
            _require(
                repeated, layer, "the same state gives another result", "draws not from moment.draws, hidden state"
            )
        state, out[row] = after, out_signal
    return state, out


def _check_shapes(layer: Layer, signal: Array, out_signal: Array, state: State) -> None:
    right = isinstance(out_signal, np.ndarray) and out_signal.shape == signal.shape
    _require(right, layer, f"its signal comes out as {np.shape(out_signal)}, not {signal.shape}", "broadcasting")
    _require(out_signal.dtype == np.float64, layer, f"its signal comes out as {out_signal.dtype}", "a cast")
    lone = [part.shape for part in state if part.shape[:1] != signal.shape[:1]]
    _require(not lone, layer, f"its state has shapes {lone}", "axis 0 of every part is num_worlds")


def _check_identity(case: _Case) -> None:
    out = _run(case, np.arange(case.signals.shape[1]))
    worst = float(np.max(np.abs(out - case.signals)))
    _require(
        np.array_equal(out, case.signals),
        case.layer,
        f"at ideal its signal changes, by up to {worst:.3g}",
        "rounding such as y + (u - y), or a knob whose ideal does something",
    )


def _check_range(case: _Case, worlds: Array) -> None:
    out = _run(case, worlds)
    bad = np.argwhere(~np.isfinite(out))
    if len(bad):
        row = int(bad[0, 1])
        knobs = ", ".join(f"{name} = {values[row, 0]:g}" for name, values in case.knobs.items())
        _require(False, case.layer, f"its signal is not finite with {knobs}", "a division by 0, an unstable step")
    again = _run(case, worlds)
    _require(np.array_equal(out, again), case.layer, "the same seed gives another run", "draw from moment.draws")
    count = out.shape[1]
    for row in sorted({1, count // 2, count - 1}):
        alone = _run(case.rows(slice(row, row + 1)), worlds[row : row + 1])
        _require(
            _close(alone, out[:, row : row + 1]),
            case.layer,
            f"a batch of one differs from row {row} of a batch",
            "a mean or a draw over worlds; draws depend on the place in the batch, not on moment.draws.worlds",
        )
    _check_restart(case, worlds, row=count - 1)
    if case.layer.adds:
        _check_adds(case, worlds, out)


def _check_adds(case: _Case, worlds: Array, out: Array) -> None:
    shift = 1.0 + float(np.abs(case.signals).max())
    other = _run(replace(case, signals=case.signals + shift), worlds)
    _require(
        np.allclose(other - shift, out, rtol=0.0, atol=1e-9 * (shift + float(np.abs(out).max()))),
        case.layer,
        "what it adds depends on its signal",
        "adds=True belongs to layers whose y - u is the same whatever u is",
    )


def _check_restart(case: _Case, worlds: Array, row: int) -> None:
    """Checks that a world that begins anew within a batch does what it does when it begins alone."""
    first, second = range(NUM_STEPS // 2), range(NUM_STEPS // 2, NUM_STEPS)
    one, only = case.rows(slice(row, row + 1)), worlds[row : row + 1]
    state, _ = _advance(case, worlds, first)
    mixed = restarted(state, _begun(one, only, second.start), np.array([row]))
    _, in_batch = _advance(case, worlds, second, mixed)
    _, alone = _advance(one, only, second)
    _require(
        _close(alone, in_batch[:, row : row + 1]),
        case.layer,
        "a world that begins anew in a batch differs from one that begins alone",
        "a part of the state counts for all worlds, such as time since the start",
    )


def _close(one: Array, other: Array) -> bool:
    return np.allclose(one, other, rtol=0.0, atol=ROUNDING * float(np.abs(one).max()))
