"""The record of a target, and what all kinds of targets share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from gapless.core.dimensions import Dimension
from gapless.core.errors import InputError, nearest
from gapless.core.signal import Array
from gapless.core.target_path import FIELDS
from gapless.project.records import Project
from gapless.sim.active_layers.active_layer import KnobTarget
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.path import split_target

Write = Callable[[Fields, Array], None]
Index = tuple[NDArray[np.intp], ...]  # of the elements in the worlds, from `np.ix_`
WriteSizes = Callable[[Fields, Index, Array], None]


@dataclass(frozen=True)
class Target:
    """What a parameter sets."""

    path: str
    dimension: Dimension  # the dimension it belongs to, unless the project says otherwise
    unit: str  # unit of its values
    nominal: float  # value that leaves the model as it was written
    write: Write  # writes one value per world of `fields.ids`, (num_ids,)
    # when it is written: 0 if it sets something, 1 if it changes what others set, 2 if it makes another thing of it
    turn: int = 0
    knob: KnobTarget | None = None  # the knob that it sets, if it switches on a layer

    @property
    def shared(self) -> bool:
        """Whether it is one value for all elements of its kind: `*` in place of a name."""
        return split_target(self.path).name == "*"


@dataclass(frozen=True)
class NamedElements:
    """The elements of a model or project that a path names, and the field of them that it sets."""

    path: str  # the path, for messages
    kind: str  # its first part, such as `joint`
    name: str  # name of the element, `*` for all, empty for the world
    field: str  # its last part, such as `damping` or `com/x`
    ids: NDArray[np.intp]  # (num_elements,) indices of the elements: one, or all for `*`
    project: Project
    model: mujoco.MjModel  # its compiled model

    @property
    def shared(self) -> bool:
        """Whether the path has a `*`: one value for all."""
        return self.name == "*"

    def error(self, text: str) -> InputError:
        """Returns the error that refuses this path."""
        return InputError(f"parameter {self.path}: {text}")

    def require_field(self) -> None:
        """Refuses a field that elements of this kind do not have; the message lists those that they have."""
        fields = FIELDS[self.kind]
        if self.field not in fields:
            known = nearest(self.field, fields, len(fields))
            raise self.error(f"nothing called {self.field!r} there; write one of {known}")

    def require_one(self, what: str) -> None:
        """Refuses `*` for what belongs to one element, such as `a centre`."""
        if self.shared:
            raise self.error(f"{what} belongs to one {self.kind}; name it")

    def select(self, is_wanted: Callable[[mujoco.MjModel, int], bool]) -> NDArray[np.intp]:
        """Returns the indices of some of the elements."""
        return np.array([int(e) for e in self.ids if is_wanted(self.model, int(e))], np.intp)


def write_order(targets: Sequence[Target]) -> list[int]:
    """Returns in which order targets are written, whatever their order in a list: `*` first, so that names win."""
    return sorted(range(len(targets)), key=lambda k: (targets[k].turn, not targets[k].shared))


def size_target(named: NamedElements, dimension: Dimension, unit: str, base: Array, write_sizes: WriteSizes) -> Target:
    """Returns the target of a size of its own for one element, or of one factor on the sizes of all.

    Args:
        named: What the path names; `ids` are where the sizes stand in their field.
        dimension: The target's dimension.
        unit: Unit of the size; a factor has none.
        base: (num_elements,) sizes in the model as written.
        write_sizes: Gets the fields, the index of the worlds' elements, and their new sizes, (num_ids, num_elements).

    Raises:
        InputError: If a factor is asked for, but there is nothing to multiply.
    """
    if named.shared and not base.any():
        raise named.error(f"a factor on {named.field}, but the model has none; name one {named.kind} instead")

    def write(fields: Fields, values: Array) -> None:
        wanted = values[:, None]
        sizes = wanted * base if named.shared else np.broadcast_to(wanted, (len(values), len(base)))
        write_sizes(fields, np.ix_(fields.ids, named.ids), sizes)

    unit, nominal = ("1", 1.0) if named.shared else (unit, float(base[0]))
    return Target(named.path, dimension, unit, nominal, write)


def add_to(name: str, ids: NDArray[np.intp]) -> Write:
    """Returns what adds values to the signal path of some actuators or measurements, such as `delay_s`."""

    def write(fields: Fields, values: Array) -> None:
        getattr(fields, name)[np.ix_(fields.ids, ids)] += values[:, None]

    return write


def set_field(name: str, *columns: int, constants: bool = False) -> WriteSizes:
    """Returns what sets sizes in a field of the model, or in some columns of it."""

    def write_sizes(fields: Fields, here: Index, sizes: Array) -> None:
        fields.of(name, constants=constants)[(*here, *columns)] = sizes

    return write_sizes
