"""The verb `identify`: from the logs of a project to fitted parameters with intervals and a verdict."""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Literal

import numpy as np

import gapless
from gapless.check.examine import Examination, examine_data
from gapless.core.errors import InputError, Interrupted
from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Progress
from gapless.core.provenance import Provenance
from gapless.core.results import FitErrors, IdentifyResult, NeuralPosterior
from gapless.core.signal import Array
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import find_same_result, store_result_if_possible
from gapless.fit.data import ProjectData, read_project_data
from gapless.fit.horizon import HorizonFit, choose_length, solve_up_to_horizon
from gapless.fit.mechanisms.candidates import CandidateParameters
from gapless.fit.mechanisms.explain import (
    SignalEvidence,
    add_explained,
    explain_logs,
    place_explained,
    weigh_nominals,
)
from gapless.fit.mechanisms.mechanism import NUMERICS
from gapless.fit.misfit import MIN_NOISE_RATIO, widen_by_misfit
from gapless.fit.per_run import PerRunSolution, fit_own_values, summarize_runs
from gapless.fit.prediction.predict import Predictor, without_idle_contacts
from gapless.fit.prediction.windows import shortest_window_s
from gapless.fit.problem import FitProblem, Watch
from gapless.fit.run_biases import free_biases_of_runs
from gapless.fit.scatter.causes import describe_scatter_causes, weigh_scatter
from gapless.fit.scatter.estimate import ScatterEstimate, estimate_scatter_parameters, split_scatter_parameters
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
from gapless.fit.solution import Solution
from gapless.fit.solve import Report, descend, ignore_progress, report_part
from gapless.fit.summary import (
    Predict,
    describe_parameter,
    determined_combinations,
    example_traces,
    find_refusal,
    measure_fit_errors,
    measure_horizons,
)
from gapless.fit.time_step import FINER
from gapless.fit.uncertainty import judge_solution
from gapless.identify.drift import EarlierFit, compare_with_earlier, find_earlier_fit, load_stored_fit, recorded_span
from gapless.identify.posterior.samples import GAUSSIAN, NEURAL, gaussian_samples, parquet_bytes
from gapless.identify.verdict import FitFindings, describe_force_reference, judge_fit
from gapless.project.fingerprint import fingerprint
from gapless.sim.blueprint import with_finer_step
from gapless.sim.corrected import corrected_xml

WIDENED = (
    "noise does not explain what is left, so it does not set the intervals: they also hold what other runs and windows "
    "of other lengths give"
)
FIT, EXPLAINING = "fit", "searching what explains the logs"  # what they are called where progress is shown
MODEL = "model.xml"  # the corrected model, beside the result
WINDOW = "window_s"  # in the provenance of a fit: the length of windows that was found best [s]


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


@dataclass(frozen=True)
class FitOptions:
    """What a fit was asked for; see `identify`."""

    hold_out: tuple[str, ...] = ()
    window_s: float | None = None
    neural: ModuleType | None = None  # the module that samples with `sbi`, if that is asked for
    posterior: str = "gaussian"
    seed: int = 0
    progress: Progress | None = None
    watch: Watch | None = None

    def provenance(self, data: ProjectData) -> Provenance:
        """Returns the provenance of the fit of some logs, but for what is found on the way."""
        asked = {
            "project": fingerprint(data.project),
            "held_out": [data.episodes[k].name for k in data.split(self.hold_out)[1]],
            "asked_window_s": self.window_s,
            "posterior": self.posterior,
        }
        return Provenance("identify", gapless.__version__, data.ids[: len(data.episodes)], asked, self.seed)


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
    work = _Work(examination, shared, scatter, fitted, held, options.seed, provenance, evidence)
    data, rng = shared.for_runs, np.random.default_rng(options.seed)
    first_s = options.window_s or shortest_window_s(data.project)
    train = replace(build_problem(data, data.whole, fitted, first_s, rng), watch=options.watch)
    refusal = examination.refusal or find_refusal(data, train, first_s)
    if refusal:
        return _refuse(work, first_s, refusal)
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
        result = _build_result(work, structure, solved, held_out, earlier)
        result, files = _add_samples(result, solved, options.neural, options.progress)
        result = _store(work, result, solved.runs.solution.row, files)
        if result.model is not None:  # else the same command gives it soon, when there is room for it
            checkpoint.close()
    return result


