"""The verb `loop`: train, meet reality, find the cause, close the gap, prove it."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import gapless
from gapless.check.examine import EXAMINING
from gapless.check.verb import check
from gapless.core.dimensions import DIMENSIONS, Dimension
from gapless.core.errors import InputError, Interrupted, LogError
from gapless.core.interval import Interval
from gapless.core.protocols import Progress
from gapless.core.provenance import Provenance
from gapless.core.results import (
    Decision,
    DiagnoseResult,
    IdentifyResult,
    LoopResult,
    MeasureResult,
    RandomizeResult,
    TrainResult,
)
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import artefact_ids, result_path, store_result_if_possible
from gapless.diagnose.verb import diagnose
from gapless.fit.data import read_project_data
from gapless.identify.verb import EXPLAINING, FIT, identify
from gapless.learn.evaluate import Where, evaluate, open_world, run_trials
from gapless.learn.train import TrainConfig, train
from gapless.measure.verb import measure
from gapless.project.fingerprint import fingerprint
from gapless.project.load import load_project
from gapless.project.log.read import log_paths
from gapless.project.log.write import write_log
from gapless.project.records import Project
from gapless.randomize.verb import randomize

LIKELY = 0.5  # a cause above this probability takes part more probably than not
MIN_TAKES_PART = 0.1  # a dimension below this probability is not randomised; `diagnose` calls it decided there too


@dataclass(frozen=True)
class LoopConfig:
    """How the loop is run."""

    target: float = 0.85  # success in reality that ends it [1]
    max_rounds: int = 1  # rounds at most
    real_episodes: int = 12  # real episodes that each round may use to close the gap, logs that are there included
    num_trials: int = 50  # real trials that score the policy before and after; they only score
    exploration: float = 0.3  # size of the slow random motion added while recording [1]
    first: TrainConfig = field(default_factory=TrainConfig)  # training in the model as written
    last: TrainConfig = field(default_factory=lambda: TrainConfig(num_steps=400_000))  # training in the ranges found


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
    was interrupted goes on where it was. The project must name a task and a reality. `policy` is the one to begin with,
    None trains one in the model as written; `reality_seed` says which twin, where reality is one.
    """
    config = config or LoopConfig()
    project = load_project(directory)
    require_reality(project, "a loop needs a {}")
    steps = _Steps(Path(directory), project, config, seed, reality_seed, progress or (lambda label, share: None))
    with explain_interruption():
        result = _run(steps, None if policy is None else str(policy))
    about = {"project": fingerprint(project), "reality_seed": reality_seed}
    trained = result.last or result.first
    parents = (*artefact_ids(trained.policy if trained else policy), *result.inputs)
    provenance = Provenance("loop", gapless.__version__, parents, about, seed)
    return replace(result, id=store_result_if_possible(Catalogue.open(project.directory), result, provenance))


def require_reality(project: Project, why: str) -> None:
    """Raises an error where a project names no task or no reality."""
    missing = "task" if project.task is None else "reality" if project.reality is None else None
    if missing:
        raise InputError(f"{why.format(missing)}: add `{missing}: {missing}.py:NAME` to gapless.yaml")


@contextmanager
def explain_interruption() -> Iterator[None]:
    """Lets Ctrl-C say what the same command takes over from the catalogue."""
    try:
        yield
    except KeyboardInterrupt:
        text = "trainings, recordings and steps of fits are kept, and the same command goes on from there; "
        raise Interrupted(f"{text}trials that only score are run again") from None


