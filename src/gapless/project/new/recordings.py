"""Logs given to `new`: which files they are, read before their columns are mapped, and written with `time_s`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from gapless.core.protocols import Progress
from gapless.core.recording import Recording, Skipped
from gapless.core.results import Note
from gapless.core.signal import Array
from gapless.formats.format import ReadOptions
from gapless.formats.registry import find_format
from gapless.formats.source import log_error
from gapless.formats.table.clock import TIME_S, Clock, find_clock, read_times
from gapless.formats.table.columns import as_doubles, column_names, describe_other_kind, read_raw
from gapless.formats.table.episodes import find_episodes
from gapless.formats.table.formats import TABLES
from gapless.formats.table.read import list_tables
from gapless.formats.table.write import write_log
from gapless.project.log.read import increasing_times, report_each

_LEROBOT_INFO = Path("meta") / "info.json"
_MAX_LEVELS_ABOVE = 4  # from data/chunk-000/FILE up to the data set's folder, and one to spare


def find_logs(given: Sequence[Path]) -> list[Path]:
    """Returns the sources, in the order given: tables, those of a folder sorted by name, and sets of other formats."""
    found: list[Path] = []
    for path in given:
        kind = find_format(path)
        found += list_tables(path) if kind in TABLES else [path]
    seen: set[Path] = set()
    for path in found:
        if path.resolve() in seen:
            raise log_error("this log is given twice: name it once", path)
        seen.add(path.resolve())
    return found


def _name_logs(paths: Sequence[Path]) -> dict[Path, str]:
    """Returns a name for each log in the project: its own, or with its folder's in front where two are alike."""
    stems = [path.stem for path in paths]
    names = {p: p.stem if stems.count(p.stem) == 1 else f"{p.resolve().parent.name}_{p.stem}" for p in paths}
    taken: dict[str, Path] = {}
    for path, name in names.items():
        if (other := taken.setdefault(name, path)) != path:
            raise log_error(f"this log and {other} have one name: rename one, or leave it out", path)
    return names


