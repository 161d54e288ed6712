"""Reads a log at rest, a project's measurements or all columns of a file that has no project, and its even times.

A log that cannot be read raises LogError; a column or log that is not there raises InputError.
"""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapless.core.errors import InputError, LogError, nearest
from gapless.core.results import Note
from gapless.core.signal import Array, Flags
from gapless.formats.source import log_error
from gapless.formats.table.columns import column_names, read_columns
from gapless.formats.table.files import SUFFIXES
from gapless.project.log.imported import is_imported, read_log_columns, recording_id
from gapless.project.log.read import increasing_times, log_paths
from gapless.project.records import Project

G_M_S2 = 9.80665
RAD_PER_DEG = math.pi / 180
UNKNOWN = "unit"

# How a column's name ends -> its unit; the longest that fits counts.
_ENDINGS = {
    "rad_s": "rad/s", "rad/s": "rad/s", "radps": "rad/s", "deg_s": "deg/s", "deg/s": "deg/s", "dps": "deg/s",
    "m_s2": "m/s^2", "m/s2": "m/s^2", "m/s^2": "m/s^2", "mps2": "m/s^2", "g": "g", "m_s": "m/s", "m/s": "m/s",
    "rad": "rad", "deg": "deg", "m": "m", "mm": "mm", "nm": "N·m", "n": "N", "v": "V", "a": "A", "pa": "Pa",
}  # fmt: skip
SI_FACTORS = {"deg/s": RAD_PER_DEG, "g": G_M_S2, "deg": RAD_PER_DEG, "mm": 1e-3}  # from the unit to the SI unit
# Unit -> name and unit of what its integral does, and the factor from unit/sqrt(Hz): sqrt(3600) s to an hour.
RANDOM_WALKS = {
    "rad/s": ("angle_random_walk", "deg/√h", 60 / RAD_PER_DEG),
    "deg/s": ("angle_random_walk", "deg/√h", 60.0),
    "m/s^2": ("velocity_random_walk", "m/s/√h", 60.0),
    "g": ("velocity_random_walk", "m/s/√h", 60.0 * G_M_S2),
}


def read_unit(column: str) -> str:
    """Returns the unit that a column's name ends with, `unit` where it names none: `gyro_x_rad_s`, `accel_g_0`."""
    name = re.sub(r"(_\d+|\[\d+\])$", "", column.strip().lower())
    for text in (name, re.sub(r"_[xyz]$", "", name)):
        fits = [ending for ending in _ENDINGS if re.search(rf"[_ \[(]{re.escape(ending)}[\])]?$", text)]
        if fits:
            return _ENDINGS[max(fits, key=len)]
    return UNKNOWN


TIME, RATE = "time_s", "rate_hz"


@dataclass(frozen=True)
class Readings:
    """What a log holds."""

    path: Path  # the file
    identity: str  # 32 hex digits of the SHA-256 of the file; of an imported recording its id
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
    raw, _ = read_log_columns(path, (TIME, *maps))
    values = {name: item.scale * raw[name] + item.offset for name, item in maps.items()}
    return _make_readings(path, raw[TIME], values, {name: item.unit for name, item in maps.items()})


def read_bare(path: Path, wanted: Sequence[str]) -> Readings:
    """Returns all columns of a file but its time, or those wanted; units come from how names end.

    Arrays of several columns are taken apart, `gyro_0`, and a number `rate_hz` may stand for `time_s`.
    """
    if path.is_dir():
        raise InputError(f"this is a folder: name a log, or for a project `gapless noise LOG DIR`: {path}")
    there = column_names(path)
    names = _choose_columns(wanted, [name for name in there if name not in (TIME, RATE)], "which the log does not have")
    has_rate_only = TIME not in there and RATE in there
    try:
        columns = read_columns(path, names if has_rate_only and names else (TIME, *names))
    except LogError as error:
        if wanted or not any(words in str(error) for words in ("not a number", "not numbers", "different length")):
            raise
        raise LogError(f"{error}; or choose columns with --column NAME") from None
    if not names:
        raise log_error("no column but time_s: record some readings", path)
    if has_rate_only:
        rate_hz = float(read_columns(path, (RATE,))[RATE][0])
        if not rate_hz > 0:
            raise log_error(f"rate_hz is {rate_hz:g}: save the readings per second, above 0, or time_s", path)
        columns[TIME] = np.arange(len(columns[names[0]])) / rate_hz
    units = {name: read_unit(name) for name in names}
    return _make_readings(path, columns[TIME], {name: columns[name] for name in names}, units)


def _choose_columns(wanted: Sequence[str], known: Sequence[str], what: str) -> list[str]:
    for name in wanted:
        if name not in known:
            raise InputError(f"--column {name}, {what}; choose from: {nearest(name, known)}")
    return [name for name in known if not wanted or name in wanted]


