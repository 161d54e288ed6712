"""The verb `excite`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import gapless
from gapless.core.errors import InputError
from gapless.core.parameters import ParameterSpace
from gapless.core.places import require_writable
from gapless.core.protocols import Progress
from gapless.core.provenance import Provenance
from gapless.core.results import Curve, ExciteResult, Outlook, PredictedParameter
from gapless.core.signal import Array
from gapless.data.stored_results import store_result_if_possible
from gapless.excite.information import find_inseparable, find_unidentifiable, rescale_information
from gapless.excite.knowledge import PriorKnowledge, read_knowledge
from gapless.excite.limits import find_limits
from gapless.excite.motion import SimulatedMotions, record_motion, record_random_motions
from gapless.excite.play import motion_csv
from gapless.excite.prediction import predict_fit
from gapless.excite.search import WINDOW_S, ExciteConfig, Search
from gapless.excite.workspace import Workspace
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import cut_windows
from gapless.fit.problem import FitProblem
from gapless.fit.summary import MIN_WINDOWS
from gapless.project.fingerprint import fingerprint
from gapless.project.records import CommandMap, MeasurementMap, Project

DEFAULT_DURATION_S = 20.0
FILE_NAME = "excite.csv"
MAX_CURVE_SAMPLES = 400  # of each column


def excite(
    directory: str | Path,
    parameters: Sequence[str] = (),
    *,
    fit: str | Path | None = None,
    seconds: float = DEFAULT_DURATION_S,
    max_speed: Sequence[str] = (),
    max_effort: Sequence[str] = (),
    lowest_m: float | None = None,
    out: str | Path | None = None,
    config: ExciteConfig | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> ExciteResult:
    """Chooses a motion that identifies the wanted parameters, and predicts their intervals before it is recorded.

    The project needs no logs. `parameters` are targets to identify; none for what the fit did not identify, or else for
    what is always fitted. `fit` is JSON that `identify` wrote, to start from; None for the newest in the catalogue.
    `max_speed` and `max_effort` have shares of the defaults, or `JOINT=VALUE` [rad/s, m/s] and `ACTUATOR=VALUE` in the
    model's unit. Nothing may go below the height `lowest_m` in the world of the model; None for the model's floor or,
    where it has none, for the lowest point of the robot's base. The motion is written to `out`, or else to `excite.csv`
    in the project folder.
    """
    shortest = (MIN_WINDOWS + 2) * WINDOW_S
    if not seconds >= shortest:
        raise InputError(f"{seconds:g} seconds are too short to identify anything: ask for at least {shortest:g}")
    known = read_knowledge(directory, fit, parameters)
    path = require_writable(Path(out) if out is not None else known.project.directory / FILE_NAME, "--out")
    search = make_search(known, seconds, max_speed, max_effort, lowest_m, config, seed)
    chosen = search.run(progress)
    result = _make_result(search, chosen, seed)
    asked = {"max_speed": list(max_speed), "max_effort": list(max_effort), "lowest_m": lowest_m}
    return _store(known, result, chosen, path, asked)


def make_search(
    known: PriorKnowledge,
    seconds: float,
    max_speed: Sequence[str] = (),
    max_effort: Sequence[str] = (),
    lowest_m: float | None = None,
    config: ExciteConfig | None = None,
    seed: int = 0,
) -> Search:
    """Returns a search that is ready to run, with the limits that hold, the parameters to fit, the errors expected."""
    rest = known.positions(known.rest[0][None])[0]
    commands, limits = find_limits(known, rest, max_speed, max_effort)
    workspace = Workspace.of(known, rest, lowest_m)
    space = known.space(known.tracks or record_random_motions(known, commands, seconds))
    search = Search(
        *(known, space, commands, limits, workspace),
        duration_s=seconds,
        noise=known.noise(),
        min_sigma=_estimate_fit_error(known, space),
        config=config or ExciteConfig(),
        rng=np.random.default_rng(seed),
    )
    undriven = search.play_rest()
    search.limits = tuple(limit.widen_to(undriven) for limit in limits)
    return search


def _estimate_fit_error(known: PriorKnowledge, space: ParameterSpace) -> Array:
    """Returns the error that the fit leaves on the logs, per column: the next fit will leave as much."""
    nothing = np.zeros(len(known.project.measurements))
    if not known.tracks or not known.fitted:
        return nothing
    windows = cut_windows(known.project, known.tracks, WINDOW_S)
    if not len(windows):
        return nothing
    row = known.fitted_row(space)
    problem = FitProblem(Predictor(known.blueprint, space), windows, tuple(range(len(space))), row, windows.noise)
    return problem.weighted_at(row).sigma


def _make_result(search: Search, run: SimulatedMotions | None, seed: int) -> ExciteResult:
    """Returns the result; without a run that keeps the limits, its advice says why."""
    project = search.known.project
    parameters, groups, window_s = _predict_parameters(search, run) if run else ((), (), WINDOW_S)
    readings = () if run is None else zip(project.measurements, run.measured[0, 0], strict=True)
    return ExciteResult(
        inputs=search.known.ids,
        parameters=parameters,
        inseparable=groups,
        limits=tuple(limit.describe_use(run) for limit in search.limits) if run else (),
        may_touch=search.workspace.may_touch,
        start={item.column: float((reading - item.offset) / item.scale) for item, reading in readings},
        noise=dict(zip(project.measurement_names, map(float, search.noise), strict=True)),
        advice=_give_advice(search.known, parameters, groups) if run else (search.explain_failure(),),
        path=None,
        duration_s=search.duration_s,
        window_s=window_s,
        num_tried=search.num_tried,
        seed=seed,
        assumed=search.workspace.assumed,
        curves=_thin_curves(project, run) if run else (),
    )


def _predict_parameters(
    search: Search, run: SimulatedMotions
) -> tuple[tuple[PredictedParameter, ...], tuple[tuple[str, ...], ...], float]:
    """Returns what `identify` would say of a recording, what no motion separates, and the length of windows [s].

    What an earlier fit left on its logs beyond noise, the next one will leave as well: it counts as noise.
    """
    known, noise = search.known, np.maximum(search.noise, search.min_sigma)
    track = record_motion(known.project, run, 0, noise, np.random.default_rng(0))
    fit = predict_fit(known, track, dict(zip(search.space.targets, search.row, strict=True)))
    space = known.space((track,))
    information = rescale_information(search.mean_information, search.space, space, search.row)
    hopeless = {t for t, bad in zip(space.targets, find_unidentifiable(information), strict=True) if bad}
    open_targets = {p.target for p in fit.parameters if p.target in known.wanted and not p.identifiable}
    groups = [group for group in find_inseparable(space, information) if open_targets & set(group)]
    predicted: list[PredictedParameter] = []
    for p in fit.parameters:
        wanted, promised = p.target in known.wanted, p.identifiable and p.target in fit.reported
        outlook: Outlook = "no motion tells" if p.target in hopeless else "too little motion"
        if p.identifiable:
            outlook = "can be told" if promised else "not always fitted"
        interval = (p.target, p.dimension, p.unit, p.value, p.low, p.high, p.level)
        predicted.append(PredictedParameter(*interval, wanted, promised, outlook, p.prior_low, p.prior_high))
    return tuple(predicted), tuple(groups), fit.window_s


def _give_advice(
    known: PriorKnowledge, parameters: Sequence[PredictedParameter], groups: Sequence[tuple[str, ...]]
) -> tuple[str, ...]:
    """Returns what to do next, and what stands in the way."""
    project = known.project
    force_measured = any(item.quantity in ("force", "effort") for item in project.measurements)
    remedy = "know one of them" if force_measured else "measure a force, or know one of them"
    advice = [
        f"no motion separates {first} from {' and '.join(others)}: {remedy}"
        if others
        else f"nothing that is measured shows {first}"
        for first, *others in groups
    ]
    short = [p.target for p in parameters if p.wanted and p.outlook == "too little motion"]
    if short:
        advice.append(f"too little motion for {', '.join(short)}: ask for more --seconds, or for these alone")
    unasked = [p.target for p in parameters if p.wanted and p.outlook == "not always fitted"]
    if unasked and project.parameters == "auto":
        advice.append(f"identify fits {', '.join(unasked)} only where the logs show that it is wrong in the model")
    if project.parameters != "auto":
        listed = {entry.target for entry in project.parameters}
        missing = [target for target in known.wanted if target not in listed]
        if missing:
            advice.append(f"identify will not fit {', '.join(missing)}: list under `parameters` in gapless.yaml")
    return tuple(advice)


def _thin_curves(project: Project, run: SimulatedMotions) -> tuple[Curve, ...]:
    """Returns the first motion of a run, thinned out, in the units of the log."""
    num_steps = run.commands.shape[1]
    kept = slice(None, None, max(1, -(-num_steps // MAX_CURVE_SAMPLES)))
    times_s = tuple((np.arange(num_steps)[kept] / project.rate_hz).tolist())

    def thin(item: CommandMap | MeasurementMap, values: Array) -> tuple[float, ...]:
        return tuple(((values[kept] - item.offset) / item.scale).tolist())

    sent = zip(project.commands, run.commands[0].T, strict=True)
    shown = zip(project.measurements, run.measured[0].T, strict=True)
    commands = [Curve(item.column, "command", times_s, thin(item, values)) for item, values in sent]
    return (*commands, *(Curve(item.column, "expected", times_s, thin(item, values)) for item, values in shown))


def _store(
    known: PriorKnowledge, result: ExciteResult, run: SimulatedMotions | None, path: Path, asked: dict[str, Any]
) -> ExciteResult:
    """Writes the motion, and enters it with the result in the catalogue."""
    about = {"project": fingerprint(known.project), "wanted": list(known.wanted), "duration_s": result.duration_s}
    files: dict[str, bytes] = {}
    if run is not None:
        files["motion.csv"] = motion_csv(known.project, run.commands[0])
        try:
            path.write_bytes(files["motion.csv"])
        except OSError as error:
            raise InputError(f"--out: cannot write: {error.strerror}: {path}") from None
        result = replace(result, path=str(path.resolve()))
    provenance = Provenance("excite", gapless.__version__, known.ids, about | asked, result.seed)
    return replace(result, id=store_result_if_possible(known.catalogue, result, provenance, files))