def _read_element_names(path: Path) -> dict[str, str]:
    """Returns better names of list elements where a LeRobot data set gives some: `action_0` -> `action.elbow.pos`."""
    found = (folder / _LEROBOT_INFO for folder in path.resolve().parents[:_MAX_LEVELS_ABOVE])
    info = next((file for file in found if file.is_file()), None)
    if info is None:
        return {}
    try:
        features = json.loads(info.read_text(encoding="utf-8"))["features"]
        listed = {str(key): _flatten_names(about.get("names")) for key, about in features.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return {f"{key}_{k}": f"{key}.{name}" for key, names in listed.items() for k, name in enumerate(names)}


def _flatten_names(names: Any) -> list[str]:
    """Returns the texts of nested lists and mappings, in order."""
    if isinstance(names, str):
        return [names]
    inner = names.values() if isinstance(names, dict) else names if isinstance(names, list) else ()
    return [text for each in inner for text in _flatten_names(each)]


@dataclass(frozen=True)
class FoundLog:
    """One episode of a log that was recorded by others."""

    path: Path  # the file it is in
    stem: str  # name in the project, without ending
    times_s: Array  # (num_samples,) [s], NaN where there is no stamp
    columns: dict[str, Array]  # all other columns that hold numbers, as recorded
    clock: Clock  # how its time is recorded
    rows: slice | None  # its rows in the file; None for all
    renamed: dict[str, str]  # better names of list elements, as `columns` has them
    notes: tuple[Note, ...]  # what cannot be read of it
    recording: Recording | None = None  # where it is of another format than a table

    @property
    def is_changed(self) -> bool:
        """Whether the project's log is not a plain copy."""
        is_plain = self.clock.columns == (TIME_S,) and self.rows is None and not self.renamed
        return self.recording is not None or not is_plain

    @property
    def name(self) -> str:
        """Name of its file in the project: a log that is changed is CSV if it was, else Parquet."""
        keeps_format = self.path.suffix.lower() == ".csv" or not self.is_changed
        return self.stem + (self.path.suffix if keeps_format else ".parquet")


def read_recordings(paths: Sequence[Path], progress: Progress | None = None) -> list[FoundLog]:
    """Reads all columns of logs that hold numbers; the first table says how all tables record their time."""
    names = _name_logs(paths)
    tables = [path for path in paths if find_format(path) in TABLES]
    clock = find_clock(tables[0]) if tables else Clock((TIME_S,))
    found: list[FoundLog] = []
    for path in report_each(paths, progress and partial(progress, "reading the logs")):
        is_table = path in tables
        found += _split_episodes(_read_recording(path, names[path], clock)) if is_table else _read_set(path)
    if not found:
        raise log_error("there is no episode in it: choose another source", paths[0])
    for recording in found:
        increasing_times(recording.times_s, recording.path, [])
    return found


def _read_set(path: Path) -> list[FoundLog]:
    """Returns the episodes of a source that is no table; what could not be read of it is a note of the first."""
    read = list(find_format(path).read(path, ReadOptions()))
    notes = [Note("warning", each.what, f"left out: {each.why}") for each in read if isinstance(each, Skipped)]
    found: list[FoundLog] = []
    for each in (each for each in read if isinstance(each, Recording)):
        about = () if found else (*notes, *describe_time(each))
        columns = dict(each.columns)
        found.append(FoundLog(path, each.name, each.times_s, columns, Clock((TIME_S,)), None, {}, about, each))
    if notes and not found:
        why = notes[0].text.removeprefix("left out: ")
        raise log_error(f"no episode of it can be read, choose another source ({why})", path)
    return found


def describe_time(recording: Recording) -> list[Note]:
    """Returns what a reader found out of the time: latency of transport, units that were guessed."""
    latencies: Any = recording.details.get("transport_latency_s", {})
    notes: list[Note] = []
    for topic, found in latencies.items():
        size, low, high = (f"{1e3 * found[key]:.1f}" for key in ("median", "low", "high"))
        text = f"transport latency {size} ms ({low} to {high}) from message to receipt"
        notes.append(Note("info", topic, text))
    said = str(recording.details.get("time") or "")
    text = f"rows are at the time of the {said}" if said in ("receipt", "message") else said
    return [*notes, *([Note("info", "time", text)] if text else [])]


def _read_recording(path: Path, stem: str, clock: Clock) -> FoundLog:
    times_s, better_names = read_times(path, clock)[0], _read_element_names(path)
    columns, renamed, notes = dict[str, Array](), dict[str, str](), list[Note]()
    for name, column in read_raw(path, _list_signals(path, clock)).items():
        other = describe_other_kind(column)
        if other or len(column) != len(times_s):
            text = f"it holds {other}" if other else f"it has {len(column)} values, the time has {len(times_s)}"
            notes.append(Note("info" if other else "warning", name, f"left out: {text}"))
            continue
        columns[better_names.get(name, name)] = as_doubles(column)
        renamed |= {name: better_names[name]} if name in better_names else {}
    return FoundLog(path, stem, times_s, columns, clock, None, renamed, tuple(notes))


def _list_signals(path: Path, clock: Clock) -> list[str]:
    """Returns all columns of a log but its time."""
    return [name for name in column_names(path) if name.strip() and name not in (*clock.columns, TIME_S)]


def _split_episodes(recording: FoundLog) -> list[FoundLog]:
    """Splits a file of several episodes, where a column such as `episode_index` numbers them."""
    found: list[FoundLog] = []
    for ending, rows in find_episodes(recording.columns, recording.path):
        columns = {column: values[rows] for column, values in recording.columns.items()}
        stem, times_s = recording.stem + ending, recording.times_s[rows]
        found.append(replace(recording, stem=stem, times_s=times_s, columns=columns, rows=rows))
    return found or [recording]


def write_recording(recording: FoundLog, target: Path) -> None:
    """Writes a log of one episode with `time_s` [s] in place of its own time columns."""
    if recording.recording is not None:
        write_log(recording.recording, target)
        return
    first, count = (recording.rows or slice(0, 0)).start, len(recording.times_s)
    columns: dict[str, Any] = {TIME_S: pa.array(recording.times_s)}
    for name, column in read_raw(recording.path, _list_signals(recording.path, recording.clock)).items():
        if len(column) >= first + count:
            columns[recording.renamed.get(name, name)] = column.slice(first, count)
    write = pyarrow.csv.write_csv if target.suffix.lower() == ".csv" else pq.write_table
    write(pa.table(columns), target)
