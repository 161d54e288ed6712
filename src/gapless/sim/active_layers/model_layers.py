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
from gapless.sim.realism.layer import begin_without_state
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
        self._all = [(one, signal_of(one.layer.name, one.kind, blueprint.project)) for one in found]
        moves = [bool({"place", "velocity"} & {*one.layer.needs}) or one.layer.name == "light of day" for one in found]
        drawn = [one.layer.start is not begin_without_state for one in found]
        self._any_moving, self._any_drawn = any(moves), any(drawn)
        self._varying = [pair for pair, a, b in zip(self._all, moves, drawn, strict=True) if a or b]
        self._constants = any(signal.constants for (_, signal), b in zip(self._all, drawn, strict=True) if b)
        self._written: dict[str, Array] = {}  # field -> its values before layers that vary
        self._place = None if place is None else np.full(fields.num_worlds, place, dtype=np.uint64)
        geoms = {int(g) for one, move in zip(found, moves, strict=True) if move and one.kind == "geom" for g in one.ids}
        self._motions = {geom: _GeomMotion(blueprint.model, batch, geom) for geom in sorted(geoms)}

    def update(self, ids: Ids, draws: Draws) -> None:
        """Writes what lasts, and all that is known of the rest."""
        for layer, signal in self._all:
            signal.prepare(self._fields, ids, layer.ids)
        for layer, signal in self._all:
            if (layer, signal) not in self._varying:
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
            motion.speed[which] = motion.age_s[which] = 0.0
        self._restore(which)
        for layer, signal in self._varying if self._written else ():
            whole = signal.read(self._fields, self._everyone, layer.ids)
            layer.begin(whole, self._interval_s, *self._inputs(layer, draws), which)
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
        whole = signal.read(self._fields, self._everyone, layer.ids)
        out = layer.act(whole, self._interval_s, *self._inputs(layer, draws))
        signal.write(self._fields, ids, layer.ids, out[ids])

    def _inputs(self, layer: ActiveLayer, draws: Draws) -> tuple[Draws, dict[str, Array]]:
        """Returns the draws of a layer, those of the place for a pattern on its floor, and fields of its context."""
        motions = [self._motions[int(g)] for g in layer.ids if int(g) in self._motions]
        given: dict[str, Array] = {}
        if "velocity" in layer.layer.needs:
            given["velocity"] = np.stack([motion.speed for motion in motions], axis=1)
        if "place" in layer.layer.needs:
            given["place"] = np.stack([motion.place for motion in motions], axis=1)
            draws = draws if self._place is None else replace(draws, worlds=self._place)
        return draws, given


class _GeomMotion:
    """Where the body of a geom is on the floor, and how fast it went just before it touched something."""

    def __init__(self, model: mujoco.MjModel, batch: Batch, geom: int) -> None:
        body = int(model.geom_bodyid[geom])
        joint = free_joint_of(model, body)
        self.place = batch.bind("xpos")[:, body, :2]  # (num_worlds, 2) [m], live
        self._velocity = np.zeros((batch.nsim, 3))
        if joint is not None:
            address, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
            self.place = batch.bind("qpos")[:, address : address + 2]
            self._velocity = batch.bind("qvel")[:, dof : dof + 3]
        self.speed = np.zeros(batch.nsim)  # (num_worlds,) the largest in the last `IMPACT_S` [m/s]
        self.age_s = np.zeros(batch.nsim)  # of that speed

    def update(self, interval_s: float) -> None:
        """Compares the speed now with the largest so far."""
        now = np.linalg.norm(self._velocity, axis=1)
        newer = (now >= self.speed) | (self.age_s > IMPACT_S)
        self.speed = np.where(newer, now, self.speed)
        self.age_s = np.where(newer, 0.0, self.age_s + interval_s)
