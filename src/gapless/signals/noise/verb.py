"""The verb `noise`: how noisy are these sensors?"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

import gapless
from gapless.core.errors import InputError, LogError
from gapless.core.protocols import Progress
from gapless.core.provenance import Provenance
from gapless.core.results import ColumnNoise, Note, SensorResult, Verdict
from gapless.core.signal import Array
from gapless.data.catalogue import Catalogue
from gapless.data.splits import require_allowed
from gapless.data.stored_results import store_result_if_possible
from gapless.project.fingerprint import fingerprint
from gapless.project.load import load_project
from gapless.project.log.formats import SUFFIXES
from gapless.project.log.read import read_log
from gapless.project.records import Project
from gapless.signals.noise.column import fit_column_noise
from gapless.signals.noise.readings import G_M_S2, Readings, find_log, find_time_grid, read_bare, read_mapped

MIN_G, MAX_G = 0.5, 2.0  # times gravity that three axes of an accelerometer at rest may read


def noise(
    log: str | Path,
    directory: str | Path | None = None,
    *,
    columns: Sequence[str] = (),
    progress: Progress | None = None,
) -> SensorResult:
    """Fits the noise of sensors from a log at rest and says what this log does not identify.

    `log` is a file; in a project also the name of one of its logs. `directory` is the project folder, whose
    measurements are looked at and whose catalogue keeps the result; None for a file that stands alone. `columns` are
    looked at; without them all. What cannot be used raises InputError.
    """
    if directory is None:
        return _fit_columns(str(log), read_bare(Path(log).expanduser(), columns), (), progress)
    if Path(directory).suffix.lower() in SUFFIXES and Path(directory).is_file():
        raise InputError(f"this is a log, not a project folder: write `gapless noise {directory}`: {directory}")
    project = load_project(directory)
    path = find_log(project, str(log))
    with suppress(LogError):  # what cannot be read as a log of the project is not in its catalogue
        require_allowed(Catalogue.open(project.directory), read_log(project, path).episode, "train", path.name)
    readings = read_mapped(project, path, columns)
    result = _fit_columns(path.stem, readings, _check_gravity(project, readings), progress)
    config = {"project": fingerprint(project), "sensor": path.name, "columns": list(columns)}
    provenance = Provenance("identify --sensor", gapless.__version__, result.inputs, config)
    return replace(result, id=store_result_if_possible(Catalogue.open(project.directory), result, provenance))


identify_sensor = noise  # its name before `noise` was a verb; kept for one version


def _fit_columns(name: str, readings: Readings, found: Sequence[Note], progress: Progress | None) -> SensorResult:
    grid, notes = find_time_grid(readings.times_s, readings.path.name)
    notes = [*readings.notes, *found, *notes]
    noises: dict[str, ColumnNoise] = {}
    moved: list[str] = []
    report = progress or (lambda label, share: None)
    for count, (column, values) in enumerate(readings.columns.items()):
        report("fitting the noise", count / len(readings.columns))
        fitted = fit_column_noise(grid.place_values(values), grid.interval_s, readings.units[column])
        noises[column] = fitted.noise
        moved += [column] if fitted.moved else []
        notes += [Note("info", column, text) for text in fitted.notes]
    report("fitting the noise", 1.0)
    verdict, reasons = _judge_log(noises, moved)
    return SensorResult(
        inputs=(readings.identity,),
        sensor=name,
        columns=noises,
        verdict=verdict,
        reasons=reasons,
        rate_hz=1 / grid.interval_s,
        duration_s=float(readings.times_s[-1] - readings.times_s[0]),
        notes=tuple(notes),
    )


def _judge_log(columns: Mapping[str, ColumnNoise], moved: Sequence[str]) -> tuple[Verdict, tuple[str, ...]]:
    """Returns the verdict on a log: what moves is not at rest, and neither is what is mounted on it."""
    reasons = tuple(f"{name}: {reason}" for name, column in columns.items() for reason in column.reasons)
    if moved:
        text = f"the log is not at rest: {', '.join(moved)} moved: record again with nothing moving, or cut it"
        return "refused", (text, *reasons)
    verdicts: set[Verdict] = {column.verdict for column in columns.values()}
    return verdicts.pop() if len(verdicts) == 1 else "poor", reasons


def _check_gravity(project: Project, readings: Readings) -> list[Note]:
    """Returns a note for each accelerometer whose three axes at rest are not about one gravity: in g, or in mg?"""
    axes: dict[str, list[Array]] = {}
    for item in project.measurements:
        if item.element == "sensor" and item.unit == "m/s^2" and item.column in readings.columns:
            axes.setdefault(item.name, []).append(readings.columns[item.column])
    notes: list[Note] = []
    for name, columns in axes.items():
        means = [float(np.mean(values[np.isfinite(values)])) for values in columns if np.isfinite(values).any()]
        size = float(np.linalg.norm(means))
        if len(means) == 3 and not MIN_G < size / G_M_S2 < MAX_G:
            text = f"reads {size:.3g} m/s^2 in all at rest, not {G_M_S2:.3g}: in which unit are its columns?"
            hint = " If in g, write scale: 9.80665" if MIN_G < size < MAX_G else ""
            notes.append(Note("warning", name, text + hint))
    return notes
