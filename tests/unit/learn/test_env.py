"""The vector environment keeps the contract of Stable-Baselines3."""

from pathlib import Path

import numpy as np
import pytest

from gapless.core.distribution import Distribution, Range
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.learn.env import BatchedEnv
from gapless.project.code import load_task
from gapless.project.load import load_project
from gapless.sim.blueprint import EMPTY_SPACE, compile_project
from gapless.verbs import copy_example

GAIN = ParameterSpace((Parameter("actuator/motor/gain", "actuator", "1", 1.0, 0.5, 1.5),))
WIDE = Distribution(GAIN, (Range("actuator/motor/gain", "uniform", 0.5, 1.5, 1.0),))
NUM_WORLDS, HISTORY = 5, 3
SIZE = HISTORY * (3 + 1)  # three observations and one action per frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_example("balance", tmp_path_factory.mktemp("balance"))


def make_env(folder: Path, distribution: Distribution | None = None, seed: int = 0) -> BatchedEnv:
    project = load_project(folder)
    given = distribution or Distribution(EMPTY_SPACE)
    rng = np.random.default_rng(seed)
    return BatchedEnv(compile_project(project), load_task(project), given, NUM_WORLDS, HISTORY, rng)


def play(env: BatchedEnv, num_steps: int, push: float | None = None) -> list[tuple]:
    actions = np.random.default_rng(1).uniform(-1, 1, (num_steps, NUM_WORLDS, 1)).astype(np.float32)
    if push is not None:
        actions[:] = push
    steps = [env.reset()]
    return steps + [env.step(action) for action in actions]


def test_shapes_and_types(folder: Path) -> None:
    env = make_env(folder)
    first, (seen, reward, done, infos), *_ = play(env, 1)
    assert env.num_envs == NUM_WORLDS
    assert env.observation_space.shape == (SIZE,)
    assert env.action_space.shape == (1,)
    for observation in (first, seen):
        assert observation.shape == (NUM_WORLDS, SIZE)
        assert observation.dtype == np.float32
        assert np.isfinite(observation).all()
    assert reward.shape == done.shape == (NUM_WORLDS,)
    assert reward.dtype == np.float32
    assert done.dtype == bool
    assert len(infos) == NUM_WORLDS


def test_observations_are_copies(folder: Path) -> None:
    env = make_env(folder)
    first = env.reset()
    kept = first.copy()
    env.step(np.ones((NUM_WORLDS, 1)))
    np.testing.assert_array_equal(first, kept)


def test_a_run_that_ends_begins_anew_and_shows_its_last_moment(folder: Path) -> None:
    env = make_env(folder)
    ended = 0
    for step in play(env, 60, push=1.0)[1:]:
        seen, _, done, infos = step
        for k in np.flatnonzero(done):
            ended += 1
            last = infos[k]["terminal_observation"]
            assert last.shape == (SIZE,)
            assert np.abs(last[-4:-1] - seen[k, -4:-1]).max() > 0.1  # the new run begins elsewhere
            assert infos[k]["TimeLimit.truncated"] is False  # it tipped over
            # a new run: every remembered frame is the first observation, with no action
            frames = seen[k].reshape(HISTORY, 4)
            np.testing.assert_array_equal(frames, np.tile(frames[0], (HISTORY, 1)))
            np.testing.assert_array_equal(frames[:, 3], 0.0)
        assert all("terminal_observation" not in infos[k] for k in np.flatnonzero(~done))
    assert ended >= NUM_WORLDS
    assert len(env.finished) == ended
    assert not any(env.finished)


def test_time_runs_out_as_a_truncation(folder: Path) -> None:
    env = make_env(folder)
    env.reset()
    env._elapsed[:] = env._num_steps - 1
    _, _, done, infos = env.step(np.zeros((NUM_WORLDS, 1)))
    assert done.all()
    assert all(info["TimeLimit.truncated"] for info in infos)


def test_the_same_seed_gives_the_same_run(folder: Path) -> None:
    for a, b in zip(play(make_env(folder, WIDE), 40), play(make_env(folder, WIDE), 40), strict=True):
        for left, right in zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]:
            if isinstance(left, np.ndarray):
                np.testing.assert_array_equal(left, right)


def test_another_seed_gives_another_run(folder: Path) -> None:
    assert not np.array_equal(make_env(folder, seed=0).reset(), make_env(folder, seed=1).reset())


def test_each_run_draws_its_own_parameters(folder: Path) -> None:
    env = make_env(folder, WIDE)
    env.reset()
    before = env.world.fields.of("actuator_gainprm")[:, 0, 0].copy()
    assert len(np.unique(before)) == NUM_WORLDS
    play(env, 60, push=1.0)
    assert not np.any(env.world.fields.of("actuator_gainprm")[:, 0, 0] == before)


def test_actions_beyond_one_are_cut(folder: Path) -> None:
    seen = [make_env(folder) for _ in range(2)]
    for env in seen:
        env.reset()
    one, many = seen[0].step(np.ones((NUM_WORLDS, 1))), seen[1].step(np.full((NUM_WORLDS, 1), 50.0))
    np.testing.assert_array_equal(one[0], many[0])


def test_each_level_changes_as_often_as_it_says(folder: Path) -> None:
    ranges = (
        Range("actuator/motor/gain", "uniform", 0.5, 1.5, 1.0, per="robot"),
        Range("joint/cart/damping", "uniform", 0.5, 1.5, 1.0, per="episode"),
        Range("joint/pole/damping", "uniform", 0.0, 0.1, 0.05, per="step"),
    )
    space = ParameterSpace(tuple(Parameter(r.target, "actuator", "1", r.mean, r.low, r.high) for r in ranges))
    env = make_env(folder, Distribution(space, ranges))
    play(env, 1)
    gain = env.world.fields.of("actuator_gainprm")[:, 0, 0].copy()
    damping = env.world.fields.of("dof_damping")[:, :2].copy()
    env.step(np.zeros((NUM_WORLDS, 1)))
    np.testing.assert_array_equal(env.world.fields.of("dof_damping")[:, 0], damping[:, 0])
    assert (env.world.fields.of("dof_damping")[:, 1] != damping[:, 1]).all()
    env.reset()
    np.testing.assert_array_equal(env.world.fields.of("actuator_gainprm")[:, 0, 0], gain)
    assert (env.world.fields.of("dof_damping")[:, 0] != damping[:, 0]).all()
