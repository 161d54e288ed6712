"""The verb `identify`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import gapless
from gapless.core.parameters import ParameterSpace
from gapless.core.provenance import Provenance
from gapless.core.results import FitErrors, FittedParameter, IdentifyResult, Trace
from gapless.core.signal import Array
from gapless.data.keep import keep_result
from gapless.identify.outcome import LEVEL, combinations, fit_errors, fitted_parameters, verdict
from gapless.identify.problem import Problem
from gapless.identify.solve import COARSE, MEDIUM, Progress, Solution, search, solve
from gapless.project.fingerprint import fingerprint
from gapless.sim.corrected import corrected_xml
from gapless.sim.evidence import Evidence, gather
from gapless.sim.prediction.predict import Predictor
from gapless.sim.prediction.windows import Windows, cut
from gapless.sim.traces import example_traces

WINDOW_S = 0.3
MAX_WINDOWS = 160
MIN_WINDOWS = 8
FEW_WINDOWS = 48  # for the brief solves that choose a start


def identify(
    directory: str | Path,
    hold_out: Sequence[str] = (),
    *,
    window_s: float = WINDOW_S,
    seed: int = 0,
    progress: Progress | None = None,
) -> IdentifyResult:
    """Fits the model's parameters to the logs on short windows and says what cannot be told.

    Args:
        directory: The project folder.
        hold_out: Names of logs to judge on instead of fitting; by default every fourth.
        window_s: Length of the prediction windows [s].
        seed: Seed of the starts tried and the windows chosen.
        progress: Called with what is being done and how far it is, in [0, 1].

    Raises:
        InputError: If the project or its logs cannot be used.
    """
    evidence = gather(directory)
    fitted, held = evidence.split(hold_out)
    rng = np.random.default_rng(seed)
    train = make_problem(evidence, evidence.space, fitted, window_s, rng)
    refusal = why_refuse(evidence, train, window_s)
    if refusal:
        return refused(evidence, window_s, seed, refusal)
    solution = fit(train, rng, progress)
    parameters = fitted_parameters(evidence.space, solution)
    judged = (
        make_problem(evidence, evidence.space, held, window_s, rng)
        if held
        else train.on(train.windows.pick(np.zeros(0, np.intp)))
    )
    train_errors = fit_errors(train, _names(evidence, fitted), solution.row)
    held_errors = fit_errors(judged, _names(evidence, held), solution.row)
    determined = combinations(evidence.space, solution)
    word, reasons = verdict(parameters, determined, train_errors, held_errors)
    shown = judged if len(judged.windows) else train
    result = IdentifyResult(
        inputs=evidence.ids,
        parameters=parameters,
        combinations=determined,
        train=train_errors,
        held_out=held_errors,
        verdict=word,
        reasons=tuple(reasons),
        model=None,
        window_s=window_s,
        seed=seed,
        traces=_traces(evidence, shown, solution.row),
    )
    return _kept(evidence, result, solution.row)


def make_problem(
    evidence: Evidence,
    space: ParameterSpace,
    episodes: Sequence[int],
    window_s: float,
    rng: np.random.Generator,
) -> Problem:
    """Returns the problem of fitting a part of the evidence's space to some of its episodes."""
    windows = limited(cut(evidence.project, [evidence.tracks[k] for k in episodes], window_s), rng)
    windows = replace(windows, track=np.array(list(episodes), dtype=np.intp)[windows.track])
    free = tuple(evidence.space.index(target) for target in space.targets)
    predictor = Predictor(evidence.blueprint, evidence.space)
    problem = Problem(predictor, windows, free, evidence.space.nominal, windows.noise)
    return problem.reweighted(evidence.space.nominal) if len(windows) else problem


def limited(windows: Windows, rng: np.random.Generator, most: int = MAX_WINDOWS) -> Windows:
    """Returns at most `most` of the windows, drawn at random but kept in order."""
    if len(windows) <= most:
        return windows
    return windows.pick(np.sort(rng.choice(len(windows), most, replace=False)))


