"""Recordings written as tables: a folder of one file each, with a sidecar beside it."""

import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from gapless.core.recording import DESCRIPTION_KEY, Recording, Skipped, describe_recording
from gapless.formats.arrays import restore_type, skip_videos
from gapless.formats.source import choose_file_name
from gapless.formats.table.clock import TIME_S
from gapless.formats.table.sidecar import write_sidecar

Save = Callable[[Path, Mapping[str, np.ndarray], Recording], None]


def write_tables(suffix: str, save: Save, recordings: Iterable[Recording], folder: Path) -> Iterator[Skipped]:
    """Writes each recording as `NAME.csv` and `NAME.json`; yields what a table does not hold."""
    folder.mkdir()
    taken: set[str] = set()
    for recording in recordings:
        yield from skip_videos(recording)
        columns = _list_columns(recording)
        for name in (name for name in recording.columns if name == TIME_S or name not in columns):
            yield Skipped(f"{recording.name}: column {name!r}", "a table cannot have a column of this name")
        stem = choose_file_name(recording.name, taken)
        save(folder / f"{stem}{suffix}", columns, recording)
        write_sidecar(recording, folder / f"{stem}.json")


def write_log(recording: Recording, path: Path) -> None:
    """Writes a recording as a Parquet log, with its sidecar."""
    save_parquet(path, _list_columns(recording), recording)
    write_sidecar(recording, path.with_suffix(".json"))


def _list_columns(recording: Recording) -> dict[str, np.ndarray]:
    """Returns the columns of a table, the time first, in their own types; without names that no table can have."""
    columns: dict[str, np.ndarray] = {TIME_S: recording.times_s}
    for name, values in recording.columns.items():
        if name != TIME_S and name.strip() and not re.search("[\r\n\0]", name):
            columns[name] = restore_type(values, recording.types.get(name))
    return columns


def save_csv(path: Path, columns: Mapping[str, np.ndarray], recording: Recording) -> None:
    """Writes a CSV with as many digits as each float64 needs; whole numbers without a point."""
    kinds = {name: np.int64 if values.dtype.kind in "iub" else np.float64 for name, values in columns.items()}
    pyarrow.csv.write_csv(pa.table({name: values.astype(kinds[name]) for name, values in columns.items()}), path)


def save_parquet(path: Path, columns: Mapping[str, np.ndarray], recording: Recording) -> None:
    """Writes a Parquet of true types, with all that is said of the recording in its schema's metadata."""
    table = pa.table(dict(columns))
    said = json.dumps(describe_recording(recording))
    pq.write_table(table.replace_schema_metadata({DESCRIPTION_KEY: said}), path)


def save_npz(path: Path, columns: Mapping[str, np.ndarray], recording: Recording) -> None:
    """Writes an array of true type per column."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in columns.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, values, allow_pickle=False)
