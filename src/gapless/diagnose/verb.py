"""The verb `diagnose`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import gapless
from gapless.check.examine import NO_SIGNALS, examine_data
from gapless.core.dimensions import Dimension
from gapless.core.errors import InputError
from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Task
from gapless.core.provenance import Provenance
from gapless.core.results import Advice, Cause, ConditionRate, DiagnoseResult, Probability
from gapless.core.signal import Array
from gapless.data.stored_results import artefact_ids, store_result_if_possible
from gapless.diagnose.counterfactual.repairs import rank_repairs
from gapless.diagnose.counterfactual.simulate import policy_simulator
from gapless.diagnose.counterfactual.spread import compare_spread
from gapless.diagnose.counterfactual.weigh import MIN_REAL_RUNS, weigh_counterfactuals
from gapless.diagnose.hypotheses.frame import WINDOW_S
from gapless.diagnose.hypotheses.read import Progress, TraceEvidence, read_traces
from gapless.diagnose.hypotheses.suspects import Severities
from gapless.diagnose.outcomes.records import OutcomeEvidence
from gapless.diagnose.outcomes.weigh import MIN_RUNS, weigh_outcomes
from gapless.diagnose.verdict import judge
from gapless.diagnose.words import advice, trace_sentences
from gapless.fit.data import ProjectData, read_project_data
from gapless.fit.prediction.windows import cut_windows
from gapless.fit.search.structure import MIN_WINDOWS
from gapless.learn.policy import NetworkPolicy, load_policy
from gapless.project.code import load_task
from gapless.project.fingerprint import fingerprint
from gapless.project.load import load_project
from gapless.project.records import Project
from gapless.sim.blueprint import CompiledProject
from gapless.sim.ranges import read_fit

FAILS_ANYWAY = 0.5  # share of runs that fail in the model as written, above which failures tell nothing of a gap


def diagnose(
    directory: str | Path,
    *,
    policy: str | Path | None = None,
    fit: str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> DiagnoseResult:
    """Says which dimensions cause the gap, from signals, from outcomes, and with a policy from simulated failures.

    Sets of dimensions are fitted on one half of the logs and judged on the other; how sure a difference is comes from
    cases of this very model that are rehearsed once and kept in the project's catalogue. Where outcomes are known, with
    a log or without, conditions and phases of failure speak as well. With a policy, each dimension is switched on in
    simulation, and the failures are compared with the real ones.

    Args:
        directory: The project folder.
        policy: A policy that `train` wrote, whose real runs are among the logs; it needs the project's task.
        fit: A fit that `identify` wrote. Causes are searched near it too: a model that is far off in much at once has
            causes which steps from the model as written do not reach.
        seed: Seed of windows and draws.
        progress: Called with what is being done and how far it is, in [0, 1].

    Raises:
        InputError: If the project, its logs, the policy or the fit cannot be used.
    """
    player = None if policy is None else _player(load_project(directory), policy)
    found = examine_data(read_project_data(directory, with_unlogged=True, progress=progress), progress)
    evidence = found.evidence
    fitted = None if fit is None else _values(fit, evidence.blueprint)
    outcomes = weigh_outcomes(evidence.runs)
    own = evidence.for_runs
    severities = Severities.of(evidence) if evidence.tracks else None
    refusal = found.refusal or (_why_not(evidence, severities.space) if severities else NO_SIGNALS)
    if outcomes is None and severities and not len(severities.space):
        raise InputError("no parameter to judge by: list some under `parameters` in gapless.yaml, or write auto")
    if refusal is not None and outcomes is None:
        few = "" if severities else f"; outcomes tell something from {MIN_RUNS} runs and one failure on"
        return _kept(evidence, _undecided(evidence, refusal + few, seed), policy, fit)
    silent = refusal is not None or severities is None
    traces = None if silent else read_traces(own, Severities.of(own), seed, progress, fitted)
    tried = None if player is None else _try_policy(evidence, severities, traces, player, seed, progress)
    heard = [f"{copy} holds the same recording as {first} and is left out" for copy, first in evidence.copies.items()]
    heard += [note.text for note in found.notes] + ([refusal] if refusal else [])
    return _kept(evidence, _result(evidence, heard, outcomes, traces, tried, seed), policy, fit)


def _values(fit: str | Path, blueprint: CompiledProject) -> dict[str, float]:
    """Returns target -> value of a fit."""
    space, row = read_fit(fit, blueprint)
    return {target: float(value) for target, value in zip(space.targets, row, strict=True)}


@dataclass(frozen=True)
class _Tried:
    """What a policy does in simulation: log likelihood ratio of each dimension [nats], and sentences."""

    log_ratios: Mapping[Dimension, float]
    sentences: tuple[str, ...]


def _player(project: Project, path: str | Path) -> tuple[NetworkPolicy, Task]:
    """Returns a policy and the task that it plays, before anything that takes long.

    Raises:
        InputError: If there is no task, or the file is no policy.
    """
    if project.task is None:
        raise InputError("--policy needs a task: name one in gapless.yaml (task: task.py:NAME)")
    return load_policy(path), load_task(project)


def _try_policy(
    evidence: ProjectData,
    severities: Severities | None,
    traces: TraceEvidence | None,
    player: tuple[NetworkPolicy, Task],
    seed: int,
    progress: Progress | None,
) -> _Tried:
    """Returns what switching each dimension on in simulation does to a policy; runs without a log take no part."""
    real = [episode for episode in evidence.episodes if episode.outcome is not None]
    few = f"the policy was not tried in simulation: it needs {MIN_REAL_RUNS} or more runs with an outcome and a log"
    if severities is None or len(real) < MIN_REAL_RUNS:
        return _Tried({}, (few,))
    space = severities.space
    simulate = policy_simulator(evidence.project, *player, space)
    dimensions = [d for d in space.dimensions if d != "numerics"]
    rng = np.random.default_rng([seed, 1])

    def draw(dimension: Dimension, source: np.random.Generator, count: int) -> Array:
        return np.stack([severities.draw(dimension, source) for _ in range(count)])

    found = weigh_counterfactuals(simulate, real, dimensions, draw, rng, space=space, progress=progress)
    if found is None:
        return _Tried({}, (few,))
    if found.nominal.value > FAILS_ANYWAY:
        text = f"the policy fails in the model as written too ({found.nominal.percent()} of simulated runs)"
        return _Tried({}, (f"{text}: how it fails tells nothing of the gap; train it until it succeeds there",))
    sentences = list(found.sentences)
    if traces is not None and traces.best.subset:
        for repair in rank_repairs(simulate, traces.row, space, rng)[:3]:
            sentences.append(
                f"with everything as fitted the policy succeeds in {repair.before.percent()} of simulated runs, with "
                f"{repair.dimension} put right in {repair.success.percent()}"
            )
    return _Tried(found.log_ratios, tuple(sentences))


def _why_not(evidence: ProjectData, space: ParameterSpace) -> str | None:
    """Returns why the signals of these logs say nothing, or None."""
    if not len(space):
        return "no parameter to judge signals by: list some under `parameters` in gapless.yaml, or write auto"
    windows = cut_windows(evidence.project, evidence.tracks, WINDOW_S)
    if len(windows) < MIN_WINDOWS:
        return (
            f"only {len(windows)} of at least {MIN_WINDOWS} windows of {WINDOW_S:g} s to look at: record more than "
            f"{MIN_WINDOWS * WINDOW_S:.1f} s in which every mapped column is present"
        )
    moves = windows.measured.reshape(-1, windows.measured.shape[-1])
    if bool((np.nanstd(moves, axis=0) < 3 * windows.noise).all()):
        return "nothing moves in these logs by more than the noise: record a motion"
    return None


def _result(
    evidence: ProjectData,
    heard: Sequence[str],
    outcomes: OutcomeEvidence | None,
    traces: TraceEvidence | None,
    tried: _Tried | None,
    seed: int,
) -> DiagnoseResult:
    """Returns the verdict of everything that speaks, after what was heard of the logs themselves."""
    verdict = judge(traces, outcomes, tried.log_ratios if tried else None)
    sentences = [*heard, *(trace_sentences(traces) if traces else ())]
    sentences += [*(outcomes.sentences if outcomes else ()), *(tried.sentences if tried else ())]
    spread = compare_spread(evidence.project, evidence.episodes)
    steps = [
        *advice(verdict, traces),
        *(Advice("measure", text) for text in (outcomes.suggestions if outcomes else ())),
    ]
    return DiagnoseResult(
        inputs=evidence.ids,
        causes=verdict.causes,
        no_gap=Probability(verdict.no_gap),
        unmodelled=Probability(verdict.unmodelled),
        evidence=(*sentences, *((spread.sentence,) if spread else ())),
        ambiguous=verdict.ambiguous,
        advice=tuple(steps),
        seed=seed,
        unexplained=traces.belief.unexplained if traces else 0.0,
        moments=traces.moments if traces else (),
        conditions=_conditions(outcomes),
    )


def _conditions(outcomes: OutcomeEvidence | None) -> tuple[ConditionRate, ...]:
    """Returns the table of conditions, those that matter most first."""
    factors = sorted(outcomes.factors, key=lambda factor: -factor.probability) if outcomes else []
    return tuple(
        ConditionRate(
            factor.name,
            level.value,
            level.num_runs,
            level.num_failures,
            level.failure.value,
            level.failure.low,
            level.failure.high,
            factor.probability,
        )
        for factor in factors
        for level in factor.levels
    )


def _kept(evidence: ProjectData, result: DiagnoseResult, *used: str | Path | None) -> DiagnoseResult:
    """Enters a diagnosis in the catalogue, with the files that it used; returns it."""
    config = {"project": fingerprint(evidence.project)}
    inputs = (*evidence.ids, *artefact_ids(*used))
    provenance = Provenance("diagnose", gapless.__version__, inputs, config, result.seed)
    return replace(result, id=store_result_if_possible(evidence.catalogue, result, provenance))


def _undecided(evidence: ProjectData, reason: str, seed: int) -> DiagnoseResult:
    """Returns the diagnosis of logs that say nothing: everything is as likely as not."""
    dimensions = evidence.space.dimensions
    causes = tuple(Cause(dimension, 0.5, 0.0, 0.0, 1.0) for dimension in dimensions)
    unknown = Probability(0.5)
    groups = (dimensions,) if len(dimensions) > 1 else ()
    steps = (Advice("measure", f"record more, then measure again: {reason}"),)
    return DiagnoseResult(evidence.ids, causes, unknown, unknown, (reason,), groups, steps, seed)
