"""Logs: one file each, read as one episode in model units, with what people say of it in `NAME.json` beside it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from gapless.core.episode import Episode
from gapless.core.errors import MissingColumnError, nearest
from gapless.core.recording import Origin, Recording
from gapless.core.results import Note
from gapless.core.signal import Array, Indices, TimeSeries
from gapless.formats.source import log_error
from gapless.formats.table.files import SUFFIXES
from gapless.formats.table.sidecar import Sidecar, parse_sidecar, read_object, read_origin
from gapless.project.log.corrupt import find_corrupt
from gapless.project.log.imported import imported_paths, read_log_columns
from gapless.project.records import CommandMap, MeasurementMap, Project

Report = Callable[[float], None]  # called with how much is read, in [0, 1]


MAX_VALUE = 1e12  # in model units; no robot has larger numbers, and the engine overflows far above them
MAX_RATE_RATIO = 20.0  # rate_hz over the rate of a log: beyond, nearly all rows would be made up
MAX_ROWS = 20_000_000  # of one log at the control rate: 55 hours at 100 Hz, 160 MB per column
_UNIT_RATIOS = {1e-3: "milliseconds", 1e-6: "microseconds", 1e-9: "nanoseconds"}


@dataclass(frozen=True)
class Log:
    """One log as read."""

    path: Path  # the file
    episode: Episode  # its content, in model units; time begins at 0
    notes: tuple[Note, ...]  # what was left out or is missing, and how often
    origin: Origin = field(default_factory=Origin)  # where it comes from, as far as its sidecar says


def log_paths(project: Project, *, may_be_none: bool = False) -> tuple[Path, ...]:
    """Returns the project's log files and imported recordings, sorted by name; hidden files are left out."""
    folder, imported = project.logs_path, imported_paths(project)
    if not folder.is_dir() and not imported:
        raise log_error("no such folder of logs: make it, or correct logs in gapless.yaml", folder)
    files = _list_files(folder) if folder.is_dir() else []
    found = sorted([*(path for path in files if path.suffix.lower() in SUFFIXES), *imported], key=lambda p: p.stem)
    if not found and not may_be_none:
        available = nearest("log.csv", (path.name for path in folder.iterdir()))
        text = f"no logs ({', '.join(SUFFIXES)}) in this folder; there are: {available}"
        raise log_error(f"{text}; record some, or correct logs in gapless.yaml", folder)
    by_name: dict[str, Path] = {}
    for path in found:
        if (other := by_name.setdefault(path.stem, path)) != path:
            raise log_error(f"{other.name} and {path.name} have one name: rename one, or delete the copy", folder)
    return tuple(found)


def _list_files(folder: Path) -> list[Path]:
    """Returns the files in a folder of logs, sorted by name; hidden ones and folders are left out."""
    files: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_file():
            files.append(path)
        elif path.is_symlink() and not path.exists() and path.suffix.lower() in (*SUFFIXES, ".json"):
            text = f"it is a link to {path.readlink()}, which is not there: restore that file, or delete the link"
            raise log_error(text, path)
        elif path.suffix.lower() in SUFFIXES:
            raise log_error("it has the name of a log but is no file: rename it, or move it elsewhere", path)
    return files


def read_logs(
    project: Project, patterns: Sequence[str] = (), *, may_be_none: bool = False, report: Report | None = None
) -> tuple[Log, ...]:
    """Reads the logs of a project, sorted by name: all, or those whose name matches a pattern such as `march-*`.

    `may_be_none` allows a folder without logs; `report` is called with how much is read, in [0, 1].

    Raises:
        LogError: About the first log that cannot be read, or about a pattern that matches none.
    """
    paths = log_paths(project, may_be_none=may_be_none)
    chosen = {p for p in paths for pattern in patterns if fnmatchcase(p.stem, pattern) or fnmatchcase(p.name, pattern)}
    for pattern in patterns:
        if not any(fnmatchcase(p.stem, pattern) or fnmatchcase(p.name, pattern) for p in chosen):
            available = nearest(pattern, (path.stem for path in paths))
            raise log_error(f"no log is called {pattern}; choose from: {available}", project.logs_path)
    paths = [path for path in paths if not patterns or path in chosen]
    return read_suitable(project, report_each(paths, report))


