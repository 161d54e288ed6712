"""Writing episodes as logs: how what a robot did enters a project."""

import io
import json
import os
from pathlib import Path

import numpy as np

from gapless.core.episode import Episode
from gapless.core.errors import LogError
from gapless.formats.source import log_error
from gapless.project.records import Project


def write_log(project: Project, episode: Episode) -> Path:
    """Writes an episode as `NAME.csv` and `NAME.json` in the project's folder of logs; returns the CSV's path.

    Columns go back to the units of the log: (model value - offset) / scale. The log appears whole or not at all.

    Raises:
        LogError: If commands and measurements have different times, or the folder cannot be written to.
    """
    path = project.logs_path / f"{episode.name}.csv"
    if project.commands and not np.array_equal(episode.commands.times_s, episode.measurements.times_s):
        raise log_error("commands and measurements have different times: give them common ones", path)
    table = [episode.measurements.times_s]
    for series, maps in ((episode.commands, project.commands), (episode.measurements, project.measurements)):
        table += [(series.column(item.column) - item.offset) / item.scale for item in maps]
    header = ",".join(["time_s", *project.command_names, *project.measurement_names])
    text = io.StringIO()
    np.savetxt(text, np.stack(table, axis=1), fmt="%.9g", delimiter=",", header=header, comments="")
    about = {key: getattr(episode, key) for key in ("source", "outcome", "failed_in", "conditions", "recorded_at")}
    about["conditions"] = dict(episode.conditions)
    _write_whole(path.with_suffix(".json"), json.dumps({key: value for key, value in about.items() if value}))
    _write_whole(path, text.getvalue())
    return path


def _write_whole(path: Path, text: str) -> None:
    """Writes a file beside its place and moves it there in one step."""
    partial = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise LogError(f"cannot write the log: {error.strerror}: {path}") from None
