"""The verb `identify`."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np

import gapless
from gapless.check.examine import Examination, examine_data
from gapless.core.errors import InputError, Interrupted
from gapless.core.parameters import ParameterSpace
from gapless.core.provenance import Provenance
from gapless.core.results import FitErrors, FittedParameter, IdentifyResult, Trace
from gapless.core.signal import Array
from gapless.data.stored_results import store_result_if_possible
from gapless.fit.data import ProjectData, read_project_data
from gapless.fit.per_run import PerRunSolution, fit_own_values, summarize_runs
from gapless.fit.prediction.lengths import shortest_window_s
from gapless.fit.problem import FitProblem, Watch
from gapless.fit.scatter.parameters import split_scatter_parameters, with_scatter
from gapless.fit.search.checkpoint import Checkpoint, open_checkpoint
from gapless.fit.search.force_scale import widen_by_force_scale
from gapless.fit.search.structure import (
    FINAL_SCHEDULE,
    LAST_SCHEDULE,
    StructureResult,
    build_problem,
    report_progress,
    search_structure,
)
from gapless.fit.solution import Solution, widen_intervals
from gapless.fit.solve import Progress, descend, partial_progress
from gapless.fit.summary import (
    INTERVAL_LEVEL,
    describe_parameters,
    determined_combinations,
    find_refusal,
    measure_fit_errors,
)
from gapless.fit.time_step import remove_time_step_error
from gapless.fit.traces import example_traces
from gapless.identify.anchor import anchor_reason
from gapless.identify.drift.compare import since_then
from gapless.identify.drift.earlier import earlier_fit, recorded_span
from gapless.identify.posterior.samples import GAUSSIAN, NEURAL, gaussian_samples, parquet_bytes
from gapless.identify.verdict import add_data_findings, verdict
from gapless.project.fingerprint import fingerprint
from gapless.sim.corrected import corrected_xml

FIT = "fit"  # what it is called where progress is shown


def identify(
    directory: str | Path,
    hold_out: Sequence[str] = (),
    *,
    logs: Sequence[str] = (),
    since: str | Path | None = None,
    posterior: Literal["gaussian", "sbi"] = "gaussian",
    window_s: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> IdentifyResult:
    """Fits the model's parameters to the logs on short windows and says what cannot be told.

    Args:
        directory: The project folder.
        hold_out: Names of logs to judge on instead of fitting; by default every fourth.
        logs: Patterns of the names of logs to use, such as `march-*`; by default all.
        since: JSON of an earlier fit to compare with; by default the earliest in the catalogue that suits.
        posterior: `sbi` also samples the posterior by neural estimation (needs the extra `sbi`).
        window_s: Length of the prediction windows [s]; None lets the logs decide.
        seed: Seed of the starts tried, the windows chosen and the samples drawn.
        progress: Called with what is being done and how far it is, in [0, 1].
        watch: Called with all parameters that may be fitted and a whole row of them, at every step of every solver
            and with the result; for benchmarks and plots of how a fit came about.

    Raises:
        InputError: If the project, its logs or the earlier fit cannot be used, or `sbi` is not installed.
    """
    neural = _neural(posterior)
    looked = _looked(directory, logs, neural, progress)
    told, chance = split_scatter_parameters(looked.evidence)
    evidence = told.for_runs
    named = earlier_fit(evidence, since, 0.0) if since is not None else None  # bad input shows before the work
    fitted, held = evidence.split(hold_out)
    rng = np.random.default_rng(seed)
    first_s = window_s or shortest_window_s(evidence.project)
    train = replace(build_problem(evidence, evidence.whole, fitted, first_s, rng), watch=watch)
    refusal = looked.refusal or find_refusal(evidence, train, first_s)
    if refusal:
        return _unfitted(told, looked, chance, (fitted, held), first_s, seed, refusal)
    train.notice(train.unit(train.base))
    options = {"hold_out": sorted(hold_out), "window_s": window_s, "seed": seed}
    with _noted(evidence, options, progress) as (journal, report):
        found = search_structure(train, evidence, fitted, window_s, rng, partial_progress(report, 0.0, 0.7), journal)
        window_s, structure = found.window_s, found.structure
        train = replace(found.problem, free=structure.free)
        weighted, solution = _solved(
            train.reweighted(structure.row), found, partial_progress(report, 0.7, 0.3), journal
        )
        train.notice(solution.unit)
        between = summarize_runs(train, solution)
        held_out = build_problem(evidence, evidence.whole, held, window_s, rng) if held else train.without_windows
        row = fit_own_values(held_out, solution.row, between, LAST_SCHEDULE)
        result = _judged(evidence, train, held_out, (fitted, held), between, row, window_s=window_s, seed=seed)
        result = _doubted(replace(result, tried=structure.tried), looked)
        result = since_then(result, named or earlier_fit(evidence, None, window_s), train, solution.row)
        result = with_scatter(result, told, chance, fitted, between.solution.row)
        result, files = _sampled(result, weighted, between, neural, progress)
        result = _kept(told, result, between.solution.row, files)
        journal.close(unless=result.model is None)  # then the same command gives it soon, when there is room for it
    return result


def _looked(
    directory: str | Path, logs: Sequence[str], neural: ModuleType | None, progress: Progress | None
) -> Examination:
    """Returns the logs of a project, looked through.

    Raises:
        InputError: If they cannot be used, or neural samples are asked for of what each run has its own of.
    """
    looked = examine_data(read_project_data(directory, logs, progress=progress), progress)
    if neural and any(p.per == "episode" for p in looked.evidence.space.parameters):
        raise InputError("--posterior sbi samples what all runs share: leave it out, or leave out `per: episode`")
    return looked


def _unfitted(
    evidence: ProjectData,
    looked: Examination,
    chance: ParameterSpace,
    split: tuple[list[int], list[int]],
    window_s: float,
    seed: int,
    refusal: str,
) -> IdentifyResult:
    """Returns a refusal, or the knobs that show in how runs scatter where a project lists nothing else."""
    if looked.refusal or len(evidence.space) or not len(chance):
        return refused(looked.evidence, window_s, seed, looked, refusal)
    train, held_out = (FitErrors(tuple(_names(evidence, some)), {}, None, None, None) for some in split)
    bare = IdentifyResult(evidence.ids, (), (), train, held_out, "refused", (), None, window_s, seed)
    found = with_scatter(bare, evidence, chance, split[0], evidence.whole.nominal)
    recorded = recorded_span(evidence.episodes)
    found = replace(found, recorded_from=recorded[0], recorded_to=recorded[1])
    return _kept(evidence, _doubted(found, looked), evidence.whole.nominal, {})


def _solved(
    problem: FitProblem, found: StructureResult, progress: Progress | None, journal: Checkpoint
) -> tuple[FitProblem, Solution]:
    """Returns the problem without what the time step does, and its solution: intervals hold if what was held is off."""
    row = journal.step(
        lambda: descend(problem, found.structure.row, FINAL_SCHEDULE, partial_progress(progress, 0.0, 0.3))
    )
    freed = remove_time_step_error(problem, row, LAST_SCHEDULE)
    report_progress(progress, 0.5)
    solution = widen_by_force_scale(freed.problem, freed.row, LAST_SCHEDULE)
    report_progress(progress, 0.9)
    solution = widen_intervals(freed.problem, solution, found.held, freed.finer, freed.left)
    report_progress(progress, 1.0)
    return freed.problem, solution


@contextmanager
def _noted(
    evidence: ProjectData, options: dict[str, Any], progress: Progress | None
) -> Iterator[tuple[Checkpoint, Progress | None]]:
    """Yields the journal of a fit and its progress, under one label; lets Ctrl-C say what is kept, if anything is."""
    journal = open_checkpoint(evidence, options)
    label = f"{FIT}, from where it was stopped" if journal.goes_on else FIT
    try:
        yield journal, None if progress is None else lambda _, done: progress(label, done)
    except KeyboardInterrupt:
        if not journal.num_steps:
            raise
        raise Interrupted("what was fitted so far is kept, and the same command goes on from there") from None


def _sampled(
    result: IdentifyResult,
    problem: FitProblem,
    between: PerRunSolution,
    neural: ModuleType | None,
    progress: Progress | None,
) -> tuple[IdentifyResult, dict[str, bytes]]:
    """Returns a result, and its samples as files; with what `sbi` has to say where that was asked for."""
    space, solution = between.space, between.solution
    draws = gaussian_samples(space, solution, np.random.default_rng([result.seed, 1]))
    files = {GAUSSIAN: parquet_bytes(space, draws, [("method", "gaussian")])}
    if neural is None:
        return result, files
    rng = np.random.default_rng([result.seed, 2])
    draws, said = neural.sample_posterior(problem.at(solution.row), solution, rng, progress)
    files[NEURAL] = parquet_bytes(space, draws, [("method", "sbi"), ("calibrated", str(said.calibrated))])
    return replace(result, neural=said, reasons=(*result.reasons, *neural.reasons(said))), files


def _neural(posterior: str) -> ModuleType | None:
    """Returns the module that samples with `sbi`, if that is asked for.

    Raises:
        InputError: If it is not installed, or something else is asked for.
    """
    if posterior not in ("gaussian", "sbi"):
        raise InputError(f"no posterior {posterior!r}; choose from: gaussian, sbi")
    if posterior == "gaussian":
        return None
    try:
        return importlib.import_module("gapless.identify.posterior.neural")
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing in ("sbi", "torch"):
            text = f"--posterior sbi needs {missing}: install it with pip install 'gapless[sbi]'"
            raise InputError(text) from None
        raise


def _judged(
    evidence: ProjectData,
    train: FitProblem,
    judged: FitProblem,
    split: tuple[list[int], list[int]],
    between: PerRunSolution,
    row: Array,
    *,
    window_s: float,
    seed: int,
) -> IdentifyResult:
    """Returns a solution, and its whole row with every run's own, as a result: parameters, errors, verdict."""
    space, solution = between.space, between.solution
    parameters = between.shown(describe_parameters(space, solution), [episode.name for episode in evidence.episodes])
    train_errors = measure_fit_errors(train, _names(evidence, split[0]), row)
    held_errors = measure_fit_errors(judged, _names(evidence, split[1]), row)
    determined = determined_combinations(space, solution)
    word, reasons = verdict(parameters, determined, train_errors, held_errors)
    reasons += ["held-out runs have values of their own too: fitted there"] if between.own and split[1] else []
    anchor = anchor_reason(evidence.blueprint, parameters)
    reasons += [anchor] if anchor else []
    shown = judged if len(judged.windows) else train
    recorded = recorded_span(evidence.episodes)
    return IdentifyResult(
        inputs=evidence.ids,
        parameters=parameters,
        combinations=determined,
        train=train_errors,
        held_out=held_errors,
        verdict=word,
        reasons=reasons,
        model=None,
        window_s=window_s,
        seed=seed,
        traces=_traces(evidence, shown, row),
        recorded_from=recorded[0],
        recorded_to=recorded[1],
    )