def read_suitable(project: Project, paths: Iterable[Path]) -> tuple[Log, ...]:
    """Reads logs without imported recordings that lack a mapped column, as those of other robots do: a note says so."""
    logs, errors = list[Log](), dict[str, MissingColumnError]()
    for path in paths:
        try:
            logs.append(read_log(project, path))
        except MissingColumnError as error:
            errors[path.stem] = error
    if errors and not logs:
        raise next(iter(errors.values()))
    if errors:
        first, error = next(iter(errors.items()))
        reason = str(error).partition(":")[0]
        text = f"{len(errors)} imported recordings are left out, the first is {first}: {reason}"
        logs[0] = replace(logs[0], notes=(Note("warning", "logs", text), *logs[0].notes))
    return tuple(logs)


def report_each(paths: Sequence[Path], report: Report | None) -> Iterator[Path]:
    """Yields each log, and reports which share of them is done, from 0 to 1."""
    report = report or (lambda share: None)
    for count, path in enumerate(paths):
        report(count / len(paths))
        yield path
    report(1.0)


def read_log(project: Project, path: Path, *, as_recorded: bool = False) -> Log:
    """Reads one log: the mapped columns in model units (scale * column + offset), and its sidecar.

    Rows with a repeated or no time stamp are left out, and samples that cannot be readings become NaN, with a note
    each, unless `as_recorded`; other missing values stay NaN.

    Raises:
        LogError: If it has no such columns, no numbers, commands beyond all measure, time that runs
            backwards, or far fewer samples than the control rate needs.
    """
    columns, recording = read_log_columns(path, ("time_s", *project.command_names, *project.measurement_names))
    notes: list[Note] = []
    times_s, keep = increasing_times(columns["time_s"], path, notes)
    _check_rate(times_s, project.rate_hz, path)
    about, origin = _read_sidecar(path, notes) if recording is None else (_describe(recording), recording.origin)
    episode = Episode(
        name=path.stem,
        commands=_map_columns(project.commands, columns, times_s, keep, path, notes),
        measurements=_map_columns(project.measurements, columns, times_s, keep, path, notes, as_recorded=as_recorded),
        **about,
    )
    return Log(path, episode, tuple(notes), origin)


def _read_sidecar(path: Path, notes: list[Note]) -> tuple[dict[str, Any], Origin]:
    sidecar = path.with_suffix(".json")
    data = read_object(sidecar) if sidecar.is_file() else {}
    return parse_sidecar(data, sidecar, notes), read_origin(data, sidecar)


def _describe(recording: Recording) -> dict[str, Any]:
    """Returns what is known of an imported recording, as arguments of `Episode`."""
    return {key: getattr(recording, key) for key in Sidecar.model_fields} | {"source": recording.source or "real"}


def increasing_times(raw_s: Array, path: Path, notes: list[Note]) -> tuple[Array, Indices]:
    """Returns increasing times from 0 [s], and the rows they belong to; what was left out becomes a note."""
    if len(raw_s) == 0:
        raise log_error("a header but no rows: delete it or record again", path)
    rows = np.flatnonzero(np.isfinite(raw_s))
    if len(rows) == 0:
        raise log_error("column time_s holds no numbers at all: record the time in seconds", path)
    if len(rows) < len(raw_s):
        text = f"{len(raw_s) - len(rows)} of {len(raw_s)} rows have no time stamp and were left out"
        notes.append(Note("warning", f"{path.name}: time_s", text))
    times_s = raw_s[rows] - raw_s[rows[0]]
    steps_s = np.diff(times_s)
    if np.any(steps_s < 0):
        at = int(np.argmax(steps_s < 0))
        before, after = float(raw_s[rows[at]]), float(raw_s[rows[at + 1]])
        text = f"time_s goes backwards in row {rows[at + 1] + 1}: {before!r} is followed by {after!r}"
        raise log_error(f"{text}; sort the rows, or split the file there", path)
    new = np.concatenate([[True], steps_s > 0])
    if not new.all():
        text = f"{int((~new).sum())} of {len(raw_s)} time stamps are repeated; the first row of each was kept"
        notes.append(Note("warning", f"{path.name}: time_s", text))
    if new.sum() < 2:
        raise log_error("only one time stamp: record at least two", path)
    return times_s[new], rows[new]


