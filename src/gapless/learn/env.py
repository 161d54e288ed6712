"""The batched simulation as a vector environment of Stable-Baselines3."""

from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from gapless.core.distribution import Distribution
from gapless.core.protocols import Start, Task
from gapless.core.run import Memory, build_moment
from gapless.learn.curriculum import Curriculum
from gapless.sim.blueprint import CompiledProject
from gapless.sim.simulation import Simulation


class BatchedEnv(VecEnv):
    """One environment per world, and one robot: what is drawn per robot stays, each run draws the rest anew."""

    def __init__(
        self,
        blueprint: CompiledProject,
        task: Task,
        distribution: Distribution,
        num_worlds: int,
        history: int,
        rng: np.random.Generator,
        curriculum: Curriculum | None = None,
    ) -> None:
        """Makes the worlds; see `train` for the arguments. A curriculum draws the rows instead of the distribution."""
        self.task, self.distribution, self.curriculum, self._rng = task, distribution, curriculum, rng
        self.world = Simulation(blueprint, num_worlds, distribution.space, noisy=True)
        self.finished: list[bool] = []
        self._num_steps = round(task.duration_s * self.world.rate_hz)
        self._memory = Memory(num_worlds, history, task.observation_size, task.action_size)
        self._elapsed = np.zeros(num_worlds, dtype=np.intp)
        self._action = np.zeros((num_worlds, task.action_size))
        self._rows = (distribution.sample if curriculum is None else curriculum.draw)(rng, num_worlds)
        size = Memory.size(history, task.observation_size, task.action_size)
        observations = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
        actions = gymnasium.spaces.Box(-1.0, 1.0, (task.action_size,), np.float32)
        super().__init__(num_worlds, observations, actions)

    def reset(self) -> np.ndarray:
        """Begins every run, at staggered ages so that they do not end together."""
        start = self.task.start(self._rng, self.num_envs)
        self._command = self.task.first_command(start)
        self._goal = start.goal.copy()
        self._begin(np.arange(self.num_envs), start)
        self._elapsed = self._rng.integers(0, self._num_steps // 2, self.num_envs)
        return self._stack()

    def step_async(self, actions: np.ndarray) -> None:
        """Takes the actions of the next step."""
        self._action = np.clip(np.asarray(actions, dtype=np.float64), -1.0, 1.0)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Advances every world by one control interval."""
        if self.distribution.has("step"):
            self._rows = self.distribution.redrawn(self._rows, self._rng, "step")
            self.world.set_parameters(self._rows)
        step = self.world.step(self.task.command(self._action, self._now))
        self._command = step.applied_command
        self._elapsed += 1
        self._observe(step.measured)
        judgement = self.task.judge(self._now, self._action)
        self._memory.push(self.task.observe(self._now), self._action)
        failed = judgement.failed.astype(bool)
        done = failed | (self._elapsed >= self._num_steps)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if done.any():
            last = self._stack()
            ended = np.flatnonzero(done)
            won = judgement.success[ended].astype(bool) & ~failed[ended]
            for k in ended:
                infos[k] = {"terminal_observation": last[k], "TimeLimit.truncated": not failed[k]}
            self.finished.extend(won.tolist())
            if self.curriculum is not None:
                self.curriculum.record_outcomes(self._rows[ended], won)
            self._restart(ended)
        return self._stack(), judgement.reward.astype(np.float32), done, infos

    def _stack(self) -> np.ndarray:
        return self._memory.flatten().astype(np.float32)

    def _restart(self, ids: np.ndarray) -> None:
        start = self.task.start(self._rng, len(ids))
        self._command = self._command.copy()
        self._command[ids] = self.task.first_command(start)
        self._goal[ids] = start.goal
        self._elapsed[ids] = 0
        self._begin(ids, start)

    def _begin(self, ids: np.ndarray, start: Start) -> None:
        if self.curriculum is None:
            self._rows[ids] = self.distribution.redrawn(self._rows[ids], self._rng, "episode", "step")
        else:
            self._rows[ids] = self.curriculum.draw(self._rng, len(ids))
        self.world.set_parameters(self._rows[ids], ids)
        self._observe(self.world.reset(start, self._rng, ids))
        self._memory.begin(self.task.observe(self._now)[ids], ids)

    def _observe(self, measured: np.ndarray) -> None:
        """Hands what was measured to the task."""
        time_s = self._elapsed / self.world.rate_hz
        self._now = build_moment(self.world, measured, self._command, self._goal, time_s)

    def close(self) -> None:
        """Nothing to close."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Returns an attribute once per environment."""
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Sets an attribute for all environments."""
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Calls a method once and repeats its answer for each environment."""
        return [getattr(self, method_name)(*args, **kwargs)] * self.num_envs

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Tells that no environment is wrapped."""
        return [False] * self.num_envs