def _doubted(result: IdentifyResult, looked: Examination) -> IdentifyResult:
    """Returns a result with what was found wrong in the logs; a fit to columns that seem mistaken is never good."""
    assumed = [note.text for note in looked.evidence.assumptions]
    word, reasons = add_data_findings(result.verdict, result.reasons, looked.reasons_not_good, assumed)
    return replace(result, verdict=word, reasons=reasons, notes=looked.every_note)


def refused(evidence: ProjectData, window_s: float, seed: int, looked: Examination, reason: str) -> IdentifyResult:
    """Returns a refusal: every parameter stays nominal and undetermined."""
    parameters = tuple(
        FittedParameter(
            *(p.target, p.dimension, p.unit, p.nominal, p.nominal, p.low, p.high, INTERVAL_LEVEL),
            identifiable=False,
            at_bound=False,
            prior_low=p.low,
            prior_high=p.high,
        )
        for p in evidence.space.parameters
    )
    nothing = FitErrors((), {}, None, None, None)
    result = IdentifyResult(evidence.ids, parameters, (), nothing, nothing, "refused", (reason,), None, window_s, seed)
    recorded = recorded_span(evidence.episodes)
    result = _doubted(replace(result, recorded_from=recorded[0], recorded_to=recorded[1]), looked)
    return _kept(evidence, result, evidence.whole.nominal, {})