def _run(steps: "_Steps", policy: str | None) -> LoopResult:
    config, first, last = steps.config, None, None
    if policy is None:
        first = steps.train("training in the model as written", None, None, config.first)
        policy = first.policy
    simulation = steps.measure_success("trying it in simulation", policy, "simulation")
    before = after = steps.measure_success("trying it in reality", policy, "reality")
    found = _Round(decide(None, before, config.target))
    rounds = real_episodes = 0
    while found.decision.action == "train" and rounds < config.max_rounds and after.value < config.target:
        rounds += 1
        real_episodes = steps.record_logs(policy, rounds)
        found = steps.find_ranges(after)
        if found.randomize is not None:
            last = steps.train("training in the ranges found", found.randomize.path, policy, config.last)
            policy = last.policy
            after = steps.measure_success("trying it in reality again", policy, "reality")
    return LoopResult(
        inputs=found.measure.inputs if found.measure else (),
        simulation=simulation,
        before=before,
        after=after,
        real_episodes=real_episodes,
        target=config.target,
        reached=after.value >= config.target,
        rounds=rounds,
        first=first,
        last=last,
        seed=steps.seed,
        **vars(found),
    )


@dataclass(frozen=True)
class _Round:
    """What one round decided, and the results of its verbs; None for those that it ended before."""

    decision: Decision
    measure: MeasureResult | None = None
    diagnose: DiagnoseResult | None = None
    identify: IdentifyResult | None = None
    measure_fitted: MeasureResult | None = None
    randomize: RandomizeResult | None = None


@dataclass(frozen=True)
class _Steps:
    """The steps of the loop, each with its own line of progress."""

    directory: Path
    project: Project
    config: LoopConfig
    seed: int
    reality_seed: int
    progress: Progress

    @contextmanager
    def _report(self, label: str, *parts: str) -> Iterator[Progress]:
        """Yields a progress under one label; of a verb that has several of its own, `parts` make up the whole."""
        self.progress(label, 0.0)

        def report(part: str, share: float) -> None:
            before = next((k for k, name in enumerate(parts) if part.startswith(name)), None if parts else 0)
            if before is not None:
                self.progress(label, (before + share) / max(1, len(parts)))

        yield report
        self.progress(label, 1.0)

    def train(self, label: str, ranges: str | None, start: str | None, config: TrainConfig) -> TrainResult:
        """Trains a policy."""
        with self._report(label) as report:
            return train(self.directory, ranges, start=start, config=config, seed=self.seed, progress=report)

    def measure_success(self, label: str, policy: str, where: Where) -> Interval:
        """Runs trials that only score a policy."""
        options = {"num_trials": self.config.num_trials, "seed": self.seed, "reality_seed": self.reality_seed}
        with self._report(label) as report:
            return evaluate(self.directory, policy, where=where, **options, progress=report).success

    def record_logs(self, policy: str, number: int) -> int:
        """Records real episodes as logs until the budget of round `number` is used; returns how many logs there are."""
        missing = self.config.real_episodes * number - _count_logs(self.project)
        if missing > 0:
            seed, name, exploration = self.seed + 1000 * number, f"loop{number}-", self.config.exploration
            with self._report("recording in reality") as report:
                world = open_world(self.project, "reality", missing, self.reality_seed)
                options = {"exploration": exploration, "name": name, "progress": report}
                for episode in run_trials(self.project, world, policy, missing, seed, **options).episodes:
                    write_log(self.project, episode)
        return _count_logs(self.project)

    def find_ranges(self, trials: Interval) -> _Round:
        """Measures, checks and diagnoses; where training can close the gap, fits and turns the fit into ranges."""
        gap = measure(self.directory)
        with self._report("checking the data", EXAMINING) as report:
            faults = [note for note in check(self.directory, progress=report).notes if note.level == "fault"]
        mistakes = [f"{note.where}: {note.text}" for note in faults if note.where != "simulation"]
        decision = decide(None, trials, self.config.target, faults=mistakes)
        if decision.action != "train":
            return _Round(decision, gap)
        with self._report("finding the cause", EXPLAINING, FIT) as report:
            causes = diagnose(self.directory, seed=self.seed, progress=report)
        expressed = read_project_data(self.directory).whole.dimensions
        decision = decide(causes, trials, self.config.target, expressed=expressed)
        if decision.action != "train":
            return _Round(decision, gap, causes)
        with self._report("fitting the model", FIT) as report:
            fit = identify(self.directory, seed=self.seed, progress=report)
        if fit.verdict == "refused":
            text = f"the fit was refused, so there are no ranges to train on: {'; '.join(fit.reasons)}"
            return _Round(Decision("stop", (), text), gap, causes, fit)
        if fit.id is None:
            raise InputError("the fit could not be kept, and training needs it: free some space, then the same command")
        path = result_path(Catalogue.open(self.project.directory), fit.id)
        fitted_gap = measure(self.directory, fit=path)
        ranges = randomize(self.directory, fit=path, dimensions=decision.dimensions, seed=self.seed)
        if not ranges.path:
            raise InputError("the ranges could not be kept, and training needs them: free some space, then go on")
        return _Round(decision, gap, causes, fit, fitted_gap, ranges)


