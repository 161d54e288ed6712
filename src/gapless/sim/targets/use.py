"""A layer that is switched on: for which elements, and with which knobs in each world."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.realism.layer import Knob, Layer
from gapless.sim.realism.switching import not_named

UseKey = tuple[str, str, tuple[int, ...]]  # kind, layer, and the elements that are one signal


@dataclass(frozen=True)
class KnobPlace:
    """Which knob of which layer a target sets.

    Attributes:
        path: The target's path, for messages.
        kind: Kind of the elements: actuator, joint, body, geom, measurement, world.
        layer: The layer.
        knob: The knob.
        elements: (num_elements,) indices of the elements that get the value.
        group: All elements of the signal, where the layer says what its columns must be; empty: those that are named.
        width: Columns per element.
        axis: Which column of each element gets the value; None for all.
    """

    path: str
    kind: str
    layer: Layer
    knob: Knob
    elements: tuple[int, ...]
    group: tuple[int, ...] = ()
    width: int = 1
    axis: int | None = None

    @property
    def key(self) -> UseKey:
        """What all knobs of one use have in common."""
        return self.kind, self.layer.name, self.group


class Use:
    """A layer that is on: its elements, and its knobs per world."""

    def __init__(self, places: Sequence[KnobPlace], num_worlds: int) -> None:
        """Makes the use that some targets name together; all knobs as nobody named them.

        Raises:
            InputError: If two targets set a knob that all elements share.
        """
        first = places[0]
        self.kind, self.layer, self.width = first.kind, first.layer, first.width
        self.ids = np.array(first.group or sorted({e for place in places for e in place.elements}), np.intp)
        _refuse_twice(places)
        self._first = {int(element): k * self.width for k, element in enumerate(self.ids)}
        self._resting = self._rest(places)
        for name in {knob.name for knob in self.layer.knobs if knob.per_column} - self._uneven(places):
            self._resting[name] = self._resting[name][:1]  # one column: it is alike for all
        self.values: dict[str, Array] = {
            name: np.repeat(resting[None], num_worlds, axis=0) for name, resting in self._resting.items()
        }

    @property
    def num_columns(self) -> int:
        """Columns of the signal."""
        return len(self.ids) * self.width

    def columns(self, place: KnobPlace) -> NDArray[np.intp]:
        """Returns the columns whose knob a target sets."""
        axes = range(self.width) if place.axis is None else (place.axis,)
        return np.array([self._first[element] + axis for element in place.elements for axis in axes], np.intp)

    def restore(self, ids: NDArray[np.intp]) -> None:
        """Makes knobs of some worlds as nobody named them."""
        for name, resting in self._resting.items():
            self.values[name][ids] = resting

    def write(self, place: KnobPlace, ids: NDArray[np.intp], values: Array) -> None:
        """Sets a knob in some worlds, (num_ids,)."""
        knob = self.values[place.knob.name]
        columns = self.columns(place) if knob.shape[1] > 1 else np.zeros(1, np.intp)
        knob[np.ix_(ids, columns)] = values[:, None]

    def rows(self, ids: NDArray[np.intp]) -> Mapping[str, Array]:
        """Returns the knobs of some worlds."""
        return {name: values[ids] for name, values in self.values.items()}

    def _uneven(self, places: Sequence[KnobPlace]) -> set[str]:
        """Returns the knobs that differ by column: some target sets them for some columns only."""
        partly = {p.knob.name for p in places if p.knob.per_column and len(self.columns(p)) < self.num_columns}
        return partly | {name for name, resting in self._resting.items() if np.any(resting != resting[0])}

    def _rest(self, places: Sequence[KnobPlace]) -> dict[str, Array]:
        named: list[set[str]] = [set() for _ in range(self.num_columns)]
        for place in places:
            for column in self.columns(place) if place.knob.per_column else range(self.num_columns):
                named[column].add(place.knob.name)
        everything = frozenset(place.knob.name for place in places)
        resting: dict[str, Array] = {}
        for knob in self.layer.knobs:
            sets = [frozenset(one) for one in named] if knob.per_column else [everything]
            resting[knob.name] = np.array([not_named(self.layer, one).get(knob.name, knob.ideal) for one in sets])
        return resting


def _refuse_twice(places: Sequence[KnobPlace]) -> None:
    seen: dict[str, str] = {}
    for place in places:
        if place.knob.per_column:
            continue
        if place.knob.name in seen:
            text = f"one {place.knob.name} for all that share it; {seen[place.knob.name]} sets it already: keep one"
            raise InputError(f"parameter {place.path}: {text}")
        seen[place.knob.name] = place.path


def uses_of(places: Sequence[KnobPlace], num_worlds: int) -> dict[UseKey, Use]:
    """Returns the layers that some targets switch on."""
    groups: dict[UseKey, list[KnobPlace]] = {}
    for place in places:
        groups.setdefault(place.key, []).append(place)
    return {key: Use(group, num_worlds) for key, group in groups.items()}
