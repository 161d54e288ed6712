"""Many worlds of one project, stepped together: commands in, mapped measurements out."""

import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from gapless.core.episode import Source
from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Start, Step
from gapless.core.signal import Array
from gapless.realism.actuator import backlash
from gapless.realism.latency import DelayPlan, delayed, history_length, plan_delay
from gapless.sim.blueprint import Blueprint
from gapless.sim.fields import Fields
from gapless.sim.targets import resolve


class Simulation:
    """The model of a project with one row of parameters per world. A `World`.

    The signal path of a command is: limits, zero offset, backlash, delay, engine; that of a measurement:
    engine, delay, scale, bias.
    """

    source: Source = "sim"

    def __init__(self, blueprint: Blueprint, num_worlds: int, space: ParameterSpace, num_threads: int = 0) -> None:
        """Makes worlds that are as the model was written until `set_parameters`.

        Args:
            blueprint: The compiled project.
            num_worlds: How many worlds.
            space: The parameters that rows will hold.
            num_threads: Threads to step on; 0 for one per processor.
        """
        project = blueprint.project
        self.blueprint = blueprint
        self.space = space
        self.num_worlds = num_worlds
        self.rate_hz = project.rate_hz
        self.command_names = project.command_names
        self.measurement_names = project.measurement_names
        self.batch = Batch(blueprint.model, num_worlds, num_threads)
        self.fields = Fields(blueprint.model, num_worlds, len(self.measurement_names))
        self.fields.batch = self.batch
        self._targets = [resolve(p.target, project, blueprint.model) for p in space.parameters]
        self._low, self._high = blueprint.command_limits()
        self._actuators = list(blueprint.actuator_ids)
        delays_s = sorted(p.high for p in space.parameters if p.target.endswith("/delay"))
        self._length = history_length(sum(delays_s[-2:]), blueprint.interval_s)  # one of its own, one shared
        self._held = np.zeros((num_worlds, self._length, blueprint.model.nu))
        self._past = np.zeros((num_worlds, self._length, len(self.measurement_names)))
        self._plan: DelayPlan | None = None
        self._late_reading = False
        self._play = False
        blueprint.reader.read(self.batch)  # registers the fields it reads
        self.batch.reset()

    def set_parameters(self, rows: Array, ids: NDArray[np.intp] | None = None) -> None:
        """Gives worlds their rows, (num_ids, num_parameters); the state is left as it is."""
        which = np.arange(self.num_worlds) if ids is None else ids
        self.fields.restore(which)
        for target, values in zip(self._targets, rows.T, strict=True):
            target.write(self.fields, values)
        if self.fields.needs_constants:
            self.batch.set_const(np.sort(which))
        self.plan_delays()
        self._late_reading = bool(self.fields.reading_delay_s.any())
        self._play = bool(self.fields.backlash.any())

    def reset(self, start: Start, rng: np.random.Generator, ids: NDArray[np.intp] | None = None) -> Array:
        """Begins anew from `start`, at rest; see `World.reset`."""
        del rng
        which = np.arange(self.num_worlds) if ids is None else ids
        model = self.blueprint.model
        self.batch.reset(which, stage=0)
        qpos = self.batch.bind("qpos")
        for name, values in start.positions.items():
            address = int(model.joint(name).qposadr[0])
            qpos[which, address : address + values.shape[1]] = values
        self._held[which] = self._resting(which)
        return self._begin_reading(which)

    def restart(self, qpos: Array, qvel: Array, command_history: Array) -> Array:
        """Puts every world in a state, with the commands that came before, and returns measurements.

        Args:
            qpos: (num_worlds, nq).
            qvel: (num_worlds, nv).
            command_history: (num_worlds, num_past, num_commands) the last commands, in model units.
        """
        self.batch.reset(stage=0)
        self.batch.bind("qpos")[:] = qpos
        self.batch.bind("qvel")[:] = qvel
        everyone = np.arange(self.num_worlds)
        self._held[:] = self._resting(everyone)
        if command_history.shape[1]:
            first = command_history[:, :1] + self.fields.target_offset[:, None, self._actuators]
            self._held[:, :, self._actuators] = first
        for k in range(command_history.shape[1]):
            self.hold(command_history[:, k])
        return self._begin_reading(everyone)

    def step(self, requested_command: Array) -> Step:
        """Advances one control interval; see `World.step`."""
        applied = self.hold(requested_command)
        if self._plan is None:
            self.batch.bind("ctrl")[:] = self._held[:, -1]
            self.batch.step(nstep=self.blueprint.num_substeps)
        else:
            self.batch.rollout(self.blueprint.num_substeps, self.substep_controls(), record=())
        return Step(self.read(), applied)

    def hold(self, requested_command: Array) -> Array:
        """Puts commands through limits, offset and play into the history; returns what was applied."""
        applied = np.clip(requested_command, self._low, self._high)
        last = self._held[:, -1].copy()
        last[:, self._actuators] = applied + self.fields.target_offset[:, self._actuators]
        if self._play:
            last = np.where(self.fields.backlash > 0, backlash(self._held[:, -1], last, self.fields.backlash), last)
        self._held[:, :-1] = self._held[:, 1:]
        self._held[:, -1] = last
        return applied

    def plan_delays(self) -> None:
        """Takes note of the delays in force; call after changing `fields.delay_s`."""
        delay_s = self.fields.delay_s
        self._plan = None
        if delay_s.any():
            blueprint = self.blueprint
            self._plan = plan_delay(delay_s, blueprint.interval_s, blueprint.num_substeps, self._length)

    def substep_controls(self) -> Array:
        """Returns what reaches the actuators in each substep, (num_worlds, num_substeps, num_actuators)."""
        if self._plan is None:
            return np.repeat(self._held[:, -1:], self.blueprint.num_substeps, axis=1)
        return delayed(self._held, self._plan)

    def read(self) -> Array:
        """Returns what the sensors say now, (num_worlds, num_measurements), in model units."""
        true = self.blueprint.reader.read(self.batch)
        if self._late_reading:
            self._past[:, :-1] = self._past[:, 1:]
            self._past[:, -1] = true
        return self._show(true)

    def _resting(self, ids: NDArray[np.intp]) -> Array:
        """Returns the commands that servos hold at the start: where their joints are."""
        model = self.blueprint.model
        commands = np.zeros((len(ids), 1, model.nu))
        qpos = self.batch.bind("qpos")
        for actuator in range(model.nu):
            if model.actuator_biasprm[actuator, 1] != 0:
                joint = int(model.actuator_trnid[actuator, 0])
                commands[:, 0, actuator] = qpos[ids, model.jnt_qposadr[joint]]
        return commands

    def _begin_reading(self, ids: NDArray[np.intp]) -> Array:
        true = self.blueprint.reader.read(self.batch)
        self._past[ids] = true[ids, None, :]
        return self._show(true)

    def _show(self, true: Array) -> Array:
        """Returns what the sensors say: late, scaled and biased."""
        if self._late_reading:
            late = self.fields.reading_delay_s * self.rate_hz
            older = np.minimum(np.floor(late).astype(np.intp) + 1, self._length - 1)
            share = late - (older - 1)
            index = self._length - 1 - older
            newer = np.take_along_axis(self._past, (index + 1)[:, None, :], axis=1)[:, 0]
            true = newer + share * (np.take_along_axis(self._past, index[:, None, :], axis=1)[:, 0] - newer)
        return self.fields.scale * true + self.fields.bias
