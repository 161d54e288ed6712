"""Many worlds of one project, stepped together: commands in, mapped measurements out."""

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from gapless.core.episode import Source
from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Start, Step
from gapless.core.signal import Array
from gapless.sim.active_layers.active_layer import switch_on
from gapless.sim.active_layers.all_layers import ActiveLayers
from gapless.sim.blueprint import CompiledProject
from gapless.sim.realism import signal_path
from gapless.sim.realism.draws import Bits
from gapless.sim.targets import driven_joint, engine_lag_remainder, is_filter, is_position_servo, resolve
from gapless.sim.targets.target import Fields

MAX_WORLDS_ON_ONE_THREAD = 64  # with layers on efforts: waking other threads takes longer than a physics step

MAX_RECORDED = 2_000_000  # numbers that one call of the engine is given and records, at most: 16 MB


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
        project, model = blueprint.project, blueprint.model
        self.blueprint, self.space, self.num_worlds, self.rate_hz = blueprint, space, num_worlds, project.rate_hz
        self.command_names, self.measurement_names = project.command_names, project.measurement_names
        self._everyone = np.arange(num_worlds)
        self._targets = [resolve(p.target, project, model) for p in space.parameters]
        # `*` is written first, so that names win, whatever the order of the space
        self._order = sorted(range(len(space)), key=lambda k: (self._targets[k].turn, not self._targets[k].shared))
        knobs = [target.knob for target in self._targets if target.knob]
        if num_worlds <= MAX_WORLDS_ON_ONE_THREAD and any(knob.layer.acts_on == "effort" for knob in knobs):
            num_threads = 1
        self.batch = Batch(model, num_worlds, num_threads)
        self.fields = Fields(model, self.batch, len(self.measurement_names), switch_on(knobs, num_worlds))
        self._low, self._high = blueprint.command_limits()
        self._actuators = list(blueprint.actuator_ids)
        delays_s = sorted(p.high for p in space.parameters if p.target.endswith("/delay"))
        longest_s = sum(delays_s[-2:])  # one of its own, one shared
        self._length = signal_path.history_length(longest_s, blueprint.interval_s)
        self._held = np.zeros((num_worlds, self._length, model.nu))  # the last commands sent, the newest last
        self._true_readings = np.zeros((num_worlds, self._length, len(self.measurement_names)))
        self._delay_plan: signal_path.DelayPlan | None = None
        self._reading_plan: signal_path.DelayPlan | None = None
        self._lag_remainder: Array | None = None
        self._lag_output = np.zeros((num_worlds, model.nu))
        self._readings_late = any(t.startswith("measurement/") and t.endswith("/delay") for t in space.targets)
        self._has_backlash = False
        self._layers = ActiveLayers(blueprint, self.batch, self.fields, place)
        self._noise: Array | None = None
        if noisy:
            self._noise = np.array([item.noise or 0.0 for item in project.measurements])
            for layer in self._layers.on_readings:
                self._noise[layer.columns if layer.layer.name == "noise" else []] = 0.0  # a layer has it
        self._rng, self._noise_from_layers = np.random.default_rng(0), False
        self._engine_delays = [(a, int(n)) for a, n in enumerate(model.actuator_history[:, 0]) if n]
        driven = [(a, driven_joint(model, a)) for a in range(model.nu) if is_position_servo(model, a)]
        self._servos = [(actuator, joint) for actuator, joint in driven if joint is not None]
        self._engine_lags = [a for a in range(model.nu) if is_filter(model, a)]
        self._control = self.batch.bind("ctrl")
        blueprint.reader.read(self.batch)  # registers the fields it reads
        self.batch.reset()

    def set_parameters(self, rows: Array, ids: NDArray[np.intp] | None = None) -> None:
        """Gives worlds their rows, (num_ids, num_parameters); the state is left as it is.

        The worlds are first restored to the model as written, so that nothing of the rows before remains.
        """
        blueprint, fields = self.blueprint, self.fields
        which = self._everyone if ids is None else ids
        fields.restore(which)
        for k in self._order:
            self._targets[k].write(fields, rows[:, k])
        if self._layers.any:
            self._layers.update(which)
        if fields.needs_constants:
            self.batch.set_const(np.sort(which))
        self._delay_plan = self._reading_plan = self._lag_remainder = None
        if fields.delay_s.any():
            self._delay_plan = signal_path.plan_delay(
                fields.delay_s, blueprint.interval_s, blueprint.num_substeps, self._length
            )
        if fields.reading_delay_s.any():
            self._reading_plan = signal_path.plan_delay(fields.reading_delay_s, blueprint.interval_s, 1, self._length)
        if fields.lag_s.any():
            self._lag_remainder = signal_path.lag_remainder(fields.lag_s, blueprint.model.opt.timestep)
        self._has_backlash = bool(fields.backlash.any())

    def reset(self, start: Start, rng: np.random.Generator, ids: NDArray[np.intp] | None = None) -> Array:
        """Begins anew from `start`, at rest; see `World.reset`."""
        self._rng, self._noise_from_layers = rng, False
        which = self._everyone if ids is None else ids
        self.batch.reset(np.sort(which), stage=0)
        qpos = self.batch.bind("qpos")
        for name, values in start.positions.items():
            address = int(self.blueprint.model.joint(name).qposadr[0])
            qpos[which, address : address + values.shape[1]] = values
        resting = self._resting_commands()
        if self._layers.any:
            self._layers.reset(which, rng)
            self._layers.begin(resting, which)
        return self._begin(which, resting[which, None], 0.0)

    def restart(
        self, qpos: Array, qvel: Array, command_history: Array, rate: Array | float = 0.0, identity: Bits | None = None
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
        self._noise_from_layers = identity is not None
        self.batch.reset(stage=0)
        self.batch.bind("qpos")[:] = qpos
        self.batch.bind("qvel")[:] = qvel
        resting = self._resting_commands()
        if self._layers.any:
            self._layers.begin_prediction(identity)
            self._layers.begin(resting, None)
        return self._begin(self._everyone, self._apply_to_past(command_history, resting), rate)

    def step(self, requested_command: Array) -> Step:
        """Advances one control interval; see `World.step`."""
        applied = np.clip(requested_command, self._low, self._high)
        return Step(self._advance(applied[:, None])[:, 0], applied)

    def rollout(self, commands: Array, forces: Array | None = None) -> Array:
        """Returns the readings after each of some commands, (num_worlds, num_intervals, num_measurements).

        The same as calling `step` for each, in few calls of the engine where nothing has to act between its steps.

        Args:
            commands: (num_worlds, num_intervals, num_commands) in model units.
            forces: (num_worlds, num_intervals, nv) pushes on degrees of freedom besides [N·m, N]; None for none.
        """
        model, at_once = self.blueprint.model, 1
        if not self._layers.any and self._noise is None and self.blueprint.reader.stage == mujoco.mjtStage.mjSTAGE_NONE:
            per_interval = self.num_worlds * self.blueprint.num_substeps * (model.nu + model.nq + model.nv)
            at_once = max(1, MAX_RECORDED // per_interval)
        applied = np.clip(commands, self._low, self._high)
        some = [slice(k, k + at_once) for k in range(0, commands.shape[1], at_once)]
        parts = [self._advance(applied[:, k], None if forces is None else forces[:, k]) for k in some]
        return np.concatenate(parts, axis=1)

    def _advance(self, applied: Array, forces: Array | None = None) -> Array:
        """Returns the readings after each of some commands, (num_worlds, num_intervals, num_measurements).

        `applied` are commands within limits, (num_worlds, num_intervals, num_commands): several only where nothing
        acts between intervals, see `rollout`, also for `forces`.
        """
        num_intervals, num_substeps = applied.shape[1], self.blueprint.num_substeps
        before = self._held[:, -1]
        sent = self._add_offsets(applied, before)
        if self._layers.any:
            sent[:, 0] = self._layers.apply_to_command(sent[:, 0])
        self._take_up_play(before, sent)
        held = np.concatenate([self._held[:, 1:], sent], axis=1)
        self._held[:] = held[:, -self._length :]
        if self._delay_plan is None:
            controls = np.repeat(sent, num_substeps, axis=1)
        else:
            controls = signal_path.apply_delay(held, self._delay_plan, num_intervals)
        if self._lag_remainder is not None:
            controls = signal_path.apply_lag(controls, self._lag_output, self._lag_remainder)
            self._lag_output = controls[:, -1].copy()
        true = self._run_engine(controls, num_intervals, forces)
        if self._readings_late:
            true = np.concatenate([self._true_readings[:, 1:], true], axis=1)
            self._true_readings[:] = true[:, -self._length :]
        reading = self._distort(true, num_intervals)
        return self._layers.apply_to_reading(reading[:, 0])[:, None] if self._layers.on_readings else reading

    def _run_engine(self, controls: Array, num_intervals: int, forces: Array | None = None) -> Array:
        """Returns the true values after each interval, (num_worlds, num_intervals, num_measurements).

        `controls` is what reaches the actuators in each physics step, (num_worlds, num_intervals * num_substeps, nu);
        `forces` push on degrees of freedom, see `rollout`.
        """
        num_substeps, reader = self.blueprint.num_substeps, self.blueprint.reader
        if num_intervals > 1:
            spec = mujoco.mjtState.mjSTATE_CTRL.value
            if forces is not None:
                spec |= mujoco.mjtState.mjSTATE_QFRC_APPLIED.value
                controls = np.concatenate([controls, np.repeat(forces, num_substeps, axis=1)], axis=2)
            records = self.batch.rollout(controls.shape[1], controls, spec, record=("qpos", "qvel"))
            ends = {str(name): record[:, num_substeps - 1 :: num_substeps] for name, record in records.items()}
            return reader.read_records(ends)
        if forces is not None:
            self.batch.bind("qfrc_applied")[:] = self._layers.push = forces[:, 0]
        if self._layers.any:
            self._layers.apply_to_surroundings()
        if self._layers.on_efforts:
            for k in range(num_substeps):
                self._control[:] = controls[:, k]
                self._layers.apply_to_efforts(k)
                self.batch.step()
        else:
            self.batch.rollout(num_substeps, controls, record=())
        return reader.read(self.batch)[:, None]

    def _add_offsets(self, applied: Array, others: Array) -> Array:
        """Returns what is sent to all actuators, (num_worlds, num_intervals, nu): zero offsets added to commands.

        `others`, (num_worlds, nu), is sent to those without a command.
        """
        sent = np.repeat(others[:, None], applied.shape[1], axis=1)
        sent[:, :, self._actuators] = applied + self.fields.target_offset[:, None, self._actuators]
        return sent

    def _take_up_play(self, before: Array, sent: Array) -> None:
        """Puts commands through backlash, in place; `before`, (num_worlds, nu), is where it stood."""
        width = self.fields.backlash
        for k in range(sent.shape[1] if self._has_backlash else 0):
            sent[:, k] = np.where(width > 0, signal_path.apply_backlash(before, sent[:, k], width), sent[:, k])
            before = sent[:, k]

    def _apply_to_past(self, command_history: Array, resting: Array) -> Array:
        """Returns past commands after limits, zero offset, layers and play, (num_worlds, num_past, nu), newest last.

        Without anything that remembers, only the newest ones, which a delay may still hold.
        """
        if not command_history.shape[1]:
            return resting[:, None]
        remembers = self._has_backlash or self._layers.on_commands or self._engine_delays or self._engine_lags
        if not remembers and self._lag_remainder is None:
            command_history = command_history[:, -self._length :]
        past = self._add_offsets(np.clip(command_history, self._low, self._high), resting)
        if self._layers.on_commands:
            past = self._layers.apply_to_past(past)
        self._take_up_play(past[:, 0].copy(), past)
        return past

    def _resting_commands(self) -> Array:
        """Returns the commands that servos hold at the start, (num_worlds, nu): where their joints are."""
        model, commands = self.blueprint.model, np.zeros((self.num_worlds, self.blueprint.model.nu))
        for actuator, joint in self._servos:
            angle = self.batch.bind("qpos")[:, model.jnt_qposadr[joint]]
            commands[:, actuator] = model.actuator_gear[actuator, 0] * angle
        return commands

    def _write_engine_history(self, ids: NDArray[np.intp], past: Array) -> None:
        """Gives actuators whose delay or lag is part of the model the commands that came before.

        `past` is (num_ids, any number, nu), one command per control interval, the newest last.
        """
        model, num_substeps = self.blueprint.model, self.blueprint.num_substeps
        longest = max((count for _, count in self._engine_delays), default=0)
        each = np.repeat(past[:, -(-(-longest // num_substeps) or 1) :], num_substeps, axis=1)
        for actuator, count in self._engine_delays:
            begin = int(model.actuator_historyadr[actuator]) + 2 + count  # after the times
            rows = np.clip(each.shape[1] - count + np.arange(count), 0, None)
            self.batch.bind("history")[ids, begin : begin + count] = each[:, rows, actuator]
        if self._engine_lags:
            remainder = np.zeros((len(ids), model.nu))
            lag_s = self.fields.of("actuator_dynprm")[ids, :, 0]
            remainder[:, self._engine_lags] = engine_lag_remainder(model, lag_s)[:, self._engine_lags]
            delay_s = model.actuator_delay + self.fields.delay_s[ids]
            state = signal_path.settle_lag(past, remainder, delay_s, self.blueprint.interval_s, num_substeps)
            for actuator in self._engine_lags:
                self.batch.bind("act")[ids, model.actuator_actadr[actuator]] = state[:, actuator]

    def _begin(self, ids: NDArray[np.intp], past: Array, rate: Array | float) -> Array:
        """Gives some worlds their past, (num_ids, any number, nu), and returns the readings; see `restart`."""
        recent = np.clip(past.shape[1] - self._length + np.arange(self._length), 0, None)
        self._held[ids] = past[:, recent]
        arriving = self._held[:, -1]
        if self._lag_remainder is not None:
            interval_s, num_substeps = self.blueprint.interval_s, self.blueprint.num_substeps
            remainder, delay_s = self._lag_remainder[ids], self.fields.delay_s[ids]
            self._lag_output[ids] = signal_path.settle_lag(past, remainder, delay_s, interval_s, num_substeps)
            arriving = self._lag_output
        self._write_engine_history(ids, past)
        self._control[ids] = arriving[ids]
        true = self.blueprint.reader.read(self.batch, np.sort(ids))[:, None]
        if self._readings_late:
            age_s = np.arange(self._length - 1, -1, -1)[:, None] / self.rate_hz
            slope = np.broadcast_to(rate, true[:, 0].shape)[ids, None, :]
            self._true_readings[ids] = true[ids] - age_s * slope
            true = self._true_readings
        reading = self._distort(true, 1)[:, 0]
        return self._layers.begin_readings(reading, ids) if self._layers.on_readings else reading

    def _distort(self, true: Array, num_intervals: int) -> Array:
        """Returns what the sensors say in the last intervals: late, scaled, biased and noisy.

        `true` are true values, (num_worlds, at least num_intervals, num_measurements), with those before if some are
        late.
        """
        if self._reading_plan is not None:
            true = signal_path.apply_delay(true, self._reading_plan, num_intervals)
        reading = self.fields.scale[:, None] * true[:, -num_intervals:] + self.fields.bias[:, None]
        if self._noise is not None:
            if self._noise_from_layers:
                reading[:, 0] += self._noise * self._layers.draw_noise(reading.shape[2])
            else:
                reading += self._noise * self._rng.standard_normal(reading.shape)
        return reading
