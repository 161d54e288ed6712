"""The contract of a layer as a check that anyone can run on a layer of their own.

    from gapless.sim.realism.contract import check_layer

    check_layer(MY_LAYER)

It runs the layer with many knobs over its stated ranges, on small and large signals, at two step lengths.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from gapless.core.dimensions import DIMENSIONS
from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.realism.draws import Bits, Draws
from gapless.sim.realism.layer import NEEDS, SIGNAL_KINDS, Layer, LayerContext, State, replace_worlds

NUM_STEPS = 30
REPEATED_STEPS = (0, 1, NUM_STEPS - 1)  # taken twice from the same state
MAX_ROUNDING = 1e-12  # of the largest output: numpy may round a long array otherwise than a short one
NUM_RANDOM_ROWS = 48  # worlds with knobs drawn at random, besides those at the ends of the ranges
STEPS_S = (0.001, 0.02)
SIGNAL_SIZES = (0.0, 1e-3, 1.0, 1e3)
WIDTHS = (1, 4)  # of layers that take any number of columns


def check_layer(layer: Layer, seed: int = 0) -> None:
    """Checks that a layer keeps the contract; returns nothing if it does.

    Checked are its description; that with all knobs at ideal its signal comes out bit for bit as it went in; that what
    comes out is finite, of the same shape and float64 over the whole stated range of its knobs, their ends and their
    ideal values in any combination; that it writes to none of its arguments; that the same state and seed give the
    same; that a batch of one gives what its row gives in a batch, up to 1e-12; and that single worlds can begin anew.
    `seed` is that of the signals, the knobs and the layer's own draws.

    Raises:
        InputError: At the first breach, with its likely cause.
    """
    _check_description(layer)
    widths = (len(layer.columns),) if layer.columns else WIDTHS
    for width, step_s, size in product(widths, STEPS_S, SIGNAL_SIZES):
        rng = np.random.default_rng(seed)
        ideal = _make_case(layer, layer.ideal(3), width, step_s, size, rng, seed)
        worst = float(np.max(np.abs(ideal.run()[1] - ideal.signals)))
        cause = "rounding such as y + (u - y), or a knob whose ideal does something"
        _require(worst == 0.0, layer, f"at ideal its signal changes, by up to {worst:.3g}", cause)
        own = width if step_s == STEPS_S[-1] else 1  # knobs that differ by column, and knobs that do not
        _check_range(_make_case(layer, _draw_knobs(layer, rng, own), width, step_s, size, rng, seed))


def _require(kept: bool, layer: Layer, found: str, cause: str) -> None:
    """Refuses a layer that breaks the contract."""
    if not kept:
        raise InputError(f"the layer {layer.name!r} breaks the contract: {found}; correct the likely cause: {cause}")


def _check_description(layer: Layer) -> None:
    known = (*DIMENSIONS, "spread")
    _require(bool(layer.name), layer, "it has no name", "write what it is called")
    _require(layer.dimension in known, layer, f"its dimension is {layer.dimension!r}", f"one of {', '.join(known)}")
    _require(layer.acts_on in SIGNAL_KINDS, layer, f"it acts on {layer.acts_on!r}", f"one of {', '.join(SIGNAL_KINDS)}")
    unknown = [name for name in layer.needs if name not in NEEDS]
    _require(not unknown, layer, f"it needs {unknown}", f"a LayerContext has {', '.join(NEEDS)}")
    names = [knob.name for knob in layer.knobs]
    _require(len({*names}) == len(names), layer, f"a knob's name stands twice: {names}", "name each after what it does")
    _require(len(names) > 0, layer, "it has no knobs", "what cannot be set can be neither ideal nor fitted")
    for knob in layer.knobs:
        what, low, high = f"its knob {knob.name!r}", knob.low, knob.high
        _require(bool(knob.unit and knob.source), layer, f"{what} has no unit or no source", "unit 1; rule of thumb")
        bounded = bool(np.isfinite(low) and np.isfinite(high) and low < high)
        _require(bounded, layer, f"{what} has the range [{low}, {high}]", "state a finite range")
        for value, said in ((knob.typical, "typically {:g}"), (knob.nominal, "{:g} at ideal")):
            inside, found = low <= value <= high, said.format(value)
            _require(inside, layer, f"{what} is {found}, outside its range", "widen it, or infinite for no limit")


def _draw_knobs(layer: Layer, rng: np.random.Generator, width: int) -> dict[str, Array]:
    """Returns rows of knobs: all at one end, each alone off ideal, and random mixtures of ends, ideal and inside."""
    low, high, ideal = (np.array([getattr(k, side) for k in layer.knobs]) for side in ("low", "high", "ideal"))
    alone = np.where(np.eye(len(low), dtype=bool), high, ideal)
    ends = np.repeat(np.stack([low, high, *alone])[:, None], width, axis=1)
    inside = rng.uniform(low, high, (NUM_RANDOM_ROWS, width, len(low)))
    kind = rng.integers(0, 4, inside.shape)
    sides = [np.broadcast_to(side, inside.shape) for side in (low, high, ideal)]
    rows = np.concatenate([ends, np.choose(kind, [*sides, inside])])
    return {knob.name: rows[:, : width if knob.per_column else 1, k].copy() for k, knob in enumerate(layer.knobs)}


@dataclass(frozen=True)
class _Case:
    """A stretch of time to run: what goes in, for every world."""

    layer: Layer
    knobs: dict[str, Array]
    signals: Array  # (num_steps, num_worlds, num_columns)
    varying: dict[str, Array]  # fields of the context, each (num_steps, num_worlds, ...)
    step_s: float
    seed: int
    worlds: Bits  # (num_worlds,) identity of each

    def pick(self, row: int) -> "_Case":
        """Returns the same for one world."""
        one = slice(row, row + 1)
        knobs = {name: values[one] for name, values in self.knobs.items()}
        varying = {name: values[:, one] for name, values in self.varying.items()}
        return replace(self, knobs=knobs, signals=self.signals[:, one], varying=varying, worlds=self.worlds[one])

    def context(self, k: int) -> LayerContext:
        """Returns the context of a step."""
        draws = Draws(self.seed, self.worlds, k)
        return LayerContext(self.step_s, draws, **{name: values[k] for name, values in self.varying.items()})

    def begin(self, k: int) -> State:
        """Returns the state of a layer that begins in a step."""
        return self.layer.begin(self.signals[k].copy(), self.knobs, self.context(k))

    def run(self, steps: range = range(NUM_STEPS), state: State | None = None) -> tuple[State, Array]:
        """Returns the state after some steps and what comes out in them, each step checked; begins without a state."""
        layer, out = self.layer, np.empty_like(self.signals[steps.start : steps.stop])
        state = self.begin(steps.start) if state is None else state
        for row, k in enumerate(steps):
            signal, context = self.signals[k].copy(), self.context(k)
            arguments = (*state, *self.knobs.values())
            before = tuple(part.copy() for part in arguments)
            after, out_signal = layer.act(state, signal, self.knobs, context)
            kept = np.array_equal(signal, self.signals[k]) and _are_equal(before, arguments)
            _require(kept, layer, "it writes to its arguments", "an operation in place; make a new array")
            right = isinstance(out_signal, np.ndarray) and out_signal.shape == signal.shape
            _require(
                right, layer, f"its signal comes out as {np.shape(out_signal)}, not {signal.shape}", "broadcasting"
            )
            _require(out_signal.dtype == np.float64, layer, f"its signal comes out as {out_signal.dtype}", "a cast")
            lone = [part.shape for part in after if part.shape[:1] != signal.shape[:1]]
            _require(not lone, layer, f"its state has shapes {lone}", "axis 0 of every part is num_worlds")
            if k in REPEATED_STEPS:
                again, again_signal = layer.act(state, signal, self.knobs, context)
                same = _are_equal((*after, out_signal), (*again, again_signal))
                _require(
                    same, layer, "the same state gives another result", "draws not from context.draws, hidden state"
                )
            state, out[row] = after, out_signal
        return state, out


def _make_case(
    layer: Layer, knobs: dict[str, Array], width: int, step_s: float, size: float, rng: np.random.Generator, seed: int
) -> _Case:
    """Returns random walks as signals and as fields of the context."""
    num_worlds = len(next(iter(knobs.values())))

    def walk(*shape: int) -> Array:
        steps = rng.normal(size=(NUM_STEPS, num_worlds, *shape))
        return size * (rng.normal(size=(1, num_worlds, *shape)) + 0.3 * np.cumsum(steps, axis=0))

    shapes = {"place": (width, 2), "warmth_k": (1,)}
    varying = {name: walk(*shapes.get(name, (width,))) for name in layer.needs}
    if "warmth_k" in varying:
        varying["warmth_k"] = np.clip(varying["warmth_k"], -40.0, 60.0)
    return _Case(layer, knobs, walk(width), varying, step_s, seed, np.arange(num_worlds, dtype=np.uint64))


def _are_equal(one: State, other: State) -> bool:
    """Tells whether all arrays are equal bit for bit (NaN equals NaN; the sign of zero does not count)."""
    return len(one) == len(other) and all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


def _are_close(one: Array, other: Array) -> bool:
    return np.allclose(one, other, rtol=0.0, atol=MAX_ROUNDING * float(np.abs(one).max()))


def _check_range(case: _Case) -> None:
    layer, out = case.layer, case.run()[1]
    bad = np.argwhere(~np.isfinite(out))
    if len(bad):
        knobs = ", ".join(f"{name} = {values[bad[0, 1], 0]:g}" for name, values in case.knobs.items())
        _require(False, layer, f"its signal is not finite with {knobs}", "a division by 0, an unstable step")
    same = np.array_equal(out, case.run()[1])
    _require(same, layer, "the same seed gives another run", "draw from context.draws")
    last = out.shape[1] - 1
    cause = "a mean or a draw over worlds; draws depend on the place in the batch, not on context.draws.worlds"
    for row in sorted({1, (last + 1) // 2, last}):
        close = _are_close(case.pick(row).run()[1], out[:, row : row + 1])
        _require(close, layer, f"a batch of one differs from row {row} of a batch", cause)
    first, second, one = range(NUM_STEPS // 2), range(NUM_STEPS // 2, NUM_STEPS), case.pick(last)
    mixed = replace_worlds(case.run(first)[0], one.begin(second.start), np.array([last]))
    close = _are_close(one.run(second)[1], case.run(second, mixed)[1][:, last : last + 1])
    found = "a world that begins anew in a batch differs from one that begins alone"
    _require(close, layer, found, "a part of the state counts for all worlds, such as time since the start")
    if layer.adds:
        shift = 1.0 + float(np.abs(case.signals).max())
        other = replace(case, signals=case.signals + shift).run()[1]
        same = np.allclose(other - shift, out, rtol=0.0, atol=1e-9 * (shift + float(np.abs(out).max())))
        cause = "adds=True belongs to layers whose y - u is the same whatever u is"
        _require(same, layer, "what it adds depends on its signal", cause)
