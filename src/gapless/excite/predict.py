"""From a motion to what people read: predicted intervals, what no motion identifies, what to do next."""

from collections.abc import Sequence

import numpy as np

from gapless.core.results import Curve, FittedParameter, Outlook, PredictedParameter
from gapless.excite.information import expected_solution, find_inseparable, find_unidentifiable, rescale_information
from gapless.excite.search import SearchProblem, SearchResult
from gapless.excite.simulate import MotionSimulator, SimulatedMotions
from gapless.fit.prediction.lengths import max_num_windows
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import cut_windows
from gapless.fit.search.structure import draw_windows
from gapless.fit.summary import describe_parameters
from gapless.project.records import CommandMap, MeasurementMap, Project

MAX_CURVE_SAMPLES = 400  # of each column


def predict_parameters(
    problem: SearchProblem, found: SearchResult, run: SimulatedMotions
) -> tuple[tuple[PredictedParameter, ...], tuple[tuple[str, ...], ...]]:
    """Returns what `identify` would say of a recording of a motion, on average, and what no motion separates.

    The motion is recorded in simulation, with noise, and read as a log would be: bounds, smoothing, windows and the
    errors of their starts are those of `identify`.
    """
    known, rng = problem.known, np.random.default_rng(0)
    track = MotionSimulator(known, problem.space).record(run, 0, problem.noise, rng)
    space = known.space((*known.tracks, track))
    windows = cut_windows(known.project, [track], problem.window_s)
    windows = draw_windows(windows, rng, max_num_windows(problem.window_s, space))
    row = np.clip(problem.row, space.low, space.high)
    solution = expected_solution(Predictor(known.blueprint, space), windows, row, problem.min_sigma)
    fits = describe_parameters(space, solution)
    information = rescale_information(found.mean_information, problem.space, space, row)
    hopeless = dict(zip(space.targets, find_unidentifiable(information), strict=True))
    open_targets = {fit.target for fit in fits if fit.target in known.wanted and not fit.identifiable}
    groups = [group for group in find_inseparable(space, information) if open_targets & set(group)]
    return tuple(_predict(fit, known.wanted, bool(hopeless[fit.target])) for fit in fits), tuple(groups)


def _predict(fit: FittedParameter, wanted: Sequence[str], hopeless: bool) -> PredictedParameter:
    outlook: Outlook = "can be told" if fit.identifiable else "no motion tells" if hopeless else "too little motion"
    return PredictedParameter(
        *(fit.target, fit.dimension, fit.unit, fit.value, fit.low, fit.high, fit.level),
        wanted=fit.target in wanted,
        identifiable=fit.identifiable,
        outlook=outlook,
        prior_low=fit.prior_low,
        prior_high=fit.prior_high,
    )


def give_advice(
    problem: SearchProblem, parameters: Sequence[PredictedParameter], groups: Sequence[tuple[str, ...]]
) -> tuple[str, ...]:
    """Returns what to do next, and what stands in the way."""
    project = problem.known.project
    advice = [_explain_group(project, group) for group in groups]
    short = [p.target for p in parameters if p.wanted and p.outlook == "too little motion"]
    if short:
        advice.append(f"too little motion for {', '.join(short)}: ask for more --seconds, or for these alone")
    if project.parameters != "auto":
        listed = {entry.target for entry in project.parameters}
        missing = [target for target in problem.known.wanted if target not in listed]
        if missing:
            advice.append(f"identify will not fit {', '.join(missing)}: list under `parameters` in gapless.yaml")
    return tuple(advice)


def _explain_group(project: Project, group: tuple[str, ...]) -> str:
    if len(group) == 1:
        return f"nothing that is measured shows {group[0]}"
    force_measured = any(item.quantity in ("force", "effort") for item in project.measurements)
    remedy = "know one of them" if force_measured else "measure a force, or know one of them"
    return f"no motion separates {group[0]} from {' and '.join(group[1:])}: {remedy}"


def thin_curves(project: Project, run: SimulatedMotions) -> tuple[Curve, ...]:
    """Returns the first motion of a run, thinned out, in the units of the log."""
    every = max(1, -(-run.commands.shape[1] // MAX_CURVE_SAMPLES))
    times_s = tuple(float(t) for t in np.arange(run.commands.shape[1])[::every] / project.rate_hz)

    def values(item: CommandMap | MeasurementMap, column: np.ndarray) -> tuple[float, ...]:
        return tuple(float(v) for v in (column[::every] - item.offset) / item.scale)

    commands, measured = run.commands[0].T, run.measured[0].T
    sent = [Curve(m.column, "command", times_s, values(m, commands[k])) for k, m in enumerate(project.commands)]
    shown = [Curve(m.column, "expected", times_s, values(m, measured[k])) for k, m in enumerate(project.measurements)]
    return (*sent, *shown)
