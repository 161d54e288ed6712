"""The time of a log of another recorder: its column is found, and brought to seconds from the first sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gapless.core.errors import LogError, nearest
from gapless.core.signal import Array
from gapless.core.words import split_words
from gapless.formats.source import log_error
from gapless.formats.table.columns import as_doubles, column_names, read_columns, read_raw

TIME_S = "time_s"
_UNITS_S = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "usec", "usecs", "micros", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanos", "nanosec", "nanosecs", "nanoseconds"), 1e-9),
}
_TIME_WORDS = frozenset(["time", "t", "timestamp", "stamp", "timestamps", "clock", "elapsed", "date", "datetime"])
_SECONDS, _NANOSECONDS = ("sec", "secs", "seconds"), ("nanosec", "nanosecs", "nsec", "nsecs", "nanoseconds")
_FIRST_UNSURE_RANK = 2  # of a column whose name only perhaps says that it is the time
_EPOCH_S = (1e9, 4e9)  # 2001 to 2096, in seconds since 1970
_MIN_FORWARD_SHARE = 0.99  # of the steps, for a column that is only perhaps the time


@dataclass(frozen=True)
class Clock:
    """How the time is recorded in the logs of one recorder."""

    columns: tuple[str, ...]  # the time column; or two, seconds and nanoseconds
    unit_s: float = 1.0  # unit of the (first) column [s]
    text: str = ""  # what was recognised, and by what; empty for `time_s`
    is_date: bool = False  # it holds dates, not numbers


def find_clock(path: Path) -> Clock:
    """Finds the time column of a log, by name and by whether it goes forward; raises LogError if there is none."""
    available = column_names(path)
    if TIME_S in available:
        return Clock((TIME_S,))
    first_error: LogError | None = None
    for rank, columns, unit in _list_candidates(available):
        try:
            return _recognise_clock(path, columns, unit, sure=rank < _FIRST_UNSURE_RANK)
        except LogError as error:
            first_error = first_error or (error if rank < _FIRST_UNSURE_RANK else None)
    if first_error is not None:
        raise first_error
    known = "time_s, time, t, timestamp, header.stamp.sec; _ms, _us, _ns; dates"
    raise log_error(f"no time column ({known}); there are: {nearest(TIME_S, available)}; rename one to time_s", path)


def read_times(path: Path, clock: Clock) -> tuple[Array, int | None]:
    """Returns the time of each row [s], 0 at the first that has one, and that one's time, ns since 1970, where known.

    Where the column is `time_s`, times are as recorded.
    """
    available = column_names(path)
    for name in clock.columns:
        if name not in available:
            text = f"no column {name}, which is the time in the first log; there are: {nearest(name, available)}"
            raise log_error(f"{text}; give logs of another recorder to a project of their own", path)
    if clock.columns == (TIME_S,):
        times_s = read_columns(path, [TIME_S])[TIME_S]
        finite_s = times_s[np.isfinite(times_s)]
        return times_s, _find_start(float(finite_s[0]), 1.0) if len(finite_s) else None
    found = [_read_stamps(path, name) for name in clock.columns]
    if found[0][2] != clock.is_date:
        kinds = ("dates", "numbers") if clock.is_date else ("numbers", "dates")
        text = f"column {clock.columns[0]} holds {kinds[1]}, and {kinds[0]} in the first log"
        raise log_error(f"{text}; give logs of another recorder to a project of their own", path)
    times_s, start_ns = clock.unit_s * found[0][0], _find_start(found[0][1], clock.unit_s)
    if len(found) > 1:
        times_s = times_s + 1e-9 * found[1][0]
        times_s = times_s - (times_s[np.isfinite(times_s)][0] if np.isfinite(times_s).any() else 0.0)
        start_ns = start_ns + round(found[1][1]) if start_ns is not None else None
    return times_s, start_ns


def _find_start(first: float, unit_s: float) -> int | None:
    """Returns a stamp in ns since 1970, with all its digits; None where it is no date of our days."""
    return round(Fraction(first) * round(unit_s / 1e-9)) if _EPOCH_S[0] <= first * unit_s < _EPOCH_S[1] else None


def _list_candidates(available: Sequence[str]) -> list[tuple[int, tuple[str, ...], str | None]]:
    """Returns likely time columns with their rank, best first, and the unit that the name says."""
    found: list[tuple[int, tuple[str, ...], str | None]] = []
    by_lower = {name.lower(): name for name in available}
    for lower, name in by_lower.items():
        words = split_words(name)
        unit = words.pop() if words and words[-1] in _UNITS_S else None
        others = [word for word in words if word not in _TIME_WORDS]
        if words and not others:
            found.append((0, (name,), unit))
        elif words and words[-1] in _TIME_WORDS - {"t"}:
            found.append((_FIRST_UNSURE_RANK + len(others), (name,), unit))
        elif not words and unit and len(unit) > 1:
            found.append((_FIRST_UNSURE_RANK, (name,), unit))
        for ending in (ending for ending in _SECONDS if lower.endswith(ending)):
            nanoseconds = (by_lower.get(lower.removesuffix(ending) + word) for word in _NANOSECONDS)
            found += [(1, (name, other), "s") for other in nanoseconds if other and other != name]
    return sorted(found, key=lambda candidate: candidate[0])


def _recognise_clock(path: Path, columns: tuple[str, ...], unit: str | None, *, sure: bool) -> Clock:
    """Returns how the time is recorded in a column, or in two; raises LogError if it does not go forward."""
    stamps, first, is_date = _read_stamps(path, columns[0])
    steps = np.diff(stamps[np.isfinite(stamps)])
    steps = steps[steps != 0]
    step = float(np.median(steps)) if len(steps) else 0.0
    if step <= 0 or (not sure and np.mean(steps > 0) < _MIN_FORWARD_SHARE):
        raise log_error(f"column {columns[0]} does not go forward, so it is no time: rename it, or sort the rows", path)
    unit_s, what = 1.0, f"seconds with nanoseconds in {columns[-1]}"
    if is_date:
        unit_s, what = 1e-9, "as it holds dates"
    elif len(columns) == 1:
        unit_s, reason = (_UNITS_S[unit], f"its name says {unit}") if unit else _guess_unit(first, step)
        what = f"in units of {unit_s:g} s, as {reason}"
    return Clock(columns, unit_s, f"guessed: the time, {what}; time_s starts at 0", is_date)


def _guess_unit(first: float, step: float) -> tuple[float, str]:
    """Returns the unit in which a stamp is a date of our days, or else a step lies between 1 ms and 1 s."""
    for unit_s in (1.0, 1e-3, 1e-6, 1e-9):
        if _EPOCH_S[0] <= first * unit_s < _EPOCH_S[1] and step * unit_s < 60:
            return unit_s, f"{first:.4g} is then a date of our days"
    unit_s = 1.0 if step < 1 else 1e-3 if step < 1e3 else 1e-6 if step < 1e6 else 1e-9
    return unit_s, f"steps of {step:.4g} look like it"


def _read_stamps(path: Path, name: str) -> tuple[Array, float, bool]:
    """Returns stamps less the first, in the column's unit (dates: ns); the first; and whether they are dates."""
    column = read_raw(path, [name])[name]
    kind = column.type
    is_date = pa.types.is_temporal(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
    try:
        column = _to_nanoseconds(column) if is_date else column
        whole = pa.types.is_integer(column.type)
        column = column.cast(pa.int64() if whole else pa.float64())
        column = column if whole else pc.if_else(pc.is_finite(column), column, None)
        available = pc.drop_null(column)
        if not len(available):
            raise log_error(f"column {name} holds no times at all: record the time in seconds", path)
        first = available[0]
        return as_doubles(pc.subtract(column, first)), first.as_py(), bool(is_date)
    except pa.ArrowException:
        shown = str(pc.drop_null(column)[0].as_py())[:40]
        text = f"column {name} holds neither numbers nor dates such as 2024-05-01T12:00:00.5, but '{shown}'"
        raise log_error(f"{text}: save the time in seconds", path) from None


def _to_nanoseconds(column: Any) -> Any:
    if pa.types.is_temporal(column.type):
        is_duration, zone = pa.types.is_duration(column.type), getattr(column.type, "tz", None)
        return column.cast(pa.duration("ns") if is_duration else pa.timestamp("ns", zone)).cast(pa.int64())
    try:
        return column.cast(pa.timestamp("ns")).cast(pa.int64())
    except pa.ArrowException:
        return column.cast(pa.timestamp("ns", "UTC")).cast(pa.int64())
