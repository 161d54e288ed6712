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
from gapless.core.provenance import Provenance
from gapless.core.results import ExciteResult
from gapless.core.signal import Array
from gapless.data.stored_results import store_result_if_possible
from gapless.excite.knowledge import PriorKnowledge, read_knowledge
from gapless.excite.limits import (
    EFFORT_SHARE,
    RequestedLimits,
    find_command_limits,
    find_driven_joints,
    find_motion_limits,
    joint_names,
)
from gapless.excite.play import motion_csv
from gapless.excite.predict import give_advice, predict_parameters, thin_curves
from gapless.excite.search import ExciteConfig, Search, SearchProblem, SearchResult
from gapless.excite.simulate import SimulatedMotions, record_random_motions
from gapless.excite.workspace import Workspace
from gapless.fit.prediction.lengths import DRIVEN_S as WINDOW_S
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import cut_windows
from gapless.fit.problem import FitProblem
from gapless.fit.search.structure import MIN_WINDOWS
from gapless.fit.solve import Progress
from gapless.project.fingerprint import fingerprint

DEFAULT_DURATION_S = 20.0
FILE_NAME = "excite.csv"


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

    Args:
        directory: The project folder; it needs no logs.
        parameters: Targets to identify; none for what the fit did not identify, or else for what is always fitted.
        fit: JSON that `identify` wrote, to start from; None for the newest in the catalogue, if any.
        seconds: Length of the motion [s].
        max_speed: How fast driven joints may go: a share of the default, or `JOINT=VALUE` [rad/s, m/s].
        max_effort: How hard actuators may push: a share of their limit, or `ACTUATOR=VALUE` in the model's unit.
        lowest_m: Height in the world of the model that nothing may go below [m]; None for the model's floor or, where
            it has none, for the lowest point of the robot's base.
        out: Where the motion is written; None for `excite.csv` in the project folder.
        config: How to search.
        seed: Seed of the motions drawn.
        progress: Called with what is being done and how far it is, in [0, 1].
    """
    shortest = (MIN_WINDOWS + 2) * WINDOW_S
    if not seconds >= shortest:
        raise InputError(f"{seconds:g} seconds are too short to identify anything: ask for at least {shortest:g}")
    known = read_knowledge(directory, fit, parameters)
    path = require_writable(Path(out) if out is not None else known.project.directory / FILE_NAME, "--out")
    problem = make_problem(known, seconds, max_speed, max_effort, lowest_m, config)
    search = Search(problem, np.random.default_rng(seed))
    found = search.run(progress)
    chosen = search.find_safe(found.best)
    result = _make_result(problem, found, chosen, seed)
    asked = {"max_speed": list(max_speed), "max_effort": list(max_effort), "lowest_m": lowest_m}
    return _store(known, result, chosen, path, asked)


def make_problem(
    known: PriorKnowledge,
    seconds: float,
    max_speed: Sequence[str] = (),
    max_effort: Sequence[str] = (),
    lowest_m: float | None = None,
    config: ExciteConfig | None = None,
) -> SearchProblem:
    """Returns what a search needs: the limits that hold, the parameters to be fitted, the errors expected."""
    readings, command = known.rest()
    actuators = [item.actuator for item in known.project.commands]
    speed = RequestedLimits.parse("--max-speed", max_speed, joint_names(known), 1.0)
    effort = RequestedLimits.parse("--max-effort", max_effort, actuators, EFFORT_SHARE)
    rest = known.positions(readings[None])[0]
    workspace = Workspace.of(known, rest, lowest_m)
    joints = find_driven_joints(known, rest, speed)
    commands = find_command_limits(known, command, joints, effort)
    space = known.space(known.tracks or record_random_motions(known, commands, seconds))
    problem = SearchProblem(
        known=known,
        space=space,
        command_limits=commands,
        limits=find_motion_limits(known, joints, commands, effort, rest),
        workspace=workspace,
        duration_s=seconds,
        window_s=WINDOW_S,
        noise=known.noise(),
        min_sigma=_estimate_fit_error(known, space),
        config=config or ExciteConfig(),
    )
    undriven = problem.play_rest()
    return replace(problem, limits=tuple(limit.widen_to(undriven) for limit in problem.limits))


def _estimate_fit_error(known: PriorKnowledge, space: ParameterSpace) -> Array:
    """Returns the error that the fit leaves on the logs, per column: the next fit will leave as much."""
    nothing = np.zeros(len(known.project.measurements))
    if not known.tracks or not known.fitted:
        return nothing
    windows = cut_windows(known.project, known.tracks, WINDOW_S)
    if not len(windows):
        return nothing
    row = known.row(space)
    problem = FitProblem(Predictor(known.blueprint, space), windows, tuple(range(len(space))), row, windows.noise)
    return problem.reweighted(row).sigma


def _make_result(problem: SearchProblem, found: SearchResult, run: SimulatedMotions | None, seed: int) -> ExciteResult:
    """Returns the result; without a run that keeps the limits, its advice says why."""
    project = problem.known.project
    result = ExciteResult(
        inputs=problem.known.ids,
        parameters=(),
        inseparable=(),
        limits=(),
        may_touch=problem.workspace.may_touch,
        start={},
        noise=dict(zip(project.measurement_names, map(float, problem.noise), strict=True)),
        advice=() if run else (problem.explain_failure(),),
        path=None,
        duration_s=problem.duration_s,
        window_s=problem.window_s,
        num_tried=found.num_tried,
        seed=seed,
        assumed=problem.workspace.assumed,
    )
    if run is None:
        return result
    parameters, groups = predict_parameters(problem, found, run)
    readings = run.measured[0, 0]
    return replace(
        result,
        parameters=parameters,
        inseparable=groups,
        limits=tuple(limit.describe_use(run) for limit in problem.limits),
        start={m.column: float((readings[k] - m.offset) / m.scale) for k, m in enumerate(project.measurements)},
        advice=give_advice(problem, parameters, groups),
        curves=thin_curves(project, run),
    )


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
