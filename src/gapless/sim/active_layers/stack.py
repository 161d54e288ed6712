"""All layers that are on in a simulation.

Commands pass their layers once per control interval, before play, delay and lag; efforts in every physics step; wind
and pushes, readings, and fields of the model that depend on place or time once per control interval.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from mujoco.batch import Batch

from gapless.core.signal import Array
from gapless.sim.active_layers.drives import Drives
from gapless.sim.active_layers.fieldwork import Fieldwork
from gapless.sim.active_layers.playing import Ids, Playing
from gapless.sim.blueprint import CompiledProject
from gapless.sim.realism.draws import Bits, Draws
from gapless.sim.realism.layer import Layer, Target
from gapless.sim.realism.layers.surroundings import TEMPERATURE
from gapless.sim.realism.switching import in_order
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.use import Use

SEED = 0  # of all draws: worlds differ by their identity, and robot 7 of a fleet is the same in every simulation


class Stack:
    """The layers that are on, in the order in which signals pass them."""

    def __init__(self, blueprint: CompiledProject, batch: Batch, fields: Fields, place: int | None) -> None:
        """Puts the layers of `fields.uses` in order; see `Simulation` for `place`."""
        model, num_worlds = blueprint.model, fields.num_worlds
        self._step_s, self._interval_s = float(model.opt.timestep), blueprint.interval_s
        self._num_substeps, self._fields = blueprint.num_substeps, fields
        self._draws = Draws(SEED, np.arange(num_worlds, dtype=np.uint64), median=True)
        self._count = 0
        self.on = bool(fields.uses)
        self._commands = _played(fields, "command", "actuator", np.arange(model.nu))
        self._readings = _played(fields, "reading", "measurement", np.arange(len(blueprint.project.measurements)))
        joints = _elements(fields, "joint")
        on_joints = _played(fields, "effort", "joint", joints)
        self._efforts = [one for one in on_joints if not is_weather(one.use.layer)]
        self._weather = [one for one in on_joints if is_weather(one.use.layer)]
        self._bodies = _elements(fields, "body")
        self._forces = _played(fields, "effort", "body", np.repeat(self._bodies, 3))
        changes = [playing.use.layer.name for playing in self._efforts if _needs_drive(playing.use)]
        self._drives = Drives(fields, batch, joints, changes[0]) if changes else None
        self._address, self._dofs = model.jnt_qposadr[joints], model.jnt_dofadr[joints]
        self._control, self._qpos, self._qvel = (batch.bind(name) for name in ("ctrl", "qpos", "qvel"))
        self._applied = batch.bind("qfrc_applied") if on_joints else None
        self._blown = np.zeros((num_worlds, len(joints)))
        self._pushed = batch.bind("xfrc_applied") if self._forces else None
        self._model = Fieldwork(blueprint, batch, fields, place)
        self._shown: Array | None = None

    @property
    def on_commands(self) -> bool:
        """Whether layers act on commands."""
        return bool(self._commands)

    @property
    def on_efforts(self) -> bool:
        """Whether layers act on efforts, in every physics step."""
        return bool(self._efforts)

    @property
    def on_readings(self) -> bool:
        """Whether layers act on readings."""
        return bool(self._readings)

    def noisy_columns(self) -> list[int]:
        """Returns the measurements whose noise is a layer's."""
        noisy = [p.use for p in self._readings if p.use.layer.name == "noise"]
        return [int(column) for use in noisy for column in use.ids]

    def set(self, ids: Ids) -> bool:
        """Takes note of the knobs of some worlds; returns whether constants of the model have to follow."""
        if self._drives is not None:
            self._drives.set()
        return self._model.set(ids, self._draws)

    def reset(self, ids: Ids, rng: np.random.Generator) -> None:
        """Gives some worlds other random numbers, for a run that begins."""
        worlds = self._draws.worlds.copy()
        worlds[ids] = rng.integers(1 << 63, size=len(ids), dtype=np.uint64)
        self._draws = Draws(SEED, worlds)
        self._model.begin(ids, self._draws)

    def predict(self, identity: Bits | None) -> None:
        """Begins predictions of all worlds.

        Args:
            identity: (num_worlds,) whose random numbers each world has; None makes them all their medians: predictions
                are then of what is to be expected.
        """
        worlds = self._draws.worlds if identity is None else identity
        self._draws, self._count = Draws(SEED, worlds, median=identity is None), 0
        self._model.begin(None, self._draws)

    def noise(self, num_columns: int) -> Array:
        """Returns standard normal numbers of this control interval, (num_worlds, num_columns)."""
        return self._draws.at(self._count).normal("stated noise", num_columns)

    def begin(self, resting: Array, ids: Ids | None) -> None:
        """Begins layers on commands and efforts in some worlds.

        Args:
            resting: (num_worlds, nu) the commands that were in force.
            ids: The worlds; None for all.
        """
        for playing in self._commands:
            playing.begin(resting, self._interval_s, self._draws, {}, ids)
        if self._efforts:
            position, velocity, effort = self._joint_state(resting)
            seen = {"position": position, "velocity": velocity, "load": effort}
            for playing in self._efforts:
                playing.begin(effort, self._step_s, self._draws, seen, ids)
        for playing in self._weather:
            playing.begin(np.zeros_like(self._blown), self._interval_s, self._draws, {}, ids)
        for playing in self._forces:
            calm = np.zeros((self._fields.num_worlds, 3 * len(self._bodies)))
            playing.begin(calm, self._interval_s, self._draws, {}, ids)

    def command(self, sent: Array) -> Array:
        """Returns commands after their layers, (num_worlds, nu); to be called once per control interval."""
        self._count += 1
        draws = self._draws.at(self._count)
        for playing in self._commands:
            sent = playing.act(sent, self._interval_s, draws, {})
        return sent

    def past(self, history: Array) -> Array:
        """Returns past commands after their layers, (num_worlds, num_past, nu); they begin with the oldest."""
        out = history.copy()
        for playing in self._commands:
            playing.begin(out[:, 0], self._interval_s, self._draws, {}, None)
            for k in range(out.shape[1]):
                out[:, k] = playing.act(out[:, k], self._interval_s, self._draws.at(k), {})
        return out

    def surround(self) -> None:
        """Pushes bodies and changes the model as place and time ask for; once per control interval."""
        draws = self._draws.at(self._count)
        if self._pushed is not None:
            force = np.zeros((self._fields.num_worlds, 3 * len(self._bodies)))
            for playing in self._forces:
                force = playing.act(force, self._interval_s, draws, {})
            self._pushed[:, self._bodies, :3] = force.reshape(len(force), -1, 3)
        if self._weather and self._applied is not None:
            self._blown = np.zeros_like(self._blown)
            for playing in self._weather:
                self._blown = playing.act(self._blown, self._interval_s, draws, {})
            self._applied[:, self._dofs] = self._blown
        self._model.step(draws)

    def push(self, substep: int) -> None:
        """Adds to the efforts of joints what layers make of them; before each physics step, controls being set."""
        assert self._applied is not None
        draws = self._draws.at(self._count * self._num_substeps + substep)
        position, velocity, before = self._joint_state(self._control)
        effort = before
        seen = {"position": position, "velocity": velocity}
        for playing in self._efforts:
            seen["load"] = effort
            effort = playing.act(effort, self._step_s, draws, seen)
        self._applied[:, self._dofs] = (effort - before) + self._blown

    def first_reading(self, reading: Array, ids: Ids) -> Array:
        """Returns what sensors say when some worlds begin; the others say what they said."""
        draws, seen = self._draws.at(self._count), self._warmth()
        out, before = reading, self._shown
        for playing in self._readings:
            out = playing.first(out, self._interval_s, draws, seen, ids)
        if before is not None:
            out, begun = before.copy(), out
            out[ids] = begun[ids]
        self._shown = out
        return out.copy()

    def read(self, reading: Array) -> Array:
        """Returns what sensors say, (num_worlds, num_measurements); once per control interval."""
        draws, seen = self._draws.at(self._count), self._warmth()
        for playing in self._readings:
            reading = playing.act(reading, self._interval_s, draws, seen)
        self._shown = reading
        return reading.copy()

    def _joint_state(self, control: Array) -> tuple[Array, Array, Array]:
        """Returns positions, velocities and what drives exert, (num_worlds, num_joints) each."""
        position, velocity = self._qpos[:, self._address], self._qvel[:, self._dofs]
        if self._drives is None:
            return position, velocity, np.zeros_like(position)
        return position, velocity, self._drives.torque(position, velocity, control)

    def _warmth(self) -> Mapping[str, Array]:
        """Returns how warm it is: as `temperature` says, or its typical value."""
        if not any("warmth_k" in playing.use.layer.needs for playing in self._readings):
            return {}
        for use in self._fields.uses.values():
            if use.layer is TEMPERATURE:
                return {"warmth_k": use.values["warmth_k"]}
        typical = next(knob.typical for knob in TEMPERATURE.knobs if knob.name == "warmth_k")
        return {"warmth_k": np.full((self._fields.num_worlds, 1), typical)}


def is_weather(layer: Layer) -> bool:
    """Tells whether a layer adds forces that depend on nothing that moves: wind and pushes, once per interval."""
    return layer.adds and not layer.needs


def _needs_drive(use: Use) -> bool:
    return not use.layer.adds or "load" in use.layer.needs


def _of(fields: Fields, acts_on: Target, kind: str) -> Sequence[Use]:
    order = {layer.name: k for k, layer in enumerate(in_order(acts_on))}
    found = [use for use in fields.uses.values() if use.layer.acts_on == acts_on and use.kind == kind]
    return sorted(found, key=lambda use: order[use.layer.name])


def _elements(fields: Fields, kind: str) -> Ids:
    """Returns all elements of a kind whose efforts a layer acts on."""
    return np.array(sorted({int(e) for use in _of(fields, "effort", kind) for e in use.ids}), np.intp)


def _played(fields: Fields, acts_on: Target, kind: str, whole: Ids) -> list[Playing]:
    return [Playing(use, whole) for use in _of(fields, acts_on, kind)]