def _check_rate(times_s: Array, rate_hz: float, path: Path) -> None:
    """Raises LogError for a log far slower than the control rate, which would be mostly made-up rows, or too long."""
    found_hz, num_rows = float(1 / np.median(np.diff(times_s))), float(times_s[-1] * rate_hz)
    if rate_hz > MAX_RATE_RATIO * found_hz:
        slow = f"recorded at {found_hz:.4g} Hz while rate_hz is {rate_hz:g}, more than {MAX_RATE_RATIO:g} times as fast"
        units = [unit for factor, unit in _UNIT_RATIOS.items() if abs(found_hz / rate_hz / factor - 1) < 0.5]
        advice = f"time_s looks like {units[0]}, it must be seconds" if units else f"write rate_hz: {found_hz:.4g}"
        raise log_error(f"{slow}: correct one of them; {advice}", path)
    if num_rows > MAX_ROWS:
        at = int(np.argmax(np.diff(times_s)))
        many = f"{num_rows:.3g} rows at rate_hz {rate_hz:g}, more than {MAX_ROWS:.0e}; its longest pause is"
        pause_s = float(times_s[at + 1] - times_s[at])
        raise log_error(f"{many} {pause_s:.4g} s at {times_s[at]:.4g} s: split the file, or correct time_s", path)


def _map_columns(
    maps: tuple[CommandMap, ...] | tuple[MeasurementMap, ...],
    columns: Mapping[str, Array],
    times_s: Array,
    keep: Indices,
    path: Path,
    notes: list[Note],
    *,
    as_recorded: bool = False,
) -> TimeSeries:
    values = np.empty((len(times_s), len(maps)))
    for place, item in enumerate(maps):
        raw = columns[item.column][keep]
        with np.errstate(over="ignore", invalid="ignore"):
            mapped = item.scale * raw + item.offset
            huge = np.abs(mapped) > MAX_VALUE
        if isinstance(item, CommandMap) and (sent := huge & np.isfinite(raw)).any():
            scaled = f" times scale {item.scale:g}" if item.scale != 1 else ""
            text = f"{int(sent.sum())} of {len(raw)} commands are beyond {MAX_VALUE:g}, the first {raw[sent][0]:g}"
            raise log_error(f"column {item.column}: {text}{scaled}: correct the log, or leave the cells empty", path)
        values[:, place] = np.where(huge | np.isinf(raw), np.nan, mapped)
        where = f"{path.name}: {item.column}"
        if huge.any():
            word = "infinite" if np.isinf(raw[huge]).all() else f"infinite or beyond {MAX_VALUE:g}"
            text = f"{int(huge.sum())} of {len(raw)} values are {word} and count as missing"
            notes.append(Note("warning", where, text))
        if missing := int(np.isnan(raw).sum()):
            notes.append(Note("warning", where, f"{missing} of {len(raw)} values are missing"))
        if isinstance(item, MeasurementMap) and not as_recorded:
            for corrupt, kind in list(find_corrupt(values[:, place], times_s, item.quantity)):
                values[corrupt, place] = np.nan
                text = f"{int(corrupt.sum())} of {len(raw)} values {kind}; they count as missing"
                notes.append(Note("warning", where, text))
    return TimeSeries(times_s, values, tuple(m.column for m in maps), tuple(m.unit for m in maps))


def read_unlogged(project: Project) -> tuple[Log, ...]:
    """Reads what people say of runs that nobody logged, sorted by name; their episodes have no samples.

    Hidden files, results of gapless and whatever says nothing of a run are left alone.
    """
    files = _list_files(project.logs_path) if project.logs_path.is_dir() else []
    logged = {path.stem for path in files if path.suffix.lower() in SUFFIXES}
    found: list[Log] = []
    for path in (path for path in files if path.suffix == ".json" and path.stem not in logged):
        data, notes = read_object(path), list[Note]()
        if {"format", "verb"} <= set(data) or not set(data) & set(Sidecar.model_fields):
            continue  # what a verb wrote by --json, or a file of the owner's
        about = parse_sidecar(data, path, notes)
        if about["outcome"] is None:
            text = 'no log beside it and no outcome: write "outcome": "success" or "failure", or move it elsewhere'
            raise log_error(text, path)
        columns = (project.command_names, project.command_units), (project.measurement_names, project.measurement_units)
        empty = [TimeSeries(np.zeros(0), np.zeros((0, len(names))), names, units) for names, units in columns]
        episode = Episode(path.stem, commands=empty[0], measurements=empty[1], **about)
        found.append(Log(path, episode, tuple(notes), read_origin(data, path)))
    return tuple(found)
