"""The verb `train`: Stable-Baselines3's PPO on the batched simulation."""

import hashlib
import io
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

from gapless.core.distribution import Distribution
from gapless.core.errors import InputError, Interrupted
from gapless.core.interval import Interval, wilson
from gapless.core.places import require_space
from gapless.core.protocols import Progress, Task
from gapless.core.provenance import Provenance
from gapless.core.results import TrainResult, plain
from gapless.core.run import run_policy
from gapless.data.catalogue import Catalogue
from gapless.data.splits import require_untested
from gapless.data.stored_results import artefact_ids, code_version, find_same_result, load_stored_result, store_result
from gapless.learn.curriculum import CURRICULA, Name, make_curriculum
from gapless.learn.env import BatchedEnv
from gapless.learn.policy import NetworkPolicy, check_fits, load_policy
from gapless.project.code import load_task
from gapless.project.fingerprint import fingerprint
from gapless.project.load import load_project
from gapless.sim.blueprint import EMPTY_SPACE, CompiledProject, compile_project
from gapless.sim.ranges import read_ranges
from gapless.sim.simulation import Simulation

POLICY, LEARNER, PROGRESS = "policy.npz", "learner.npz", "progress.json"  # of a training
INTERRUPTED = "interrupted training"  # what the catalogue calls one that was cut off
CURVE_RUNS = 200  # last runs whose success is a point of the training curve


@dataclass(frozen=True)
class TrainConfig:
    """How a policy is trained."""

    num_steps: int = 600_000  # control steps, over all worlds
    num_worlds: int = 64  # worlds that run side by side
    history_s: float = 0.12  # how far back the policy sees observations and actions, so that it notices delays [s]
    layers: tuple[int, ...] = (64, 64)  # sizes of the hidden layers
    rollout_steps: int = 64  # steps per world between updates
    batch_size: int = 256  # samples per gradient step
    num_epochs: int = 5  # passes over each rollout
    learning_rate: float = 7e-4  # at the start; it falls linearly to a twentieth
    discount: float = 0.98  # per control step [1]
    num_trials: int = 200  # fresh runs in simulation that score the result
    curriculum: Name = "none"  # `adr` and `max-entropy` grow ranges from their centre while the policy keeps up


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
    interrupted, what was learned is kept in the catalogue, and the same call goes on from there.

    The project must name a task. `ranges` is a file that `randomize` wrote, None for the model as written; `start` is a
    policy to go on from. `progress` is called with what is being done and how far it is, in [0, 1].
    """
    config = config or TrainConfig()
    project = load_project(directory)
    require_space(project.directory)
    catalogue = Catalogue.open(project.directory)
    blueprint = compile_project(project)
    distribution = Distribution(EMPTY_SPACE) if ranges is None else read_ranges(ranges, blueprint)
    if start is not None:
        load_policy(start)  # refuses what is no policy before the work begins
    if config.curriculum not in CURRICULA:
        raise InputError(f"no curriculum {config.curriculum!r}; choose from: {', '.join(CURRICULA)}")
    if config.curriculum != "none" and not distribution.ranges:
        raise InputError("a curriculum needs ranges that it may grow to: name them with --ranges FILE")
    about = {
        "project": fingerprint(project),
        "config": plain(config),
        "ranges": plain((distribution.ranges, distribution.correlations)),
        "start": None if start is None else hashlib.sha256(Path(start).read_bytes()).hexdigest(),
    }
    require_untested(catalogue, artefact_ids(ranges, start), "what this training starts from")
    provenance = Provenance("train", code_version(), artefact_ids(ranges, start), about, seed)
    identity = find_same_result(catalogue, "train", provenance)
    if identity is None:
        learner = _Learner(blueprint, load_task(project), distribution, config, seed, progress)
        if start is not None:
            learner.load_network(Path(start))
        identity = _train_and_store(learner, catalogue, provenance)
    result = load_stored_result(catalogue, identity)
    assert isinstance(result, TrainResult)
    path = catalogue.artefact_path(identity, POLICY).resolve()
    return replace(result, policy=str(path), policy_id=identity)  # what its stored content cannot hold


def _train_and_store(learner: "_Learner", catalogue: Catalogue, provenance: Provenance) -> str:
    """Trains, scores and stores a policy, from where an interrupted training left it; returns the result's id."""
    halfway, curriculum = find_same_result(catalogue, INTERRUPTED, provenance), learner.env.curriculum
    if halfway is not None:
        learner.load_network(catalogue.artefact_path(halfway, POLICY))
        learner.num_done, state = json.loads(catalogue.artefact_path(halfway, PROGRESS).read_text())
        if curriculum is not None:
            curriculum.state = np.array(state)
    try:
        learner.learn()
        success = learner.score()
    except KeyboardInterrupt:
        state = None if curriculum is None else curriculum.state.tolist()
        done = json.dumps([learner.num_done + learner.model.num_timesteps, state]).encode()
        catalogue.add_artefact(INTERRUPTED, {**learner.files(), PROGRESS: done}, provenance)
        raise Interrupted("what was learned is kept, and the same command goes on from there") from None
    num_steps = learner.num_done + int(learner.model.num_timesteps)
    grown = () if curriculum is None else curriculum.distribution.ranges
    result = TrainResult(provenance.parents, "", "", num_steps, success, tuple(learner.curve), learner.seed, grown)
    return store_result(catalogue, result, provenance, learner.files())


