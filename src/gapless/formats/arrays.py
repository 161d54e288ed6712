"""Arrays of several numbers per row: split into a column per number, and put together again."""

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gapless.core.recording import Recording, Skipped, apply_description
from gapless.core.signal import Array
from gapless.formats.source import convert_exactly, keep_increasing, log_error

MAX_ROW_NUMBERS = 256  # of one array per row: joints, poses, states; more are an image or an embedding
MAX_START_NS = 2**62  # in the year 2116: what is later is damage
MAX_RATE_HZ = 1e6


@dataclass(frozen=True)
class SteadyRate:
    """A constant rate of rows, in place of a time of each."""

    rate_hz: float
    stated_by: str = ""  # which entry of the file says it; empty where it is only usual for the format

    def describe(self) -> str:
        """Returns the rate and where it is from, for people."""
        steps = f"steps are taken as {1 / self.rate_hz:g} s"
        return f"{steps}, as {self.stated_by} says" if self.stated_by else f"no rate stated; {steps}"


def read_rate(value: Any, stated_by: str) -> SteadyRate | None:
    """Returns the rate that an entry of a file states [Hz]; None where it states none."""
    good = isinstance(value, int | float) and 0 < value < MAX_RATE_HZ
    return SteadyRate(float(value), stated_by) if good else None


@dataclass
class Rows:
    """What is read of one episode, column by column."""

    columns: dict[str, Array] = field(default_factory=dict[str, Array])
    types: dict[str, str] = field(default_factory=dict[str, str])
    details: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def num_rows(self) -> int:
        """Number of rows; 0 where there is no column."""
        return len(next(iter(self.columns.values()), ()))

    def add(self, key: str, values: np.ndarray, path: Path, names: Sequence[str] = ()) -> None:
        """Adds an array of (num_rows, ...) as columns `key`, or `key_0`, `key_1`, ...; raises LogError for no numbers.

        Args:
            key: Name of the array.
            values: (num_rows,), or more numbers per row.
            path: Where it was read.
            names: Better names of the columns, where there are as many.
        """
        refuse_images(key, values.shape, values.dtype, path)
        per_row = math.prod(values.shape[1:])
        table = values.reshape(len(values), per_row)
        listed = [key] if values.ndim == 1 else [f"{key}_{k}" for k in range(per_row)]
        for place, name in enumerate(names if len(names) == per_row else listed):
            self.columns[name], kind = convert_exactly(table[:, place], name, path)
            self.types |= {name: kind} if kind else {}

    def add_texts(self, key: str, texts: Collection[str]) -> Iterator[Skipped]:
        """Adds the different texts in an array to the details, if there is one only."""
        if len(texts) == 1:
            self.details[key] = next(iter(texts))
        elif texts:
            yield Skipped(key, "it holds text that changes, not numbers")

    def take_times(self, names: Sequence[str], usual: SteadyRate) -> Array | SteadyRate:
        """Takes the time [s] out of the columns, by the first of some names; returns the usual rate where none is."""
        name = next((name for name in names if name in self.columns), None)
        if name is None:
            return usual
        self.types.pop(name, None)
        self.details["time"] = f"{name}, taken as seconds"
        return self.columns.pop(name)

    def make_recording(
        self, name: str, time: Array | SteadyRate, said: Mapping[str, Any], *, start_ns: int | None = None, **about: Any
    ) -> Iterator[Recording | Skipped]:
        """Yields the episode, and which rows are left out as their time is missing or does not move forward.

        Args:
            name: Its name.
            time: (num_rows,) [s] from any zero, or a rate, which the details then tell.
            said: What `describe_recording` said of it when it was written; empty where nothing did.
            start_ns: Time of the stamp 0, ns since 1970.
            **about: What the format says of it, as arguments of `Recording`.
        """
        stamps_s = time if isinstance(time, np.ndarray) else np.arange(self.num_rows) / time.rate_hz
        if isinstance(time, SteadyRate):
            self.details["time"] = time.describe()
            yield from () if time.stated_by else (Skipped("time", time.describe()),)
        finite = np.flatnonzero(np.isfinite(stamps_s))
        first_s = float(stamps_s[finite[0]]) if len(finite) else 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            times_s = stamps_s - first_s
        rows = keep_increasing(times_s)
        if left := len(times_s) - len(rows):
            why = "their time is missing, repeated or goes backwards"
            yield Skipped(f"{name}: {left} of {len(times_s)} rows", why)
        if not len(rows):
            yield Skipped(name, "no row has a time")
            return
        if start_ns is not None and 0 <= start_ns + 1e9 * first_s < MAX_START_NS:
            about["start_ns"] = start_ns + round(1e9 * first_s)
        columns = {column: values[rows] for column, values in self.columns.items()} if left else self.columns
        details = {**self.details, **as_object(said.get("details"))}
        stated = {**self.types, **as_object(said.get("types"))}
        types = {name: str(kind) for name, kind in stated.items() if name in columns and kind != "float64"}
        recording = Recording(name, times_s[rows], columns, types, details=details, **about)
        yield apply_description(recording, {**said, "details": details, "types": types})


