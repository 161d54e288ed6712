"""From a motion to what people read: predicted intervals, what no motion tells, what to do next."""

from collections.abc import Sequence

import numpy as np

from gapless.core.results import Curve, ExciteResult, FittedParameter, Outlook, PredictedParameter
from gapless.excite.information import Judge, inseparable, loose, rescaled
from gapless.excite.rehearsal import Rehearsal, Run
from gapless.excite.search import Found, Setting
from gapless.fit.prediction.lengths import max_num_windows
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import cut_windows
from gapless.fit.search.structure import draw_windows
from gapless.fit.summary import describe_parameters
from gapless.project.records import CommandMap, MeasurementMap, Project

MOST_SAMPLES = 400  # of each curve
FORCES = ("force", "effort")


def predicted(
    setting: Setting, found: Found, run: Run
) -> tuple[tuple[PredictedParameter, ...], tuple[tuple[str, ...], ...]]:
    """Returns what `identify` would say of a recording of a motion, on average, and what no motion tells apart.

    The motion is recorded in simulation, with noise, and read as a log would be: bounds, smoothing, windows and the
    errors of their starts are those of `identify`.
    """
    prospect, rng = setting.prospect, np.random.default_rng(0)
    track = Rehearsal(prospect, setting.space).record(run, 0, setting.noise, rng)
    space = prospect.space((*prospect.tracks, track))
    windows = draw_windows(
        cut_windows(prospect.project, [track], setting.window_s), rng, max_num_windows(setting.window_s, space)
    )
    row = np.clip(setting.row, space.low, space.high)
    solution = Judge(Predictor(prospect.blueprint, space), row, setting.sigma).solution(windows)
    fits = describe_parameters(space, solution)
    pooled = rescaled(found.pooled, setting.space, space, row)
    hopeless = dict(zip(space.targets, loose(pooled), strict=True))
    groups = [group for group in inseparable(space, pooled) if _open(group, fits, prospect.wanted)]
    return tuple(_parameter(fit, prospect.wanted, bool(hopeless[fit.target])) for fit in fits), tuple(groups)


def _open(group: tuple[str, ...], fits: Sequence[FittedParameter], wanted: Sequence[str]) -> bool:
    """Tells whether a group holds a wanted parameter that the motion does not determine."""
    return any(fit.target in group and fit.target in wanted and not fit.identifiable for fit in fits)


def _parameter(fit: FittedParameter, wanted: Sequence[str], hopeless: bool) -> PredictedParameter:
    return PredictedParameter(
        *(fit.target, fit.dimension, fit.unit, fit.value, fit.low, fit.high, fit.level),
        wanted=fit.target in wanted,
        identifiable=fit.identifiable,
        outlook=_outlook(fit.identifiable, hopeless),
        prior_low=fit.prior_low,
        prior_high=fit.prior_high,
    )


def _outlook(identifiable: bool, hopeless: bool) -> Outlook:
    if identifiable:
        return "can be told"
    return "no motion tells" if hopeless else "too little motion"


def advice(
    setting: Setting, parameters: Sequence[PredictedParameter], groups: Sequence[tuple[str, ...]]
) -> tuple[str, ...]:
    """Returns what to do next, and what stands in the way."""
    project = setting.prospect.project
    says = [_why_loose(project, group) for group in groups]
    short = [p.target for p in parameters if p.wanted and p.outlook == "too little motion"]
    if short:
        says.append(f"too little motion for {', '.join(short)}: ask for more --seconds, or for these alone")
    if project.parameters != "auto":
        listed = {entry.target for entry in project.parameters}
        missing = [target for target in setting.prospect.wanted if target not in listed]
        if missing:
            says.append(f"identify will not fit {', '.join(missing)}: list under `parameters` in gapless.yaml")
    return tuple(says)


def _why_loose(project: Project, group: tuple[str, ...]) -> str:
    if len(group) == 1:
        return f"nothing that is measured shows {group[0]}"
    measured = any(item.quantity in FORCES for item in project.measurements)
    others = " and ".join(group[1:])
    remedy = "know one of them" if measured else "measure a force, or know one of them"
    return f"no motion tells {group[0]} apart from {others}: {remedy}"


def nothing_found(setting: Setting, found: Found, reason: str, seed: int) -> ExciteResult:
    """Returns the result of a search in which no motion kept the limits."""
    project = setting.prospect.project
    noise = dict(zip(project.measurement_names, map(float, setting.noise), strict=True))
    return ExciteResult(
        inputs=setting.prospect.ids,
        parameters=(),
        inseparable=(),
        limits=(),
        may_touch=setting.workspace.may_touch,
        start={},
        noise=noise,
        advice=(reason,),
        path=None,
        duration_s=setting.duration_s,
        window_s=setting.window_s,
        num_tried=found.num_tried,
        seed=seed,
        assumed=setting.workspace.assumed,
    )


def curves(project: Project, run: Run) -> tuple[Curve, ...]:
    """Returns the first motion of a run, thinned out, in the units of the log."""
    every = max(1, -(-run.commands.shape[1] // MOST_SAMPLES))
    times_s = tuple(float(t) for t in np.arange(run.commands.shape[1])[::every] / project.rate_hz)

    def values(item: CommandMap | MeasurementMap, column: np.ndarray) -> tuple[float, ...]:
        return tuple(float(v) for v in (column[::every] - item.offset) / item.scale)

    sent = [
        Curve(m.column, "command", times_s, values(m, run.commands[0, :, k])) for k, m in enumerate(project.commands)
    ]
    shown = [
        Curve(m.column, "expected", times_s, values(m, run.measured[0, :, k]))
        for k, m in enumerate(project.measurements)
    ]
    return (*sent, *shown)
