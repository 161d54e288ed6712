"""Tables read as recordings: one file each, or several where a column numbers the episodes in it."""

from collections.abc import Container, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gapless.core.errors import LogError
from gapless.core.recording import DESCRIPTION_KEY, Recording, Skipped
from gapless.formats.arrays import Rows, convert_column, read_description
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
    names = [name for name in column_names(path) if name not in (*clock.columns, TIME_S)]
    columns = _read_signals(path, [name for name in names if name.strip()], is_described=DESCRIPTION_KEY in said)
    for name in names:
        try:
            why = _add_column(rows, name, columns.get(name), len(stamps_s), path)
        except LogError as error:
            why = str(error)
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


def _read_signals(path: Path, names: list[str], *, is_described: bool) -> dict[str, Any]:
    """Returns columns as Arrow arrays; none where some are damaged, so that each has to be read by itself."""
    if is_described:  # by gapless, as numbers: zeros may have a sign
        with suppress(LogError):  # a person added text
            return read_raw(path, names, numbers=True)
    try:
        return read_raw(path, names)
    except LogError:
        if path.suffix.lower() == ".csv":
            raise
        return {}


def _add_column(rows: Rows, name: str, column: Any, num_rows: int, path: Path) -> str:
    """Adds a column, a constant text to the details; returns why it is left out, or nothing."""
    if not name.strip():
        return "it has no name: give it one"
    column = read_raw(path, [name])[name] if column is None else column
    other, lacking = describe_other_kind(column), num_rows - len(column)
    if lacking and (lacking != 1 or other or num_rows == 2):
        return f"it has {len(column)} values, the time has {num_rows}"
    if not other:
        values, kind = convert_column(column, name, path)
        rows.columns[name] = np.append(values, np.nan) if lacking else values
        rows.types |= {name: kind} if kind and not lacking else {}
        return "its last row has no value: rollouts have one action fewer than states" if lacking else ""
    texts: set[str] = set()
    if not (pa.types.is_nested(column.type) or other.startswith("arrays")):
        texts = {str(value) for value in pc.unique(column).to_pylist() if value is not None}
    return next((left.why for left in rows.add_texts(name, texts)), "" if texts else f"it holds {other}, not numbers")
