"""What layers on the model act on: which fields of the model, as which signal."""

from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class ModelSignal:
    """Where a layer on the model reads its signal and where it writes what comes out."""

    fields: tuple[str, ...]  # the model fields that it writes
    read: Callable[[Fields, Ids, Ids], Array]  # (fields, worlds, elements) -> (num_worlds, num_columns)
    write: Callable[[Fields, Ids, Ids, Array], None]  # (fields, worlds, elements, signal): writes what came out
    # (fields, worlds, elements): makes the fields ready, once parameters are set
    prepare: Callable[[Fields, Ids, Ids], None] = lambda fields, worlds, elements: None
    constants: bool = False  # whether constants of the model follow from these fields


def signal_of(layer: str, kind: str, project: Project) -> ModelSignal:
    """Returns what a layer on the model acts on for a kind of elements."""
    if layer == "temperature":
        return _temperature_signal(project)
    return _SPREAD[kind] if layer == "spread" else _SIGNALS[layer]


def _decide_contacts(fields: Fields, worlds: Ids, geoms: Ids) -> None:
    decide_alone(fields, np.ix_(worlds, geoms), [surface_of(fields.model, int(g)) for g in geoms], fields.model)


def _column_signal(name: str, columns: slice, **options: Any) -> ModelSignal:
    """Returns some columns of a field, of each element, as the signal."""

    def read(fields: Fields, worlds: Ids, elements: Ids) -> Array:
        return fields.of(name)[worlds[:, None], elements, columns].reshape(len(worlds), -1)

    def write(fields: Fields, worlds: Ids, elements: Ids, signal: Array) -> None:
        fields.of(name)[worlds[:, None], elements, columns] = signal.reshape(len(worlds), len(elements), -1)

    return ModelSignal((name,), read, write, **options)


def _read_springs(fields: Fields, worlds: Ids, geoms: Ids) -> tuple[Array, Array]:
    return springs(fields.model, fields.of("geom_solref")[worlds[:, None], geoms])


def _write_springs(fields: Fields, worlds: Ids, geoms: Ids, stiffness: Array, ratio: Array) -> None:
    reference = np.stack([-stiffness, -2 * ratio * np.sqrt(stiffness)], axis=-1)
    fields.of("geom_solref")[worlds[:, None], geoms] = reference


def _read_restitution(fields: Fields, worlds: Ids, geoms: Ids) -> Array:
    return restitution(_read_springs(fields, worlds, geoms)[1])


def _write_restitution(fields: Fields, worlds: Ids, geoms: Ids, signal: Array) -> None:
    _write_springs(fields, worlds, geoms, _read_springs(fields, worlds, geoms)[0], damping_ratio(signal))


def _masses(fields: Fields, worlds: Ids, geoms: Ids) -> Array:
    """Returns what moves against the contact [kg], at least a gram; the stiffness of the engine is per mass."""
    bodies = fields.model.body_weldid[fields.model.geom_bodyid[geoms]]
    mass = np.broadcast_to(fields.current("body_mass"), (fields.num_worlds, fields.model.nbody))
    return np.maximum(mass[worlds[:, None], bodies], 1e-3)


def _read_stiffness(fields: Fields, worlds: Ids, geoms: Ids) -> Array:
    return _read_springs(fields, worlds, geoms)[0] * _masses(fields, worlds, geoms)


def _write_stiffness(fields: Fields, worlds: Ids, geoms: Ids, signal: Array) -> None:
    ratio = _read_springs(fields, worlds, geoms)[1]
    _write_springs(fields, worlds, geoms, signal / _masses(fields, worlds, geoms), ratio)


def _read_size(fields: Fields, worlds: Ids, geoms: Ids) -> Array:
    return fields.of("geom_size", constants=True)[worlds[:, None], geoms].reshape(len(worlds), -1)


def _write_size(fields: Fields, worlds: Ids, geoms: Ids, signal: Array) -> None:
    size = fields.of("geom_size", constants=True)
    here = (worlds[:, None], geoms)
    size[here] = np.where(size[here] > 0, np.maximum(signal.reshape(len(worlds), -1, 3), 1e-6), size[here])


def _read_inertial(fields: Fields, worlds: Ids, bodies: Ids) -> Array:
    names = ("body_mass", "body_ipos", "body_iquat", "body_inertia")
    mass, centre, frame, inertia = (fields.of(name, constants=True)[worlds, bodies[0]] for name in names)
    tensor = inertia_tensor(frame, inertia)
    return np.concatenate([mass[:, None], centre, np.stack([tensor[:, i, j] for i, j in _TENSOR], axis=1)], axis=1)


