"""Arrays of several numbers per row: split into a column per number, and put together again."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gapless.core.recording import Recording, Skipped, apply_description
from gapless.core.signal import Array
from gapless.formats.source import convert_exactly, keep_increasing, log_error

MAX_ROW_NUMBERS = 256  # of one array per row: joints, poses, states; more are an image or an embedding
MAX_START_NS = 2**62  # in the year 2116: what is later is damage


@dataclass
class Rows:
    """What is read of one episode, column by column."""

    columns: dict[str, Array] = field(default_factory=dict[str, Array])
    types: dict[str, str] = field(default_factory=dict[str, str])
    details: dict[str, Any] = field(default_factory=dict[str, Any])

    def add(self, key: str, values: np.ndarray, path: Path, names: Sequence[str] = ()) -> None:
        """Adds an array of (num_rows, ...) as columns `key`, or `key_0`, `key_1`, ...; raises LogError for no numbers.

        Args:
            key: Name of the array.
            values: (num_rows,), or more numbers per row.
            path: Where it was read.
            names: Better names of the columns, where there are as many.
        """
        per_row = int(np.prod(values.shape[1:]))
        if per_row > MAX_ROW_NUMBERS or (values.dtype == np.uint8 and values.ndim > 2):
            shape = " x ".join(map(str, values.shape[1:]))
            raise log_error(f"{key} has {shape} numbers per row: images and embeddings are not read; use videos", path)
        table = values.reshape(len(values), per_row)
        listed = [key] if values.ndim == 1 else [f"{key}_{k}" for k in range(per_row)]
        for place, name in enumerate(names if len(names) == per_row else listed):
            self.columns[name], kind = convert_exactly(table[:, place], name, path)
            self.types |= {name: kind} if kind else {}

    def make_recording(
        self, name: str, stamps_s: Array, said: Mapping[str, Any], *, start_ns: int | None = None, **about: Any
    ) -> Iterator[Recording | Skipped]:
        """Yields the episode, and which rows are left out as their time is missing or does not move forward.

        Args:
            name: Its name.
            stamps_s: (num_rows,) [s] from any zero.
            said: What `describe_recording` said of it when it was written; empty where nothing did.
            start_ns: Time of the stamp 0, ns since 1970.
            **about: What the format says of it, as arguments of `Recording`.
        """
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
        details = {**self.details, **(given if isinstance(given := said.get("details"), dict) else {})}
        recording = Recording(name, times_s[rows], columns, self.types, details=details, **about)
        yield apply_description(recording, {**said, "details": details})


def make_stamps(num_rows: int, rate_hz: float) -> Array:
    """Returns the time of each row at a constant rate [s]."""
    return np.arange(num_rows) / rate_hz


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


def read_description(text: Any, path: Path) -> dict[str, Any]:
    """Returns the JSON object that a file keeps of a recording; raises LogError where it is none."""
    try:
        said = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise log_error("what gapless wrote of it is damaged: export it again, or delete that text", path)
    return said
