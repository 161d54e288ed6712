"""A layer that is on: for which elements, with which knobs in each world, and its state."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.realism.layer import Knob, Knobs, Layer, LayerContext, State, replace_worlds
from gapless.sim.realism.registry import LAYERS

Ids = NDArray[np.intp]
LayerKey = tuple[str, str, tuple[int, ...]]  # kind, layer, and the columns that are one signal


@dataclass(frozen=True)
class KnobTarget:
    """Which knob of which layer a target sets.

    Columns are numbered over all elements of a kind: element * axes per element + axis.
    """

    path: str  # the target's path, for messages
    kind: str  # kind of the elements: actuator, joint, body, geom, measurement, world
    layer: Layer
    knob: Knob
    elements: tuple[int, ...]  # the columns that get the value; with one axis per element, the elements
    signal: tuple[int, ...]  # all columns of the named elements, in the order that the layer wants

    @property
    def key(self) -> LayerKey:
        """What all knobs of one active layer have in common."""
        return self.kind, self.layer.name, self.signal if self.layer.columns else ()


class ActiveLayer:
    """A layer that is on: its columns, its knobs per world, and its state."""

    def __init__(self, targets: Sequence[KnobTarget], num_worlds: int) -> None:
        """Makes the layer that some targets switch on together; all its knobs as if unnamed."""
        first = targets[0]
        self.kind, self.layer = first.kind, first.layer
        named_columns = sorted({column for target in targets for column in target.signal})
        self.columns: Ids = np.array(first.signal if self.layer.columns else named_columns, np.intp)
        self.state: State | None = None
        self._name = f"{self.kind} {self.layer.name} {self.columns.tolist()}"
        self._part: Ids | slice = slice(None)  # where its columns stand in the whole signal
        self._place = {int(column): k for k, column in enumerate(self.columns)}
        self._unnamed = self._find_unnamed(targets)
        self.values = {name: np.repeat(values[None], num_worlds, axis=0) for name, values in self._unnamed.items()}

    def _find_unnamed(self, targets: Sequence[KnobTarget]) -> dict[str, Array]:
        """Returns the values of all knobs where they are not named, (num_columns,), or (1,) if alike for all."""
        named: list[set[str]] = [set() for _ in self.columns]
        paths: dict[str, str] = {}  # knob that all share -> the path that sets it
        for target in targets:
            name = target.knob.name
            if not target.knob.per_column and name in paths:
                text = f"one {name} for all that share it; {paths[name]} sets it already: keep one"
                raise InputError(f"parameter {target.path}: {text}")
            paths[name] = target.path
            for column in target.elements if target.knob.per_column else self.columns:
                named[self._place[int(column)]].add(name)
        everywhere, found = {target.knob.name for target in targets}, dict[str, Array]()
        uneven = {target.knob.name for target in targets if len(target.elements) < len(self.columns)}
        for knob in self.layer.knobs:
            sets = named if knob.per_column else [everywhere]
            values = np.array([self.layer.unnamed_values(one).get(knob.name, knob.ideal) for one in sets])
            found[knob.name] = values[:1] if knob.name not in uneven and np.all(values == values[0]) else values
        return found

    def attach(self, columns: Ids) -> "ActiveLayer":
        """Says what the columns of the whole signal are, (num_columns,); returns the layer."""
        if not np.array_equal(columns, self.columns):
            self._part = np.array([np.flatnonzero(columns == one)[0] for one in self.columns], np.intp)
        return self

    def restore(self, ids: Ids) -> None:
        """Gives the knobs of some worlds the values of unnamed ones."""
        for name, values in self._unnamed.items():
            self.values[name][ids] = values

    def write(self, target: KnobTarget, ids: Ids, values: Array) -> None:
        """Sets a knob in some worlds, (num_ids,)."""
        knob = self.values[target.knob.name]
        columns = [self._place[column] for column in target.elements] if knob.shape[1] > 1 else [0]
        knob[ids[:, None], columns] = values[:, None]

    def begin(self, signal: Array, context: LayerContext, ids: Ids | None = None) -> None:
        """Begins anew in some worlds, None for all, as if the signal had always been there.

        The signal, (num_worlds, num_columns), and the fields of the context are those of all worlds and columns.
        """
        if self.state is None or ids is None:
            self.state = self.layer.begin(*self._select(signal, context, None))
        else:
            self.state = replace_worlds(self.state, self.layer.begin(*self._select(signal, context, ids)), ids)

    def act(self, signal: Array, context: LayerContext, ids: Ids | None = None) -> Array:
        """Returns the whole signal after a step of this layer in some worlds, None for all; begins where it has not."""
        if self.state is None:
            self.begin(signal, context)
        assert self.state is not None
        inputs = self._select(signal, context, ids)
        whole = signal.copy()
        if ids is None:
            self.state, whole[:, self._part] = self.layer.act(self.state, *inputs)
        else:
            after, rows = self.layer.act(tuple(part[ids] for part in self.state), *inputs)
            self.state = replace_worlds(self.state, after, ids)
            whole[ids if isinstance(self._part, slice) else np.ix_(ids, self._part)] = rows
        return whole

    def _select(self, signal: Array, context: LayerContext, ids: Ids | None) -> tuple[Array, Knobs, LayerContext]:
        """Returns the part of the signal that it acts on, its knobs, and the context of these columns and worlds."""
        needed = {name: getattr(context, name) for name in self.layer.needs}
        needed = {name: one if name == "warmth_k" else one[:, self._part] for name, one in needed.items()}
        signal, knobs, draws = signal[:, self._part], self.values, context.draws.named(self._name)
        if ids is not None:
            signal, draws = signal[ids], draws.rows(ids)
            knobs, needed = ({name: one[ids] for name, one in each.items()} for each in (knobs, needed))
        return signal, knobs, LayerContext(context.step_s, draws, **needed)


def switch_on(targets: Sequence[KnobTarget], num_worlds: int) -> dict[LayerKey, ActiveLayer]:
    """Returns the layers that some targets switch on, in the order in which signals pass them."""
    groups: dict[LayerKey, list[KnobTarget]] = {}
    for target in sorted(targets, key=lambda target: LAYERS.index(target.layer)):
        groups.setdefault(target.key, []).append(target)
    return {key: ActiveLayer(group, num_worlds) for key, group in groups.items()}
