"""Reality for `diagnose.py`: plain MuJoCo loops around an edited model. Nothing of gapless simulates here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import gap_motions
import mujoco
import numpy as np
from gap_robots import Robot

from gapless.core.signal import Array

NUM_EPISODES = 5
BEFORE_S = 0.8  # every episode begins this much before its log
WINDOW_S = 0.3  # of predictions that tell how visible a cause is

Effect = Callable[[mujoco.MjModel, mujoco.MjData, float], None]
"""(model, data, time in the log [s]): changes either, before a step."""
Step = Callable[[mujoco.MjModel, mujoco.MjData, int], None]
"""(model, data, number of steps): moves the state on by some time steps of the model."""
Places = dict[str, float | None]
"""Parameter target that expresses a cause -> its true value; None where the place is right but the form is another."""
Spoil = Callable[[Array, np.random.Generator], Array]
"""(readings of a log with their noise, rng) -> what is logged of them, (num_rows, num_columns)."""


def step_mujoco(model: mujoco.MjModel, data: mujoco.MjData, num_steps: int) -> None:
    """Moves a state on by MuJoCo itself."""
    mujoco.mj_step(model, data, nstep=num_steps)


@dataclass(frozen=True)
class Reality:
    """What sets reality apart from the model.

    Attributes:
        edits: Changes of the model before it is compiled.
        gravity: In the frame of the base [m/s^2].
        command_delay_s: From a command to its effect.
        reading_delay_s: From a state to its reading.
        bias: Column -> added to its reading.
        scale: Column -> factor on its reading, before the bias.
        load: Joint -> constant force on it [N·m, N].
        seconds: Joint -> name of a second joint on the same axis: play, or a coupling that slips.
        motor_side: Whether a joint with a second one is read before it, at the motor.
        slow_effect: What changes little from one control interval to the next.
        effect: What has to act at every step.
        timestep_s: Of reality.
        jitter_s: Commands arrive late by this times |n|, n standard normal, drawn anew for each.
        spoil: What happens to readings on their way into a log.
        engine: Makes what steps a model.
        places: Parameter target -> its true value, of all targets that express what is changed here.
    """

    edits: tuple[Callable[[mujoco.MjSpec], None], ...] = ()
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    command_delay_s: float = 0.0
    reading_delay_s: float = 0.0
    bias: Mapping[str, float] = field(default_factory=dict[str, float])
    scale: Mapping[str, float] = field(default_factory=dict[str, float])
    load: Mapping[str, float] = field(default_factory=dict[str, float])
    seconds: Mapping[str, str] = field(default_factory=dict[str, str])
    motor_side: bool = False
    slow_effect: Effect | None = None
    effect: Callable[[mujoco.MjModel, float], Effect] | None = None
    """(model, time step [s]) -> an effect with a memory of its own."""
    timestep_s: float = 0.002
    jitter_s: float = 0.0
    spoil: Spoil | None = None
    engine: Callable[[mujoco.MjModel], Step] = lambda model: step_mujoco
    places: Places = field(default_factory=dict[str, float | None])

    def model(self, robot: Robot) -> mujoco.MjModel:
        """Returns the true model."""
        spec = mujoco.MjSpec.from_string(robot.text())
        for edit in self.edits:
            edit(spec)
        spec.option.timestep = self.timestep_s
        spec.option.gravity = self.gravity
        return spec.compile()


@dataclass(frozen=True)
class Log:
    """One episode without noise.

    Attributes:
        commands: (num_rows, num_commands), held from a row's time on.
        states: (num_rows, nq + nv) of the model as written, as they are read: with bias, scale and delay.
        efforts: (num_actuators,) largest force of each.
    """

    commands: Array
    states: Array
    efforts: Array


def readings(robot: Robot, model: mujoco.MjModel, states: Array) -> Array:
    """Returns the columns of states of the model as written, (..., num_columns)."""
    found = [states[..., column.index(model)] for column in robot.columns]
    for k, column in enumerate(robot.columns):
        if column.quantity == "yaw":
            w, x, y, z = np.moveaxis(states[..., column.index(model) : column.index(model) + 4], -1, 0)
            found[k] = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return np.stack(found, axis=-1)


def play(robot: Robot, reality: Reality, split: str, seed: int, duration_s: Array) -> list[Log]:
    """Returns the episodes of one reality, without noise; the motions depend on split and seed alone."""
    families = gap_motions.families(split, np.random.default_rng([seed, 1]), len(duration_s))
    return [
        _Episode(robot, reality, np.random.default_rng([seed, 2, k])).run(family, float(duration_s[k]))
        for k, family in enumerate(families)
    ]


class _Episode:
    """One run of a true model under a pilot."""

    def __init__(self, robot: Robot, reality: Reality, rng: np.random.Generator) -> None:
        self.robot, self.reality, self.rng = robot, reality, rng
        self.written = robot.model()
        self.model = reality.model(robot)
        self.data = mujoco.MjData(self.model)
        self.steps = round(1 / (robot.rate_hz * reality.timestep_s))
        self.late = round(reality.command_delay_s / reality.timestep_s)
        self.stale = round(reality.reading_delay_s / reality.timestep_s)
        for joint, load in reality.load.items():
            self.data.qfrc_applied[self.model.joint(joint).dofadr[0]] = load
        self.effect = reality.effect(self.model, reality.timestep_s) if reality.effect else None
        self.step = reality.engine(self.model)
        self.arrivals, self.luck = dict[int, int](), rng.spawn(1)[0]
        self.efforts = np.zeros(self.model.nu)

    def run(self, family: str, duration_s: float) -> Log:
        """Plays one episode."""
        rows, before = round(duration_s * self.robot.rate_hz), round(BEFORE_S * self.robot.rate_hz)
        pilot = self.robot.pilot(self.rng, family, np.arange(rows) / self.robot.rate_hz)
        self._place()
        first = self._read()
        seen: dict[int, Array] = {}
        commands: dict[int, Array] = {}
        for row in range(-before, rows):
            at = row * self.steps
            if not self.stale:
                seen[at] = self._read()
            read = seen.get(at - self.stale, first)
            commands[row] = pilot(max(row, 0), readings(self.robot, self.written, read), self._box())
            self._advance(at, commands, seen)
        states = np.stack([seen[row * self.steps - self.stale] for row in range(rows)])
        return Log(np.stack([commands[row] for row in range(rows)]), states, self.efforts)

    def _advance(self, at: int, commands: Mapping[int, Array], seen: dict[int, Array]) -> None:
        """Runs one control interval, and takes note of states that will be read."""
        data, oldest = self.data, min(commands)
        cuts = sorted({0, self.late % self.steps, -self.stale % self.steps, self.steps})
        if self.reality.slow_effect:
            self.reality.slow_effect(self.model, data, at * self.reality.timestep_s)
        if self.reality.jitter_s:
            wait_s = self.reality.jitter_s * abs(self.luck.standard_normal())
            self.arrivals[at // self.steps] = at + self.late + round(wait_s / self.reality.timestep_s)
            cuts = list(range(self.steps + 1))
        for begin, end in pairwise(cuts):
            if self.stale and begin == -self.stale % self.steps:
                seen[at + begin] = self._read()
            row = (at + begin - self.late) // self.steps
            if self.reality.jitter_s:  # the newest that has arrived
                row = max((r for r, due in self.arrivals.items() if due <= at + begin), default=oldest)
            data.ctrl[:] = commands[max(row, oldest)]
            if self.effect is None:
                self.step(self.model, data, end - begin)
            else:
                for step in range(begin, end):
                    self.effect(self.model, data, (at + step) * self.reality.timestep_s)
                    self.step(self.model, data, 1)
            if at >= 0:
                np.maximum(self.efforts, np.abs(data.actuator_force), out=self.efforts)

    def _place(self) -> None:
        """Puts the robot where its episode begins."""
        rng, data, robot = self.rng, self.data, self.robot
        starts = {"shoulder": -0.3, "elbow": 1.0} if robot.name in ("arm", "torquearm") else {}
        if robot.box is not None:
            place, yaw = rng.uniform(-0.05, 0.05, 2), rng.uniform(-np.pi, np.pi)
            address = int(self.model.jnt_qposadr[self.model.body(robot.box).jntadr[0]])
            data.qpos[address : address + 2] = place
            data.qpos[address + 3 : address + 7] = [np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)]
            side = rng.uniform(-np.pi, np.pi)
            starts = {"tip_x": place[0] + 0.14 * np.cos(side), "tip_y": place[1] + 0.14 * np.sin(side)}
        for joint, value in starts.items():
            data.qpos[self.model.joint(joint).qposadr[0]] = value
        mujoco.mj_forward(self.model, data)

    def _box(self) -> Array:
        """Returns where the box truly is: x, y [m] and yaw [rad]."""
        if self.robot.box is None:
            return np.zeros(3)
        address = int(self.model.jnt_qposadr[self.model.body(self.robot.box).jntadr[0]])
        w, x, y, z = self.data.qpos[address + 3 : address + 7]
        return np.array(
            [*self.data.qpos[address : address + 2], np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))]
        )

    def _read(self) -> Array:
        """Returns the state as sensors see it, in the coordinates of the model as written."""
        written, model, data = self.written, self.model, self.data
        state = np.zeros(written.nq + written.nv)
        for number in range(written.njnt):
            name = written.joint(number).name
            here, there = model.joint(name), written.joint(number)
            sizes = len(there.qpos0), 6 if len(there.qpos0) == 7 else 1
            q, v = int(there.qposadr[0]), written.nq + int(there.dofadr[0])
            state[q : q + sizes[0]] = data.qpos[here.qposadr[0] : here.qposadr[0] + sizes[0]]
            state[v : v + sizes[1]] = data.qvel[here.dofadr[0] : here.dofadr[0] + sizes[1]]
            second = self.reality.seconds.get(name)
            if second is not None and not self.reality.motor_side:
                state[q] += data.qpos[model.joint(second).qposadr[0]]
                state[v] += data.qvel[model.joint(second).dofadr[0]]
        return self._sense(state)

    def _sense(self, state: Array) -> Array:
        """Returns a state with the scale and bias of its columns; an encoder's speeds have its scale, too."""
        for column in self.robot.columns:
            scale, bias = self.reality.scale.get(column.name, 1.0), self.reality.bias.get(column.name, 0.0)
            if column.quantity == "velocity":
                scale = self.reality.scale.get(column.name.replace("v_", "q_"), 1.0)
            if scale != 1.0 or bias:
                index = column.index(self.written)
                state[index] = scale * state[index] + bias
        return state


