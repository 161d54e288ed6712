"""Tables read as recordings: one file each, or several where a column numbers the episodes in it."""

from collections.abc import Container, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gapless.core.errors import LogError
from gapless.core.recording import DESCRIPTION_KEY, Recording, Skipped
from gapless.core.signal import Array
from gapless.formats.arrays import Rows, read_description
from gapless.formats.format import ReadOptions
from gapless.formats.source import explain_damage, list_files, read_files, require_inside
from gapless.formats.table.clock import TIME_S, find_clock, read_times
from gapless.formats.table.columns import column_names, describe_other_kind, read_raw
from gapless.formats.table.episodes import find_episodes
from gapless.formats.table.files import SUFFIXES
from gapless.formats.table.sidecar import read_sidecar


def list_tables(path: Path) -> list[Path]:
    """Returns the tables that a source is: itself, or those in its folder, sorted by name; none of hidden files."""
    return list_files(path, SUFFIXES)


def read_tables(suffix: str, path: Path, options: ReadOptions) -> Iterator[Recording | Skipped]:
    """Yields the recordings of a table, or of a folder of tables of one format."""
    yield from read_files(list_files(path, (suffix,)), path, partial(_read_table, options.known))


def _read_table(known: Container[str], path: Path) -> Iterator[Recording | Skipped]:
    if path.stem in known:
        return
    said = _read_said(path)
    clock = find_clock(path)
    stamps_s, start_ns = read_times(path, clock)
    first_s = next(iter(stamps_s[np.isfinite(stamps_s)]), 0.0)
    rows = Rows(details={"time": clock.text} if clock.text else {})
    for name, column in _read_signals(path, (*clock.columns, TIME_S), is_described=DESCRIPTION_KEY in said):
        why = column if isinstance(column, str) else _add_column(rows, name, column, len(stamps_s))
        if why:
            yield Skipped(f"{path.name}: {name or 'a column without name'}", why)
    episodes = [] if DESCRIPTION_KEY in said else find_episodes(rows.columns, path)
    for ending, part in episodes or [("", slice(None))]:
        if path.stem + ending not in known:
            columns = {name: values[part] for name, values in rows.columns.items()}
            episode = Rows(columns, rows.types, rows.details)
            yield from episode.make_recording(path.stem + ending, stamps_s[part] - first_s, said, start_ns=start_ns)


def _read_said(path: Path) -> dict[str, Any]:
    """Returns what a Parquet's own metadata and the sidecar say of a table; the sidecar counts more."""
    said: dict[str, Any] = {}
    if path.suffix.lower() == ".parquet":
        with explain_damage(path, "Parquet"):
            text = (pq.read_schema(path).metadata or {}).get(DESCRIPTION_KEY.encode())
        if text is not None:
            said = {**read_description(text, path, "its description by gapless"), DESCRIPTION_KEY: True}
    sidecar = require_inside(path.parent, f"{path.stem}.json")
    return read_sidecar(sidecar, said) if sidecar.is_file() else said


def _read_signals(path: Path, times: tuple[str, ...], *, is_described: bool) -> Iterator[tuple[str, Any]]:
    """Yields all columns but the time as Arrow arrays, or as text why one cannot be read."""
    found = [name for name in column_names(path) if name not in times]
    yield from ((name, "it has no name: give it one") for name in found if not name.strip())
    names = [name for name in found if name.strip()]
    if is_described:  # by gapless, as numbers: zeros may have a sign
        try:
            yield from read_raw(path, names, numbers=True).items()
            return
        except LogError:
            pass  # a person added text
    try:
        yield from read_raw(path, names).items()
    except LogError:
        if path.suffix.lower() == ".csv":
            raise
        for name in names:  # one column that is damaged leaves the others
            try:
                column = read_raw(path, [name])[name]
            except LogError as error:
                column = str(error)
            yield name, column


def _add_column(rows: Rows, name: str, column: Any, num_rows: int) -> str:
    """Adds a column, a constant text to the details; returns why it is left out, or nothing."""
    if len(column) != num_rows:
        return f"it has {len(column)} values, the time has {num_rows}"
    if other := describe_other_kind(column):
        values = [] if pa.types.is_nested(column.type) or other.startswith("arrays") else pc.unique(column).to_pylist()
        texts = [value for value in values if value is not None]
        if len(texts) != 1:
            return f"it holds {other}{' that changes' if texts else ''}, not numbers"
        rows.details[name] = str(texts[0])
        return ""
    try:
        rows.columns[name] = _convert_column(column)
    except pa.ArrowException as error:
        return f"float64 does not hold all of its digits ({' '.join(str(error).split())[:100]}): save it as text"
    kind = np.dtype(column.type.to_pandas_dtype()).name
    rows.types |= {name: kind} if kind not in ("float64", "object") else {}
    return ""


def _convert_column(column: Any) -> Array:
    return np.array(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
