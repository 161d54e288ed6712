"""Imported recordings as logs: each is named by a path, as a file is, and read from the catalogue."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gapless.core.errors import MissingColumnError
from gapless.core.recording import Recording
from gapless.core.signal import Array
from gapless.data.catalogue import FOLDER, Catalogue
from gapless.formats.table.columns import read_columns
from gapless.project.records import Project

SUFFIX = ".recording"
TIME = "time_s"


def imported_paths(project: Project) -> tuple[Path, ...]:
    """Returns a path `.gapless/recordings/ID/NAME.recording` for each imported recording, sorted by name.

    No such file is there; the path says which recording it is.
    """
    if not (project.directory / FOLDER).is_dir():
        return ()
    sql = "SELECT id, name FROM episodes WHERE is_recording ORDER BY name, id"
    rows = Catalogue.open(project.directory).query(sql).to_pylist()
    return tuple(project.directory / FOLDER / "recordings" / row["id"] / f"{row['name']}{SUFFIX}" for row in rows)


def is_imported(path: Path) -> bool:
    """Returns whether a log is an imported recording."""
    return path.suffix == SUFFIX


def recording_id(path: Path) -> str:
    """Returns the id of an imported recording."""
    return path.parent.name


def read_recording(path: Path) -> Recording:
    """Returns an imported recording."""
    return Catalogue.open(path.parents[3]).recording(recording_id(path))


def read_log_columns(path: Path, wanted: Sequence[str]) -> tuple[dict[str, Array], Recording | None]:
    """Reads some columns of a log, `time_s` first, and returns its recording where it is an imported one.

    Rows in which none of them has a value are left out: other topics were read then.
    """
    if not is_imported(path):
        columns = read_columns(path, wanted)
        return _drop_empty_rows(columns.pop(TIME), columns), None
    recording = read_recording(path)
    if lacking := [name for name in wanted if name != TIME and name not in recording.columns]:
        raise MissingColumnError(
            f"it has no column {lacking[0]}, which gapless.yaml maps: import it with --map ({path})"
        )
    return _drop_empty_rows(recording.times_s, {n: recording.columns[n] for n in wanted if n != TIME}), recording


def _drop_empty_rows(times_s: Array, columns: dict[str, Array]) -> dict[str, Array]:
    """Returns the time and the columns at those rows in which some column has a value; all where none has any."""
    present = np.any([~np.isnan(values) for values in columns.values()], axis=0)
    rows = present if np.any(present) else slice(None)
    return {TIME: times_s[rows], **{name: values[rows] for name, values in columns.items()}}
