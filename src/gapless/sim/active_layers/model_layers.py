"""Layers on the model: which fields each acts on, those that are written once, and those that vary."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch

from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.sim.active_layers.active_layer import ActiveLayer, Ids
from gapless.sim.blueprint import CompiledProject
from gapless.sim.realism.draws import Draws
from gapless.sim.realism.layer import LayerContext, begin_without_state
from gapless.sim.targets.drive import free_joint_of, has_one_axis, is_dc_motor
from gapless.sim.targets.geom import damping_ratio, decide_alone, restitution, springs, surface_of
from gapless.sim.targets.joint_and_body import inertia_tensor, principal_inertia
from gapless.sim.targets.target import Fields

IMPACT_S = 0.05  # an impact is over by then: until then the speed counts that led to it
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

    return ModelSignal((name,), read, write, **options)


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


class ModelLayers:
    """Layers on fields of the model."""

    def __init__(self, blueprint: CompiledProject, batch: Batch, fields: Fields, place: int | None) -> None:
        """Finds the layers and what they act on; see `Simulation` for `place`."""
        found = [one for one in fields.active_layers.values() if one.layer.acts_on == "model"]
        self._fields, self._batch, self._interval_s = fields, batch, blueprint.interval_s
        self._everyone = np.arange(fields.num_worlds)
        every = [(one, signal_of(one.layer.name, one.kind, blueprint.project)) for one in found]
        moving = [one for one in found if one.layer.needs or one.layer.name == "light of day"]
        drawn = [one for one in found if one.layer.start is not begin_without_state]
        self._any_moving, self._any_drawn = bool(moving), bool(drawn)
        self._varying = [pair for pair in every if pair[0] in moving or pair[0] in drawn]
        self._lasting = [pair for pair in every if pair not in self._varying]
        self._constants = any(signal.constants for one, signal in every if one in drawn)
        self._written: dict[str, Array] = {}  # field -> its values before layers that vary
        self._place = None if place is None else np.full(fields.num_worlds, place, dtype=np.uint64)
        geoms = sorted({int(geom) for one in moving if one.kind == "geom" for geom in one.columns})
        self._motions = {geom: _GeomMotion(blueprint.model, batch, geom) for geom in geoms}

    def update(self, ids: Ids, draws: Draws) -> None:
        """Writes what lasts, and all that is known of the rest."""
        for layer, signal in (*self._lasting, *self._varying):
            signal.prepare(self._fields, ids, layer.columns)
        for layer, signal in self._lasting:
            self._apply(layer, signal, ids, draws)
        for _, signal in self._varying:
            for name in signal.fields:
                live = self._fields.of(name)
                if name not in self._written:
                    self._written[name] = live.copy()
                self._written[name][ids] = live[ids]
        if self._any_drawn:
            self.begin(ids, draws)

    def begin(self, ids: Ids | None, draws: Draws) -> None:
        """Draws anew what belongs to a run of its own, in some worlds."""
        if not self._varying:
            return
        which = self._everyone if ids is None else ids
        for motion in self._motions.values():
            motion.velocity[which] = motion.age_s[which] = 0.0
        self._restore(which)
        for layer, signal in self._varying if self._written else ():
            layer.begin(signal.read(self._fields, self._everyone, layer.columns), self._context(layer, draws), ids)
            begun = layer.state
            self._apply(layer, signal, which, draws)
            layer.state = begun
        if self._constants:
            self._batch.set_const(np.sort(which))

    def step(self, draws: Draws) -> None:
        """Changes what place and time change."""
        if not self._any_moving:
            return
        for motion in self._motions.values():
            motion.update(self._interval_s)
        self._restore(self._everyone)
        for layer, signal in self._varying if self._written else ():
            self._apply(layer, signal, self._everyone, draws)

    def _restore(self, ids: Ids) -> None:
        for name, values in self._written.items():
            self._fields.of(name)[ids] = values[ids]

    def _apply(self, layer: ActiveLayer, signal: ModelSignal, ids: Ids, draws: Draws) -> None:
        """Writes what a layer makes of its fields in some worlds."""
        whole = signal.read(self._fields, self._everyone, layer.columns)
        out = layer.act(whole, self._context(layer, draws))
        signal.write(self._fields, ids, layer.columns, out[ids])

    def _context(self, layer: ActiveLayer, draws: Draws) -> LayerContext:
        """Returns what a layer may know; the draws for a pattern on the floor are those of the place."""
        motions = [self._motions[int(geom)] for geom in layer.columns if layer.layer.needs]
        given = {name: np.stack([getattr(one, name) for one in motions], axis=1) for name in layer.layer.needs}
        if "place" in given and self._place is not None:
            draws = replace(draws, worlds=self._place)
        return LayerContext(self._interval_s, draws, **given)


class _GeomMotion:
    """Where the body of a geom is on the floor, and how fast it went just before it touched something."""

    def __init__(self, model: mujoco.MjModel, batch: Batch, geom: int) -> None:
        body = int(model.geom_bodyid[geom])
        joint = free_joint_of(model, body)
        self.place = batch.bind("xpos")[:, body, :2]  # (num_worlds, 2) [m], live
        self._live_velocity = np.zeros((batch.nsim, 3))
        if joint is not None:
            address, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
            self.place = batch.bind("qpos")[:, address : address + 2]
            self._live_velocity = batch.bind("qvel")[:, dof : dof + 3]
        self.velocity = np.zeros(batch.nsim)  # (num_worlds,) the largest speed in the last `IMPACT_S` [m/s]
        self.age_s = np.zeros(batch.nsim)  # of that speed

    def update(self, interval_s: float) -> None:
        """Compares the speed now with the largest so far."""
        now = np.linalg.norm(self._live_velocity, axis=1)
        newer = (now >= self.velocity) | (self.age_s > IMPACT_S)
        self.velocity = np.where(newer, now, self.velocity)
        self.age_s = np.where(newer, 0.0, self.age_s + interval_s)
