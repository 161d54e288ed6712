"""Layers on the model: those that are written once, and those that place, time or a new run change."""

from dataclasses import replace

import mujoco
import numpy as np
from mujoco.batch import Batch

from gapless.core.signal import Array
from gapless.sim.active_layers.active_layer import ActiveLayer, Ids, sort_layers
from gapless.sim.active_layers.model_signals import ModelSignal, signal_of
from gapless.sim.blueprint import CompiledProject
from gapless.sim.realism.draws import Draws
from gapless.sim.realism.layer import LayerContext, begin_without_state
from gapless.sim.targets.drive import free_joint_of
from gapless.sim.targets.target import Fields

IMPACT_S = 0.05  # an impact is over by then: until then the speed counts that led to it


class ModelLayers:
    """Layers on fields of the model."""

    def __init__(self, blueprint: CompiledProject, batch: Batch, fields: Fields, place: int | None) -> None:
        """Finds the layers and what they act on; see `Simulation` for `place`."""
        found = sort_layers(fields.active_layers.values(), "model")
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
