"""Ours: `gapless identify` on a project folder, watched, and what its rows of parameters predict.

A row is scored in two ways. The neutral one: its corrected MJCF in plain MuJoCo, like everybody else's model. And as
fitted: with gapless's own simulation, for what no MJCF can hold (play, offsets of commands, late readings).
"""

import re
import tempfile
import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import mujoco
import numpy as np
import score
from cases import HORIZON_S, Case
from score import Run, Score

from gapless.core.episode import Episode
from gapless.core.parameters import ParameterSpace
from gapless.core.results import IdentifyResult
from gapless.core.signal import TimeSeries
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows, cut_windows
from gapless.identify.verb import identify
from gapless.project.load import load_project
from gapless.project.records import Project
from gapless.signals.track import make_track
from gapless.sim.blueprint import compile_project
from gapless.sim.corrected import corrected_xml
from gapless.sim.simulation import Simulation

INSIDE = re.compile(  # what an MJCF can hold; and the bias, which the neutral scorer takes as it is
    r"world/.*|geom/.*|body/.*|joint/.*/(damping|frictionloss|armature|stiffness|load|creep)"
    r"|actuator/.*/(gain|kp|kd|limit|delay|lag)|measurement/.*/bias"
)


@dataclass(frozen=True)
class Ours:
    """A watched fit."""

    place: Path
    result: IdentifyResult
    space: ParameterSpace
    """All parameters that may be fitted, each target once: the columns of rows."""
    iterates: list[tuple[float, np.ndarray]]
    """(CPU seconds since the start, row): every step of every solver, the result last."""
    cpu_seconds: float
    """Process time of all threads, from the folder to the result [s]."""

    @property
    def row(self) -> np.ndarray:
        """The row that was found."""
        row = self.space.nominal
        for parameter in self.result.parameters:
            row[self.space.index(parameter.target)] = parameter.value
        return row

    @property
    def outside(self) -> list[str]:
        """What was fitted and cannot live in an MJCF."""
        moved = [p.target for p in self.result.parameters if p.value != p.nominal]
        return [target for target in moved if not INSIDE.fullmatch(target)]

    @cached_property
    def predictor(self) -> Predictor:
        """gapless's own simulation of this project, for rows of the space."""
        return Predictor(compile_project(load_project(self.place)), self.space)


def fit(place: Path, **options: object) -> Ours:
    """Fits a project folder as its owner would, and watches."""
    seen: list[tuple[float, ParameterSpace, np.ndarray]] = []
    began = time.process_time()
    result = identify(place, watch=lambda space, row: seen.append((time.process_time(), space, row)), **options)
    spent = time.process_time() - began
    space = seen[-1][1].shared if seen else ParameterSpace(())
    rows = [(moment - began, in_space(space, found, row)) for moment, found, row in seen]
    return Ours(place, result, space, rows, spent)


def in_space(space: ParameterSpace, found: ParameterSpace, row: np.ndarray) -> np.ndarray:
    """Returns a row as one of another space: of values per run the mean, what it does not have as written."""
    targets = np.array(found.targets)
    known = {target: row[targets == target].mean() for target in found.targets}
    return np.array([known.get(p.target, p.nominal) for p in space.parameters])


def model_of(ours: Ours, row: np.ndarray) -> tuple[mujoco.MjModel, dict[str, float]]:
    """Returns the corrected model of a row, compiled, and the bias of each measured joint."""
    blueprint = ours.predictor.blueprint
    with tempfile.TemporaryDirectory(dir=ours.place) as folder:
        path = Path(folder) / "model.xml"
        path.write_text(corrected_xml(blueprint, ours.space, row, path.parent))
        model = mujoco.MjModel.from_xml_path(str(path))
    world = Simulation(blueprint, 1, ours.space)
    world.set_parameters(row[None])
    items = enumerate(blueprint.project.measurements)
    return model, {item.name: float(world.fields.bias[0, k]) for k, item in items if item.element == "joint"}