@dataclass(frozen=True)
class _Work:
    """What a fit starts from."""

    examination: Examination  # what was found about the logs
    data: ProjectData  # the logs, and the parameters that show in predictions
    scatter: ParameterSpace  # the parameters that show only in how runs scatter
    fitted: list[int]  # episodes that are fitted
    held: list[int]  # episodes that are held out
    seed: int  # of everything random
    provenance: Provenance  # of the result, but for what is found on the way
    explained: SignalEvidence | None  # which mechanisms explain the fitted logs; None where that was not asked

    def predict(self, fitted: Predictor) -> Predict:
        """Returns what predicts the model as written, with its own time step, and the fit, as two rows."""
        if self.data.blueprint is self.examination.evidence.blueprint:
            return fitted.predict
        blueprint = without_idle_contacts(self.examination.evidence.blueprint, self.data.tracks)
        written = Predictor(blueprint, fitted.space)
        return lambda windows, rows: np.concatenate(
            [written.predict(windows, rows[:1]), fitted.predict(windows, rows[1:])]
        )

    def find_other_scatter(self) -> tuple[ScatterEstimate, ...]:
        """Returns what else acts by chance in these logs, beside the parameters that were asked for."""
        found = self.explained.scatter if self.explained else ()
        others = [cause for cause in found if cause.target not in self.scatter.targets]
        return describe_scatter_causes(self.examination.evidence, others)

    def names(self, episodes: Sequence[int]) -> tuple[str, ...]:
        """Returns the names of some episodes."""
        return tuple(self.data.episodes[k].name for k in episodes)


@dataclass(frozen=True)
class _Solved:
    """A fit: the problem without and with its final weights, its solution, and the same with each target once."""

    train: FitProblem
    weighted: FitProblem
    solution: Solution
    runs: PerRunSolution
    window_s: float  # length of the windows that it was solved on last [s]
    misfit: bool  # whether intervals allow for what the model lacks


def _solve(
    work: _Work, found: StructureResult, report: Report, checkpoint: Checkpoint, *, any_length: bool = True
) -> _Solved:
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
    return _Solved(train, judged.problem, solution, summarize_runs(train, solution), best.window_s, misfit)


def _build_result(
    work: _Work, found: StructureResult, solved: _Solved, held_out: FitProblem, earlier: EarlierFit | None
) -> IdentifyResult:
    """Returns the result of a fit: parameters, errors, what drifted, and the verdict."""
    data, train, runs = work.data, solved.train, solved.runs
    row = fit_own_values(held_out, solved.solution.row, runs, SEARCH.last)
    parameters = runs.describe([episode.name for episode in data.episodes])
    parameters = weigh_nominals(parameters, work.explained)
    combinations = determined_combinations(runs.space, runs.solution)
    since, drift = compare_with_earlier(earlier, parameters, train, solved.solution.row)
    once = replace(data, space=data.space.shared)  # of per-run values the mean
    scatter = estimate_scatter_parameters(once, work.scatter, work.fitted, runs.solution.row, work.seed)
    scatter += work.find_other_scatter()
    remarks = ["held-out runs have values of their own too: fitted there"] if runs.own and work.held else []
    remarks += [WIDENED] if solved.misfit else []
    if data.blueprint is not work.examination.evidence.blueprint:
        step_s = data.blueprint.model.opt.timestep
        remarks.append(f"the model's time step is a cause: values are for, and the corrected model has, {step_s:g} s")
    reference = describe_force_reference(data.blueprint, parameters)
    judged = work.held if len(held_out.windows) else work.fitted
    rows = np.stack([train.base, row])
    horizons = measure_horizons(data, judged, work.predict(train.predictor), rows)
    findings = FitFindings(
        refusal=None,
        parameters=parameters,
        combinations=combinations,
        train=measure_fit_errors(train, work.names(work.fitted), row, work.predict(train.predictor)),
        held_out=measure_fit_errors(held_out, work.names(work.held), row, work.predict(train.predictor)),
        scatter=scatter,
        remarks=remarks + ([reference] if reference else []),
        horizon=next((each for each in horizons if each.horizon_s in (data.project.horizon_s, None)), None),
    )
    shown = held_out if len(held_out.windows) else train
    predicted = work.predict(train.predictor)(shown.windows, rows)
    traces = example_traces(data, shown.windows, {"model": predicted[0], "fitted": predicted[1]})
    result = _make_result(work, findings, found.window_s)
    return replace(result, tried=found.structure.tried, since=since, drift=drift, traces=traces, horizons=horizons)


