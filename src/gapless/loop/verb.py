"""The verb `loop`: train, meet reality, find the cause, close the gap, prove it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import gapless
from gapless.core.errors import InputError, Interrupted, LogError
from gapless.core.interval import Interval
from gapless.core.provenance import Provenance
from gapless.core.results import (
    DiagnoseResult,
    IdentifyResult,
    LoopResult,
    MeasureResult,
    RandomizeResult,
    TrainResult,
)
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import RESULT, newest_result, store_result_if_possible
from gapless.diagnose.hypotheses.signals import FITTING, REHEARSING
from gapless.diagnose.verb import diagnose
from gapless.identify.verb import FIT, identify
from gapless.learn.evaluate import Where, evaluate, open_world, run_trials
from gapless.learn.train import TrainConfig, train
from gapless.measure.verb import measure
from gapless.project.fingerprint import fingerprint
from gapless.project.load import load_project
from gapless.project.log.read import log_paths
from gapless.project.log.write import write_log
from gapless.project.records import Project
from gapless.randomize.verb import randomize

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class LoopConfig:
    """How the loop is run.

    Attributes:
        target: Success in reality that ends it [1].
        max_rounds: Rounds at most.
        real_episodes: Real episodes that each round may use to close the gap, logs that are there included.
        num_trials: Real trials that score the policy before and after; they only score.
        exploration: Size of the slow random motion added while recording [1].
        first: How the first policy is trained, in the model as written.
        last: How the policy is trained on in the ranges found.
    """

    target: float = 0.85
    max_rounds: int = 1
    real_episodes: int = 12
    num_trials: int = 50
    exploration: float = 0.3
    first: TrainConfig = field(default_factory=TrainConfig)
    last: TrainConfig = field(default_factory=lambda: TrainConfig(num_steps=400_000))


def loop(
    directory: str | Path,
    *,
    config: LoopConfig | None = None,
    policy: str | Path | None = None,
    seed: int = 0,
    reality_seed: int = 0,
    progress: Progress | None = None,
) -> LoopResult:
    """Runs the whole loop: simulation, reality, cause, fit, ranges, training, reality again.

    Steps that were done before in the very same way (training) are taken from the catalogue, so that a loop that
    was interrupted goes on where it was.

    Args:
        directory: The project folder; it must name a task and a reality.
        config: How to run it.
        policy: The policy to begin with; None trains one in the model as written.
        seed: Seed of everything random.
        reality_seed: Which twin, where reality is one; robots ignore it.
        progress: Called with what is being done and how far it is, in [0, 1].

    Raises:
        InputError: If the project cannot be used.
    """
    config = config or LoopConfig()
    project = load_project(directory)
    if project.task is None or project.reality is None:
        missing = "task" if project.task is None else "reality"
        raise InputError(f"a loop needs a {missing}: add `{missing}: {missing}.py:NAME` to gapless.yaml")
    steps = _Steps(Path(directory), project, config, seed, reality_seed, progress or _silent)
    with going_on():
        result = _run(steps, None if policy is None else str(policy))
    about = {"project": fingerprint(project), "reality_seed": reality_seed}
    provenance = Provenance("loop", gapless.__version__, (result.last.policy_id, *result.inputs), about, seed)
    store_result_if_possible(Catalogue.open(project.directory), result, provenance)
    return result


@contextmanager
def going_on() -> Iterator[None]:
    """Lets Ctrl-C say what the same command takes over from the catalogue."""
    try:
        yield
    except KeyboardInterrupt:
        text = "trainings, recordings and steps of fits are kept, and the same command goes on from there; "
        raise Interrupted(f"{text}trials that only score are run again") from None


def _run(steps: "_Steps", policy: str | None) -> LoopResult:
    config, first = steps.config, None
    if policy is None:
        first = steps.train("training in the model as written", None, None, config.first)
        policy = first.policy
    simulation = steps.success("trying it in simulation", policy, "simulation")
    before = steps.success("trying it in reality", policy, "reality")
    rounds, after = 0, before
    while True:
        rounds += 1
        real_episodes = steps.record(policy, rounds)
        understood = steps.understand()
        last = steps.train("training in the ranges found", understood.ranges.path, policy, config.last)
        policy = last.policy
        after = steps.success("trying it in reality again", policy, "reality")
        if after.value >= config.target or rounds >= config.max_rounds:
            break
    return LoopResult(
        inputs=understood.fit.inputs,
        simulation=simulation,
        before=before,
        after=after,
        real_episodes=real_episodes,
        target=config.target,
        reached=after.value >= config.target,
        rounds=rounds,
        measure=understood.gap,
        measure_fitted=understood.fitted_gap,
        identify=understood.fit,
        diagnose=understood.causes,
        randomize=understood.ranges,
        first=first,
        last=last,
        seed=steps.seed,
    )


@dataclass(frozen=True)
class _Understood:
    gap: MeasureResult
    causes: DiagnoseResult
    fit: IdentifyResult
    fitted_gap: MeasureResult
    ranges: RandomizeResult


@dataclass(frozen=True)
class _Steps:
    """The steps of the loop, each with its own line of progress."""

    directory: Path
    project: Project
    config: LoopConfig
    seed: int
    reality_seed: int
    progress: Progress

    def _within(self, label: str, *parts: str) -> Progress:
        """Returns a progress under one label; of a verb that has several of its own, those named make up the whole."""
        self.progress(label, 0.0)

        def report(part: str, share: float) -> None:
            before = next((k for k, name in enumerate(parts) if part.startswith(name)), None if parts else 0)
            if before is not None:
                self.progress(label, (before + share) / max(1, len(parts)))

        return report

    def train(self, label: str, ranges: str | None, start: str | None, config: TrainConfig) -> TrainResult:
        report = self._within(label)
        result = train(self.directory, ranges, start=start, config=config, seed=self.seed, progress=report)
        self.progress(label, 1.0)
        return result

    def success(self, label: str, policy: str, where: Where) -> Interval:
        report = self._within(label)
        found = evaluate(
            self.directory,
            policy,
            where=where,
            num_trials=self.config.num_trials,
            seed=self.seed,
            reality_seed=self.reality_seed,
            progress=report,
        )
        self.progress(label, 1.0)
        return found.success

    def record(self, policy: str, rounds: int) -> int:
        """Records real episodes as logs until the round's budget is used; returns how many logs there are."""
        there = _num_logs(self.project)
        missing = self.config.real_episodes * rounds - there
        if missing > 0:
            report = self._within("recording in reality")
            world = open_world(self.project, "reality", missing, self.reality_seed)
            seed = self.seed + 1000 * rounds
            name = f"loop{rounds}-"
            explore = self.config.exploration
            runs = run_trials(
                self.project, world, policy, missing, seed, exploration=explore, name=name, progress=report
            )
            for episode in runs.episodes:
                write_log(self.project, episode)
            self.progress("recording in reality", 1.0)
        return _num_logs(self.project)

    def understand(self) -> _Understood:
        """Measures, diagnoses, fits, and turns the fit into ranges."""
        report = self._within("finding the cause", REHEARSING, FITTING)
        gap = measure(self.directory)
        causes = diagnose(self.directory, seed=self.seed, progress=report)
        self.progress("finding the cause", 1.0)
        fit = identify(self.directory, seed=self.seed, progress=self._within("fitting the model", FIT))
        self.progress("fitting the model", 1.0)
        if fit.verdict == "refused":
            raise InputError(f"the fit was refused, so there is nothing to train on: {'; '.join(fit.reasons)}")
        if fit.model is None:
            raise InputError("the fit could not be kept, and training needs it: free some space, then the same command")
        path = _kept_fit(self.project)
        fitted_gap = measure(self.directory, fit=path)
        ranges = randomize(self.directory, fit=path, seed=self.seed)
        if not ranges.path:
            raise InputError("the ranges could not be kept, and training needs them: free some space, then go on")
        return _Understood(gap, causes, fit, fitted_gap, ranges)


def _kept_fit(project: Project) -> Path:
    catalogue = Catalogue.open(project.directory)
    identity = newest_result(catalogue, "identify")
    if identity is None:
        raise InputError(
            "the fit is no longer in the catalogue: run the loop again, and leave .gapless alone meanwhile"
        )
    return catalogue.artefact_path(identity, RESULT)


def _num_logs(project: Project) -> int:
    try:
        return len(log_paths(project))
    except LogError:
        return 0


def _silent(label: str, share: float) -> None:
    del label, share
