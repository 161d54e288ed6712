"""The verb `identify`: from the logs of a project to fitted parameters with intervals and a verdict."""

import importlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Literal

import numpy as np

from gapless.check.examine import Examination, examine_data
from gapless.core.errors import InputError, Interrupted
from gapless.core.protocols import Progress
from gapless.core.results import IdentifyResult
from gapless.fit.data import read_project_data
from gapless.fit.horizon import HorizonFit, choose_length, solve_up_to_horizon
from gapless.fit.mechanisms.candidates import CandidateParameters
from gapless.fit.mechanisms.explain import (
    SignalEvidence,
    add_explained,
    explain_logs,
    place_explained,
)
from gapless.fit.mechanisms.mechanism import NUMERICS
from gapless.fit.misfit import MIN_NOISE_RATIO, widen_by_misfit
from gapless.fit.per_run import summarize_runs
from gapless.fit.prediction.windows import shortest_window_s
from gapless.fit.problem import Watch
from gapless.fit.run_biases import free_biases_of_runs
from gapless.fit.scatter.causes import weigh_scatter
from gapless.fit.scatter.estimate import split_scatter_parameters
from gapless.fit.search.checkpoint import Checkpoint, open_checkpoint
from gapless.fit.search.config import SEARCH
from gapless.fit.search.structure import (
    StructureResult,
    build_problem,
    find_surroundings,
    search_structure,
    split_columns,
)
from gapless.fit.search.terms import Structure
from gapless.fit.solve import Report, descend, ignore_progress, report_part
from gapless.fit.summary import (
    find_refusal,
)
from gapless.fit.time_step import FINER
from gapless.fit.uncertainty import judge_solution
from gapless.identify.drift import EarlierFit, find_earlier_fit
from gapless.identify.result import FitWork, SolvedFit, add_samples, build_result, refuse_fit
from gapless.identify.stored import FitOptions, find_stored_fit, store_fit
from gapless.sim.blueprint import with_finer_step

FIT, EXPLAINING = "fit", "searching what explains the logs"  # what they are called where progress is shown


