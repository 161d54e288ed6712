"""Files of samples: one Parquet file holds many episodes, as pieces of columns.

A piece is a row of the file: some values of one column of one signal of one episode, and their times. A signal begins
with a piece without a name that holds all of its times. Pieces of an episode follow each other, and a row group holds
whole episodes where they are short, so that one episode is opened by reading few row groups.
"""

import hashlib
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.core.recording import Recording
from gapless.core.signal import Array, TimeSeries

PIECE_CELLS = 65_536  # values in one piece: 512 kB
ROW_GROUP_CELLS = 65_536  # a row group ends with the first episode that reaches it: read in about 5 ms
MAX_GROUP_CELLS = 16 * ROW_GROUP_CELLS  # and within an episode with the piece that reaches this: 16 MB in memory
_TEXT = pa.dictionary(pa.int32(), pa.string())
_VALUES = pa.list_(pa.field("element", pa.float64(), nullable=False))
_TEXTS = ("chunk", "episode", "signal", "name", "unit")
PIECES_SCHEMA = pa.schema([*((name, _TEXT) for name in _TEXTS), ("times_s", _VALUES), ("values", _VALUES)])
_NO_VALUES = np.empty(0)


@dataclass(frozen=True)
class Piece:
    """Some values of one column."""

    signal: str  # `command` or `measurement` of an episode, `recorded` of a recording
    name: str | None  # of the column; None for the times of the signal
    unit: str | None
    times_s: Array
    values: Array


def cut_episode(commands: TimeSeries, measurements: TimeSeries) -> list[Piece]:
    """Returns the pieces of an episode: every cell of both series."""
    pieces = list[Piece]()
    for signal, series in (("command", commands), ("measurement", measurements)):
        pieces += _cut_column(signal, None, None, series.times_s, _NO_VALUES)
        for name, unit, values in zip(series.names, series.units, series.values.T, strict=True):
            pieces += _cut_column(signal, name, unit, series.times_s, values)
    return pieces


def cut_recording(recording: Recording) -> list[Piece]:
    """Returns the pieces of a recording; cells where nothing was recorded (NaN) are left out."""
    pieces = _cut_column("recorded", None, None, recording.times_s, _NO_VALUES)
    for name, values in recording.columns.items():
        there = ~np.isnan(values)
        times_s = recording.times_s if there.all() else recording.times_s[there]
        pieces += _cut_column("recorded", name, None, times_s, values if there.all() else values[there])
    return pieces


def _cut_column(signal: str, name: str | None, unit: str | None, times_s: Array, values: Array) -> list[Piece]:
    begins = range(0, max(1, len(times_s)), PIECE_CELLS)
    cuts = [slice(begin, begin + PIECE_CELLS) for begin in begins]
    return [Piece(signal, name, unit, times_s[cut], values[cut]) for cut in cuts]


def join_series(pieces: Sequence[Piece]) -> tuple[TimeSeries, TimeSeries]:
    """Returns the commands and the measurements of an episode exactly as they were."""
    found = list[TimeSeries]()
    for signal in ("command", "measurement"):
        own = [piece for piece in pieces if piece.signal == signal]
        clock, columns = ([piece for piece in own if (piece.name is None) == wanted] for wanted in (True, False))
        times_s = np.concatenate([piece.times_s for piece in clock])
        firsts = columns[:: len(clock)]  # columns are cut as the times are
        values = np.concatenate([_NO_VALUES, *(piece.values for piece in columns)])
        cells = values.reshape(len(firsts), len(times_s)).T
        names, units = (tuple(str(getattr(piece, key)) for piece in firsts) for key in ("name", "unit"))
        found.append(TimeSeries(times_s, cells.copy(), names, units))
    return found[0], found[1]


def join_columns(pieces: Sequence[Piece]) -> tuple[Array, dict[str, Array]]:
    """Returns the times and the columns of a recording exactly as they were; NaN where nothing was recorded."""
    times_s = np.concatenate([piece.times_s for piece in pieces if piece.name is None])
    columns = dict[str, Array]()
    for piece in pieces:
        if piece.name is not None:
            column = columns.setdefault(piece.name, np.full(len(times_s), np.nan))
            column[np.searchsorted(times_s, piece.times_s)] = piece.values
    return times_s, columns


def describe_pieces(pieces: Sequence[Piece]) -> dict[str, Any]:
    """Returns what the row of an episode says of its samples: `is_recording`, `num_rows` and `signals_id`."""
    clocks = [piece for piece in pieces if piece.name is None and piece.signal != "command"]
    recorded = any(piece.signal == "recorded" for piece in clocks)
    num_rows = sum(len(piece.times_s) for piece in clocks)
    return {"is_recording": recorded, "num_rows": num_rows, "signals_id": signals_id(pieces)}


