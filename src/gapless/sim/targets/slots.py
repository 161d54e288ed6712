"""What layers on the model act on: which fields, as which signal."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.sim.targets.actuators.drive import is_dc_motor
from gapless.sim.targets.body import principal, tensor_of
from gapless.sim.targets.contact import damping_ratio, restitution, surface_of
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.geom import springs, take_over
from gapless.sim.targets.joint import has_one_axis

Ids = NDArray[np.intp]
Read = Callable[[Fields, Ids, Ids], Array]
Write = Callable[[Fields, Ids, Ids, Array], None]
Ready = Callable[[Fields, Ids, Ids], None]


@dataclass(frozen=True)
class Slot:
    """Where a layer on the model reads its signal and where it writes what comes out.

    Attributes:
        fields: The model fields that it writes.
        read: (fields, worlds, elements) -> (num_worlds, num_columns).
        write: (fields, worlds, elements, signal): writes what came out.
        ready: (fields, worlds, elements): makes the fields ready, once parameters are set.
        constants: Whether constants of the model follow from these fields.
    """

    fields: tuple[str, ...]
    read: Read
    write: Write
    ready: Ready = lambda fields, worlds, elements: None
    constants: bool = False


KINDS_OF_MODEL_LAYERS = {
    "uneven friction": ("geom",),
    "floor patches": ("geom",),
    "restitution": ("geom",),
    "softness": ("geom",),
    "size": ("geom",),
    "uneven mass": ("body",),
    "clutter": ("geom",),
    "temperature": ("world",),
    "light of day": ("world",),
    "spread": ("actuator", "joint", "body", "geom"),
}


def slot_of(layer: str, kind: str, project: Project) -> Slot:
    """Returns what a layer on the model acts on for a kind of elements."""
    if layer == "temperature":
        return _temperature(project)
    if layer == "spread":
        return _SPREAD[kind]
    return _SLOTS[layer]


def _own_surface(fields: Fields, worlds: Ids, geoms: Ids) -> None:
    take_over(fields, np.ix_(worlds, geoms), [surface_of(fields.model, int(g)) for g in geoms], fields.model)


def _read_friction(fields: Fields, worlds: Ids, geoms: Ids) -> Array:
    return fields.of("geom_friction")[worlds[:, None], geoms, 0]


def _write_friction(fields: Fields, worlds: Ids, geoms: Ids, signal: Array) -> None:
    fields.of("geom_friction")[worlds[:, None], geoms, 0] = signal


def _springs(fields: Fields, worlds: Ids, geoms: Ids) -> tuple[Array, Array]:
    return springs(fields.model, fields.of("geom_solref")[worlds[:, None], geoms])


def _write_springs(fields: Fields, worlds: Ids, geoms: Ids, stiffness: Array, ratio: Array) -> None:
    reference = np.stack([-stiffness, -2 * ratio * np.sqrt(stiffness)], axis=-1)
    fields.of("geom_solref")[worlds[:, None], geoms] = reference


def _read_restitution(fields: Fields, worlds: Ids, geoms: Ids) -> Array:
    return restitution(_springs(fields, worlds, geoms)[1])


def _write_restitution(fields: Fields, worlds: Ids, geoms: Ids, signal: Array) -> None:
    _write_springs(fields, worlds, geoms, _springs(fields, worlds, geoms)[0], damping_ratio(signal))


def _masses(fields: Fields, worlds: Ids, geoms: Ids) -> Array:
    """Returns what moves against the contact [kg], at least a gram; the stiffness of the engine is per mass."""
    bodies = fields.model.body_weldid[fields.model.geom_bodyid[geoms]]
    mass = np.broadcast_to(fields.now("body_mass"), (fields.num_worlds, fields.model.nbody))
    return np.maximum(mass[worlds[:, None], bodies], 1e-3)


def _read_stiffness(fields: Fields, worlds: Ids, geoms: Ids) -> Array:
    return _springs(fields, worlds, geoms)[0] * _masses(fields, worlds, geoms)


def _write_stiffness(fields: Fields, worlds: Ids, geoms: Ids, signal: Array) -> None:
    ratio = _springs(fields, worlds, geoms)[1]
    _write_springs(fields, worlds, geoms, signal / _masses(fields, worlds, geoms), ratio)


def _read_size(fields: Fields, worlds: Ids, geoms: Ids) -> Array:
    return fields.of("geom_size", constants=True)[worlds[:, None], geoms].reshape(len(worlds), -1)


def _write_size(fields: Fields, worlds: Ids, geoms: Ids, signal: Array) -> None:
    size = fields.of("geom_size", constants=True)
    here = (worlds[:, None], geoms)
    size[here] = np.where(size[here] > 0, np.maximum(signal.reshape(len(worlds), -1, 3), 1e-6), size[here])


def _read_place(fields: Fields, worlds: Ids, geoms: Ids) -> Array:
    return fields.of("geom_pos")[worlds[:, None], geoms, :2].reshape(len(worlds), -1)


def _write_place(fields: Fields, worlds: Ids, geoms: Ids, signal: Array) -> None:
    fields.of("geom_pos")[worlds[:, None], geoms, :2] = signal.reshape(len(worlds), -1, 2)


def _read_inertial(fields: Fields, worlds: Ids, bodies: Ids) -> Array:
    names = ("body_mass", "body_ipos", "body_iquat", "body_inertia")
    mass, centre, frame, inertia = (fields.of(name, constants=True)[worlds, bodies[0]] for name in names)
    tensor = tensor_of(frame, inertia)
    parts = [tensor[:, i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return np.concatenate([mass[:, None], centre, np.stack(parts, axis=1)], axis=1)


def _write_inertial(fields: Fields, worlds: Ids, bodies: Ids, signal: Array) -> None:
    here, tensor = (worlds, bodies[0]), np.empty((len(worlds), 3, 3))
    for k, (i, j) in enumerate(((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))):
        tensor[:, i, j] = tensor[:, j, i] = signal[:, 4 + k]
    changed = ~np.isclose(signal, _read_inertial(fields, worlds, bodies), rtol=0, atol=0).all(axis=1)
    frame, inertia = principal(tensor)
    fields.of("body_mass")[here], fields.of("body_ipos")[here] = signal[:, 0], signal[:, 1:4]
    fields.of("body_iquat")[worlds[changed], bodies[0]] = frame[changed]
    fields.of("body_inertia")[worlds[changed], bodies[0]] = inertia[changed]


def _ones(fields: Fields, worlds: Ids, elements: Ids) -> Array:
    return np.ones((len(worlds), len(elements)))


def _drag(fields: Fields, worlds: Ids, joints: Ids, factor: Array) -> None:
    """Multiplies damping and friction of joints, (num_worlds, num_joints or 1)."""
    dofs = fields.model.jnt_dofadr[joints]
    for name in ("dof_damping", "dof_frictionloss"):
        fields.of(name)[worlds[:, None], dofs] *= factor


def _strength(fields: Fields, worlds: Ids, actuators: Ids, factor: Array) -> None:
    """Multiplies the force of actuators, (num_worlds, num_actuators or 1)."""
    for name in ("actuator_gainprm", "actuator_biasprm"):
        fields.of(name)[worlds[:, None], actuators] *= factor[:, :, None]


def _weight(fields: Fields, worlds: Ids, bodies: Ids, factor: Array) -> None:
    fields.of("body_mass", constants=True)[worlds[:, None], bodies] *= factor
    fields.of("body_inertia", constants=True)[worlds[:, None], bodies] *= factor[:, :, None]


def _grip(fields: Fields, worlds: Ids, geoms: Ids, factor: Array) -> None:
    _write_friction(fields, worlds, geoms, _read_friction(fields, worlds, geoms) * factor)


def _brightness(fields: Fields, worlds: Ids, elements: Ids, factor: Array) -> None:
    fields.of("light_diffuse")[worlds] *= factor[:, :, None]


def _lights(fields: Fields, worlds: Ids, elements: Ids) -> Array:
    return np.ones((len(worlds), fields.model.nlight))


def _temperature(project: Project) -> Slot:
    """Returns the slot of what warms together: friction of joints, offsets of their encoders, force of drives."""
    encoders = [
        k for k, item in enumerate(project.measurements) if item.element == "joint" and item.quantity == "position"
    ]

    def read(fields: Fields, worlds: Ids, elements: Ids) -> Array:
        return np.tile([1.0, 0.0, 1.0], (len(worlds), 1))

    def write(fields: Fields, worlds: Ids, elements: Ids, signal: Array) -> None:
        model = fields.model
        joints = np.array([j for j in range(model.njnt) if has_one_axis(model, j)], np.intp)
        drives = np.array([a for a in range(model.nu) if not is_dc_motor(model, a)], np.intp)
        _drag(fields, worlds, joints, signal[:, :1])
        _strength(fields, worlds, drives, signal[:, 2:])
        fields.bias[np.ix_(worlds, encoders)] += signal[:, 1:2]

    return Slot(("dof_damping", "dof_frictionloss", "actuator_gainprm", "actuator_biasprm"), read, write)


_FRICTION = Slot(("geom_friction",), _read_friction, _write_friction, _own_surface)
_SLOTS = {
    "uneven friction": _FRICTION,
    "floor patches": _FRICTION,
    "restitution": Slot(("geom_solref",), _read_restitution, _write_restitution, _own_surface),
    "softness": Slot(("geom_solref",), _read_stiffness, _write_stiffness, _own_surface),
    "size": Slot(("geom_size",), _read_size, _write_size, constants=True),
    "uneven mass": Slot(
        ("body_mass", "body_ipos", "body_iquat", "body_inertia"), _read_inertial, _write_inertial, constants=True
    ),
    "clutter": Slot(("geom_pos",), _read_place, _write_place),
    "light of day": Slot(("light_diffuse",), _lights, _brightness),
}
_SPREAD = {
    "actuator": Slot(("actuator_gainprm", "actuator_biasprm"), _ones, _strength),
    "joint": Slot(("dof_damping", "dof_frictionloss"), _ones, _drag),
    "body": Slot(("body_mass", "body_inertia"), _ones, _weight, constants=True),
    "geom": Slot(("geom_friction",), _ones, _grip, _own_surface),
}
