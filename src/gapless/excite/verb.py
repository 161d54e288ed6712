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
from gapless.excite.limits import limits_of
from gapless.excite.outlook import advice, curves, nothing_found, predicted
from gapless.excite.play import motion_csv
from gapless.excite.prospect import Prospect, look_ahead
from gapless.excite.reach import EFFORT, Wishes, channels_of, driven_joints, joint_names
from gapless.excite.rehearsal import Run, sketches
from gapless.excite.search import Found, Search, Setting, left_alone
from gapless.excite.workspace import Workspace
from gapless.fit.prediction.lengths import DRIVEN_S as WINDOW_S
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import cut_windows
from gapless.fit.problem import FitProblem
from gapless.fit.search.structure import MIN_WINDOWS
from gapless.fit.solve import Progress
from gapless.project.fingerprint import fingerprint

SECONDS = 20.0
FILE_NAME = "excite.csv"


def excite(
    directory: str | Path,
    parameters: Sequence[str] = (),
    *,
    fit: str | Path | None = None,
    seconds: float = SECONDS,
    max_speed: Sequence[str] = (),
    max_effort: Sequence[str] = (),
    lowest_m: float | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> ExciteResult:
    """Chooses a motion that tells the wanted parameters, and predicts their intervals before it is recorded.

    Args:
        directory: The project folder; it needs no logs.
        parameters: Targets to tell; none for what the fit could not tell, or else for what is always fitted.
        fit: JSON that `identify` wrote, to start from; None for the newest in the catalogue, if any.
        seconds: Length of the motion [s].
        max_speed: How fast driven joints may go: a share of the default, or `JOINT=VALUE` [rad/s, m/s].
        max_effort: How hard actuators may push: a share of their limit, or `ACTUATOR=VALUE` in the model's unit.
        lowest_m: Height in the world of the model that nothing may go below [m]; None for the model's floor or, where
            it has none, for the lowest point of the robot's base.
        out: Where the motion is written; None for `excite.csv` in the project folder.
        seed: Seed of the motions drawn.
        progress: Called with what is being done and how far it is, in [0, 1].

    Raises:
        InputError: If the project, the fit or a wish cannot be used, the motion cannot be written, or nobody says how
            low a robot may go that hangs below its base.
    """
    least = (MIN_WINDOWS + 2) * WINDOW_S
    if not seconds >= least:
        raise InputError(f"{seconds:g} seconds are too short to tell anything: ask for at least {least:g}")
    prospect = look_ahead(directory, fit, parameters)
    path = require_writable(Path(out) if out is not None else prospect.project.directory / FILE_NAME, "--out")
    setting = make_setting(prospect, seconds, max_speed, max_effort, lowest_m)
    search = Search(setting, np.random.default_rng(seed))
    found = search.run(progress)
    chosen = search.safe(found.best)
    if chosen is None:
        result = nothing_found(setting, found, search.why_not(), seed)
    else:
        result = _result(setting, found, chosen, seed)
    wishes = {"max_speed": list(max_speed), "max_effort": list(max_effort), "lowest_m": lowest_m}
    return _kept(prospect, result, chosen, path, wishes)


def make_setting(
    prospect: Prospect,
    seconds: float,
    max_speed: Sequence[str] = (),
    max_effort: Sequence[str] = (),
    lowest_m: float | None = None,
) -> Setting:
    """Returns what a search needs: the limits that hold, the parameters to be fitted, the errors expected."""
    readings, command = prospect.rest()
    speed = Wishes.read("--max-speed", max_speed, joint_names(prospect), 1.0)
    effort = Wishes.read("--max-effort", max_effort, [item.actuator for item in prospect.project.commands], EFFORT)
    rest = prospect.states(readings[None])[0]
    workspace = Workspace.of(prospect, rest, lowest_m)
    joints = driven_joints(prospect, rest, speed)
    channels = channels_of(prospect, command, joints, effort)
    space = prospect.space(prospect.tracks or sketches(prospect, channels, seconds))
    setting = Setting(
        prospect,
        space,
        channels,
        limits_of(prospect, joints, channels, effort),
        workspace,
        seconds,
        WINDOW_S,
        prospect.noise(),
        _left_over(prospect, space),
    )
    alone = left_alone(setting)
    return replace(setting, limits=tuple(limit.widened(alone) for limit in setting.limits))


def _left_over(prospect: Prospect, space: ParameterSpace) -> Array:
    """Returns the error that the fit leaves on the logs, per column: the next fit will leave as much."""
    nothing = np.zeros(len(prospect.project.measurements))
    if not prospect.tracks or not prospect.fitted:
        return nothing
    windows = cut_windows(prospect.project, prospect.tracks, WINDOW_S)
    if not len(windows):
        return nothing
    row = prospect.row(space)
    predictor = Predictor(prospect.blueprint, space)
    problem = FitProblem(predictor, windows, tuple(range(len(space))), row, windows.noise)
    return problem.reweighted(row).sigma


def _result(setting: Setting, found: Found, run: Run, seed: int) -> ExciteResult:
    prospect = setting.prospect
    parameters, groups = predicted(setting, found, run)
    project = prospect.project
    readings = run.measured[0, 0]
    start = {m.column: float((readings[k] - m.offset) / m.scale) for k, m in enumerate(project.measurements)}
    return ExciteResult(
        inputs=prospect.ids,
        parameters=parameters,
        inseparable=groups,
        limits=tuple(limit.used(run) for limit in setting.limits),
        may_touch=setting.workspace.may_touch,
        start=start,
        noise=dict(zip(project.measurement_names, map(float, setting.noise), strict=True)),
        advice=advice(setting, parameters, groups),
        path=None,
        duration_s=setting.duration_s,
        window_s=setting.window_s,
        num_tried=found.num_tried,
        seed=seed,
        curves=curves(project, run),
        assumed=setting.workspace.assumed,
    )


def _kept(
    prospect: Prospect, result: ExciteResult, run: Run | None, path: Path, wishes: dict[str, Any]
) -> ExciteResult:
    """Writes the motion, and enters it with the result in the catalogue."""
    config = {
        "project": fingerprint(prospect.project),
        "wanted": list(prospect.wanted),
        "duration_s": result.duration_s,
        **wishes,
    }
    files: dict[str, bytes] = {}
    if run is not None:
        files["motion.csv"] = motion_csv(prospect.project, run.commands[0])
        try:
            path.write_bytes(files["motion.csv"])
        except OSError as error:
            raise InputError(f"--out: cannot write: {error.strerror}: {path}") from None
        result = replace(result, path=str(path.resolve()))
    provenance = Provenance("excite", gapless.__version__, prospect.ids, config, result.seed)
    return replace(result, id=store_result_if_possible(prospect.catalogue, result, provenance, files))
