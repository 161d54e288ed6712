"""The record of a target, where targets write, and what all kinds of targets share."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from gapless.core.dimensions import Dimension
from gapless.core.errors import InputError
from gapless.core.parameters import Parameter
from gapless.core.signal import Array
from gapless.core.target_path import TargetPath, split_path
from gapless.project.records import Project
from gapless.sim.active_layers.active_layer import ActiveLayer, Ids, KnobTarget, LayerKey
from gapless.sim.realism.registry import BY_PATH
from gapless.sim.targets.drive import driven_joint, is_hinge

Index = tuple[NDArray[np.intp], ...]  # of the elements in the worlds, from `np.ix_`


class Fields:
    """Per-world values that parameter targets write to: model fields, and the signal path around the engine.

    Nothing here outlives `restore`.
    """

    def __init__(
        self, model: mujoco.MjModel, batch: Batch, num_measurements: int, active_layers: dict[LayerKey, ActiveLayer]
    ) -> None:
        """Makes the ideal signal path: no delay, no lag, no play, no bias."""
        self.model, self.batch, self.active_layers = model, batch, active_layers
        self.num_worlds = num_worlds = batch.nsim
        self.ids: Ids = np.arange(num_worlds)
        self.needs_constants = False
        self.delay_s, self.lag_s, self.backlash, self.target_offset = np.zeros((4, num_worlds, model.nu))
        self.bias, self.reading_delay_s = np.zeros((2, num_worlds, num_measurements))
        self.scale = np.ones((num_worlds, num_measurements))
        self._per_world: dict[str, Array] = {}

    def restore(self, ids: Ids) -> None:
        """Makes some worlds as the model was written, ready to be written to."""
        self.ids = ids
        for name, field in self._per_world.items():
            field[ids] = self.nominal(name)
        for ideal in (self.delay_s, self.lag_s, self.backlash, self.target_offset, self.bias, self.reading_delay_s):
            ideal[ids] = 0.0
        self.scale[ids] = 1.0
        for layer in self.active_layers.values():
            layer.restore(ids)

    @property
    def expanded(self) -> tuple[str, ...]:
        """Names of the model fields that have values per world."""
        return tuple(self._per_world)

    def nominal(self, name: str) -> Array:
        """Returns a model field as it was written."""
        return np.asarray(getattr(self.model.opt, name[4:])) if name.startswith("opt.") else getattr(self.model, name)

    def current(self, name: str) -> Array:
        """Returns the values of a model field, (num_worlds or 1, ...), without giving it values per world."""
        return self._per_world[name] if name in self._per_world else self.nominal(name)[None]

    def of(self, name: str, *, constants: bool = False) -> Array:
        """Returns the live (num_worlds, ...) values of a field of MjModel, or `opt.NAME` of its options.

        `constants` says whether constants derived from it must be computed anew.
        """
        if name not in self._per_world:
            self._per_world[name] = self.batch.expand(name)
        self.needs_constants |= constants
        return self._per_world[name]

    def multiply(self, worlds: Ids, elements: Ids, factor: Array, *names: str, constants: bool = False) -> None:
        """Multiplies model fields of elements by (num_worlds, num_elements or 1) factors."""
        for name in names:
            field = self.of(name, constants=constants)
            field[worlds[:, None], elements] *= factor.reshape(*factor.shape, *[1] * (field.ndim - 2))


Write = Callable[[Fields, Array], None]
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

    def make_parameter(self, low: float, high: float) -> Parameter:
        """Returns the parameter that sets this, between bounds."""
        return Parameter(self.path, self.dimension, self.unit, self.nominal, low, high)


@dataclass(frozen=True)
class NamedElements:
    """The elements of a model or project that a path names, and the field of them that it sets."""

    path: str  # the path, for messages
    kind: str  # its first part, such as `joint`
    name: str  # name of the element, `*` for all, empty for the world
    field: str  # its last part, such as `damping` or `com/x`
    ids: Ids  # (num_elements,) indices of the elements: one, or all for `*`
    project: Project
    model: mujoco.MjModel  # its compiled model

    @property
    def shared(self) -> bool:
        """Whether the path has a `*`: one value for all."""
        return self.name == "*"

    def error(self, text: str) -> InputError:
        """Returns the error that refuses this path."""
        return InputError(f"parameter {self.path}: {text}")

    def choose_unit(self, units: str) -> str:
        """Returns the first of two units, such as `N·m, N`, if the first joint, or what is driven, turns."""
        first = int(self.ids[0])
        joint = {"joint": first, "actuator": driven_joint(self.model, first) if self.kind == "actuator" else None}
        return units.split(", ")[0 if is_hinge(self.model, joint.get(self.kind)) else -1]

    def require_one(self, what: str) -> None:
        """Refuses `*` for what belongs to one element, such as `a centre`."""
        if self.shared:
            raise self.error(f"{what} belongs to one {self.kind}; name it")

    def select(self, is_wanted: Callable[[mujoco.MjModel, int], bool]) -> Ids:
        """Returns the indices of some of the elements."""
        return np.array([int(e) for e in self.ids if is_wanted(self.model, int(e))], np.intp)


def is_knob(field: str) -> bool:
    """Tells whether a field is a knob of a layer: `LAYER/KNOB`, or `LAYER/KNOB/AXIS`."""
    name, _, knob = field.partition("/")
    return name in BY_PATH and knob.partition("/")[0] in [known.name for known in BY_PATH[name].knobs]


def split_target(path: str, names: Collection[str] = ()) -> TargetPath:
    """Returns the parts of a path, whose field may be a knob of a layer; see `split_path`."""
    return split_path(path, names, is_knob)


def size_target(named: NamedElements, dimension: Dimension, unit: str, base: Array, write_sizes: WriteSizes) -> Target:
    """Returns the target of a size of its own for one element, or of one factor, without unit, on the sizes of all.

    `named.ids` are where the sizes stand in their field, `base` the sizes as written, (num_elements,). `write_sizes`
    gets the fields, the index of the worlds' elements, and their new sizes, (num_ids, num_elements).
    """
    if named.shared and not base.any():
        raise named.error(f"a factor on {named.field}, but the model has none; name one {named.kind} instead")

    def write(fields: Fields, values: Array) -> None:
        wanted = values[:, None]
        sizes = wanted * base if named.shared else np.broadcast_to(wanted, (len(values), len(base)))
        write_sizes(fields, np.ix_(fields.ids, named.ids), sizes)

    unit, nominal = ("1", 1.0) if named.shared else (unit, float(base[0]))
    return Target(named.path, dimension, unit, nominal, write)


def field_target(named: NamedElements, unit: str, name: str, *columns: int, constants: bool = False) -> Target:
    """Returns the target of sizes that stand in a field of the model, or in a column of it, as they are."""

    def write_sizes(fields: Fields, here: Index, sizes: Array) -> None:
        fields.of(name, constants=constants)[(*here, *columns)] = sizes

    base = getattr(named.model, name)[(named.ids, *columns)].copy()
    return size_target(named, "object" if named.kind in ("geom", "body") else "actuator", unit, base, write_sizes)


def add_to(name: str, ids: Ids) -> Write:
    """Returns what adds values to the signal path of some actuators or measurements, such as `delay_s`."""

    def write(fields: Fields, values: Array) -> None:
        getattr(fields, name)[np.ix_(fields.ids, ids)] += values[:, None]

    return write