def score_model(case: Case, ours: Ours, row: np.ndarray, runs: list[Run], horizon_s: float | None = HORIZON_S) -> Score:
    """Returns the errors of a row's corrected MJCF in plain MuJoCo; None: of whole runs."""
    return case.score(*model_of(ours, row), runs, horizon_s)


def scored_windows(case: Case, project: Project, runs: list[Run], horizon_s: float | None = HORIZON_S) -> Windows:
    """Returns what is scored as windows for a `Predictor`: same starts, same commands, same rows as the scorer's."""
    columns = [runs[0].joints.index(item.name) for item in project.measurements]
    order = [runs[0].actuators.index(item.actuator) for item in project.commands]
    template = cut_windows(project, [make_track(project, episode_of(project, run)) for run in runs], 0.0)
    if horizon_s is None and case.from_rest:
        held = np.repeat(np.stack([run.commands[:1, order] for run in runs]), template.history.shape[1], axis=1)
        start = np.stack([run.readings[0, columns] for run in runs])
        return replace(template, history=held, start=start, slope=np.zeros_like(start), ahead=None)
    if horizon_s is None:
        raise NotImplementedError("whole runs that do not begin at rest are scored with the corrected model only")
    places = score.cut(runs, horizon_s, case.every_s, case.after_s)
    pairs = list(zip(places.runs, places.starts, strict=True))
    smoothed = [score.smooth(run.readings, run.rate_hz) for run in runs]
    past = score.warm_rows(runs[0].rate_hz)
    return replace(
        template.pick(places.runs),
        commands=np.stack([runs[r].commands[s : s + places.rows, order] for r, s in pairs]),
        history=np.stack([runs[r].commands[s - past : s, order] for r, s in pairs]),
        measured=np.stack([runs[r].readings[s : s + places.rows + 1, columns] for r, s in pairs]),
        start=np.stack([smoothed[r][0][s, columns] for r, s in pairs]),
        slope=np.stack([smoothed[r][1][s, columns] for r, s in pairs]),
        first_row=places.starts,
        ahead=None,
    )


def episode_of(project: Project, run: Run) -> Episode:
    """Returns a run as gapless holds it."""
    times_s = np.arange(len(run.readings)) / run.rate_hz
    commands = run.commands[:, [run.actuators.index(item.actuator) for item in project.commands]]
    readings = run.readings[:, [run.joints.index(item.name) for item in project.measurements]]
    name = re.sub(r"[^A-Za-z0-9_]", "_", run.name)
    sent = TimeSeries(times_s, commands, project.command_names, project.command_units)
    return Episode(
        name, "real", sent, TimeSeries(times_s, readings, project.measurement_names, project.measurement_units)
    )


def errors_as_fitted(case: Case, ours: Ours, rows: np.ndarray, windows: Windows) -> np.ndarray:
    """Returns prediction minus reading with gapless's own simulation, (rows, windows, steps, scored joints)."""
    names = [item.name for item in ours.predictor.blueprint.project.measurements]
    scored = [names.index(joint) for joint in case.joints]
    predicted = ours.predictor.predict(windows, rows)
    return (predicted - windows.measured[None])[..., scored]


def score_as_fitted(
    case: Case, ours: Ours, row: np.ndarray, runs: list[Run], horizon_s: float | None = HORIZON_S
) -> Score:
    """Returns the errors of a row with gapless's own simulation, pooled like those of the neutral scorer."""
    windows = scored_windows(case, ours.predictor.blueprint.project, runs, horizon_s)
    errors = errors_as_fitted(case, ours, row[None], windows)[0]
    if horizon_s is None:
        return score.pool_runs({run.name: error[: len(run.readings)] for run, error in zip(runs, errors, strict=True)})
    return score.pool_windows(errors[:, 1:], score.cut(runs, horizon_s, case.every_s, case.after_s), runs)