def as_object(value: Any) -> dict[str, Any]:
    """Returns an object of JSON; an empty one in place of anything else."""
    return dict(value) if isinstance(value, Mapping) else {}


def refuse_images(key: str, shape: Sequence[int], kind: np.dtype, path: Path) -> None:
    """Raises LogError for an array that cannot be one of joints or poses, so that it need not be read."""
    if math.prod(shape[1:]) > MAX_ROW_NUMBERS or (kind == np.uint8 and len(shape) > 2):
        per_row = " x ".join(map(str, shape[1:]))
        raise log_error(f"{key} has {per_row} numbers per row: images and embeddings are not read; use videos", path)


def skip_videos(recording: Recording) -> Iterator[Skipped]:
    """Yields each video of a recording, for formats that hold numbers only."""
    yield from (Skipped(f"{recording.name}: video {v.camera}", "this format holds no images") for v in recording.videos)


def skip_once(found: Iterable[Recording | Skipped]) -> Iterator[Recording | Skipped]:
    """Yields what is found, but what is skipped of every episode only once."""
    seen: set[str] = set()
    for each in found:
        if isinstance(each, Recording) or each.what not in seen:
            yield each
        if isinstance(each, Skipped):
            seen.add(each.what)


def convert_column(column: Any, name: str, path: Path) -> tuple[Array, str | None]:
    """Returns an Arrow column as float64, NaN where a cell is empty, and its type; see `convert_exactly`."""
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan), None
    filled = column.fill_null(False if pa.types.is_boolean(column.type) else 0) if column.null_count else column
    values, kind = convert_exactly(filled.to_numpy(zero_copy_only=False), name, path)
    return (np.where(np.asarray(column.is_null()), np.nan, values) if column.null_count else values), kind


def restore_type(values: Array, kind: str | None) -> np.ndarray:
    """Returns a column in the type in which it was written, where that holds each number bit for bit; else as it is."""
    try:
        wanted = np.dtype(kind)
        with np.errstate(invalid="ignore", over="ignore"):
            restored = values.astype(wanted)
            same = restored.astype(np.float64).view(np.int64) == np.ascontiguousarray(values).view(np.int64)
    except (TypeError, ValueError):
        return values
    return restored if wanted.kind in "fiub" and wanted.itemsize <= 8 and same.all() else values


def group_columns(columns: Iterable[str], place: Callable[[str], str]) -> dict[str, list[str]]:
    """Returns which columns make one array: `q_0` and `q_1` make q, `state.hip` and `state.knee` make state.

    Args:
        columns: Names of columns.
        place: Array -> where the format keeps it; arrays with one place are one.
    """
    groups: dict[str, list[str]] = {}
    for column in columns:
        stem = re.sub(r"_\d+$", "", column)
        stem = stem if stem != column or "." not in column else column.rpartition(".")[0]
        key = column if stem in ("", "obs", "next_obs", "observation") else stem
        groups.setdefault(place(key.strip("/.").replace("/", ".") or "column"), []).append(column)
    return groups


def stack_columns(recording: Recording, names: Sequence[str]) -> np.ndarray:
    """Returns columns as (num_rows, num_names), in the type that holds them all."""
    return np.stack([restore_type(recording.columns[name], recording.types.get(name)) for name in names], axis=1)


def read_description(text: Any, path: Path, what: str) -> dict[str, Any]:
    """Returns a JSON object that a file keeps, called `what`; raises LogError where it is none."""
    try:
        said = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise log_error(f"{what} is no JSON object: correct it, or save the file again", path)
    return said