def _traces(evidence: ProjectData, problem: FitProblem, row: Array) -> tuple[Trace, ...]:
    predicted = problem.predictor.predict(problem.windows, np.stack([problem.base, row]))
    return example_traces(evidence, problem.windows, {"model": predicted[0], "fitted": predicted[1]})


def _names(evidence: ProjectData, episodes: Sequence[int]) -> list[str]:
    return [evidence.episodes[k].name for k in episodes]


def _kept(evidence: ProjectData, result: IdentifyResult, row: Array, samples: Mapping[str, bytes]) -> IdentifyResult:
    """Enters the fit, its corrected model and its samples in the catalogue; returns the result with their paths."""
    config = {
        "project": fingerprint(evidence.project),
        "window_s": result.window_s,
        "held_out": list(result.held_out.episodes),
    }
    provenance = Provenance("identify", gapless.__version__, result.inputs, config, result.seed)
    files: dict[str, bytes] = {}
    if result.verdict != "refused":
        folder = evidence.catalogue.artefact_folder("0")
        files["model.xml"] = corrected_xml(evidence.blueprint, evidence.whole, row, folder).encode()
        files |= samples
    identity = store_result_if_possible(evidence.catalogue, result, provenance, files)
    path: dict[str, str] = {}
    if identity is not None:
        path = {name: str(evidence.catalogue.artefact_path(identity, name).resolve()) for name in files}
    neural = replace(result.neural, path=path.get(NEURAL)) if result.neural else None
    return replace(result, id=identity, model=path.get("model.xml"), posterior=path.get(GAUSSIAN), neural=neural)
