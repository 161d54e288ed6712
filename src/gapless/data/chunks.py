"""Files of samples: one Parquet file, a chunk, holds the episodes of one commit, cut into segments.

A segment is a row of the file: some values of one column of one episode, and their times. Each signal of an episode
begins with segments without a name, which hold all of its times. Segments of an episode follow each other, and a row
group holds whole episodes where they are short, so that one episode is opened by reading few row groups.
"""

import hashlib
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
from gapless.data.files import write_whole

SEGMENT_CELLS = 65_536  # values in one segment: 512 kB
ROW_GROUP_CELLS = 65_536  # a row group ends with the first episode that reaches it: read in about 5 ms
MAX_GROUP_CELLS = 16 * ROW_GROUP_CELLS  # and within an episode with the segment that reaches this: 16 MB in memory
_TEXT = pa.dictionary(pa.int32(), pa.string())
_VALUES = pa.list_(pa.field("element", pa.float64(), nullable=False))
_TEXTS = ("chunk", "episode", "signal", "name", "unit")
SEGMENTS_SCHEMA = pa.schema([*((name, _TEXT) for name in _TEXTS), ("times_s", _VALUES), ("values", _VALUES)])
_NO_VALUES = np.empty(0)


@dataclass(frozen=True)
class Segment:
    """Some values of one column."""

    signal: str  # `command` or `measurement` of an episode, `recorded` of a recording
    name: str | None  # of the column; None for the times of the signal
    unit: str | None
    times_s: Array
    values: Array


def cut_episode(commands: TimeSeries, measurements: TimeSeries) -> list[Segment]:
    """Returns the segments of an episode: every cell of both series."""
    segments = list[Segment]()
    for signal, series in (("command", commands), ("measurement", measurements)):
        segments += _cut_column(signal, None, None, series.times_s, _NO_VALUES)
        for name, unit, values in zip(series.names, series.units, series.values.T, strict=True):
            segments += _cut_column(signal, name, unit, series.times_s, values)
    return segments


def cut_recording(recording: Recording) -> list[Segment]:
    """Returns the segments of a recording; cells where nothing was recorded (NaN) are left out."""
    segments = _cut_column("recorded", None, None, recording.times_s, _NO_VALUES)
    for name, values in recording.columns.items():
        there = ~np.isnan(values)
        times_s = recording.times_s if there.all() else recording.times_s[there]
        segments += _cut_column("recorded", name, None, times_s, values if there.all() else values[there])
    return segments


def _cut_column(signal: str, name: str | None, unit: str | None, times_s: Array, values: Array) -> list[Segment]:
    begins = range(0, max(1, len(times_s)), SEGMENT_CELLS)
    cuts = [slice(begin, begin + SEGMENT_CELLS) for begin in begins]
    return [Segment(signal, name, unit, times_s[cut], values[cut]) for cut in cuts]


def join_series(segments: Sequence[Segment]) -> tuple[TimeSeries, TimeSeries]:
    """Returns the commands and the measurements of an episode exactly as they were."""
    found = list[TimeSeries]()
    for signal in ("command", "measurement"):
        own = [segment for segment in segments if segment.signal == signal]
        clock, columns = ([segment for segment in own if (segment.name is None) == wanted] for wanted in (True, False))
        times_s = np.concatenate([segment.times_s for segment in clock])
        firsts = columns[:: len(clock)]  # columns are cut as the times are
        values = np.concatenate([_NO_VALUES, *(segment.values for segment in columns)])
        cells = values.reshape(len(firsts), len(times_s)).T
        names, units = (tuple(str(getattr(segment, key)) for segment in firsts) for key in ("name", "unit"))
        found.append(TimeSeries(times_s, cells.copy(), names, units))
    return found[0], found[1]


def join_columns(segments: Sequence[Segment]) -> tuple[Array, dict[str, Array]]:
    """Returns the times and the columns of a recording exactly as they were; NaN where nothing was recorded."""
    times_s = np.concatenate([segment.times_s for segment in segments if segment.name is None])
    columns = dict[str, Array]()
    for segment in segments:
        if segment.name is not None:
            column = columns.setdefault(segment.name, np.full(len(times_s), np.nan))
            column[np.searchsorted(times_s, segment.times_s)] = segment.values
    return times_s, columns


def describe_segments(segments: Sequence[Segment]) -> dict[str, Any]:
    """Returns what the row of an episode says of its samples: `is_recording`, `num_rows` and `signals_id`."""
    clocks = [segment for segment in segments if segment.name is None and segment.signal != "command"]
    recorded = any(segment.signal == "recorded" for segment in clocks)
    num_rows = sum(len(segment.times_s) for segment in clocks)
    return {"is_recording": recorded, "num_rows": num_rows, "signals_id": signals_id(segments)}