def _refuse(work: _Work, window_s: float, refusal: str) -> IdentifyResult:
    """Returns a result without a fit: parameters that show in scatter, where nothing else is asked for, or none."""
    data, nothing = work.data, FitErrors((), {}, None, None, None)
    if work.examination.refusal is None and not len(data.space) and len(work.scatter):
        nominal = data.whole.nominal
        found = estimate_scatter_parameters(data, work.scatter, work.fitted, nominal, work.seed)
        train, held_out = (replace(nothing, episodes=work.names(some)) for some in (work.fitted, work.held))
        findings = FitFindings(refusal, (), (), train, held_out, found)
    else:
        every = work.examination.evidence.space.parameters
        parameters = [describe_parameter(p, (p.nominal, p.low, p.high), identifiable=False) for p in every]
        findings = FitFindings(refusal, parameters, (), nothing, nothing)
    return _store(work, _make_result(work, findings, window_s), data.whole.nominal, {})


def _make_result(work: _Work, findings: FitFindings, window_s: float) -> IdentifyResult:
    """Returns the result of some findings, with what was found in the logs; here the verdict is reached."""
    examination = work.examination
    assumptions = [note.text for note in examination.evidence.assumptions]
    findings = replace(findings, faults=examination.reasons_not_good, assumptions=assumptions)
    verdict, reasons = judge_fit(findings)
    recorded = recorded_span(work.data.episodes)
    return IdentifyResult(
        inputs=work.data.ids,
        parameters=(*findings.parameters, *(one.parameter for one in findings.scatter)),
        combinations=tuple(findings.combinations),
        train=findings.train,
        held_out=findings.held_out,
        verdict=verdict,
        reasons=reasons,
        model=None,
        window_s=window_s,
        seed=work.seed,
        notes=examination.every_note,
        recorded_from=recorded[0],
        recorded_to=recorded[1],
    )


def _add_samples(
    result: IdentifyResult, solved: _Solved, neural: ModuleType | None, progress: Progress | None
) -> tuple[IdentifyResult, dict[str, bytes]]:
    """Returns a result, and its samples as files; with what `sbi` has to say where that was asked for."""
    space, solution = solved.runs.space, solved.runs.solution
    draws = gaussian_samples(space, solution, np.random.default_rng([result.seed, 1]))
    files = {GAUSSIAN: parquet_bytes(space, draws, [("method", "gaussian")])}
    if neural is None:
        return result, files
    rng = np.random.default_rng([result.seed, 2])
    about: NeuralPosterior
    draws, about = neural.sample_posterior(solved.weighted.with_starts_at(solution.row), solution, rng, progress)
    files[NEURAL] = parquet_bytes(space, draws, [("method", "sbi"), ("calibrated", str(about.calibrated))])
    return replace(result, neural=about, reasons=(*result.reasons, *neural.describe_posterior(about))), files


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


def _store(work: _Work, result: IdentifyResult, row: Array, samples: Mapping[str, bytes]) -> IdentifyResult:
    """Enters the fit, its corrected model and its samples in the catalogue; returns the result with their paths."""
    data = work.data
    provenance = replace(work.provenance, config={**work.provenance.config, **{WINDOW: result.window_s}})
    files: dict[str, bytes] = {}
    if result.verdict != "refused":
        folder = data.catalogue.artefact_folder("0")
        files[MODEL] = corrected_xml(data.blueprint, data.whole.shared, row, folder).encode()
        files |= samples
    identity = store_result_if_possible(data.catalogue, result, provenance, files)
    return result if identity is None else _add_paths(data.catalogue, replace(result, id=identity), files)


def _add_paths(catalogue: Catalogue, result: IdentifyResult, files: Iterable[str]) -> IdentifyResult:
    """Returns a stored result with the paths of its files."""
    path = {name: str(catalogue.artefact_path(result.id or "", name).resolve()) for name in files}
    neural = replace(result.neural, path=path.get(NEURAL)) if result.neural else None
    return replace(result, model=path.get(MODEL), posterior=path.get(GAUSSIAN), neural=neural)


def find_stored_fit(data: ProjectData, options: FitOptions) -> IdentifyResult | None:
    """Returns the fit that the same code made of the same logs with the same options, if it is whole; else None."""
    catalogue = data.catalogue
    identity = find_same_result(catalogue, "identify", options.provenance(data), found_keys=(WINDOW,))
    result = load_stored_fit(catalogue, identity) if identity else None
    if result is None:
        return None
    names = () if result.verdict == "refused" else (MODEL, GAUSSIAN, *((NEURAL,) if result.neural else ()))
    whole = all(catalogue.artefact_path(result.id or "", name).is_file() for name in names)
    return _add_paths(catalogue, result, names) if whole else None
