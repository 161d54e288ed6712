"""Runs a policy on a task in any world: the same loop for simulation, twin and robot."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gapless.core.episode import Episode
from gapless.core.protocols import Judgement, Moment, Policy, Start, Task, World
from gapless.core.signal import Array, Flags, Indices, TimeSeries


class Memory:
    """The last observations and actions of each world, as one flat observation for the policy."""

    def __init__(self, num_worlds: int, history: int, observation_size: int, action_size: int) -> None:
        """Makes room for `history` observations, and the actions between them."""
        self._frames = np.zeros((num_worlds, history, observation_size + action_size))
        self._observation_size = observation_size

    @staticmethod
    def size(history: int, observation_size: int, action_size: int) -> int:
        """Returns the length of the stacked observation."""
        return history * (observation_size + action_size)

    def begin(self, observation: Array, ids: Indices | None = None) -> None:
        """Fills the memory of some worlds with their first observation and no action."""
        size = self._observation_size
        rows = np.arange(len(self._frames)) if ids is None else ids
        self._frames[rows, :, :size] = observation[:, None, :]
        self._frames[rows, :, size:] = 0.0

    def push(self, observation: Array, action: Array) -> None:
        """Adds what was seen after an action."""
        self._frames[:, :-1] = self._frames[:, 1:]
        self._frames[:, -1] = np.concatenate([observation, action], axis=1)

    def flatten(self) -> Array:
        """Returns what the policy sees, (num_worlds, history * (observation_size + action_size))."""
        return self._frames.reshape(len(self._frames), -1).copy()


def build_moment(world: World, measured: Array, command: Array, goal: Array, time_s: Array) -> Moment:
    """Returns what a task is shown of a world's measurements."""
    return Moment({name: measured[:, k] for k, name in enumerate(world.measurement_names)}, command, goal, time_s)


@dataclass(frozen=True)
class Runs:
    """Finished runs: one episode each, and whether each succeeded, (num_runs,) bool."""

    episodes: tuple[Episode, ...]
    success: Flags


def run_open(
    world: World,
    steer: Callable[[float, Array], Array],
    start: Start,
    rng: np.random.Generator,
    num_steps: int,
    *,
    units: tuple[tuple[str, ...], tuple[str, ...]],
    name: str,
) -> Episode:
    """Runs one motion in a world of one and returns what it showed.

    `steer` is given the time [s] and what was measured last and returns what to send, (1, num_commands); `units` are
    those of the commands and of the measurements.
    """
    times_s = np.arange(num_steps) / world.rate_hz
    measured, sent = [world.reset(start, rng)], list[Array]()
    for time_s in times_s:
        step = world.step(steer(float(time_s), measured[-1]))
        sent.append(step.applied_command)
        measured.append(step.measured)
    commands = TimeSeries(times_s, np.concatenate(sent), world.command_names, units[0])
    shown = TimeSeries(times_s, np.concatenate(measured[:-1]), world.measurement_names, units[1])
    return Episode(name, world.source, commands, shown)


def run_policy(
    world: World,
    task: Task,
    policy: Policy,
    rng: np.random.Generator,
    num_runs: int,
    *,
    units: tuple[tuple[str, ...], tuple[str, ...]],
    exploration: float = 0.0,
    name: str = "run",
    on_runs: Callable[[int], None] | None = None,
) -> Runs:
    """Runs a policy until `num_runs` runs are finished and returns them as episodes; worlds run side by side.

    Args:
        world: Where to run.
        task: What to do.
        policy: What chooses actions.
        rng: Source of the starts and of the world's randomness.
        num_runs: How many runs.
        units: Units of the commands and of the measurements.
        exploration: Size of a slow random walk added to the actions, so that more of the robot shows [1].
        name: Names of the episodes are this and a number.
        on_runs: Called with the number of runs finished so far.
    """
    episodes: list[Episode] = []
    while len(episodes) < num_runs:
        batch = _run_batch(world, task, policy, rng, exploration, units)
        names = (f"{name}{k:03d}" for k in range(len(episodes), num_runs))
        episodes += [replace(episode, name=own) for episode, own in zip(batch, names, strict=False)]
        if on_runs is not None:
            on_runs(len(episodes))
    return Runs(tuple(episodes), np.array([episode.outcome == "success" for episode in episodes]))


def _run_batch(
    world: World,
    task: Task,
    policy: Policy,
    rng: np.random.Generator,
    exploration: float,
    units: tuple[tuple[str, ...], tuple[str, ...]],
) -> list[Episode]:
    """Returns one run per world, without names."""
    num_worlds = world.num_worlds
    num_steps = round(task.duration_s * world.rate_hz)
    start = task.start(rng, num_worlds)
    command = task.first_command(start)
    measured = world.reset(start, rng)
    now = build_moment(world, measured, command, start.goal, np.zeros(num_worlds))
    memory = Memory(num_worlds, policy.history, task.observation_size, task.action_size)
    memory.begin(task.observe(now))
    all_measured, all_commands = [measured], list[Array]()
    length = np.full(num_worlds, num_steps, dtype=np.intp)
    alive = np.ones(num_worlds, dtype=bool)
    walk = np.zeros((num_worlds, task.action_size))
    success = np.zeros(num_worlds, dtype=bool)
    phase = np.zeros(num_worlds, dtype=np.intp)
    for k in range(num_steps):
        walk += -0.1 * walk + 0.45 * exploration * rng.standard_normal(walk.shape)
        action = np.clip(policy.act(memory.flatten()) + walk, -1.0, 1.0)
        step = world.step(task.command(action, now))
        measured, command = step.measured, step.applied_command
        now = build_moment(world, measured, command, start.goal, np.full(num_worlds, (k + 1) / world.rate_hz))
        judged: Judgement = task.judge(now, action)
        memory.push(task.observe(now), action)
        all_measured.append(measured)
        all_commands.append(command)
        success[alive] = judged.success[alive] & ~judged.failed[alive]
        phase[alive] = judged.phase[alive]
        length[alive & judged.failed] = k + 1
        alive &= ~judged.failed
        if not alive.any():
            break
    readings, commands = np.stack(all_measured), np.stack([*all_commands, all_commands[-1]])  # in force at the end
    episodes: list[Episode] = []
    for k in range(num_worlds):
        count = min(int(length[k]), len(all_commands)) + 1  # the moment after the last step decides the outcome
        times_s = np.arange(count) / world.rate_hz
        sent = TimeSeries(times_s, commands[:count, k], world.command_names, units[0])
        seen = TimeSeries(times_s, readings[:count, k], world.measurement_names, units[1])
        outcome, failed_in = ("success", None) if success[k] else ("failure", task.phases[int(phase[k])])
        episodes.append(Episode("", world.source, sent, seen, outcome, failed_in))
    return episodes
