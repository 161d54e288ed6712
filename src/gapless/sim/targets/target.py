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
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.path import split_target
from gapless.sim.targets.use import KnobPlace

Write = Callable[[Fields, Array], None]
Block = tuple[NDArray[np.intp], ...]
Put = Callable[[Fields, Block, Array], None]


@dataclass(frozen=True)
class Target:
    """What a parameter sets.

    Attributes:
        path: The target's path.
        dimension: The dimension it belongs to, unless the project says otherwise.
        unit: Unit of its values.
        nominal: Value that leaves the model as it was written.
        write: Writes one value per world of `fields.ids`, (num_ids,).
        turn: When it is written: 0 if it sets something, 1 if it changes what others have set, 2 if it makes another
            thing of it.
        knob: The knob that it sets, if it switches on a layer.
    """

    path: str
    dimension: Dimension
    unit: str
    nominal: float
    write: Write
    turn: int = 0
    knob: KnobPlace | None = None

    @property
    def shared(self) -> bool:
        """Whether it is one value for all elements of its kind: `*` in place of a name."""
        return split_target(self.path).name == "*"


@dataclass(frozen=True)
class Place:
    """Where a path points.

    Attributes:
        path: The path, for messages.
        kind: Its first part, such as `joint`.
        name: Name of the element, `*` for all, empty for the world.
        field: Its last part, such as `damping` or `com/x`.
        ids: (num_elements,) indices of the elements it names: one, or all for `*`.
        project: The project.
        model: Its compiled model.
    """

    path: str
    kind: str
    name: str
    field: str
    ids: NDArray[np.intp]
    project: Project
    model: mujoco.MjModel

    @property
    def shared(self) -> bool:
        """Whether the path has a `*`: one value for all."""
        return self.name == "*"

    def require_field(self) -> None:
        """Refuses a field that elements of this kind do not have.

        Raises:
            InputError: If the field is not a known one; the message lists them.
        """
        fields = FIELDS[self.kind]
        if self.field not in fields:
            known = nearest(self.field, fields, len(fields))
            raise InputError(f"parameter {self.path}: nothing called {self.field!r} there; write one of {known}")


def write_order(targets: Sequence[Target]) -> list[int]:
    """Returns in which order targets are written, whatever their order in a list: `*` first, so that names win."""
    return sorted(range(len(targets)), key=lambda k: (targets[k].turn, not targets[k].shared))


def sized(place: Place, dimension: Dimension, unit: str, base: Array, put: Put) -> Target:
    """Returns the target of a size of its own for one element, or of one factor on the sizes of all.

    Args:
        place: Where the path points.
        dimension: The target's dimension.
        unit: Unit of the size; a factor has none.
        base: (num_elements,) sizes in the model as written.
        put: Gets the fields, the index of the worlds' elements, and their new sizes, (num_ids, num_elements).

    Raises:
        InputError: If a factor is asked for, but there is nothing to multiply.
    """
    if place.shared and not base.any():
        text = f"a factor on {place.field}, but the model has none; name one {place.kind} instead"
        raise InputError(f"parameter {place.path}: {text}")

    def write(fields: Fields, values: Array) -> None:
        wanted = values[:, None]
        sizes = wanted * base if place.shared else np.broadcast_to(wanted, (len(values), len(base)))
        put(fields, np.ix_(fields.ids, place.ids), sizes)

    return Target(place.path, dimension, "1" if place.shared else unit, 1.0 if place.shared else float(base[0]), write)
