"""Runs without a log: `NAME.json` alone, of which only the outcome and the conditions are known."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gapless.core.episode import Episode
from gapless.core.results import Note
from gapless.core.signal import TimeSeries
from gapless.project.log.columns import SUFFIXES, log_error
from gapless.project.log.read import Log, files_beside_logs
from gapless.project.log.sidecar import SIDECAR_KEYS, about_run, read_object
from gapless.project.records import Project


def read_unlogged(project: Project) -> tuple[Log, ...]:
    """Reads what people say of runs that nobody logged, sorted by name; their episodes have no samples.

    Hidden files, results of gapless and whatever says nothing of a run are left alone.

    Raises:
        LogError: One line about the first file that is not JSON, has a value that is not allowed, or no outcome.
    """
    found: list[Log] = []
    for path in _without_log(project.logs_path):
        data, notes = read_object(path), list[Note]()
        if _is_other(data):
            continue
        about = about_run(data, path, notes)
        if about["outcome"] is None:
            text = 'no log beside it and no outcome: write "outcome": "success" or "failure", or move it elsewhere'
            raise log_error(text, path)
        commands = _nothing(project.command_names, project.command_units)
        measurements = _nothing(project.measurement_names, project.measurement_units)
        found.append(Log(path, Episode(path.stem, commands=commands, measurements=measurements, **about), tuple(notes)))
    return tuple(found)


def _is_other(data: Mapping[str, Any]) -> bool:
    """Tells whether an object is not about a run: what a verb wrote by --json, or something of the owner's."""
    return {"format", "verb"} <= set(data) or not set(data) & set(SIDECAR_KEYS)


def _without_log(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    files = files_beside_logs(folder)
    logged = {path.stem for path in files if path.suffix.lower() in SUFFIXES}
    return [path for path in files if path.suffix == ".json" and path.stem not in logged]


def _nothing(names: tuple[str, ...], units: tuple[str, ...]) -> TimeSeries:
    return TimeSeries(np.zeros(0), np.zeros((0, len(names))), names, units)
