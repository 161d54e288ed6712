"""What a realism layer is: one imperfection of a real robot as a pure function with its state outside.

    state = layer.begin(signal, knobs, context)
    state, signal = layer.act(state, signal, knobs, context)

Everything is batched: axis 0 is num_worlds. Knobs are arguments, one row per world, so the same layer serves
training (many rows drawn), a twin (one row) and fitting (rows that an optimiser tries). `check_layer` in
`gapless.sim.realism.contract` checks whether a layer of your own keeps the contract.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gapless.core.dimensions import Dimension
from gapless.core.errors import InputError, nearest
from gapless.core.signal import Array
from gapless.sim.realism.draws import Draws

SignalKind = Literal["command", "effort", "reading", "model"]
SIGNAL_KINDS: tuple[SignalKind, ...] = get_args(SignalKind)

State = tuple[Array, ...]  # each (num_worlds, ...), never written to; () for a layer without memory
Knobs = Mapping[str, Array]  # name -> (num_worlds, 1) or (num_worlds, num_columns)

NOT_GIVEN: Array = np.full((1, 1), np.nan)  # a field of `LayerContext` that its caller left out
NOT_GIVEN.flags.writeable = False


@dataclass(frozen=True)
class Knob:
    """A parameter of a layer.

    Attributes:
        name: Its name, with the unit where the unit is the same for all columns (`delay_s`).
        unit: SI unit; `signal` stands for the unit of the signal, `1` for none.
        ideal: With all knobs at ideal the layer returns its signal unchanged; may be infinite: a limit that is none.
        low: Least value for which the layer promises finite output.
        high: Greatest such value.
        typical: An ordinary value, to begin with.
        source: Where the typical value is from; `rule of thumb` where it is judgement.
        per_column: Whether each column may have a value of its own.
        same_as: Parameter target that does the same without a layer, such as `actuator/NAME/gain`; in a project that
            target is written instead, so that one effect has one path. Empty: the knob has a path of its own.
    """

    name: str
    unit: str
    ideal: float
    low: float
    high: float
    typical: float
    source: str
    per_column: bool = True
    same_as: str = ""


@dataclass(frozen=True)
class LayerContext:
    """What a layer may know besides its signal. Give what the layer's `needs` name; the rest may be left out.

    Attributes:
        step_s: Time since the layer acted last, and until it acts again [s].
        draws: Random numbers of this step.
        position: (num_worlds, num_columns) of each column's joint [rad, m].
        velocity: (num_worlds, num_columns) of each column's joint, or approach speed of a contact [rad/s, m/s].
        load: (num_worlds, num_columns) force across each joint [N·m, N].
        place: (num_worlds, num_columns, 2) where each column's contact is on its surface [m].
        warmth_k: (num_worlds, 1) temperature above that of calibration [K].
    """

    step_s: float
    draws: Draws
    position: Array = field(default_factory=lambda: NOT_GIVEN)
    velocity: Array = field(default_factory=lambda: NOT_GIVEN)
    load: Array = field(default_factory=lambda: NOT_GIVEN)
    place: Array = field(default_factory=lambda: NOT_GIVEN)
    warmth_k: Array = field(default_factory=lambda: NOT_GIVEN)


NEEDS = ("position", "velocity", "load", "place", "warmth_k")

ActFunction = Callable[[State, Array, Knobs, LayerContext], tuple[State, Array]]
BeginFunction = Callable[[Array, Knobs, LayerContext], State]


def begin_without_state(signal: Array, knobs: Knobs, context: LayerContext) -> State:
    """Returns the state of a layer that remembers nothing."""
    return ()


@dataclass(frozen=True)
class Layer:
    """One imperfection.

    Attributes:
        name: Its name, unique among `LAYERS`.
        dimension: The dimension of the gap it belongs to; `spread` differs between robots and trials in any of them.
        acts_on: `command` on its way to the robot, `effort` on a joint or body [N·m, N], `reading` on its way back,
            or field of the `model`, such as friction coefficients.
        knobs: Its parameters.
        act: (state, signal, knobs, context) -> (state, signal) of one step; writes to none of its arguments.
        start: (signal, knobs, context) -> state, as if the signal had always been what it is now.
        columns: What the columns of its signal must be; empty: any number of like ones.
        needs: Fields of `LayerContext` that it reads, besides `step_s` and `draws`.
        adds: Whether it adds to its signal whatever that is: y - u does not depend on u.
    """

    name: str
    dimension: Dimension | Literal["spread"]
    acts_on: SignalKind
    knobs: tuple[Knob, ...]
    act: ActFunction
    start: BeginFunction = begin_without_state
    columns: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    adds: bool = False

    @property
    def python_only(self) -> bool:
        """Whether no path switches it on: other targets do all that it does; the layer itself is called from Python."""
        return all(knob.same_as for knob in self.knobs)

    def begin(self, signal: Array, knobs: Knobs, context: LayerContext) -> State:
        """Returns the state to act from; refuses what the layer cannot work with.

        Args:
            signal: (num_worlds, num_columns) the first signal; it is taken to have been there forever.
            knobs: Every knob of the layer, (num_worlds, 1), or (num_worlds, num_columns) where it may differ by column.
            context: That of the first step.

        Raises:
            InputError: A knob or a field of the context is missing, or of another shape, or the columns are others.
        """
        names = [knob.name for knob in self.knobs]
        for name in sorted({*names} ^ {*knobs}):
            what = "is not given its knob" if name in names else "has no knob"
            raise InputError(f"the layer {self.name} {what} {name}; give its knobs: {nearest(name, names)}")
        num_worlds, num_columns = signal.shape
        for knob in self.knobs:
            allowed = {(num_worlds, 1), (num_worlds, num_columns if knob.per_column else 1)}
            if knobs[knob.name].shape not in allowed:
                wanted = " or ".join(map(str, sorted(allowed)))
                found = knobs[knob.name].shape
                raise InputError(f"the knob {knob.name} of the layer {self.name} has shape {found}; give {wanted}")
        for name in self.needs:
            if getattr(context, name) is NOT_GIVEN:
                raise InputError(f"the layer {self.name} needs the {name}; give LayerContext({name}=...)")
        if self.columns and num_columns != len(self.columns):
            wanted = ", ".join(self.columns)
            raise InputError(
                f"the layer {self.name} acts on the columns {wanted}: give these, found {num_columns} columns"
            )
        return self.start(signal, knobs, context)

    def ideal(self, num_worlds: int) -> dict[str, Array]:
        """Returns knobs at which nothing changes, each (num_worlds, 1)."""
        return {knob.name: np.full((num_worlds, 1), knob.ideal) for knob in self.knobs}

    def typical(self, num_worlds: int, **others: float) -> dict[str, Array]:
        """Returns ordinary knobs, each (num_worlds, 1), with some of them set to other values."""
        values = {knob.name: knob.typical for knob in self.knobs} | others
        return {name: np.full((num_worlds, 1), value) for name, value in values.items()}


def make_layer(
    name: str, dimension: Dimension | Literal["spread"], acts_on: SignalKind, *, knobs: tuple[Knob, ...], **options: Any
) -> Callable[[ActFunction], Layer]:
    """Returns a decorator that makes a layer of its `act`; see `Layer` for the arguments."""
    return lambda act: Layer(name, dimension, acts_on, knobs, act, **options)


def replace_worlds(state: State, fresh: State, ids: NDArray[np.intp]) -> State:
    """Returns the state of all worlds in which the worlds `ids` have the state `fresh`, from `Layer.begin`."""
    out: list[Array] = []
    for part, new in zip(state, fresh, strict=True):
        widths = np.broadcast_shapes(part.shape[1:], new.shape[1:])  # knobs per column may have widened it
        part = np.broadcast_to(part, (len(part), *widths)).copy()
        part[ids] = new
        out.append(part)
    return tuple(out)


def run_layer(layer: Layer, signals: Array, knobs: Knobs, context: LayerContext, **varying: Array) -> Array:
    """Returns the output of a layer over time, (num_steps, num_worlds, num_columns).

    Args:
        layer: The layer.
        signals: (num_steps, num_worlds, num_columns).
        knobs: Its knobs, the same over time.
        context: That of the first step; the step of its draws counts on.
        varying: Fields of the context that change over time, each with num_steps in front.
    """
    out = np.empty_like(signals)
    state: State = ()
    for k, signal in enumerate(signals):
        now = {name: values[k] for name, values in varying.items()}
        here = replace(context, draws=context.draws.at(context.draws.step + k), **now)
        if k == 0:
            state = layer.begin(signal, knobs, here)
        state, out[k] = layer.act(state, signal, knobs, here)
    return out