class _Learner(BaseCallback):
    """PPO on the batched simulation, from which a plain policy can be taken at any time; called after each rollout."""

    def __init__(
        self,
        blueprint: CompiledProject,
        task: Task,
        distribution: Distribution,
        config: TrainConfig,
        seed: int,
        progress: Progress | None,
    ) -> None:
        super().__init__()
        rng = np.random.default_rng(seed)
        self.history = max(1, round(config.history_s * blueprint.project.rate_hz))
        curriculum = make_curriculum(config.curriculum, distribution)
        self.env = BatchedEnv(blueprint, task, distribution, config.num_worlds, self.history, rng, curriculum)
        self.config, self.seed, self._progress = config, seed, progress
        self.curve: list[tuple[int, float]] = []  # control steps and success rate while training
        self.num_done = 0  # control steps of the part before an interruption
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
            self.model.learn(max(1, self.config.num_steps - self.num_done), callback=self)
        finally:
            torch.set_num_threads(threads)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        """Adds a point to the training curve, reports progress, and moves the curriculum on."""
        if self.env.curriculum is not None:
            self.env.curriculum.advance()
        num_steps = self.num_done + self.num_timesteps
        if self.env.finished:
            self.curve.append((num_steps, float(np.mean(self.env.finished[-CURVE_RUNS:]))))
        if self._progress is not None:
            self._progress("train", min(1.0, num_steps / self.config.num_steps))

    def score(self) -> Interval:
        """Returns the success of the policy in fresh draws of the worlds it was trained in."""
        num_trials, rng = self.config.num_trials, np.random.default_rng(self.seed + 1)
        distribution, blueprint = (self.env.curriculum or self.env).distribution, self.env.world.blueprint
        world = Simulation(blueprint, num_trials, distribution.space, noisy=True)
        world.set_parameters(distribution.sample(rng, num_trials))
        units = (blueprint.project.command_units, blueprint.project.measurement_units)
        success = run_policy(world, self.env.task, self.policy(), rng, num_trials, units=units).success
        return wilson(int(success.sum()), len(success))

    def policy(self) -> NetworkPolicy:
        """Returns the policy as plain numbers."""
        state = {name: value.detach().numpy() for name, value in self.model.policy.state_dict().items()}
        weights, biases = (
            tuple(state[f"{name}.{part}"].astype(np.float64) for name in self._layer_names())
            for part in ("weight", "bias")
        )
        return NetworkPolicy(weights, biases, self.history)

    def files(self) -> dict[str, bytes]:
        """Returns what is kept of a training: the policy, and all that going on from it needs."""
        buffer = io.BytesIO()
        np.savez(buffer, **{name: value.detach().numpy() for name, value in self.model.policy.state_dict().items()})
        return {POLICY: self.policy().to_bytes(), LEARNER: buffer.getvalue()}

    def load_network(self, path: Path) -> None:
        """Goes on from a policy; with what was learned beside it (its value estimates) where that is kept."""
        policy, beside = load_policy(path), path.with_name(LEARNER)
        check_fits(policy, self.env.task, path)
        try:
            if beside.is_file():
                with np.load(beside, allow_pickle=False) as stored:
                    state = {name: torch.as_tensor(stored[name]) for name in stored.files}
                state["log_std"] = torch.clamp(state["log_std"], min=-1.0)  # room to try what the new worlds need
            else:
                state = dict(self.model.policy.state_dict())
                for name, weight, bias in zip(self._layer_names(), policy.weights, policy.biases, strict=True):
                    state[f"{name}.weight"] = torch.as_tensor(weight, dtype=torch.float32)
                    state[f"{name}.bias"] = torch.as_tensor(bias, dtype=torch.float32)
            self.model.policy.load_state_dict(state)
        except (RuntimeError, ValueError):
            sizes = ", ".join(str(size) for size in self.config.layers)
            raise InputError(f"this policy's network is not of the layers {sizes}: start anew: {path}") from None

    def _layer_names(self) -> list[str]:
        hidden = [f"mlp_extractor.policy_net.{2 * k}" for k in range(len(self.config.layers))]
        return [*hidden, "action_net"]
