"""What a world, a task and a policy must offer. Everything is batched: axis 0 is num_worlds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gapless.core.episode import Source
from gapless.core.signal import Array, Flags, Indices

Progress = Callable[[str, float], None]  # called with what is being done and how far it is, in [0, 1]


@dataclass(frozen=True)
class Start:
    """How a run begins."""

    positions: Mapping[str, Array]  # joint -> (num_worlds, num_coordinates) [rad, m; free joints x y z qw qx qy qz]
    goal: Array  # (num_worlds, goal_size) what the task asks for in this run; the task alone knows its meaning


@dataclass(frozen=True)
class Step:
    """What a world shows after one control interval."""

    measured: Array  # (num_worlds, num_measurements), in model units
    applied_command: Array  # (num_worlds, num_commands), what was really sent after limits, in model units


class World(Protocol):
    """What produces episodes: a simulation, a twin, a robot (num_worlds = 1)."""

    source: Source
    num_worlds: int
    rate_hz: float
    command_names: tuple[str, ...]
    measurement_names: tuple[str, ...]

    def reset(self, start: Start, rng: np.random.Generator, ids: Indices | None = None) -> Array:
        """Begins anew from `start`, a row per world to reset, and returns measurements, (num_worlds, num_measurements).

        `rng` is the source of whatever is random in this world; `ids` are the worlds to reset, None for all.
        """
        ...

    def step(self, requested_command: Array) -> Step:
        """Advances one control interval under (num_worlds, num_commands) commands in model units."""
        ...


@dataclass(frozen=True)
class Moment:
    """What a task is shown: nothing that a robot would not show."""

    measured: Mapping[str, Array]  # column name -> (num_worlds,), in model units
    command: Array  # (num_worlds, num_commands), the last command that was sent
    goal: Array  # (num_worlds, goal_size)
    time_s: Array  # (num_worlds,) time since the run began [s]


@dataclass(frozen=True)
class Judgement:
    """What a task says of one moment."""

    reward: Array  # (num_worlds,)
    success: Flags  # (num_worlds,) bool: the run has succeeded if it ends here
    failed: Flags  # (num_worlds,) bool: the run is lost and ends here
    phase: Indices  # (num_worlds,) index into the task's phases


class Task(Protocol):
    """What the robot shall do. Written by the owner of a project, in `task.py`."""

    duration_s: float
    observation_size: int
    action_size: int
    phases: tuple[str, ...]

    def start(self, rng: np.random.Generator, num_worlds: int) -> Start:
        """Draws how runs begin."""
        ...

    def first_command(self, start: Start) -> Array:
        """Returns the command in force when a run begins, (num_worlds, num_commands)."""
        ...

    def observe(self, moment: Moment) -> Array:
        """Returns what the policy sees, (num_worlds, observation_size), about unit size."""
        ...

    def command(self, action: Array, moment: Moment) -> Array:
        """Turns actions in [-1, 1] into commands in model units, (num_worlds, num_commands)."""
        ...

    def judge(self, moment: Moment, action: Array) -> Judgement:
        """Rewards and judges the moment after an action."""
        ...


class Policy(Protocol):
    """What chooses actions. Explicit memory: the last `history` observations and actions."""

    @property
    def history(self) -> int:
        """How many observations it is given."""
        ...

    def act(self, observation: Array) -> Array:
        """Returns actions in [-1, 1], (num_worlds, action_size), for stacked observations."""
        ...
