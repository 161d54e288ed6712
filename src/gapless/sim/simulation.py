"""Many worlds of one project, stepped together: commands in, mapped measurements out."""

import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from gapless.core.episode import Source
from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Start, Step
from gapless.core.signal import Array
from gapless.sim.active_layers.stack import Stack
from gapless.sim.blueprint import CompiledProject
from gapless.sim.realism.actuator import backlash, kept, lagged
from gapless.sim.realism.draws import Bits
from gapless.sim.realism.latency import DelayPlan, Past, delayed, history_length, plan_delay, settled
from gapless.sim.targets import driven_joint, engine_keep, is_filter, is_position_servo, resolve, write_order
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.use import uses_of

FEW_WORLDS = 64


class Simulation:
    """The model of a project with one row of parameters per world. A `World`.

    The signal path of a command is: limits, zero offset, layers, backlash, delay, lag, engine; that of a measurement:
    engine, delay, scale, bias, noise, layers.
    """

    source: Source = "sim"

    def __init__(
        self,
        blueprint: CompiledProject,
        num_worlds: int,
        space: ParameterSpace,
        num_threads: int = 0,
        *,
        noisy: bool = False,
        place: int | None = None,
    ) -> None:
        """Makes worlds that are as the model was written until `set_parameters`.

        Args:
            blueprint: The compiled project.
            num_worlds: How many worlds.
            space: The parameters that rows will hold.
            num_threads: Threads to step on; 0 for one per processor.
            noisy: Whether readings carry the noise that the project states; for policies, not for predictions.
            place: Number of the place where all worlds and runs are, whose floor has one pattern; None for a place of
                its own for each.
        """
        project = blueprint.project
        self.blueprint = blueprint
        self.space = space
        self.num_worlds = num_worlds
        self.rate_hz = project.rate_hz
        self.command_names = project.command_names
        self.measurement_names = project.measurement_names
        self._targets = [resolve(p.target, project, blueprint.model) for p in space.parameters]
        in_substeps = any(target.knob and target.knob.layer.acts_on == "effort" for target in self._targets)
        if in_substeps and num_worlds <= FEW_WORLDS:
            num_threads = 1  # waking others takes longer than a physics step
        self.batch = Batch(blueprint.model, num_worlds, num_threads)
        self.fields = Fields(blueprint.model, num_worlds, len(self.measurement_names))
        self.fields.batch = self.batch
        self.fields.uses = uses_of([target.knob for target in self._targets if target.knob], num_worlds)
        self._order = write_order(self._targets)
        self._low, self._high = blueprint.command_limits()
        self._actuators = list(blueprint.actuator_ids)
        delays_s = sorted(p.high for p in space.parameters if p.target.endswith("/delay"))
        self._length = history_length(sum(delays_s[-2:]), blueprint.interval_s)  # one of its own, one shared
        self._held = Past(num_worlds, self._length, blueprint.model.nu)
        self._seen = Past(num_worlds, self._length, len(self.measurement_names))
        self._plan: DelayPlan | None = None
        self._keep: Array | None = None
        self._lagging = np.zeros((num_worlds, blueprint.model.nu))
        self._may_be_late = any(t.startswith("measurement/") and t.endswith("/delay") for t in space.targets)
        self._play = False
        self._noise = np.array([item.noise or 0.0 for item in project.measurements]) if noisy else None
        self._stack = Stack(blueprint, self.batch, self.fields, place)
        if self._noise is not None:
            self._noise[self._stack.noisy_columns()] = 0.0
        self._rng, self._drawn = np.random.default_rng(0), False
        self._engine_keeps = [(a, int(n)) for a, n in enumerate(blueprint.model.actuator_history[:, 0]) if n]
        self._engine_lags = [a for a in range(blueprint.model.nu) if is_filter(blueprint.model, a)]
        self._control = self.batch.bind("ctrl")
        blueprint.reader.read(self.batch)  # registers the fields it reads
        self.batch.reset()

    def set_parameters(self, rows: Array, ids: NDArray[np.intp] | None = None) -> None:
        """Gives worlds their rows, (num_ids, num_parameters); the state is left as it is."""
        which = np.arange(self.num_worlds) if ids is None else ids
        self.fields.restore(which)
        for k in self._order:
            self._targets[k].write(self.fields, rows[:, k])
        if self._stack.on:
            self._stack.set(which)
        if self.fields.needs_constants:
            self.batch.set_const(np.sort(which))
        self.plan_delays()
        self._play = bool(self.fields.backlash.any())

    def reset(self, start: Start, rng: np.random.Generator, ids: NDArray[np.intp] | None = None) -> Array:
        """Begins anew from `start`, at rest; see `World.reset`."""
        self._rng, self._drawn = rng, False
        which = np.arange(self.num_worlds) if ids is None else ids
        model = self.blueprint.model
        self.batch.reset(np.sort(which), stage=0)
        qpos = self.batch.bind("qpos")
        for name, values in start.positions.items():
            address = int(model.joint(name).qposadr[0])
            qpos[which, address : address + values.shape[1]] = values
        resting = self._resting(which)
        if self._stack.on:
            self._stack.reset(which, rng)
            self._stack.begin(self._resting(np.arange(self.num_worlds))[:, 0], which)
        self._held.fill(which, resting)
        self._lagging[which] = resting[:, 0]
        self._tell_engine(which, resting)
        return self._begin_reading(which, 0.0)

    def restart(
        self,
        qpos: Array,
        qvel: Array,
        command_history: Array,
        rate: Array | float = 0.0,
        identity: Bits | None = None,
    ) -> Array:
        """Puts every world in a state, with the commands that came before, and returns measurements.

        Args:
            qpos: (num_worlds, nq).
            qvel: (num_worlds, nv).
            command_history: (num_worlds, num_past, num_commands) the last commands, in model units.
            rate: (num_worlds, num_measurements) how fast the true values were changing [unit/s]: what late
                readings show first.
            identity: (num_worlds,) whose random numbers each world has, where layers are on; None for their medians.
        """
        self._drawn = identity is not None
        self.batch.reset(stage=0)
        self.batch.bind("qpos")[:] = qpos
        self.batch.bind("qvel")[:] = qvel
        everyone = np.arange(self.num_worlds)
        if self._stack.on:
            self._stack.predict(identity)
            self._stack.begin(self._resting(everyone)[:, 0], None)
        past = self._past(command_history)
        recent = np.clip(past.shape[1] - self._length + np.arange(self._length), 0, None)
        self._held.fill(everyone, past[:, recent])
        if self._keep is not None:
            self._lagging = self._settled(past, self._keep, self.fields.delay_s)
        self._tell_engine(everyone, past)
        return self._begin_reading(everyone, rate)

    def step(self, requested_command: Array) -> Step:
        """Advances one control interval; see `World.step`."""
        applied = self.hold(requested_command)
        if self._stack.on:
            self._stack.surround()
        if self._stack.on_efforts:
            self._step_with_efforts()
        elif self._plan is None and self._keep is None:
            self._control[:] = self._held.last
            self.batch.step(nstep=self.blueprint.num_substeps)
        else:
            self.batch.rollout(self.blueprint.num_substeps, self.substep_controls(), record=())
        return Step(self.read(), applied)

    def _step_with_efforts(self) -> None:
        """Advances one control interval, physics step by physics step: layers act on efforts before each."""
        late = self._plan is not None or self._keep is not None
        controls = self.substep_controls() if late else None
        self._control[:] = self._held.last
        for k in range(self.blueprint.num_substeps):
            if controls is not None:
                self._control[:] = controls[:, k]
            self._stack.push(k)
            self.batch.step()

    def hold(self, requested_command: Array) -> Array:
        """Puts commands through limits, offset and play into the history; returns what was applied."""
        applied = np.clip(requested_command, self._low, self._high)
        before = self._held.last
        sent = before.copy()
        sent[:, self._actuators] = applied + self.fields.target_offset[:, self._actuators]
        if self._stack.on:
            sent = self._stack.command(sent)
        if self._play:
            width = self.fields.backlash
            sent = np.where(width > 0, backlash(before, sent, width), sent)
        self._held.push(sent)
        return applied

    def plan_delays(self) -> None:
        """Takes note of the delays and lags in force; call after changing `fields.delay_s` or `fields.lag_s`."""
        blueprint, delay_s, lag_s = self.blueprint, self.fields.delay_s, self.fields.lag_s
        self._plan = self._keep = None
        if delay_s.any():
            self._plan = plan_delay(delay_s, blueprint.interval_s, blueprint.num_substeps, self._length)
        if lag_s.any():
            self._keep = kept(lag_s, blueprint.model.opt.timestep)

    def substep_controls(self) -> Array:
        """Returns what reaches the actuators in each substep, (num_worlds, num_substeps, num_actuators).

        To be called once per control interval: lags move on.
        """
        if self._plan is None:
            controls = np.repeat(self._held.last[:, None], self.blueprint.num_substeps, axis=1)
        else:
            controls = delayed(self._held.rows, self._plan)
        if self._keep is not None:
            controls = lagged(controls, self._lagging, self._keep)
            self._lagging = controls[:, -1].copy()
        return controls

    def read(self) -> Array:
        """Returns what the sensors say now, (num_worlds, num_measurements), in model units."""
        true = self.blueprint.reader.read(self.batch)
        if self._may_be_late:
            self._seen.push(true)
        reading = self._show(true)
        return self._stack.read(reading) if self._stack.on_readings else reading

    def _past(self, command_history: Array) -> Array:
        """Returns past commands after limits, zero offset and play, (num_worlds, num_past, nu), the newest last.

        Without play or lag only the newest ones, which a delay may still hold.
        """
        resting = self._resting(np.arange(self.num_worlds))
        if not command_history.shape[1]:
            return resting
        remembers = self._play or self._stack.on_commands or self._engine_keeps or self._engine_lags
        if not remembers and self._keep is None:
            command_history = command_history[:, -self._length :]
        past = np.repeat(resting, command_history.shape[1], axis=1)
        applied = np.clip(command_history, self._low, self._high)
        past[:, :, self._actuators] = applied + self.fields.target_offset[:, None, self._actuators]
        if self._stack.on_commands:
            past = self._stack.past(past)
        width = self.fields.backlash
        for k in range(1, past.shape[1] if self._play else 0):
            past[:, k] = np.where(width > 0, backlash(past[:, k - 1], past[:, k], width), past[:, k])
        return past

    def _settled(self, past: Array, keep: Array, delay_s: Array) -> Array:
        """Returns where lags stand after past commands, (num_worlds, nu)."""
        blueprint = self.blueprint
        return settled(past, keep, delay_s, blueprint.interval_s, blueprint.num_substeps)

    def _resting(self, ids: NDArray[np.intp]) -> Array:
        """Returns the commands that servos hold at the start, (num_ids, 1, nu): where their joints are."""
        model = self.blueprint.model
        commands = np.zeros((len(ids), 1, model.nu))
        qpos = self.batch.bind("qpos")
        for actuator in range(model.nu):
            joint = driven_joint(model, actuator)
            if joint is not None and is_position_servo(model, actuator):
                place = qpos[ids, model.jnt_qposadr[joint]]
                commands[:, 0, actuator] = model.actuator_gear[actuator, 0] * place
        return commands

    def _tell_engine(self, ids: NDArray[np.intp], past: Array) -> None:
        """Gives actuators whose delay or lag is part of the model the commands that came before.

        Args:
            ids: The worlds.
            past: (num_ids, any number, nu) one command per control interval, the newest last.
        """
        model, num_substeps = self.blueprint.model, self.blueprint.num_substeps
        longest = max((count for _, count in self._engine_keeps), default=0)
        each = np.repeat(past[:, -(-(-longest // num_substeps) or 1) :], num_substeps, axis=1)
        history = self.batch.bind("history") if self._engine_keeps else None
        for actuator, count in self._engine_keeps:
            begin = int(model.actuator_historyadr[actuator]) + 2 + count  # after the times
            rows = np.clip(each.shape[1] - count + np.arange(count), 0, None)
            history[ids, begin : begin + count] = each[:, rows, actuator]  # type: ignore[index]
        if self._engine_lags:
            keep = np.zeros((len(ids), model.nu))
            lag_s = self.fields.of("actuator_dynprm")[ids, :, 0]
            keep[:, self._engine_lags] = engine_keep(model, lag_s)[:, self._engine_lags]
            state = self._settled(past, keep, model.actuator_delay + self.fields.delay_s[ids])
            for actuator in self._engine_lags:
                self.batch.bind("act")[ids, model.actuator_actadr[actuator]] = state[:, actuator]

    def _begin_reading(self, ids: NDArray[np.intp], rate: Array | float) -> Array:
        self._control[ids] = self._held.last[ids] if self._keep is None else self._lagging[ids]
        true = self.blueprint.reader.read(self.batch, np.sort(ids))
        if self._may_be_late:
            age_s = np.arange(self._length - 1, -1, -1)[:, None] / self.rate_hz
            slope = np.broadcast_to(rate, true.shape)[ids, None, :]
            self._seen.fill(ids, true[ids, None, :] - age_s * slope)
        reading = self._show(true)
        return self._stack.first_reading(reading, ids) if self._stack.on_readings else reading

    def _show(self, true: Array) -> Array:
        """Returns what the sensors say: late, scaled and biased."""
        if self._may_be_late:
            late = self.fields.reading_delay_s * self.rate_hz
            older = np.minimum(np.floor(late).astype(np.intp) + 1, self._length - 1)
            share = late - (older - 1)
            index = self._length - 1 - older
            worlds, columns = np.arange(len(true))[:, None], np.arange(true.shape[1])
            rows = self._seen.rows
            newer = rows[worlds, index + 1, columns]
            true = newer + share * (rows[worlds, index, columns] - newer)
        reading = self.fields.scale * true + self.fields.bias
        if self._noise is not None:
            drawn = self._stack.noise(reading.shape[1]) if self._drawn else self._rng.standard_normal(reading.shape)
            reading += self._noise * drawn
        return reading
