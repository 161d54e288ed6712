"""A layer that is on: for which elements, with which knobs in each world, and its state."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.realism.draws import Draws
from gapless.sim.realism.layer import Knob, Layer, LayerContext, SignalKind, State, replace_worlds
from gapless.sim.realism.registry import layers_in_order, unnamed_values

Ids = NDArray[np.intp]
LayerKey = tuple[str, str, tuple[int, ...]]  # kind, layer, and the elements that are one signal
ContextFields = Mapping[str, Array]  # fields of `LayerContext`, for all columns of the whole signal
_PER_COLUMN = ("position", "velocity", "load", "place")


@dataclass(frozen=True)
class KnobTarget:
    """Which knob of which layer a target sets."""

    path: str  # the target's path, for messages
    kind: str  # kind of the elements: actuator, joint, body, geom, measurement, world
    layer: Layer
    knob: Knob
    elements: tuple[int, ...]  # (num_elements,) indices of the elements that get the value
    # all elements of the signal, where the layer says what its columns must be; empty: those that are named
    group: tuple[int, ...] = ()
    width: int = 1  # columns per element
    axis: int | None = None  # which column of each element gets the value; None for all

    @property
    def key(self) -> LayerKey:
        """What all knobs of one active layer have in common."""
        return self.kind, self.layer.name, self.group


class ActiveLayer:
    """A layer that is on: its elements, its knobs per world, and its state."""

    def __init__(self, targets: Sequence[KnobTarget], num_worlds: int) -> None:
        """Makes the layer that some targets switch on together; all its knobs as if unnamed.

        Raises:
            InputError: If two targets set a knob that all elements share.
        """
        first = targets[0]
        self.kind, self.layer, self.width = first.kind, first.layer, first.width
        self.ids = np.array(first.group or sorted({e for target in targets for e in target.elements}), np.intp)
        self.state: State | None = None
        self._name = f"{self.kind} {self.layer.name} {self.ids.tolist()}"
        self._columns: Ids | None = None  # of the whole signal; None for all of them
        self._num_columns = len(self.ids) * self.width
        self._first_column = {int(element): k * self.width for k, element in enumerate(self.ids)}
        first_path: dict[str, str] = {}
        for target in (target for target in targets if not target.knob.per_column):
            name = target.knob.name
            if name in first_path:
                text = f"one {name} for all that share it; {first_path[name]} sets it already: keep one"
                raise InputError(f"parameter {target.path}: {text}")
            first_path[name] = target.path
        self._unnamed = self._find_unnamed(targets)
        self.values = {name: np.repeat(values[None], num_worlds, axis=0) for name, values in self._unnamed.items()}

    def attach(self, elements: Ids) -> "ActiveLayer":
        """Says which element each column of the whole signal belongs to, (num_columns,); returns the layer."""
        found = [int(np.flatnonzero(elements == one)[k]) for one in self.ids for k in range(self.width)]
        self._columns = None if found == list(range(len(elements))) else np.array(found, np.intp)
        return self

    def restore(self, ids: Ids) -> None:
        """Gives the knobs of some worlds the values of unnamed ones."""
        for name, values in self._unnamed.items():
            self.values[name][ids] = values

    def write(self, target: KnobTarget, ids: Ids, values: Array) -> None:
        """Sets a knob in some worlds, (num_ids,)."""
        knob = self.values[target.knob.name]
        columns = self._columns_of(target) if knob.shape[1] > 1 else np.zeros(1, np.intp)
        knob[np.ix_(ids, columns)] = values[:, None]

    def act(self, signal: Array, step_s: float, draws: Draws, given: ContextFields) -> Array:
        """Returns the whole signal after this layer, (num_worlds, num_columns); begins where it has not."""
        part = self._part(signal)
        context = self._context(step_s, draws, given)
        if self.state is None:
            self.state = self.layer.begin(part, self.values, context)
        self.state, out = self.layer.act(self.state, part, self.values, context)
        if self._columns is None:
            return out
        signal = signal.copy()
        signal[:, self._columns] = out
        return signal

    def begin(self, signal: Array, step_s: float, draws: Draws, given: ContextFields, ids: Ids | None) -> None:
        """Begins anew in some worlds, as if the signal, (num_worlds, num_columns), had always been there."""
        part, context = self._part(signal), self._context(step_s, draws, given)
        if ids is None or self.state is None or len(ids) == len(signal):
            self.state = self.layer.begin(part, self.values, context)
            return
        knobs = {name: values[ids] for name, values in self.values.items()}
        needed = {name: getattr(context, name)[ids] for name in self.layer.needs}
        fresh = self.layer.begin(part[ids], knobs, replace(context, draws=draws.rows(ids), **needed))
        self.state = replace_worlds(self.state, fresh, ids)

    def begin_and_act(self, signal: Array, step_s: float, draws: Draws, given: ContextFields, ids: Ids) -> Array:
        """Begins anew in some worlds and returns the whole signal after this layer; the other worlds take no step."""
        before = self.state
        self.begin(signal, step_s, draws, given, ids)
        begun = self.state
        out = self.act(signal, step_s, draws, given)
        if before is not None and begun is not None and self.state is not None and len(ids) < len(signal):
            self.state = replace_worlds(begun, tuple(part[ids] for part in self.state), ids)
        return out

    def _part(self, values: Array) -> Array:
        return values if self._columns is None else values[:, self._columns]

    def _context(self, step_s: float, draws: Draws, given: ContextFields) -> LayerContext:
        needed = {name: self._part(given[name]) if name in _PER_COLUMN else given[name] for name in self.layer.needs}
        return LayerContext(step_s, draws.named(self._name), **needed)

    def _columns_of(self, target: KnobTarget) -> Ids:
        """Returns the columns whose knob a target sets."""
        axes = range(self.width) if target.axis is None else (target.axis,)
        return np.array([self._first_column[element] + axis for element in target.elements for axis in axes], np.intp)

    def _find_unnamed(self, targets: Sequence[KnobTarget]) -> dict[str, Array]:
        """Returns the values of all knobs where they are not named, (num_columns,), or (1,) if alike for all."""
        named: list[set[str]] = [set() for _ in range(self._num_columns)]
        uneven: set[str] = set()  # set for some columns only
        for target in targets:
            columns = self._columns_of(target) if target.knob.per_column else range(self._num_columns)
            uneven |= {target.knob.name} if len(columns) < self._num_columns else set()
            for column in columns:
                named[column].add(target.knob.name)
        everywhere = frozenset(target.knob.name for target in targets)
        found: dict[str, Array] = {}
        for knob in self.layer.knobs:
            sets = [frozenset(one) for one in named] if knob.per_column else [everywhere]
            values = np.array([unnamed_values(self.layer, one).get(knob.name, knob.ideal) for one in sets])
            is_alike = knob.name not in uneven and not np.any(values != values[0])
            found[knob.name] = values[:1] if is_alike else values
        return found


def switch_on(targets: Sequence[KnobTarget], num_worlds: int) -> dict[LayerKey, ActiveLayer]:
    """Returns the layers that some targets switch on."""
    groups: dict[LayerKey, list[KnobTarget]] = {}
    for target in targets:
        groups.setdefault(target.key, []).append(target)
    return {key: ActiveLayer(group, num_worlds) for key, group in groups.items()}


def sort_layers(layers: Iterable[ActiveLayer], acts_on: SignalKind) -> list[ActiveLayer]:
    """Returns the layers on a signal in the order in which it passes them."""
    names = [layer.name for layer in layers_in_order(acts_on)]
    found = [one for one in layers if one.layer.acts_on == acts_on]
    return sorted(found, key=lambda one: names.index(one.layer.name))
