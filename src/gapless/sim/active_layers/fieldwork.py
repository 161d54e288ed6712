"""Layers on the model: those that are written once, and those that place or time change as a run goes on."""

from dataclasses import replace

import mujoco
import numpy as np
from mujoco.batch import Batch

from gapless.core.signal import Array
from gapless.sim.active_layers.playing import Ids, Playing
from gapless.sim.blueprint import CompiledProject
from gapless.sim.realism.draws import Draws
from gapless.sim.realism.layer import stateless
from gapless.sim.realism.switching import in_order
from gapless.sim.targets.body import free_joint_of
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.slots import Slot, slot_of

IMPACT_S = 0.05  # an impact is over by then: until then the speed counts that led to it
MOVING = ("light of day",)  # changes with time, though it needs nothing of the moment


class Fieldwork:
    """Layers on fields of the model."""

    def __init__(self, blueprint: CompiledProject, batch: Batch, fields: Fields, place: int | None) -> None:
        """Finds the layers and what they act on; see `Simulation` for `place`."""
        order = {layer.name: k for k, layer in enumerate(in_order("model"))}
        uses = [use for use in fields.uses.values() if use.layer.acts_on == "model"]
        uses.sort(key=lambda use: order[use.layer.name])
        self._fields, self._batch, self._interval_s = fields, batch, blueprint.interval_s
        self._played = [
            (Playing(use, np.repeat(use.ids, use.width)), slot_of(use.layer.name, use.kind, blueprint.project))
            for use in uses
        ]
        self._moving = [one for one in self._played if _moves(one[0])]
        self._drawn = [one for one in self._played if one[0].use.layer.start is not stateless]
        self._lasting = [one for one in self._played if one not in self._moving and one not in self._drawn]
        self._bases: dict[str, Array] = {}
        self._constants = any(slot.constants for _, slot in self._drawn)
        geoms = sorted({int(g) for playing, _ in self._moving if playing.use.kind == "geom" for g in playing.use.ids})
        self._place = None if place is None else np.full(fields.num_worlds, place, dtype=np.uint64)
        self._sights = {geom: _Sight(blueprint.model, batch, geom) for geom in geoms}

    def set(self, ids: Ids, draws: Draws) -> bool:
        """Writes what lasts, and all that is known of the rest; returns whether constants have to follow."""
        for playing, slot in self._played:
            slot.ready(self._fields, ids, playing.use.ids)
        for playing, slot in self._lasting:
            self._apply(playing, slot, ids, draws)
        for _, slot in (*self._moving, *self._drawn):
            for name in slot.fields:
                live = self._fields.of(name)
                if name not in self._bases:
                    self._bases[name] = live.copy()
                self._bases[name][ids] = live[ids]
        if self._drawn:
            self.begin(ids, draws)
        return self._fields.needs_constants

    def begin(self, ids: Ids | None, draws: Draws) -> None:
        """Draws anew what belongs to a run of its own, in some worlds."""
        if not self._played or not (self._drawn or self._moving):
            return
        which = np.arange(self._fields.num_worlds) if ids is None else ids
        for sight in self._sights.values():
            sight.forget(which)
        self._restore(which)
        for playing, slot in self._once():
            signal = self._whole(playing, slot)
            playing.begin(signal, self._interval_s, self._of(playing, draws), self._seen(playing), which)
            self._apply(playing, slot, which, draws, keep=True)
        if self._constants:
            self._batch.set_const(np.sort(which))

    def step(self, draws: Draws) -> None:
        """Changes what place and time change."""
        if not self._moving:
            return
        everyone = np.arange(self._fields.num_worlds)
        for sight in self._sights.values():
            sight.look(self._interval_s)
        self._restore(everyone)
        for playing, slot in self._once():
            self._apply(playing, slot, everyone, draws)

    def _once(self) -> list[tuple[Playing, Slot]]:
        """Returns all layers that may have to be written again: each once, in order."""
        return [one for one in self._played if one not in self._lasting and self._bases]

    def _restore(self, ids: Ids) -> None:
        for name, base in self._bases.items():
            self._fields.of(name)[ids] = base[ids]

    def _whole(self, playing: Playing, slot: Slot) -> Array:
        return slot.read(self._fields, np.arange(self._fields.num_worlds), playing.use.ids)

    def _apply(self, playing: Playing, slot: Slot, ids: Ids, draws: Draws, *, keep: bool = False) -> None:
        """Writes what a layer makes of its fields in some worlds."""
        before = playing.state
        drawn = self._of(playing, draws)
        out = playing.act(self._whole(playing, slot), self._interval_s, drawn, self._seen(playing))
        if keep:
            playing.state = before
        slot.write(self._fields, ids, playing.use.ids, out[ids])

    def _of(self, playing: Playing, draws: Draws) -> Draws:
        """Returns the draws of a layer: those of the place for a pattern on its floor."""
        if self._place is None or "place" not in playing.use.layer.needs:
            return draws
        return replace(draws, worlds=self._place)

    def _seen(self, playing: Playing) -> dict[str, Array]:
        needs, geoms = (
            playing.use.layer.needs,
            [self._sights[int(g)] for g in playing.use.ids if int(g) in self._sights],
        )
        seen: dict[str, Array] = {}
        if "place" in needs:
            seen["place"] = np.stack([sight.place for sight in geoms], axis=1)
        if "velocity" in needs:
            seen["velocity"] = np.stack([sight.speed for sight in geoms], axis=1)
        return seen


class _Sight:
    """Where the body of a geom is on the floor, and how fast it went just before it touched something."""

    def __init__(self, model: mujoco.MjModel, batch: Batch, geom: int) -> None:
        body = int(model.geom_bodyid[geom])
        joint = free_joint_of(model, body)
        self._qpos, self._qvel = batch.bind("qpos"), batch.bind("qvel")
        self._address = None if joint is None else int(model.jnt_qposadr[joint])
        self._dof = None if joint is None else int(model.jnt_dofadr[joint])
        self._places = batch.bind("xpos")[:, body] if joint is None else None
        self._peak = np.zeros(batch.nsim)
        self._age_s = np.zeros(batch.nsim)

    @property
    def place(self) -> Array:
        """Where it is, (num_worlds, 2) [m]."""
        if self._address is None:
            assert self._places is not None
            return self._places[:, :2]
        return self._qpos[:, self._address : self._address + 2]

    @property
    def speed(self) -> Array:
        """How fast it went, at most, in the last `IMPACT_S`, (num_worlds,) [m/s]."""
        return self._peak

    def forget(self, ids: Ids) -> None:
        """Begins anew in some worlds."""
        self._peak[ids] = 0.0
        self._age_s[ids] = 0.0

    def look(self, interval_s: float) -> None:
        """Takes note of the speed now."""
        if self._dof is None:
            return
        now = np.linalg.norm(self._qvel[:, self._dof : self._dof + 3], axis=1)
        newer = (now >= self._peak) | (self._age_s > IMPACT_S)
        self._peak = np.where(newer, now, self._peak)
        self._age_s = np.where(newer, 0.0, self._age_s + interval_s)


def _moves(playing: Playing) -> bool:
    return bool({"place", "velocity"} & {*playing.use.layer.needs}) or playing.use.layer.name in MOVING
