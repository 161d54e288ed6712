"""The result of a fit: parameters, errors, what drifted, and the verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np

from gapless.check.examine import Examination
from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Progress
from gapless.core.provenance import Provenance
from gapless.core.results import FitErrors, IdentifyResult, NeuralPosterior
from gapless.fit.data import ProjectData
from gapless.fit.mechanisms.explain import (
    SignalEvidence,
    weigh_nominals,
)
from gapless.fit.per_run import PerRunSolution, fit_own_values
from gapless.fit.prediction.predict import Predictor, without_idle_contacts
from gapless.fit.problem import FitProblem
from gapless.fit.scatter.causes import describe_scatter_causes
from gapless.fit.scatter.estimate import ScatterEstimate, estimate_scatter_parameters
from gapless.fit.search.config import SEARCH
from gapless.fit.search.structure import (
    StructureResult,
)
from gapless.fit.solution import Solution
from gapless.fit.summary import (
    Predict,
    describe_parameter,
    determined_combinations,
    example_traces,
    measure_fit_errors,
    measure_horizons,
)
from gapless.identify.drift import EarlierFit, compare_with_earlier, recorded_span
from gapless.identify.posterior.samples import GAUSSIAN, NEURAL, gaussian_samples, parquet_bytes
from gapless.identify.stored import store_fit
from gapless.identify.verdict import FitFindings, describe_force_reference, judge_fit

WIDENED = (
    "noise does not explain what is left, so it does not set the intervals: they also hold what other runs and windows "
    "of other lengths give"
)


@dataclass(frozen=True)
class FitWork:
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
class SolvedFit:
    """A fit: the problem without and with its final weights, its solution, and the same with each target once."""

    train: FitProblem
    weighted: FitProblem
    solution: Solution
    runs: PerRunSolution
    window_s: float  # length of the windows that it was solved on last [s]
    misfit: bool  # whether intervals allow for what the model lacks


def build_result(
    work: FitWork, found: StructureResult, solved: SolvedFit, held_out: FitProblem, earlier: EarlierFit | None
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


def refuse_fit(work: FitWork, window_s: float, refusal: str) -> IdentifyResult:
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
    return store_fit(data, work.provenance, _make_result(work, findings, window_s), data.whole.nominal, {})


def _make_result(work: FitWork, findings: FitFindings, window_s: float) -> IdentifyResult:
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


def add_samples(
    result: IdentifyResult, solved: SolvedFit, neural: ModuleType | None, progress: Progress | None
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
