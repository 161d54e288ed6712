"""Memory and run_policy, in a world whose motion is plain addition."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from gapless.core.episode import Source
from gapless.core.protocols import Judgement, Moment, Start, Step
from gapless.core.run import Memory, run_policy
from gapless.core.signal import Array

UNITS = (("m/s",), ("m",))


@dataclass
class Adder:
    """Position of each world grows by the command; commands beyond 1 are cut, as a robot would."""

    num_worlds: int = 2
    source: Source = "twin"
    rate_hz: float = 10.0
    command_names: tuple[str, ...] = ("push",)
    measurement_names: tuple[str, ...] = ("x",)
    x: Array = field(default_factory=lambda: np.zeros((0, 1)))

    def reset(self, start: Start, rng: np.random.Generator, ids: NDArray[np.intp] | None = None) -> Array:
        self.x = start.positions["slide"].copy()
        return self.x.copy()

    def step(self, requested_command: Array) -> Step:
        applied = np.clip(requested_command, -1.0, 1.0)
        self.x = self.x + applied
        return Step(self.x.copy(), applied)


@dataclass
class Reach:
    """Be at the goal or beyond when time is up; beyond `cliff` the run is lost."""

    cliff: float = np.inf
    command_scale: float = 1.0
    duration_s: float = 0.5  # 5 steps at 10 Hz
    observation_size: int = 1
    action_size: int = 1
    phases: tuple[str, ...] = ("approach", "hold")
    goal: float = 3.0

    def start(self, rng: np.random.Generator, num_worlds: int) -> Start:
        # World k starts at -k.
        return Start({"slide": -np.arange(num_worlds, dtype=float)[:, None]}, np.full((num_worlds, 1), self.goal))

    def first_command(self, start: Start) -> Array:
        return np.zeros((len(start.goal), 1))

    def observe(self, moment: Moment) -> Array:
        return moment.measured["x"][:, None]

    def command(self, action: Array, moment: Moment) -> Array:
        return self.command_scale * action

    def judge(self, moment: Moment, action: Array) -> Judgement:
        x = moment.measured["x"]
        there = x >= moment.goal[:, 0]
        return Judgement(-np.abs(x), there, x > self.cliff, there.astype(np.intp))


@dataclass
class Constant:
    """Always the same action; remembers what it was shown."""

    action: float = 1.0
    history: int = 2
    seen: list[Array] = field(default_factory=list)

    def act(self, observation: Array) -> Array:
        self.seen.append(observation)
        return np.full((len(observation), 1), self.action)


def run(task: Reach, policy: Constant, num_runs: int = 2, **options: object):
    rng = np.random.default_rng(0)
    return run_policy(Adder(), task, policy, rng, num_runs, units=UNITS, **options)  # type: ignore[arg-type]


def test_memory_begins_with_the_first_observation_and_no_action() -> None:
    memory = Memory(num_worlds=1, history=2, observation_size=2, action_size=1)
    memory.begin(np.array([[1.0, 2.0]]))
    np.testing.assert_array_equal(memory.flatten(), [[1, 2, 0, 1, 2, 0]])
    assert memory.flatten().shape[1] == Memory.size(history=2, observation_size=2, action_size=1) == 6


def test_memory_forgets_the_oldest() -> None:
    memory = Memory(1, 2, 1, 1)
    memory.begin(np.array([[1.0]]))
    memory.push(np.array([[2.0]]), np.array([[0.2]]))
    np.testing.assert_array_equal(memory.flatten(), [[1, 0, 2, 0.2]])
    memory.push(np.array([[3.0]]), np.array([[0.3]]))
    np.testing.assert_array_equal(memory.flatten(), [[2, 0.2, 3, 0.3]])


def test_memory_begins_anew_in_some_worlds_only() -> None:
    memory = Memory(2, 2, 1, 1)
    memory.begin(np.array([[1.0], [5.0]]))
    memory.push(np.array([[2.0], [6.0]]), np.array([[0.2], [0.6]]))
    memory.begin(np.array([[9.0]]), ids=np.array([1]))
    np.testing.assert_array_equal(memory.flatten(), [[1, 0, 2, 0.2], [9, 0, 9, 0]])


def test_what_memory_shows_is_a_copy() -> None:
    memory = Memory(1, 1, 1, 1)
    memory.begin(np.array([[1.0]]))
    memory.flatten()[:] = 7.0
    np.testing.assert_array_equal(memory.flatten(), [[1, 0]])


def test_episodes_hold_what_was_measured_and_sent() -> None:
    # Action 1 for 5 steps: world 0 goes 0, 1, 2, 3, 4 and ends at 5, world 1 one less. The last command stays.
    runs = run(Reach(), Constant())
    first, second = runs.episodes
    np.testing.assert_array_equal(first.measurements.column("x"), [0, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(second.measurements.column("x"), [-1, 0, 1, 2, 3, 4])
    np.testing.assert_array_equal(first.commands.column("push"), np.ones(6))
    np.testing.assert_allclose(first.measurements.times_s, [0, 0.1, 0.2, 0.3, 0.4, 0.5])
    assert (first.commands.units, first.measurements.units) == UNITS
    assert (first.name, second.name, first.source) == ("run000", "run001", "twin")


def test_success_is_judged_at_the_end() -> None:
    # Ends: world 0 at 5, world 1 at 4. Goal 5: the first succeeds, the second still approaches.
    runs = run(Reach(goal=5.0), Constant())
    np.testing.assert_array_equal(runs.success, [True, False])
    assert [e.outcome for e in runs.episodes] == ["success", "failure"]
    assert [e.failed_in for e in runs.episodes] == [None, "approach"]


def test_a_lost_run_ends_where_it_was_lost() -> None:
    # Cliff 3.5: world 0 passes it in its 4th step (at 4), world 1 in its 5th (at 4). Both were at the goal.
    runs = run(Reach(cliff=3.5), Constant())
    assert [len(e.measurements.times_s) for e in runs.episodes] == [5, 6]
    assert not runs.success.any()
    assert [e.failed_in for e in runs.episodes] == ["hold", "hold"]


def test_all_lost_at_once_stops_the_batch() -> None:
    # Cliff -2: both worlds are beyond it after the first step.
    runs = run(Reach(cliff=-2.0), Constant())
    assert [len(e.measurements.times_s) for e in runs.episodes] == [2, 2]


def test_commands_are_those_the_world_applied() -> None:
    # Command 3 is cut to 1 by the world: the record shows 1.
    runs = run(Reach(command_scale=3.0), Constant())
    np.testing.assert_array_equal(runs.episodes[0].commands.column("push"), np.ones(6))


def test_the_policy_sees_observations_with_the_actions_between() -> None:
    policy = Constant(history=2)
    run(Reach(), policy)
    np.testing.assert_array_equal(policy.seen[0], [[0, 0, 0, 0], [-1, 0, -1, 0]])
    np.testing.assert_array_equal(policy.seen[2], [[1, 1, 2, 1], [0, 1, 1, 1]])


def test_actions_are_cut_to_their_range() -> None:
    # Action 5 is cut to 1, then scaled by 0.5.
    runs = run(Reach(command_scale=0.5), Constant(action=5.0))
    np.testing.assert_array_equal(runs.episodes[0].commands.column("push"), np.full(6, 0.5))


def test_exactly_as_many_runs_as_asked_for_in_batches() -> None:
    # 2 worlds, 5 runs: batches of 2, 2 and 1 of 2.
    finished: list[int] = []
    runs = run(Reach(), Constant(), num_runs=5, name="trial", on_runs=finished.append)
    assert finished == [2, 4, 5]
    assert [e.name for e in runs.episodes] == [f"trial{k:03d}" for k in range(5)]
    assert runs.success.shape == (5,)


def test_exploration_moves_the_commands_and_repeats_with_the_seed() -> None:
    still = run(Reach(), Constant(action=0.0))
    moved, again = (run(Reach(), Constant(action=0.0), exploration=0.3) for _ in range(2))
    assert not still.episodes[0].commands.values.any()
    assert moved.episodes[0].commands.values.any()
    for one, other in zip(moved.episodes, again.episodes, strict=True):
        assert one.commands.equals(other.commands)


def test_exploration_never_leaves_the_range() -> None:
    runs = run(Reach(), Constant(action=0.9), exploration=5.0)
    assert all(np.abs(e.commands.values).max() <= 1.0 for e in runs.episodes)


@pytest.mark.parametrize("num_worlds", [1, 3])
def test_a_batch_of_one_is_a_row_of_a_batch(num_worlds: int) -> None:
    rng = np.random.default_rng(0)
    runs = run_policy(Adder(num_worlds), Reach(), Constant(), rng, num_worlds, units=UNITS)
    np.testing.assert_array_equal(runs.episodes[0].measurements.column("x"), [0, 1, 2, 3, 4, 5])
