"""What layers on the model act on: which fields of the model, as which signal."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.sim.active_layers.active_layer import Ids
from gapless.sim.targets.body import inertia_tensor, principal_inertia
from gapless.sim.targets.drive import has_one_axis, is_dc_motor
from gapless.sim.targets.geom import damping_ratio, decide_alone, restitution, springs, surface_of
from gapless.sim.targets.target import Fields

_TENSOR = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # entries of an inertia tensor in the signal
_INERTIAL = ("body_mass", "body_ipos", "body_iquat", "body_inertia")
_DRAG, _FORCE = ("dof_damping", "dof_frictionloss"), ("actuator_gainprm", "actuator_biasprm")


@dataclass(frozen=True)
class ModelSignal:
    """Where a layer on the model reads its signal and where it writes what comes out."""

    fields: tuple[str, ...]  # the model fields that it writes
    read: Callable[[Fields, Ids, Ids], Array]  # (fields, worlds, columns) -> (num_worlds, num_columns)
    write: Callable[[Fields, Ids, Ids, Array], None]  # (fields, worlds, columns, signal): writes what came out
    # (fields, worlds, columns): makes the fields ready, once parameters are set
    prepare: Callable[[Fields, Ids, Ids], None] = lambda fields, worlds, columns: None
    num_axes: int = 1  # columns of each element
    constants: bool = False  # whether constants of the model follow from these fields


def signal_of(layer: str, kind: str, project: Project) -> ModelSignal:
    """Returns what a layer on the model acts on for a kind of elements."""
    if layer == "temperature":
        return _temperature_signal(project)
    return _SPREAD[kind] if layer == "spread" else _SIGNALS[layer]


def _decide_contacts(fields: Fields, worlds: Ids, geoms: Ids) -> None:
    decide_alone(fields, np.ix_(worlds, geoms), [surface_of(fields.model, int(g)) for g in geoms], fields.model)


def _axis_signal(name: str, num_axes: int, **options: Any) -> ModelSignal:
    """Returns the first axes of a field, of each element, as the signal."""

    def read(fields: Fields, worlds: Ids, columns: Ids) -> Array:
        return fields.of(name)[worlds[:, None], columns // num_axes, columns % num_axes]

    def write(fields: Fields, worlds: Ids, columns: Ids, signal: Array) -> None:
        fields.of(name)[worlds[:, None], columns // num_axes, columns % num_axes] = signal

    return ModelSignal((name,), read, write, num_axes=num_axes, **options)


def _factor_signal(*names: str, constants: bool = False, of_dofs: bool = False) -> ModelSignal:
    """Returns a factor on fields of elements as the signal, 1 as written; `of_dofs` for fields of joints."""

    def write(fields: Fields, worlds: Ids, elements: Ids, signal: Array) -> None:
        places = fields.model.jnt_dofadr[elements] if of_dofs else elements
        fields.multiply(worlds, places, signal, *names, constants=constants)

    def read(fields: Fields, worlds: Ids, elements: Ids) -> Array:
        return np.ones((len(worlds), len(elements)))

    return ModelSignal(names, read, write, constants=constants)


def _spring_signal(
    get: Callable[[Array, Array, Array], Array], put: Callable[[Array, Array, Array, Array], tuple[Array, Array]]
) -> ModelSignal:
    """Returns a property of contacts as the signal.

    `get` makes it of stiffness [1/s²], damping ratio [1] and what moves against the contact [kg], at least a gram: the
    stiffness of the engine is per mass. `put` makes another stiffness and ratio of these and the signal.
    """

    def read_springs(fields: Fields, worlds: Ids, geoms: Ids) -> tuple[Array, Array, Array]:
        bodies = fields.model.body_weldid[fields.model.geom_bodyid[geoms]]
        mass = np.broadcast_to(fields.current("body_mass"), (fields.num_worlds, fields.model.nbody))
        stiffness, ratio = springs(fields.model, fields.of("geom_solref")[worlds[:, None], geoms])
        return stiffness, ratio, np.maximum(mass[worlds[:, None], bodies], 1e-3)

    def write(fields: Fields, worlds: Ids, geoms: Ids, signal: Array) -> None:
        stiffness, ratio = put(*read_springs(fields, worlds, geoms), signal)
        reference = np.stack([-stiffness, -2 * ratio * np.sqrt(stiffness)], axis=-1)
        fields.of("geom_solref")[worlds[:, None], geoms] = reference

    return ModelSignal(("geom_solref",), lambda *where: get(*read_springs(*where)), write, _decide_contacts)


def _write_size(fields: Fields, worlds: Ids, columns: Ids, signal: Array) -> None:
    size, here = fields.of("geom_size", constants=True), (worlds[:, None], columns // 3, columns % 3)
    size[here] = np.where(size[here] > 0, np.maximum(signal, 1e-6), size[here])


def _read_inertial(fields: Fields, worlds: Ids, columns: Ids) -> Array:
    body = columns[0] // len(columns)
    mass, centre, frame, inertia = (fields.of(name, constants=True)[worlds, body] for name in _INERTIAL)
    tensor = inertia_tensor(frame, inertia)
    return np.concatenate([mass[:, None], centre, np.stack([tensor[:, i, j] for i, j in _TENSOR], axis=1)], axis=1)


def _write_inertial(fields: Fields, worlds: Ids, columns: Ids, signal: Array) -> None:
    body, tensor = columns[0] // len(columns), np.empty((len(worlds), 3, 3))
    for k, (i, j) in enumerate(_TENSOR):
        tensor[:, i, j] = tensor[:, j, i] = signal[:, 4 + k]
    changed = (signal != _read_inertial(fields, worlds, columns)).any(axis=1)
    frame, inertia = principal_inertia(tensor)
    fields.of("body_mass")[worlds, body], fields.of("body_ipos")[worlds, body] = signal[:, 0], signal[:, 1:4]
    fields.of("body_iquat")[worlds[changed], body] = frame[changed]
    fields.of("body_inertia")[worlds[changed], body] = inertia[changed]


def _temperature_signal(project: Project) -> ModelSignal:
    """Returns what warms together: friction of joints, offsets of their encoders, force of drives."""
    measured = [(item.element, item.quantity) for item in project.measurements]
    encoders = np.flatnonzero([one == ("joint", "position") for one in measured])

    def write(fields: Fields, worlds: Ids, elements: Ids, signal: Array) -> None:
        model = fields.model
        joints = np.array([j for j in range(model.njnt) if has_one_axis(model, j)], np.intp)
        drives = np.array([a for a in range(model.nu) if not is_dc_motor(model, a)], np.intp)
        fields.multiply(worlds, model.jnt_dofadr[joints], signal[:, :1], *_DRAG)
        fields.multiply(worlds, drives, signal[:, 2:], *_FORCE)
        fields.bias[np.ix_(worlds, encoders)] += signal[:, 1:2]

    return ModelSignal((*_DRAG, *_FORCE), lambda _, worlds, __: np.tile([1.0, 0.0, 1.0], (len(worlds), 1)), write)


_FRICTION = _axis_signal("geom_friction", 1, prepare=_decide_contacts)
_SIGNALS = {
    "uneven friction": _FRICTION,
    "floor patches": _FRICTION,
    "restitution": _spring_signal(
        lambda stiffness, ratio, mass: restitution(ratio),
        lambda stiffness, ratio, mass, signal: (stiffness, damping_ratio(signal)),
    ),
    "softness": _spring_signal(
        lambda stiffness, ratio, mass: stiffness * mass,
        lambda stiffness, ratio, mass, signal: (signal / mass, ratio),
    ),
    "size": replace(_axis_signal("geom_size", 3, constants=True), write=_write_size),
    "uneven mass": ModelSignal(_INERTIAL, _read_inertial, _write_inertial, constants=True),
    "clutter": _axis_signal("geom_pos", 2, constants=True),
    "light of day": _factor_signal("light_diffuse"),
}
_SPREAD = {
    "actuator": _factor_signal(*_FORCE),
    "joint": _factor_signal(*_DRAG, of_dofs=True),
    "body": _factor_signal("body_mass", "body_inertia", constants=True),
    "geom": _FRICTION,
}
NUM_AXES = {name: signal.num_axes for name, signal in _SIGNALS.items()}  # layer -> columns of each element
# Layer -> kinds of elements that it can be switched on for.
KINDS_OF_MODEL_LAYERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_SIGNALS, ("geom",)),
    **{"uneven mass": ("body",), "light of day": ("world",), "temperature": ("world",), "spread": tuple(_SPREAD)},
}
