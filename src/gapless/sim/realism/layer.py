"""What a realism layer is: one imperfection of a real robot as a pure function with its state outside.

    state = layer.begin(signal, knobs, context)
    state, signal = layer.act(state, signal, knobs, context)

Everything is batched: axis 0 is num_worlds. Knobs are arguments, one row per world, so the same layer serves
training (many rows drawn), a twin (one row) and fitting (rows that an optimiser tries). `check_layer` in
`gapless.sim.realism.contract` checks whether a layer of your own keeps the contract.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
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
    """A parameter of a layer."""

    name: str  # with the unit where the unit is the same for all columns (`delay_s`)
    unit: str  # SI unit; `signal` stands for the unit of the signal, `1` for none
    ideal: float  # with all knobs at ideal a layer returns its signal unchanged; may be infinite: a limit that is none
    low: float  # least value for which the layer promises finite output
    high: float  # greatest such value
    typical: float  # an ordinary value, to begin with
    source: str  # where the typical value is from; `rule of thumb` where it is judgement
    per_column: bool = True  # whether each column may have a value of its own
    # Target that does the same without a layer, such as `actuator/NAME/gain`; in a project that target is written
    # instead, so that one effect has one path. Empty: the knob has a path of its own.
    same_as: str = ""
    # Where a path switches the layer on without naming this knob, it is ideal; or typical if the knob of this name is
    # named, `*` for any: it then only shapes an effect (a wavelength), or is the other factor of a product.
    typical_with: str = ""

    @property
    def nominal(self) -> float:
        """The value that leaves the model as it was written: the ideal, or the top of the range for no limit."""
        return self.ideal if np.isfinite(self.ideal) else self.high


@dataclass(frozen=True)
class LayerContext:
    """What a layer may know besides its signal. Give what the layer's `needs` name; the rest may be left out."""

    step_s: float  # time since the layer acted last, and until it acts again [s]
    draws: Draws  # random numbers of this step
    position: Array = field(default_factory=lambda: NOT_GIVEN)  # (num_worlds, num_columns) of the joints [rad, m]
    velocity: Array = field(default_factory=lambda: NOT_GIVEN)  # likewise, or approach speed of a contact [rad/s, m/s]
    load: Array = field(default_factory=lambda: NOT_GIVEN)  # (num_worlds, num_columns) force across joints [N·m, N]
    place: Array = field(default_factory=lambda: NOT_GIVEN)  # (num_worlds, num_columns, 2) of contacts on a surface [m]
    warmth_k: Array = field(default_factory=lambda: NOT_GIVEN)  # (num_worlds, 1) above that of calibration [K]


NEEDS = ("position", "velocity", "load", "place", "warmth_k")

ActFunction = Callable[[State, Array, Knobs, LayerContext], tuple[State, Array]]
BeginFunction = Callable[[Array, Knobs, LayerContext], State]


def begin_without_state(signal: Array, knobs: Knobs, context: LayerContext) -> State:
    """Returns the state of a layer that remembers nothing."""
    return ()


@dataclass(frozen=True)
class Layer:
    """One imperfection."""

    name: str  # unique among `LAYERS`
    dimension: Dimension | Literal["spread"]  # of the gap; `spread` differs between robots and trials in any of them
    # `command` on its way to the robot, `effort` on a joint or body [N·m, N], `reading` on its way back, or field of
    # the `model`, such as friction coefficients
    acts_on: SignalKind
    knobs: tuple[Knob, ...]
    act: ActFunction  # (state, signal, knobs, context) -> (state, signal) of one step; writes to none of its arguments
    # (signal, knobs, context) -> state, as if the signal had always been what it is now
    start: BeginFunction = begin_without_state
    columns: tuple[str, ...] = ()  # what the columns of its signal must be; empty: any number of like ones
    num_axes: int = 1  # how many of them belong to each element
    kinds: tuple[str, ...] = ()  # kinds of elements that paths may name; empty: as usual for what it acts on
    needs: tuple[str, ...] = ()  # fields of `LayerContext` that it reads, besides `step_s` and `draws`
    adds: bool = False  # whether it adds to its signal whatever that is: y - u does not depend on u
    # Knobs that show only in how runs scatter: not in the median run, or in what is drawn once per run. A prediction
    # says nothing of them: they are estimated from statistics of what predictions leave (`fit.scatter`).
    random: tuple[str, ...] = ()

    @property
    def is_weather(self) -> bool:
        """Whether it adds forces that depend on nothing that moves: wind and pushes, once per control interval."""
        return self.acts_on == "effort" and self.adds and not self.needs

    def begin(self, signal: Array, knobs: Knobs, context: LayerContext) -> State:
        """Returns the state to act from, as if the first signal, (num_worlds, num_columns), had been there forever.

        Each knob is (num_worlds, 1), or (num_worlds, num_columns) where it may differ by column.

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
                found, wanted = knobs[knob.name].shape, " or ".join(map(str, sorted(allowed)))
                raise InputError(f"the knob {knob.name} of the layer {self.name} has shape {found}; give {wanted}")
        for name in self.needs:
            if getattr(context, name) is NOT_GIVEN:
                raise InputError(f"the layer {self.name} needs the {name}; give LayerContext({name}=...)")
        if self.columns and num_columns != len(self.columns):
            text = f"acts on the columns {', '.join(self.columns)}: give these, found {num_columns} columns"
            raise InputError(f"the layer {self.name} {text}")
        return self.start(signal, knobs, context)

    def ideal(self, num_worlds: int) -> dict[str, Array]:
        """Returns knobs at which nothing changes, each (num_worlds, 1)."""
        return {knob.name: np.full((num_worlds, 1), knob.ideal) for knob in self.knobs}

    def typical(self, num_worlds: int, **others: float) -> dict[str, Array]:
        """Returns ordinary knobs, each (num_worlds, 1), with some of them set to other values."""
        values = {knob.name: knob.typical for knob in self.knobs} | others
        return {name: np.full((num_worlds, 1), value) for name, value in values.items()}

    def unnamed_values(self, named: Collection[str]) -> dict[str, float]:
        """Returns the values of the knobs that are not named."""
        others = [knob for knob in self.knobs if knob.name not in named]
        return {k.name: k.typical if k.typical_with in ("*", *named) else k.ideal for k in others}


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