def visibility(robot: Robot, model: mujoco.MjModel, logs: list[Log]) -> dict[str, float]:
    """Returns column -> error of the model's predictions from the readings, over the column's noise [1].

    Predictions restart from the state as it is read every `WINDOW_S`; the error is the root mean square over all.
    """
    data, rows = mujoco.MjData(model), round(WINDOW_S * robot.rate_hz)
    steps = round(1 / (robot.rate_hz * model.opt.timestep))
    errors = []
    for log in logs:
        seen = readings(robot, model, log.states)
        for start in range(0, len(seen) - rows, rows):
            mujoco.mj_resetData(model, data)
            data.qpos[:], data.qvel[:] = np.split(log.states[start], [model.nq])
            said = []
            for row in range(start, start + rows):
                data.ctrl[:] = log.commands[row]
                mujoco.mj_step(model, data, nstep=steps)
                said.append(np.r_[data.qpos, data.qvel])
            errors.append(readings(robot, model, np.array(said)) - seen[start + 1 : start + 1 + rows])
    for k, column in enumerate(robot.columns):
        if column.quantity == "yaw":
            for error in errors:
                error[:, k] = (error[:, k] + np.pi) % (2 * np.pi) - np.pi
    size = np.sqrt(np.mean(np.concatenate(errors) ** 2, axis=0))
    return {column.name: float(s / column.noise) for column, s in zip(robot.columns, size, strict=True)}
