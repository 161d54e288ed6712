"""The verb `diagnose`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import gapless
from gapless.check.examine import examine_data
from gapless.core.dimensions import Dimension
from gapless.core.errors import InputError
from gapless.core.protocols import Progress, Task
from gapless.core.provenance import Provenance
from gapless.core.results import (
    Advice,
    Cause,
    ConditionRate,
    DiagnoseResult,
    IdentifyResult,
    Probability,
    TellingMoment,
)
from gapless.core.signal import Array
from gapless.data.stored_results import (
    artefact_ids,
    find_same_result,
    load_stored_result,
    store_result_if_possible,
)
from gapless.diagnose.combine import Diagnosis, combine_evidence
from gapless.diagnose.counterfactual.compare import MIN_REAL_RUNS, compare_failures
from gapless.diagnose.counterfactual.policy_runs import make_policy_simulator, rank_repairs
from gapless.diagnose.counterfactual.spread import compare_spread
from gapless.diagnose.named_mechanisms import name_mechanisms
from gapless.diagnose.outcomes.records import OutcomeEvidence
from gapless.diagnose.outcomes.weigh import MIN_RUNS, weigh_outcomes
from gapless.diagnose.scatter_causes import add_scatter_causes
from gapless.diagnose.sentences import Named, advise, describe_signals
from gapless.diagnose.shares import GapShare, estimate_shares, find_moments
from gapless.fit.data import ProjectData, read_project_data
from gapless.fit.mechanisms.candidates import CandidateParameters
from gapless.fit.mechanisms.explain import SignalEvidence, agree_with_fit
from gapless.fit.remainder.explain import explain_remainder
from gapless.identify.stored import FitOptions, find_stored_fit
from gapless.identify.verb import explain_project, fit_explained
from gapless.learn.policy import NetworkPolicy, load_policy
from gapless.project.code import load_task
from gapless.project.fingerprint import fingerprint
from gapless.project.load import load_project
from gapless.project.records import Project
from gapless.sim.ranges import read_fit

MAX_NOMINAL_FAILURES = 0.5  # share of runs that fail in the model as written, above which failures show no gap
LIKELY = 0.5  # probability from which something unmodelled is looked into
MAX_REPAIRS = 3  # that are named


def diagnose(
    directory: str | Path,
    *,
    policy: str | Path | None = None,
    fit: str | Path | None = None,
    where: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> DiagnoseResult:
    """Says which dimensions cause the gap, from signals, from outcomes, and with a policy from simulated failures.

    Sets of mechanisms are fitted and judged on windows that they were not fitted to, each number at its price; the best
    set is then fitted as `identify` does, and both verbs give the same values. Where outcomes are known, with a log or
    without, conditions and phases of failure count as well. With a policy, each dimension is made wrong in simulation,
    and the failures are compared with the real ones. A diagnosis that the same code made of the same project and logs
    is taken from the catalogue.

    Args:
        directory: The project folder.
        policy: A policy that `train` wrote, whose real runs are among the logs; it needs the project's task.
        fit: A fit that `identify` wrote. It is read and checked, and no longer needed: the fit of these logs is taken.
        where: SQL condition on the view `episodes` of runs to use, such as `site = 'lab'`; None for all.
        seed: Seed of windows and draws.
        progress: Called with what is being done and how far it is, in [0, 1].

    Raises:
        InputError: If the project, its logs, the policy or the fit cannot be used.
    """
    player = None if policy is None else _load_player(load_project(directory), policy)
    data = read_project_data(directory, with_unlogged=True, where=where, progress=progress)
    if fit is not None:
        read_fit(fit, data.blueprint)
    parents = (*data.ids, *artefact_ids(policy))
    config = {"project": fingerprint(data.project)} | ({"labels": dict(data.labels)} if data.labels else {})
    provenance = Provenance("diagnose", gapless.__version__, parents, config, seed)
    all_known = len(artefact_ids(policy)) == (policy is not None)
    if all_known and (stored := _find_stored(data, provenance)) is not None:
        return stored
    found = examine_data(data, progress)
    data, outcomes = found.evidence, weigh_outcomes(data.runs)
    candidates = CandidateParameters.from_logs(data) if data.tracks else None
    if candidates is not None and outcomes is None and not len(candidates.space):
        raise InputError("no parameter to judge by: list some under `parameters` in gapless.yaml, or write auto")
    signals, refusal = None, found.refusal
    if candidates is not None:
        explained = explain_project(found, data.split(())[0], seed, progress)
        signals, refusal = (None, explained) if isinstance(explained, str) else (explained, None)
    if signals is None and outcomes is None:
        few = "" if candidates else f"; outcomes alone need {MIN_RUNS} or more runs and one failure"
        return _store(data, _undecided_result(data, f"{refusal}{few}", seed), provenance)
    fitted = None
    if signals is not None and signals.best.mechanisms:
        options = FitOptions(seed=seed, progress=progress)
        fitted = find_stored_fit(data, options) or fit_explained(found, signals, options)
    if signals is not None:
        signals = agree_with_fit(signals, fitted.parameters if fitted else ())
    simulated = _PolicyEvidence()
    if player is not None:
        simulated = _simulate_failures(data, candidates, signals, player, seed, progress)
    notes = [f"{copy} holds the same recording as {first} and is left out" for copy, first in data.copies.items()]
    notes += [note.text for note in found.notes] + ([refusal] if refusal else [])
    result = _make_result(data, notes, outcomes, signals, fitted, simulated, seed)
    result = add_scatter_causes(result, signals.scatter if signals else ())
    if signals is not None and result.unmodelled.probability > LIKELY:
        forms = explain_remainder(signals.fitted_problem, signals.whole_row)
        sentences = tuple(form.sentence for form in forms)
        result = replace(result, remainder=forms, evidence=(*result.evidence, *sentences))
    return _store(data, result, provenance)


def _load_player(project: Project, path: str | Path) -> tuple[NetworkPolicy, Task]:
    """Returns a policy and the task that it plays, before anything that takes long.

    Raises:
        InputError: If there is no task, or the file is no policy.
    """
    if project.task is None:
        raise InputError("--policy needs a task: name one in gapless.yaml (task: task.py:NAME)")
    return load_policy(path), load_task(project)


@dataclass(frozen=True)
class _PolicyEvidence:
    """What a policy does in simulation: log likelihood ratio of each dimension [nats], and sentences."""

    log_ratios: Mapping[Dimension, float] = field(default_factory=dict)
    sentences: tuple[str, ...] = ()


def _simulate_failures(
    data: ProjectData,
    candidates: CandidateParameters | None,
    signals: SignalEvidence | None,
    player: tuple[NetworkPolicy, Task],
    seed: int,
    progress: Progress | None,
) -> _PolicyEvidence:
    """Returns what each dimension, wrong in simulation, does to a policy; runs without a log take no part."""
    real = [episode for episode in data.episodes if episode.outcome is not None]
    few = f"the policy was not tried in simulation: it needs {MIN_REAL_RUNS} or more runs with an outcome and a log"
    if candidates is None or len(real) < MIN_REAL_RUNS:
        return _PolicyEvidence(sentences=(few,))
    space, rng = candidates.space, np.random.default_rng([seed, 1])
    simulate = make_policy_simulator(data.project, *player, space)
    dimensions: list[Dimension] = [d for d in space.dimensions if d != "numerics"]

    def draw(dimension: Dimension, source: np.random.Generator, count: int) -> Array:
        return np.stack([candidates.draw(dimension, source) for _ in range(count)])

    found = compare_failures(simulate, real, dimensions, draw, rng, space=space, progress=progress)
    if found is None:
        return _PolicyEvidence(sentences=(few,))
    if found.nominal.value > MAX_NOMINAL_FAILURES:
        text = f"the policy fails in the model as written too ({found.nominal.percent()} of simulated runs)"
        text += ": its failures do not show the gap; train it until it succeeds there"
        return _PolicyEvidence(sentences=(text,))
    sentences = list(found.sentences)
    if signals is not None and signals.best.mechanisms:
        for repair in rank_repairs(simulate, signals.row, space, rng)[:MAX_REPAIRS]:
            sentences.append(
                f"with everything as fitted the policy succeeds in {repair.before.percent()} of simulated runs, with "
                f"{repair.dimension} corrected in {repair.success.percent()}"
            )
    return _PolicyEvidence(found.log_ratios, tuple(sentences))


def _make_result(
    data: ProjectData,
    notes: Sequence[str],
    outcomes: OutcomeEvidence | None,
    signals: SignalEvidence | None,
    fitted: IdentifyResult | None,
    simulated: _PolicyEvidence,
    seed: int,
) -> DiagnoseResult:
    """Returns the result of all evidence, after notes on the logs themselves."""
    diagnosis = combine_evidence(signals, outcomes, simulated.log_ratios)
    moments: list[TellingMoment] = []
    named: Named = {}
    if signals is not None:
        named = name_mechanisms(signals, fitted)
        diagnosis = _add_details(diagnosis, signals, named, seed)
        likely: list[Dimension] = [d for d in diagnosis.likely if d in signals.best.dimensions]
        moments = [moment for cause in likely for moment in find_moments(data, signals, cause)]
    sentences = [*notes, *(describe_signals(signals, named) if signals else ())]
    sentences += [*(outcomes.sentences if outcomes else ()), *simulated.sentences]
    spread = compare_spread(data)
    suggestions = (Advice("measure", text) for text in (outcomes.suggestions if outcomes else ()))
    return DiagnoseResult(
        inputs=data.ids,
        causes=diagnosis.causes,
        no_gap=Probability(diagnosis.no_gap),
        unmodelled=Probability(diagnosis.unmodelled),
        evidence=(*sentences, *((spread.sentence,) if spread else ())),
        ambiguous=diagnosis.ambiguous,
        advice=(*advise(diagnosis, signals), *suggestions),
        seed=seed,
        unexplained=signals.probabilities.unexplained if signals else 0.0,
        moments=tuple(moments),
        conditions=_list_conditions(outcomes),
    )


def _add_details(diagnosis: Diagnosis, signals: SignalEvidence, named: Named, seed: int) -> Diagnosis:
    """Returns a diagnosis whose causes have their shares of the gap and their mechanisms."""
    ranked: list[Dimension] = [cause.dimension for cause in diagnosis.causes]
    shares = estimate_shares(signals.explanations, ranked, np.random.default_rng([seed, 2]))
    none = GapShare(0.0, 0.0, 0.0)
    causes = [
        Cause(c.dimension, c.probability, *shares.get(c.dimension, none), tuple(named.get(c.dimension, ())))
        for c in diagnosis.causes
    ]
    causes.sort(key=lambda cause: (-cause.probability, -cause.share))
    return replace(diagnosis, causes=tuple(causes))


def _list_conditions(outcomes: OutcomeEvidence | None) -> tuple[ConditionRate, ...]:
    """Returns the table of conditions, those that matter most first."""
    rates: list[ConditionRate] = []
    for factor in outcomes.factors if outcomes else ():
        for level in factor.levels:
            counts, failure = (level.num_runs, level.num_failures), level.failure
            ends = failure.value, failure.low, failure.high
            rates.append(ConditionRate(factor.name, level.value, *counts, *ends, factor.probability))
    return tuple(rates)


def _store(data: ProjectData, result: DiagnoseResult, provenance: Provenance) -> DiagnoseResult:
    """Enters a diagnosis in the catalogue; returns it."""
    return replace(result, id=store_result_if_possible(data.catalogue, result, provenance))


def _find_stored(data: ProjectData, provenance: Provenance) -> DiagnoseResult | None:
    """Returns the diagnosis that the same code made of the same logs with the same options; None if there is none."""
    identity = find_same_result(data.catalogue, "diagnose", provenance)
    try:
        result = load_stored_result(data.catalogue, identity) if identity else None
    except (InputError, OSError, ValueError, TypeError):  # deleted or damaged: it is made again
        return None
    return result if isinstance(result, DiagnoseResult) else None


def _undecided_result(data: ProjectData, reason: str, seed: int) -> DiagnoseResult:
    """Returns the diagnosis of logs that show nothing: everything is as likely as not."""
    dimensions = data.space.dimensions
    causes = tuple(Cause(dimension, 0.5, 0.0, 0.0, 1.0) for dimension in dimensions)
    unknown = Probability(0.5)
    groups = (dimensions,) if len(dimensions) > 1 else ()
    advice = (Advice("measure", f"record more, then measure again: {reason}"),)
    return DiagnoseResult(data.ids, causes, unknown, unknown, (reason,), groups, advice, seed)
