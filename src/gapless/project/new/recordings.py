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

from gapless.core.errors import nearest
from gapless.core.protocols import Progress
from gapless.core.results import Note
from gapless.core.signal import Array
from gapless.formats.source import log_error
from gapless.formats.table.clock import TIME_S, Clock, find_clock, read_times
from gapless.formats.table.columns import as_doubles, column_names, describe_other_kind, read_raw
from gapless.formats.table.episodes import find_episodes
from gapless.formats.table.files import CONVERT_WITH, SUFFIXES
from gapless.project.log.read import increasing_times, report_each

_LEROBOT_INFO = Path("meta") / "info.json"
_MAX_LEVELS_ABOVE = 4  # from data/chunk-000/FILE up to the data set's folder, and one to spare


def find_logs(given: Sequence[Path]) -> list[Path]:
    """Returns the log files, in the order given; those of a folder are sorted by name."""
    for path in given:
        if not path.exists():
            available = nearest(path.name, (p.name for p in path.parent.iterdir())) if path.parent.is_dir() else "none"
            raise log_error(f"no such log or folder of logs; correct the path; beside it there are: {available}", path)
    found = [path for each in given for path in (_find_folder_logs(each) if each.is_dir() else [each])]
    seen: set[Path] = set()
    for path in found:
        if path.resolve() in seen:
            raise log_error("this log is given twice: name it once", path)
        seen.add(path.resolve())
    return found


def _find_folder_logs(folder: Path) -> list[Path]:
    is_lerobot = (folder / _LEROBOT_INFO).is_file()
    files = sorted(folder.glob("data/**/*.parquet") if is_lerobot else folder.iterdir())
    visible = [path for path in files if path.is_file() and not path.name.startswith(".")]
    if found := [path for path in visible if path.suffix.lower() in SUFFIXES]:
        return found
    if is_lerobot:
        raise log_error("a LeRobot data set without data/chunk-*/*.parquet: download its data files", folder)
    if (folder / "metadata.yaml").is_file():
        raise log_error(f"a folder of ROS 2, not a log; {CONVERT_WITH['.mcap']}", folder)
    advice = next((f", or {CONVERT_WITH[p.suffix.lower()]}" for p in visible if p.suffix.lower() in CONVERT_WITH), "")
    available = nearest("log.csv", (path.name for path in folder.iterdir()))
    text = f"no logs ({', '.join(SUFFIXES)}) in this folder; there are: {available}"
    raise log_error(f"{text}; name the folder that holds the logs{advice}", folder)


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

    @property
    def is_changed(self) -> bool:
        """Whether the project's log is not a plain copy."""
        return self.clock.columns != (TIME_S,) or self.rows is not None or bool(self.renamed)

    @property
    def name(self) -> str:
        """Name of its file in the project: a log that is changed is CSV if it was, else Parquet."""
        keeps_format = self.path.suffix.lower() == ".csv" or not self.is_changed
        return self.stem + (self.path.suffix if keeps_format else ".parquet")


def read_recordings(paths: Sequence[Path], progress: Progress | None = None) -> list[FoundLog]:
    """Reads all columns of logs that hold numbers; the first log says how all record their time."""
    names = _name_logs(paths)
    clock = find_clock(paths[0])
    found: list[FoundLog] = []
    for path in report_each(paths, progress and partial(progress, "reading the logs")):
        found += _split_episodes(_read_recording(path, names[path], clock))
    for recording in found:
        increasing_times(recording.times_s, recording.path, [])
    return found


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
    first, count = (recording.rows or slice(0, 0)).start, len(recording.times_s)
    columns: dict[str, Any] = {TIME_S: pa.array(recording.times_s)}
    for name, column in read_raw(recording.path, _list_signals(recording.path, recording.clock)).items():
        if len(column) >= first + count:
            columns[recording.renamed.get(name, name)] = column.slice(first, count)
    write = pyarrow.csv.write_csv if target.suffix.lower() == ".csv" else pq.write_table
    write(pa.table(columns), target)