def signals_id(pieces: Sequence[Piece]) -> str:
    """Returns 32 hex digits that are the same for the same numbers at the same times under the same column names.

    Cells without a value do not count, nor do units, and the order of columns.
    """
    digests = dict[str, Any]()
    for piece in pieces:
        if piece.name is not None:
            there = ~np.isnan(piece.values)
            key = piece.name if piece.signal == "recorded" else f"{piece.signal}.{piece.name}"
            times, values = digests.setdefault(key, (hashlib.sha256(), hashlib.sha256()))
            whole = bool(there.all())
            times.update(np.ascontiguousarray(piece.times_s if whole else piece.times_s[there]))
            values.update(np.ascontiguousarray(piece.values if whole else piece.values[there]))
    digest = hashlib.sha256()
    for key in sorted(digests):
        digest.update(hashlib.sha256(key.encode()).digest() + b"".join(each.digest() for each in digests[key]))
    return digest.hexdigest()[:32]


def write_chunk(path: Path, temporary: Path, entries: Mapping[str, Sequence[Piece]]) -> dict[str, tuple[int, int]]:
    """Writes a file with the pieces of some episodes (id -> pieces).

    Args:
        path: The file; its name is the chunk's.
        temporary: A folder of the same file system, for the unfinished file.
        entries: Pieces per episode, in the order in which they are to lie.

    Returns:
        For each episode its first piece and their number.
    """
    places, begin = dict[str, tuple[int, int]](), 0
    group, num_cells = list[tuple[str, Piece]](), 0
    with new_chunk(path, temporary) as writer:
        for id, pieces in entries.items():
            places[id] = (begin, len(pieces))
            begin += len(pieces)
            for k, piece in enumerate(pieces, 1):
                group.append((id, piece))
                num_cells += len(piece.times_s)
                if num_cells >= (ROW_GROUP_CELLS if k == len(pieces) else MAX_GROUP_CELLS):
                    _write_group(writer, path.stem, group)
                    group, num_cells = [], 0
        if group:
            _write_group(writer, path.stem, group)
    return places


@contextmanager
def new_chunk(path: Path, temporary: Path) -> Iterator[pq.ParquetWriter]:
    """Opens a chunk's file for writing; it appears whole when the block ends well, or not at all.

    Args:
        path: The file.
        temporary: A folder of the same file system, for the unfinished file.
    """
    unfinished = temporary / f"{uuid.uuid4().hex}.parquet"
    texts: Any = list(_TEXTS)
    # half the size and half the time of a dictionary
    encoding = {f"{name}.list.element": "BYTE_STREAM_SPLIT" for name in ("times_s", "values")}
    options = {"compression": "zstd", "use_dictionary": texts, "column_encoding": encoding}
    try:
        with pq.ParquetWriter(unfinished, PIECES_SCHEMA, **options) as writer:
            yield writer
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _write_group(writer: pq.ParquetWriter, chunk: str, group: Sequence[tuple[str, Piece]]) -> None:
    texts: list[list[str | None]] = [
        [chunk] * len(group),
        [id for id, _ in group],
        *([getattr(piece, name) for _, piece in group] for name in ("signal", "name", "unit")),
    ]
    arrays = [pa.array(column, pa.string()).dictionary_encode() for column in texts]
    for name in ("times_s", "values"):
        cells = [getattr(piece, name) for _, piece in group]
        ends = np.cumsum([0, *map(len, cells)], dtype=np.int32)
        arrays.append(pa.ListArray.from_arrays(pa.array(ends), pa.array(np.concatenate(cells)), type=_VALUES))
    writer.write_table(pa.Table.from_arrays(arrays, schema=PIECES_SCHEMA), row_group_size=len(group))


class ChunkReader:
    """A chunk's file that stays open, with the row group that was read last."""

    def __init__(self, path: Path) -> None:
        """Opens the file."""
        self._file = pq.ParquetFile(path)
        counts = [self._file.metadata.row_group(k).num_rows for k in range(self._file.num_row_groups)]
        self._begins = np.cumsum([0, *counts])
        self._groups = dict[int, pa.Table]()

    def read(self, first: int, count: int) -> list[Piece]:
        """Returns some pieces; none where they were deleted."""
        begin, end = (int(np.searchsorted(self._begins, k, "right")) - 1 for k in (first, first + count - 1))
        self._groups = {k: self._groups.get(k) or self._read_group(k) for k in range(begin, end + 1)}
        table = pa.concat_tables(self._groups.values()).slice(first - int(self._begins[begin]), count)
        return list(_as_pieces(table))

    def _read_group(self, number: int) -> pa.Table:
        return self._file.read_row_group(number, use_threads=False)


def _as_pieces(table: pa.Table) -> Iterator[Piece]:
    texts = {name: table.column(name).to_pylist() for name in _TEXTS}
    for k, id in enumerate(texts["episode"]):
        if id is not None:
            # copies, as the table's memory cannot be written to
            cells = (table.column(name)[k].values.to_numpy().copy() for name in ("times_s", "values"))
            yield Piece(texts["signal"][k], texts["name"][k], texts["unit"][k], *cells)