def fit(problem: Problem, rng: np.random.Generator, progress: Progress | None = None) -> Solution:
    """Solves a problem: first on some windows with coarse slopes, then on all with fine ones.

    It starts at the model as written; where a search without slopes finds better than that leads to, there too.
    Weights are then taken anew from the better of the two, so that no signal swamps another.
    """
    few = problem.on(limited(problem.windows, rng, FEW_WINDOWS))
    brief = ((COARSE, 4), (MEDIUM, 6))
    better = solve(few, problem.base, brief, _part(progress, 0.0, 0.3))
    row, judge = search(few, rng), few.at(better.row)
    if judge.cost(row) < judge.cost(better.row):
        better = solve(few, row, brief, _part(progress, 0.3, 0.2))
    return solve(problem.reweighted(better.row), better.row, progress=_part(progress, 0.5, 0.5))


def _part(progress: Progress | None, begin: float, share: float) -> Progress | None:
    """Returns a progress that fills a part of another one."""
    if progress is None:
        return None
    return lambda label, done: progress(label, begin + share * done)


def why_refuse(evidence: Evidence, problem: Problem, window_s: float) -> str | None:
    """Returns why these logs cannot be fitted at all, or None."""
    if len(problem.windows) < MIN_WINDOWS:
        return (
            f"only {len(problem.windows)} of at least {MIN_WINDOWS} windows of {window_s:g} s to fit: record more than "
            f"{MIN_WINDOWS * window_s:.1f} s in which every mapped column is present, besides what is held out, "
            "or choose shorter windows"
        )
    if not len(evidence.space):
        return "no parameter to fit: list some under `parameters` in gapless.yaml"
    moves = problem.windows.measured.reshape(-1, problem.windows.measured.shape[-1])
    still = np.nanstd(moves, axis=0) < 3 * problem.windows.noise
    if still.all():
        return "nothing moves in these logs by more than the noise: record a motion"
    return None


def refused(evidence: Evidence, window_s: float, seed: int, reason: str) -> IdentifyResult:
    """Returns a refusal: every parameter stays nominal and undetermined."""
    parameters = tuple(
        FittedParameter(
            *(p.target, p.dimension, p.unit, p.nominal, p.nominal, p.low, p.high, LEVEL),
            identifiable=False,
            at_bound=False,
            prior_low=p.low,
            prior_high=p.high,
        )
        for p in evidence.space.parameters
    )
    nothing = FitErrors((), {}, None, None, None)
    result = IdentifyResult(evidence.ids, parameters, (), nothing, nothing, "refused", (reason,), None, window_s, seed)
    return _kept(evidence, result, evidence.space.nominal)


def _traces(evidence: Evidence, problem: Problem, row: Array) -> tuple[Trace, ...]:
    predicted = problem.predictor.predict(problem.windows, np.stack([problem.base, row]))
    return example_traces(evidence, problem.windows, {"model": predicted[0], "fitted": predicted[1]})


def _names(evidence: Evidence, episodes: Sequence[int]) -> list[str]:
    return [evidence.episodes[k].name for k in episodes]


def _kept(evidence: Evidence, result: IdentifyResult, row: Array) -> IdentifyResult:
    """Enters the fit and its corrected model in the catalogue; returns the result with the model's path."""
    config = {
        "project": fingerprint(evidence.project),
        "window_s": result.window_s,
        "held_out": list(result.held_out.episodes),
    }
    provenance = Provenance("identify", gapless.__version__, result.inputs, config, result.seed)
    files: dict[str, bytes] = {}
    if result.verdict != "refused":
        folder = evidence.catalogue.artefact_folder("0")
        files["model.xml"] = corrected_xml(evidence.blueprint, evidence.space, row, folder).encode()
    identity = keep_result(evidence.catalogue, result, provenance, files)
    path = evidence.catalogue.artefact_path(identity, "model.xml") if files else None
    return replace(result, model=str(path.resolve()) if path else None)
