"""The verb `train`: Stable-Baselines3's PPO on the batched simulation."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

import gapless
from gapless.core.distribution import Distribution, nominal_only
from gapless.core.interval import Interval, wilson
from gapless.core.protocols import Task
from gapless.core.provenance import Provenance
from gapless.core.results import TrainResult, plain
from gapless.core.run import run_policy
from gapless.data.catalogue import Catalogue
from gapless.data.keep import ids_of, keep_result, kept_result, same
from gapless.learn.env import BatchedEnv
from gapless.learn.policy import NetworkPolicy, load_policy
from gapless.project.code import load_task
from gapless.project.fingerprint import fingerprint
from gapless.project.load import load_project
from gapless.sim.blueprint import EMPTY_SPACE, Blueprint, compile_project
from gapless.sim.ranges import read_ranges
from gapless.sim.simulation import Simulation

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class TrainConfig:
    """How a policy is trained.

    Attributes:
        num_steps: Control steps, over all worlds.
        num_worlds: Worlds that run side by side.
        history_s: How far back the policy sees observations and actions, so that it notices delays [s].
        layers: Sizes of the hidden layers.
        rollout_steps: Steps per world between updates.
        batch_size: Samples per gradient step.
        num_epochs: Passes over each rollout.
        learning_rate: At the start; it falls linearly to a twentieth.
        discount: Per control step [1].
        num_trials: Fresh runs in simulation that score the result.
    """

    num_steps: int = 300_000
    num_worlds: int = 64
    history_s: float = 0.12
    layers: tuple[int, ...] = (64, 64)
    rollout_steps: int = 64
    batch_size: int = 256
    num_epochs: int = 5
    learning_rate: float = 7e-4
    discount: float = 0.98
    num_trials: int = 200


def train(
    directory: str | Path,
    ranges: str | Path | None = None,
    *,
    start: str | Path | None = None,
    config: TrainConfig | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> TrainResult:
    """Trains a policy for the project's task in simulation.

    A training that was done before in the very same way is not done again: its policy is returned. If
    interrupted, the policy so far is kept in the catalogue before the interrupt goes on.

    Args:
        directory: The project folder; it must name a task.
        ranges: File that `randomize` wrote; None trains in the model as written.
        start: Policy to go on from; None starts anew.
        config: How to train.
        seed: Seed of everything random.
        progress: Called with what is being done and how far it is, in [0, 1].

    Raises:
        InputError: If project, ranges or policy cannot be used.
    """
    config = config or TrainConfig()
    project = load_project(directory)
    catalogue = Catalogue.open(project.directory)
    blueprint = compile_project(project)
    distribution = nominal_only(EMPTY_SPACE) if ranges is None else read_ranges(ranges, blueprint)
    task = load_task(project)
    about = {
        "project": fingerprint(project),
        "config": plain(config),
        "ranges": plain(distribution.ranges),
    }
    provenance = Provenance("train", gapless.__version__, ids_of(ranges, start), about, seed)
    done = same(catalogue, "train", provenance)
    if done is not None:
        return _located(catalogue, done)
    learner = _Learner(blueprint, task, distribution, config, seed, progress)
    if start is not None:
        learner.go_on_from(load_policy(start))
    try:
        learner.learn()
    except KeyboardInterrupt:
        about["interrupted_after_steps"] = learner.model.num_timesteps
        _keep(catalogue, learner, replace(provenance, config=about), wilson(0, 0))
        raise
    runs = score(blueprint, task, learner.policy(), distribution, config.num_trials, np.random.default_rng(seed + 1))
    identity = _keep(catalogue, learner, provenance, wilson(int(runs.sum()), len(runs)))
    return _located(catalogue, identity)


def _keep(catalogue: Catalogue, learner: "_Learner", provenance: Provenance, success: Interval) -> str:
    result = TrainResult(
        provenance.parents,
        "",
        "",
        int(learner.model.num_timesteps),
        success,
        tuple(learner.curve),
        provenance.seed or 0,
    )
    return keep_result(catalogue, result, provenance, {"policy.npz": learner.policy().to_bytes()})


def _located(catalogue: Catalogue, identity: str) -> TrainResult:
    """Returns a kept training with its id and its policy's path, which its content cannot hold."""
    result = kept_result(catalogue, identity)
    assert isinstance(result, TrainResult)
    path = catalogue.artefact_path(identity, "policy.npz").resolve()
    return replace(result, policy=str(path), policy_id=identity)


def score(
    blueprint: Blueprint,
    task: Task,
    policy: NetworkPolicy,
    distribution: Distribution,
    num_trials: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Returns whether each of some fresh simulated runs succeeded, (num_trials,) bool."""
    world = Simulation(blueprint, num_trials, distribution.space, noisy=True)
    world.set_parameters(distribution.sample(rng, num_trials))
    units = (blueprint.project.command_units, blueprint.project.measurement_units)
    return run_policy(world, task, policy, rng, num_trials, units=units).success


class _Learner:
    """PPO on the batched simulation, from which a plain policy can be taken at any time."""

    def __init__(
        self,
        blueprint: Blueprint,
        task: Task,
        distribution: Distribution,
        config: TrainConfig,
        seed: int,
        progress: Progress | None,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.history = max(1, round(config.history_s * blueprint.project.rate_hz))
        self.env = BatchedEnv(blueprint, task, distribution, config.num_worlds, self.history, rng)
        self.config = config
        self.curve: list[tuple[int, float]] = []
        self._progress = progress
        self.model = PPO(
            "MlpPolicy",
            self.env,
            n_steps=config.rollout_steps,
            batch_size=config.batch_size,
            n_epochs=config.num_epochs,
            learning_rate=lambda left: config.learning_rate * max(left, 0.05),
            gamma=config.discount,
            policy_kwargs={"net_arch": list(config.layers), "log_std_init": -0.5},
            seed=seed,
            device="cpu",
        )

    def learn(self) -> None:
        """Trains for the configured steps; small networks are fastest on one thread."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            self.model.learn(self.config.num_steps, callback=_Watch(self))
        finally:
            torch.set_num_threads(threads)

    def note(self, num_timesteps: int) -> None:
        """Adds a point to the training curve and reports progress."""
        recent = self.env.finished[-200:]
        if recent:
            self.curve.append((num_timesteps, float(np.mean(recent))))
        if self._progress is not None:
            self._progress("train", min(1.0, num_timesteps / self.config.num_steps))

    def policy(self) -> NetworkPolicy:
        """Returns the policy as plain numbers."""
        layers = [layer for layer in self.model.policy.mlp_extractor.policy_net if hasattr(layer, "weight")]
        layers.append(self.model.policy.action_net)
        weights = tuple(layer.weight.detach().numpy().astype(np.float64) for layer in layers)
        biases = tuple(layer.bias.detach().numpy().astype(np.float64) for layer in layers)
        return NetworkPolicy(weights, biases, self.history)

    def go_on_from(self, policy: NetworkPolicy) -> None:
        """Puts a policy's numbers in the network that is trained."""
        layers = [layer for layer in self.model.policy.mlp_extractor.policy_net if hasattr(layer, "weight")]
        layers.append(self.model.policy.action_net)
        with torch.no_grad():
            for layer, weight, bias in zip(layers, policy.weights, policy.biases, strict=True):
                layer.weight.copy_(torch.as_tensor(weight))
                layer.bias.copy_(torch.as_tensor(bias))


class _Watch(BaseCallback):
    """Tells the learner how far it is, after every rollout."""

    def __init__(self, learner: _Learner) -> None:
        super().__init__()
        self._learner = learner

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self._learner.note(self.num_timesteps)