def signals_id(segments: Sequence[Segment]) -> str:
    """Returns 32 hex digits that are the same for the same numbers at the same times under the same column names.

    Cells without a value do not count, nor do units, and the order of columns.
    """
    digests = dict[str, Any]()
    for segment in segments:
        if segment.name is not None:
            there = ~np.isnan(segment.values)
            key = segment.name if segment.signal == "recorded" else f"{segment.signal}.{segment.name}"
            times, values = digests.setdefault(key, (hashlib.sha256(), hashlib.sha256()))
            whole = bool(there.all())
            times.update(np.ascontiguousarray(segment.times_s if whole else segment.times_s[there]))
            values.update(np.ascontiguousarray(segment.values if whole else segment.values[there]))
    digest = hashlib.sha256()
    for key in sorted(digests):
        digest.update(hashlib.sha256(key.encode()).digest() + b"".join(each.digest() for each in digests[key]))
    return digest.hexdigest()[:32]


def write_chunk(path: Path, temporary: Path, episodes: Mapping[str, Sequence[Segment]]) -> dict[str, int]:
    """Writes a file with the segments of some episodes (id -> segments); returns the number of each one's first.

    Args:
        path: The file; its name is the chunk's.
        temporary: A folder of the same file system, for the unfinished file.
        episodes: Segments per episode, in the order in which they are to lie.
    """
    firsts, num_segments = dict[str, int](), 0
    group, num_cells = list[tuple[str, Segment]](), 0
    with new_chunk(path, temporary) as writer:
        for id, segments in episodes.items():
            firsts[id] = num_segments
            num_segments += len(segments)
            for k, segment in enumerate(segments, 1):
                group.append((id, segment))
                num_cells += len(segment.times_s)
                if num_cells >= (ROW_GROUP_CELLS if k == len(segments) else MAX_GROUP_CELLS):
                    _write_group(writer, path.stem, group)
                    group, num_cells = [], 0
        if group:
            _write_group(writer, path.stem, group)
    return firsts


@contextmanager
def new_chunk(path: Path, temporary: Path) -> Iterator[pq.ParquetWriter]:
    """Opens a chunk's file for writing; it appears whole when the block ends well, or not at all."""
    texts: Any = list(_TEXTS)
    # half the size and half the time of a dictionary
    encoding = {f"{name}.list.element": "BYTE_STREAM_SPLIT" for name in ("times_s", "values")}
    options = {"compression": "zstd", "use_dictionary": texts, "column_encoding": encoding}
    with (
        write_whole(path, temporary) as unfinished,
        pq.ParquetWriter(unfinished, SEGMENTS_SCHEMA, **options) as writer,
    ):
        yield writer


def _write_group(writer: pq.ParquetWriter, chunk: str, group: Sequence[tuple[str, Segment]]) -> None:
    texts: list[list[str | None]] = [
        [chunk] * len(group),
        [id for id, _ in group],
        *([getattr(segment, name) for _, segment in group] for name in ("signal", "name", "unit")),
    ]
    arrays = [pa.array(column, pa.string()).dictionary_encode() for column in texts]
    for name in ("times_s", "values"):
        cells = [getattr(segment, name) for _, segment in group]
        ends = np.cumsum([0, *map(len, cells)], dtype=np.int32)
        arrays.append(pa.ListArray.from_arrays(pa.array(ends), pa.array(np.concatenate(cells)), type=_VALUES))
    writer.write_table(pa.Table.from_arrays(arrays, schema=SEGMENTS_SCHEMA), row_group_size=len(group))


class ChunkReader:
    """A chunk's file that stays open, with the row group that was read last."""

    def __init__(self, path: Path) -> None:
        """Opens the file."""
        self._file = pq.ParquetFile(path)
        counts = [self._file.metadata.row_group(k).num_rows for k in range(self._file.num_row_groups)]
        self._begins = np.cumsum([0, *counts])
        self._groups = dict[int, pa.Table]()

    def read(self, first: int, count: int) -> list[Segment]:
        """Returns some segments; none where they were deleted."""
        begin, end = (int(np.searchsorted(self._begins, k, "right")) - 1 for k in (first, first + count - 1))
        self._groups = {k: self._groups.get(k) or self._read_group(k) for k in range(begin, end + 1)}
        table = pa.concat_tables(self._groups.values()).slice(first - int(self._begins[begin]), count)
        return list(_as_segments(table))

    def _read_group(self, number: int) -> pa.Table:
        return self._file.read_row_group(number, use_threads=False)


def _as_segments(table: pa.Table) -> Iterator[Segment]:
    texts = {name: table.column(name).to_pylist() for name in _TEXTS}
    for k, id in enumerate(texts["episode"]):
        if id is not None:
            # copies, as the table's memory cannot be written to
            cells = (table.column(name)[k].values.to_numpy().copy() for name in ("times_s", "values"))
            yield Segment(texts["signal"][k], texts["name"][k], texts["unit"][k], *cells)