def decide(
    diagnosis: DiagnoseResult | None,
    trials: Interval,
    target: float,
    *,
    faults: Sequence[str] = (),
    expressed: Collection[Dimension] = DIMENSIONS,
) -> Decision:
    """Returns whether to fit, randomise and train, and for which dimensions; or why training is not the answer.

    `diagnosis` is None where it was not run yet; `trials` is the success of the policy in reality; `faults` are
    mistakes in the data that `check` found; `expressed` are the dimensions that parameters of the project express.
    """
    success = f"{trials.percent()} of {trials.n} real trials"
    if trials.value >= target:
        return Decision("done", (), f"the policy succeeds in {success}: the target of {100 * target:.0f} % is met")
    if faults:
        text = f"the data has mistakes, and no fit of such data can be trusted: {'; '.join(faults)}"
        return Decision("stop", (), f"{text}. Correct them, then run the loop again")
    if diagnosis is None:
        return Decision("train", tuple(expressed), f"the policy succeeds in {success}: the cause is not known yet")
    if diagnosis.no_gap.probability > LIKELY:
        text = f"no gap between model and logs is found (probability {diagnosis.no_gap.probability:.2f})"
        text += f", and the policy succeeds in only {success}. A fit and ranges would change little: train longer, "
        text += "change the task, or look at what the logs do not record, such as cameras and people"
        return Decision("stop", (), text)
    likely = [cause.dimension for cause in diagnosis.causes if cause.probability > LIKELY]
    closed = [dimension for dimension in likely if dimension in expressed]
    other = " and ".join(dimension for dimension in likely if dimension not in expressed)
    unmodelled = diagnosis.unmodelled.probability > LIKELY
    if unmodelled and not likely:
        text = f"the gap is unmodelled (probability {diagnosis.unmodelled.probability:.2f})"
        text += ": no parameter of this model expresses it, so neither a fit nor training on ranges closes it. Look "
        text += "at the moments that `gapless diagnose` names, and add what the model lacks"
        return Decision("stop", (), text)
    if likely and not closed:
        text = f"the gap comes from {other}, which no parameter of this project expresses, so training on ranges does "
        text += "not close it. Do what `gapless diagnose` advises, or list parameters for it in gapless.yaml"
        return Decision("stop", (), text)
    # Those that take part, most probable first, and those that look like them; all where none stands out.
    found: list[Dimension] = [c.dimension for c in diagnosis.causes if c.probability > MIN_TAKES_PART]
    found.extend(d for group in diagnosis.ambiguous if set(group) & set(found) for d in group)
    dimensions: tuple[Dimension, ...] = tuple(d for d in dict.fromkeys(found) if d in expressed) or tuple(expressed)
    left = [other] if other else []
    left += ["something unmodelled"] if unmodelled else []
    rest = f"; {' and '.join(left)} also takes part, and training does not close that part" if left else ""
    return Decision("train", dimensions, f"fit, then train on ranges of {', '.join(dimensions)}{rest}")


def _count_logs(project: Project) -> int:
    try:
        return len(log_paths(project))
    except LogError:
        return 0
