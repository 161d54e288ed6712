"""Reads a log at rest: a project's measurements, or all columns of a file that has no project.

A log that cannot be read raises LogError; a column or log that is not there raises InputError.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapless.core.errors import InputError, LogError, nearest
from gapless.core.results import Note
from gapless.core.signal import Array
from gapless.project.log.columns import SUFFIXES, column_names, log_error, read_columns
from gapless.project.log.read import increasing_times, log_paths
from gapless.project.records import Project
from gapless.signals.noise.units import read_unit

TIME, RATE = "time_s", "rate_hz"
MAX_COMPONENTS = 16  # columns of an array; more is no sensor


@dataclass(frozen=True)
class Readings:
    """What a log holds."""

    path: Path  # the file
    identity: str  # 32 hex digits of the SHA-256 of the file
    times_s: Array  # (num_samples,) increasing [s]
    columns: Mapping[str, Array]  # name -> (num_samples,) in `units`; NaN where nothing was recorded
    units: Mapping[str, str]  # name -> unit
    notes: tuple[Note, ...]  # what was left out


def find_log(project: Project, log: str) -> Path:
    """Returns the file that a log's name, or a path, stands for."""
    for path in (Path(log).expanduser(), project.directory / log):
        if path.suffix.lower() in SUFFIXES and path.is_file():
            return path
    paths = log_paths(project, may_be_none=True)
    for path in paths:
        if log in (path.stem, path.name):
            return path
    there = nearest(log, (path.stem for path in paths))
    raise InputError(f"{log}: no such file, and no such log of the project; choose from: {there}")


def read_mapped(project: Project, path: Path, wanted: Sequence[str]) -> Readings:
    """Returns a project's measurements, in model units."""
    names = _choose_columns(wanted, project.measurement_names, "which gapless.yaml does not map as a measurement")
    maps = {item.column: item for item in project.measurements if item.column in names}
    raw = read_columns(path, (TIME, *maps))
    values = {name: item.scale * raw[name] + item.offset for name, item in maps.items()}
    return _make_readings(path, raw[TIME], values, {name: item.unit for name, item in maps.items()})


def read_bare(path: Path, wanted: Sequence[str]) -> Readings:
    """Returns all columns of a file but its time, or those wanted; units come from how names end.

    Arrays of several columns in an npz file are taken apart, `gyro[0]`, and a number `rate_hz` may stand for `time_s`.
    """
    if path.is_dir():
        text = "this is a folder: name a log, or for a project `gapless noise LOG DIR`"
        raise InputError(f"{text}: {path}")
    there = column_names(path)
    columns = _read_arrays(path) if path.suffix.lower() == ".npz" else None
    known = [name for name in (columns or there) if name != TIME]
    names = _choose_columns(wanted, known, "which the log does not have")
    if columns is None:
        columns = _read_table(path, names, hint=not wanted)
    if TIME not in columns:
        read_columns(path, (TIME,))  # says what is there instead
    if not names:
        raise log_error("no column but time_s: record some readings", path)
    units = {name: read_unit(name) for name in names}
    return _make_readings(path, columns[TIME], {name: columns[name] for name in names}, units)


def _read_table(path: Path, names: Sequence[str], *, hint: bool) -> dict[str, Array]:
    try:
        return read_columns(path, (TIME, *names))
    except LogError as error:
        if hint and ("not a number" in str(error) or "not numbers" in str(error)):
            raise LogError(f"{error}; or choose columns with --column NAME") from None
        raise


def _choose_columns(wanted: Sequence[str], known: Sequence[str], what: str) -> list[str]:
    for name in wanted:
        if name not in known:
            raise InputError(f"--column {name}, {what}; choose from: {nearest(name, known)}")
    return [name for name in known if not wanted or name in wanted]


def _read_arrays(path: Path) -> dict[str, Array]:
    """Returns the columns of an npz file, arrays of several taken apart; `rate_hz` stands in for `time_s`."""
    found: dict[str, Array] = {}
    with np.load(path, allow_pickle=False) as arrays:
        for name in arrays.files:
            try:
                values = arrays[name]
            except ValueError:
                raise log_error(f"array {name} holds objects: save plain numbers", path) from None
            if values.dtype.kind not in "fiub" or values.ndim not in (1, 2) or values.shape[-1] == 0:
                continue
            if values.ndim == 1:
                found[name] = values.astype(np.float64)
            elif values.shape[1] <= MAX_COMPONENTS:
                found |= {f"{name}[{k}]": values[:, k].astype(np.float64) for k in range(values.shape[1])}
        rate_hz = float(arrays[RATE]) if RATE in arrays.files and np.ndim(arrays[RATE]) == 0 else 0.0
    lengths = {name: len(values) for name, values in found.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} has {length}" for name, length in list(lengths.items())[:4])
        raise log_error(f"columns of different length: {shown}: save them with one value per time stamp", path)
    if TIME not in found and rate_hz > 0 and found:
        found[TIME] = np.arange(next(iter(lengths.values()))) / rate_hz
    return found


def _make_readings(path: Path, raw_s: Array, columns: Mapping[str, Array], units: Mapping[str, str]) -> Readings:
    notes: list[Note] = []
    times_s, rows = increasing_times(raw_s, path, notes)
    kept: dict[str, Array] = {}
    for name, values in columns.items():
        kept[name] = np.where(np.isfinite(values), values, np.nan)[rows]
        if missing := int(np.isnan(kept[name]).sum()):
            notes.append(Note("warning", f"{path.name}: {name}", f"{missing} of {len(rows)} values are missing"))
    identity = hashlib.sha256(path.read_bytes()).hexdigest()[:32]
    return Readings(path, identity, times_s, kept, units, tuple(notes))
