"""The time column of a log that was recorded by others, brought to `time_s`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from gapless.core.errors import LogError, nearest
from gapless.core.results import Note
from gapless.core.signal import Array
from gapless.project.log.columns import column_names, log_error, read_columns

_SECONDS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_TIME_WORDS = ("time", "t", "timestamp", "stamp", "timestamps", "clock")


@dataclass(frozen=True)
class Recording:
    """A log before its columns are mapped.

    Attributes:
        times_s: (num_samples,) [s].
        columns: All other columns that hold numbers, as recorded.
        time_column: Name of the time column.
        converted: The time column is not `time_s`.
        notes: What was guessed of the time, and which columns hold no numbers.
    """

    times_s: Array
    columns: dict[str, Array]
    time_column: str
    converted: bool
    notes: tuple[Note, ...]


def read_recording(path: Path) -> Recording:
    """Reads all columns of a log that hold numbers.

    Raises:
        LogError: If it cannot be read or has no time column.
    """
    there = column_names(path)
    column, unit = _time_column(there, path)
    raw = read_columns(path, [column])[column]
    finite = raw[np.isfinite(raw)]
    intervals = np.diff(finite)
    intervals = intervals[intervals != 0]
    if not len(intervals) or np.median(intervals) <= 0:
        raise log_error(f"column {column} does not go forward: the time must increase", path)
    notes: list[Note] = []
    columns = _numbers(path, [name for name in there if name != column and name.strip()], notes)
    if column == "time_s":
        return Recording(finite, columns, column, False, tuple(notes))
    seconds = _SECONDS[unit or _guess_unit(float(np.median(intervals)))]
    source = f"its name says {unit}" if unit else f"steps of {np.median(intervals):.4g} look like it"
    text = f"guessed: the time, in units of {seconds:g} s, as {source}; time_s starts at 0"
    notes.insert(0, Note("info", column, text))
    return Recording((raw - finite[0]) * seconds, columns, column, True, tuple(notes))


def write_recording(source: Path, target: Path, recording: Recording) -> None:
    """Writes a copy of a log with `time_s` [s] in place of its own time column."""
    if source.suffix.lower() == ".npz":
        with np.load(source, allow_pickle=False) as arrays:
            kept = {key: arrays[key] for key in arrays.files if key != recording.time_column}
        np.savez(target, time_s=recording.times_s, **kept)
        return
    is_csv = source.suffix.lower() == ".csv"
    table: Any = pyarrow.csv.read_csv(source) if is_csv else pq.read_table(source)
    place = table.column_names.index(recording.time_column)
    table = table.set_column(place, "time_s", pa.array(recording.times_s))
    if is_csv:
        pyarrow.csv.write_csv(table, target)
    else:
        pq.write_table(table, target)


def _numbers(path: Path, wanted: list[str], notes: list[Note]) -> dict[str, Array]:
    """Reads the columns that hold numbers: all at once, or one by one where some do not."""
    try:
        return read_columns(path, wanted) if wanted else {}
    except LogError:
        columns: dict[str, Array] = {}
    for name in wanted:
        try:
            columns[name] = read_columns(path, [name])[name]
        except LogError as error:
            notes.append(Note("info", name, f"left out: {error}"))
    return columns


def _time_column(there: tuple[str, ...], path: Path) -> tuple[str, str | None]:
    """Returns the time column and the unit in its name, if any."""
    if "time_s" in there:
        return "time_s", "s"
    for name in there:
        word, _, unit = name.strip().lower().replace("[", "_").replace("(", "_").rstrip("])").partition("_")
        unit = unit.strip("_ ")
        if word.strip() in _TIME_WORDS and (not unit or unit in _SECONDS):
            return name, unit or None
    if len(there) == 1 and (";" in there[0] or "\t" in there[0]):
        raise log_error("the columns are not separated by commas: save it with commas", path)
    text = f"no time column (time_s, time, t, timestamp; _ms, _us, _ns); there are: {nearest('time_s', there)}"
    raise log_error(text, path)


def _guess_unit(step: float) -> str:
    """Returns the unit in which a step lies between 1 ms and 1 s: control rates of 1 Hz to 1 kHz."""
    if step < 1:
        return "s"
    if step < 1e3:
        return "ms"
    return "us" if step < 1e6 else "ns"