def _write_inertial(fields: Fields, worlds: Ids, bodies: Ids, signal: Array) -> None:
    here, tensor = (worlds, bodies[0]), np.empty((len(worlds), 3, 3))
    for k, (i, j) in enumerate(_TENSOR):
        tensor[:, i, j] = tensor[:, j, i] = signal[:, 4 + k]
    changed = (signal != _read_inertial(fields, worlds, bodies)).any(axis=1)
    frame, inertia = principal_inertia(tensor)
    fields.of("body_mass")[here], fields.of("body_ipos")[here] = signal[:, 0], signal[:, 1:4]
    fields.of("body_iquat")[worlds[changed], bodies[0]] = frame[changed]
    fields.of("body_inertia")[worlds[changed], bodies[0]] = inertia[changed]


def _ones(fields: Fields, worlds: Ids, elements: Ids) -> Array:
    return np.ones((len(worlds), len(elements)))


def _multiply(fields: Fields, worlds: Ids, elements: Ids, factor: Array, *names: str, constants: bool = False) -> None:
    """Multiplies fields of elements by (num_worlds, num_elements or 1) factors."""
    for name in names:
        field = fields.of(name, constants=constants)
        field[worlds[:, None], elements] *= factor.reshape(*factor.shape, *[1] * (field.ndim - 2))


def _multiply_force(fields: Fields, worlds: Ids, actuators: Ids, factor: Array) -> None:
    _multiply(fields, worlds, actuators, factor, "actuator_gainprm", "actuator_biasprm")


def _multiply_drag(fields: Fields, worlds: Ids, joints: Ids, factor: Array) -> None:
    _multiply(fields, worlds, fields.model.jnt_dofadr[joints], factor, "dof_damping", "dof_frictionloss")


def _multiply_mass(fields: Fields, worlds: Ids, bodies: Ids, factor: Array) -> None:
    _multiply(fields, worlds, bodies, factor, "body_mass", "body_inertia", constants=True)


def _multiply_friction(fields: Fields, worlds: Ids, geoms: Ids, factor: Array) -> None:
    _FRICTION.write(fields, worlds, geoms, _FRICTION.read(fields, worlds, geoms) * factor)


def _read_lights(fields: Fields, worlds: Ids, elements: Ids) -> Array:
    return np.ones((len(worlds), fields.model.nlight))


def _multiply_light(fields: Fields, worlds: Ids, elements: Ids, factor: Array) -> None:
    _multiply(fields, worlds, np.arange(fields.model.nlight), factor, "light_diffuse")


def _temperature_signal(project: Project) -> ModelSignal:
    """Returns what warms together: friction of joints, offsets of their encoders, force of drives."""
    measured = [(item.element, item.quantity) for item in project.measurements]
    encoders = np.flatnonzero([one == ("joint", "position") for one in measured])

    def read(fields: Fields, worlds: Ids, elements: Ids) -> Array:
        return np.tile([1.0, 0.0, 1.0], (len(worlds), 1))

    def write(fields: Fields, worlds: Ids, elements: Ids, signal: Array) -> None:
        model = fields.model
        joints = np.array([j for j in range(model.njnt) if has_one_axis(model, j)], np.intp)
        drives = np.array([a for a in range(model.nu) if not is_dc_motor(model, a)], np.intp)
        _multiply_drag(fields, worlds, joints, signal[:, :1])
        _multiply_force(fields, worlds, drives, signal[:, 2:])
        fields.bias[np.ix_(worlds, encoders)] += signal[:, 1:2]

    return ModelSignal(("dof_damping", "dof_frictionloss", "actuator_gainprm", "actuator_biasprm"), read, write)


_FRICTION = _column_signal("geom_friction", slice(0, 1), prepare=_decide_contacts)
_INERTIAL = ("body_mass", "body_ipos", "body_iquat", "body_inertia")
_SIGNALS = {
    "uneven friction": _FRICTION,
    "floor patches": _FRICTION,
    "restitution": ModelSignal(("geom_solref",), _read_restitution, _write_restitution, _decide_contacts),
    "softness": ModelSignal(("geom_solref",), _read_stiffness, _write_stiffness, _decide_contacts),
    "size": ModelSignal(("geom_size",), _read_size, _write_size, constants=True),
    "uneven mass": ModelSignal(_INERTIAL, _read_inertial, _write_inertial, constants=True),
    "clutter": _column_signal("geom_pos", slice(0, 2), constants=True),
    "light of day": ModelSignal(("light_diffuse",), _read_lights, _multiply_light),
}
_SPREAD = {
    "actuator": ModelSignal(("actuator_gainprm", "actuator_biasprm"), _ones, _multiply_force),
    "joint": ModelSignal(("dof_damping", "dof_frictionloss"), _ones, _multiply_drag),
    "body": ModelSignal(("body_mass", "body_inertia"), _ones, _multiply_mass, constants=True),
    "geom": ModelSignal(("geom_friction",), _ones, _multiply_friction, _decide_contacts),
}
# Layer -> kinds of elements that it can be switched on for.
KINDS_OF_MODEL_LAYERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_SIGNALS, ("geom",)),
    **{"uneven mass": ("body",), "light of day": ("world",), "temperature": ("world",), "spread": tuple(_SPREAD)},
}