def _make_readings(path: Path, raw_s: Array, columns: Mapping[str, Array], units: Mapping[str, str]) -> Readings:
    notes: list[Note] = []
    times_s, rows = increasing_times(raw_s, path, notes)
    kept: dict[str, Array] = {}
    for name, values in columns.items():
        kept[name] = np.where(np.isfinite(values), values, np.nan)[rows]
        if missing := int(np.isnan(kept[name]).sum()):
            notes.append(Note("warning", f"{path.name}: {name}", f"{missing} of {len(rows)} values are missing"))
    identity = recording_id(path) if is_imported(path) else hashlib.sha256(path.read_bytes()).hexdigest()[:32]
    return Readings(path, identity, times_s, kept, units, tuple(notes))


MIN_OUTLIER_DEVIATIONS = 8.0  # standard deviations from its neighbours; of normal samples 1 in 10^15 is further
MAX_JITTER = 0.25  # scatter of the intervals, as a share of their median, without a note
MAX_INTERVAL_S = 1.0  # without a note: is time in milliseconds?
NUM_FIRST_STAMPS = 32  # time stamps that the interval is fitted to first
MAX_TICKS_PER_READING = 10  # more is not a log with gaps


@dataclass(frozen=True)
class TimeGrid:
    """Readings at even times."""

    interval_s: float  # time between ticks [s]
    tick: Array  # (num_readings,) tick of each reading
    num_ticks: int  # ticks from the first reading to the last

    def place_values(self, values: Array) -> Array:
        """Returns a column at even times, (num_ticks,): the mean where readings share a tick, NaN where none is."""
        known = np.isfinite(values)
        ticks = self.tick[known].astype(np.intp)
        counts = np.bincount(ticks, minlength=self.num_ticks)
        sums = np.bincount(ticks, weights=values[known], minlength=self.num_ticks)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def find_time_grid(times_s: Array, where: str) -> tuple[TimeGrid, list[Note]]:
    """Returns the grid that time stamps lie on, and what is odd about them.

    The interval is fitted to the stamps: to the first of them with the median step, then to ever more of them, so that
    no stamp is counted to a wrong tick.

    Raises:
        InputError: If the stamps lie on no grid, such as one pause of hours between two bursts.
    """
    steps_s = np.diff(times_s)
    interval_s, tick = _count_ticks(times_s)
    num_ticks = int(tick[-1]) + 1
    if num_ticks > MAX_TICKS_PER_READING * len(times_s):
        raise InputError(f"the time stamps lie too far apart to be one recording: split it at its pauses: {where}")
    texts: list[str] = []
    missing = num_ticks - len(np.unique(tick))
    if missing:
        share = f"{100 * missing / num_ticks:.2g} %"
        texts.append(f"{missing} of {num_ticks} ticks are missing ({share}); they were left out")
    if interval_s >= MAX_INTERVAL_S:
        texts.append(f"one reading every {interval_s:.4g} s: is time_s in milliseconds? It must be in seconds")
    regular = steps_s[np.abs(steps_s / interval_s - 1) < 1]  # lost samples are no jitter
    jitter = float(np.std(regular) / interval_s) if len(regular) else 0.0
    if jitter > MAX_JITTER:
        texts.append(f"intervals scatter by {100 * jitter:.0f} % of their mean: readings count as if they were even")
    return TimeGrid(interval_s, tick, num_ticks), [Note("warning", f"{where}: time_s", text) for text in texts]


def _count_ticks(times_s: Array) -> tuple[float, Array]:
    """Returns the interval between time stamps [s], and the tick of each on that grid, from 0 on."""
    interval_s, begin_s, count = float(np.median(np.diff(times_s))), float(times_s[0]), NUM_FIRST_STAMPS
    while True:
        tick = np.round((times_s[:count] - begin_s) / interval_s)
        if tick[-1] > 0:
            interval_s, begin_s = (float(number) for number in np.polyfit(tick, times_s[:count], 1))
        if count >= len(times_s):
            return interval_s, np.maximum(0.0, tick - tick[0])
        count *= 2


def find_outliers(values: Array, quantum: float) -> Flags:
    """Returns single samples that lie far from the two before and the two after: lost packets, not noise."""
    around = np.stack([np.roll(values, shift) for shift in (-2, -1, 1, 2)])
    distance = np.abs(values - np.median(around, axis=0))  # NaN, and so not judged, beside a missing one
    known = distance[np.isfinite(distance)]
    spread = float(np.percentile(known, 68.27)) if len(known) else 0.0
    out = distance > MIN_OUTLIER_DEVIATIONS * max(spread, quantum / np.sqrt(12))
    out[:2] = out[-2:] = False
    return out & (spread > 0 or quantum > 0)