def identify(
    directory: str | Path,
    hold_out: Sequence[str] = (),
    *,
    logs: Sequence[str] = (),
    where: str | None = None,
    since: str | Path | None = None,
    posterior: Literal["gaussian", "sbi"] = "gaussian",
    window_s: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> IdentifyResult:
    """Fits the model's parameters to the logs and says what is not identifiable.

    A fit that the same code made of the same project and logs with the same options is taken from the catalogue.

    Args:
        directory: The project folder.
        hold_out: Names of logs to judge on instead of fitting; by default every fourth.
        logs: Patterns of the names of logs to use, such as `march-*`; by default all.
        where: SQL condition on the view `episodes` of logs to use, such as `site = 'lab'`; None for all.
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
    neural = _import_neural(posterior)
    data = read_project_data(directory, logs, where=where, progress=progress)
    options = FitOptions(tuple(hold_out), window_s, neural, posterior, seed, progress, watch)
    if watch is None and since is None and (known := find_stored_fit(data, options)) is not None:
        return known
    examination = examine_data(data, progress)
    if neural and any(p.per == "episode" for p in examination.evidence.space.parameters):
        raise InputError("--posterior sbi samples what all runs share: leave it out, or leave out `per: episode`")
    earlier = None if since is None else find_earlier_fit(examination.evidence, since, 0.0)  # bad input shows first
    explained = explain_project(examination, data.split(hold_out)[0], seed, progress)
    return fit_explained(examination, explained, options, earlier)


def explain_project(
    examination: Examination, episodes: Sequence[int], seed: int, progress: Progress | None
) -> SignalEvidence | str:
    """Returns what some logs say of their gap, for `identify` and `diagnose` alike, or why they say nothing."""
    if examination.refusal:
        return examination.refusal
    report = ignore_progress if progress is None else partial(progress, EXPLAINING)
    shared, _ = split_scatter_parameters(examination.evidence)
    candidates = CandidateParameters.from_logs(shared)
    if not len(candidates.space):
        return "no parameter to judge by"
    try:
        found = explain_logs(shared, candidates, episodes, seed, report)
        if isinstance(found, str):
            return found
        return replace(found, scatter=weigh_scatter(examination.evidence, found.fitted_problem, found.whole_row))
    except KeyboardInterrupt:
        raise Interrupted("nothing is kept yet; the same command searches anew") from None


def fit_explained(
    examination: Examination,
    explained: SignalEvidence | str,
    options: FitOptions = FitOptions(),  # noqa: B008
    named: EarlierFit | None = None,
) -> IdentifyResult:
    """Returns the fit of what explains the logs, stored; or why there is none."""
    shared, scatter = split_scatter_parameters(examination.evidence)
    evidence = None if isinstance(explained, str) else explained
    predictive = None
    if evidence is not None:
        always, _ = split_columns(shared, ())
        predictive = evidence.prefer_prediction([shared.whole.targets[k] for k in always])
        shared = add_explained(shared, predictive)
        if NUMERICS in evidence.best.dimensions and evidence.problem.shows_step:  # values of robots suit no coarse step
            shared = replace(shared, blueprint=with_finer_step(shared.blueprint, FINER))
    fitted, held = shared.split(options.hold_out)
    provenance = options.provenance(shared)
    work = FitWork(examination, shared, scatter, fitted, held, options.seed, provenance, evidence)
    data, rng = shared.for_runs, np.random.default_rng(options.seed)
    first_s = options.window_s or shortest_window_s(data.project)
    train = replace(build_problem(data, data.whole, fitted, first_s, rng), watch=options.watch)
    refusal = examination.refusal or find_refusal(data, train, first_s)
    if refusal:
        return refuse_fit(work, first_s, refusal)
    train.report_row(train.unit(train.base))
    start = None if predictive is None else Structure(*place_explained(data.whole, predictive, fitted), ())
    with open_checkpoint(data.catalogue, provenance) as checkpoint:
        label = f"{FIT}, from where it was stopped" if checkpoint.goes_on else FIT
        report = ignore_progress if options.progress is None else partial(options.progress, label)
        part = report_part(report, 0.0, 0.7)
        structure = search_structure(train, data, fitted, options.window_s, rng, part, checkpoint, start)
        data, structure = free_biases_of_runs(data, structure, fitted)
        work = replace(work, data=data)
        part = report_part(report, 0.7, 0.3)
        solved = _solve(work, structure, part, checkpoint, any_length=options.window_s is None)
        structure = replace(structure, window_s=solved.window_s)
        held_out = build_problem(data, data.whole, held, structure.window_s, rng)
        held_out = replace(held_out, coupling=structure.problem.coupling)
        earlier = named or find_earlier_fit(data, None, structure.window_s)
        result = build_result(work, structure, solved, held_out, earlier)
        result, files = add_samples(result, solved, options.neural, options.progress)
        result = store_fit(work.data, work.provenance, result, solved.runs.solution.row, files)
        if result.model is not None:  # else the same command gives it soon, when there is room for it
            checkpoint.close()
    return result


def _solve(
    work: FitWork, found: StructureResult, report: Report, checkpoint: Checkpoint, *, any_length: bool = True
) -> SolvedFit:
    """Returns the last fit, without the time-step error; its intervals allow for errors in what was not fitted.

    It goes on to windows as long as the project's horizon, where that predicts held-out runs better and `any_length`.
    """
    train = replace(found.problem, free=found.structure.free)
    start = found.structure.row
    problem = train.weighted_at(start)
    row = checkpoint.step(lambda: descend(problem, start, SEARCH.final, report_part(report, 0.0, 0.3)))
    rng = np.random.default_rng([work.seed, 3])
    fits = [HorizonFit(train, row, found.window_s)]
    if any_length:
        around = find_surroundings(work.data)
        fits = solve_up_to_horizon(fits[0], work.data, work.fitted, work.held, rng, around)
    best = choose_length(fits)
    train, row = best.problem, best.row
    problem = problem.with_starts_at(row) if best is fits[0] else train.weighted_at(row)
    report(0.5)
    judged = judge_solution(problem, row, [column for column in found.held if column not in train.free])
    solution = judged.solution
    misfit = train.to_noise(row) > MIN_NOISE_RATIO
    if misfit:
        solution = widen_by_misfit(judged.problem, solution, row, [fit.row for fit in fits if fit is not best])
    report(1.0)
    train.report_row(solution.unit)
    return SolvedFit(train, judged.problem, solution, summarize_runs(train, solution), best.window_s, misfit)


def _import_neural(posterior: str) -> ModuleType | None:
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
        raise InputError(f"--posterior sbi needs {missing}: install it with pip install 'gapless[sbi]'") from None
