"""The folder of samples: chunks as they were committed, and larger files that small ones were joined into.

Joining copies all segments, one chunk after the other, so that a segment keeps its number within its chunk. The file
`joined.json` says for each chunk that was joined in which file it lies now, and from which segment on. It is replaced
as a whole, so that every process sees it before or after, and the rows of the episodes stay as they are.
"""

import json
import os
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gapless.data.chunks import ROW_GROUP_CELLS, SEGMENTS_SCHEMA, ChunkReader, Segment, new_chunk, write_chunk
from gapless.data.files import hold_lock, write_whole

SMALL_BYTES = 16_000_000  # smaller files are joined: what an import writes is larger, and is written once
JOINED_BYTES = 256_000_000  # a joined file ends with the chunk that reaches this
JOIN_ABOVE_FILES = 32  # small ones: adding then joins by itself, at most `SMALL_BYTES` again and again
MAX_REPLACED_AGE_S = 3600.0  # for readers that looked before a file was replaced
MAX_LEFTOVER_AGE_S = 7 * 24 * 3600.0  # of what a killed process left: a suspended one may still go on
MAX_OPEN_FILES = 8
_JOINED = "joined"


class SampleStore:
    """Segments of columns in chunks; several processes may add and read, one at a time joins."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        """Takes the folder, and one of the same file system for unfinished files."""
        self.folder = folder
        self._temporary = temporary
        self._index = folder / "joined.json"
        self._known: tuple[tuple[int, int], dict[str, tuple[str, int]]] | None = None
        self._open = lru_cache(MAX_OPEN_FILES)(ChunkReader)  # files never change

    def write(self, segments: Mapping[str, Sequence[Segment]]) -> dict[str, dict[str, Any]]:
        """Writes the segments of some episodes in one chunk; returns the columns of each one's row that say where."""
        chunk = uuid.uuid4().hex[:16]
        firsts = write_chunk(self._path(chunk), self._temporary, segments)
        return {
            id: {"chunk": chunk, "first_segment": first, "num_segments": len(segments[id])}
            for id, first in firsts.items()
        }

    def read(self, chunk: str, first: int, count: int) -> list[Segment]:
        """Returns the segments of an episode; none where they were deleted."""
        for attempt in range(3):  # the file may be replaced between the look into the index and the opening
            path, begin = self.find_file(chunk)
            try:
                return self._open(path).read(begin + first, count)
            except FileNotFoundError:
                if attempt == 2:
                    raise
        raise AssertionError

    def find_file(self, chunk: str) -> tuple[Path, int]:
        """Returns the file that holds a chunk, and the chunk's first segment in it."""
        name, begin = self._moves().get(chunk, (chunk, 0))
        return self._path(name), begin

    def files(self, chunks: Collection[str]) -> tuple[Path, ...]:
        """Returns the files that hold some chunks."""
        moves = self._moves()
        return tuple(sorted({self._path(moves[c][0] if c in moves else c) for c in chunks}))

    def needs_joining(self) -> bool:
        """Returns whether there are many small files, replaced ones not counted."""
        replaced = self._list_replaced()
        return sum(_is_small(path) and path.stem not in replaced for path in self._list_files()) > JOIN_ABOVE_FILES

    def compact(self, chunks: Collection[str], without: Collection[str] = ()) -> None:
        """Joins small files and deletes those that nothing refers to; if another process is at it, nothing happens.

        Args:
            chunks: What the rows of the episodes refer to.
            without: Episodes whose samples are left out of the files that are joined.
        """
        with hold_lock(self.folder / "join.lock", wait=False) as free:
            if free:
                self._compact(chunks, without)

    def delete(self, chunks: Collection[str], episodes: Collection[str]) -> None:
        """Deletes the samples of some episodes at once, from every file; joins files as `compact` does."""
        with hold_lock(self.folder / "join.lock"):
            self._compact(chunks, episodes, at_once=True)

    def _compact(self, chunks: Collection[str], without: Collection[str], *, at_once: bool = False) -> None:
        chunks = {*chunks, *self._moves()}  # another process may have joined some committed since the look
        present = {path for path in self.files(chunks) if path.exists()}
        small = {path for path in present if _is_small(path)}
        marked = self._find(present, without) if at_once else set[Path]()
        if len(small) > 1:
            marked |= small
        if marked:
            self._join(sorted(marked), chunks, without)
        self._delete_leftovers(set(self.files({*chunks, *self._moves()})), at_once)

    def _join(self, paths: Sequence[Path], chunks: Collection[str], without: Collection[str]) -> None:
        """Writes the chunks of some files into as few files as their sizes allow, and then the new index."""
        moves = dict(self._moves())
        inside = dict[str, list[tuple[int, str]]]()
        for chunk in chunks:
            name, begin = moves.get(chunk, (chunk, 0))
            inside.setdefault(name, []).append((begin, chunk))
        for batch in _fill(paths):
            target = self._path(f"{_JOINED}-{uuid.uuid4().hex[:16]}")
            begins = _copy(batch, target, self._temporary, without)
            for path, begin in zip(batch, begins, strict=True):
                moves |= {chunk: (target.stem, begin + old) for old, chunk in inside[path.stem]}
        with write_whole(self._index, self._temporary) as unfinished:
            unfinished.write_text(json.dumps(moves), encoding="utf-8")
        for path in paths:
            os.utime(path)  # its time tells from now on when it was replaced

    def _find(self, paths: Collection[Path], episodes: Collection[str]) -> set[Path]:
        """Returns the files that hold samples of some episodes."""
        wanted, found = pa.array(sorted(episodes), pa.string()), set[Path]()
        for path in paths if episodes else ():
            column = pq.read_table(path, columns=["episode"]).column("episode").cast(pa.string())
            if pc.any(pc.is_in(column, value_set=wanted)).as_py():
                found.add(path)
        return found

    def _delete_leftovers(self, used: Collection[Path], all_replaced: bool) -> None:
        replaced = self._list_replaced()
        for path in set(self._list_files()) - set(used):
            is_replaced = path.stem in replaced
            limit_s = MAX_REPLACED_AGE_S if is_replaced else MAX_LEFTOVER_AGE_S
            with suppress(FileNotFoundError):
                if (is_replaced and all_replaced) or time.time() - path.stat().st_mtime > limit_s:
                    path.unlink()

    def _list_replaced(self) -> set[str]:
        """Returns the names of the files whose samples lie in others now."""
        moves = self._moves()
        joined = {path.stem for path in self._list_files() if path.stem.startswith(_JOINED)}
        return {*moves, *joined} - {name for name, _ in moves.values()}

    def _list_files(self) -> Iterator[Path]:
        return self.folder.glob("*.parquet")

    def _moves(self) -> dict[str, tuple[str, int]]:
        try:
            about = self._index.stat()
        except FileNotFoundError:
            return {}
        version = (about.st_mtime_ns, about.st_ino)
        if self._known is None or self._known[0] != version:
            found = json.loads(self._index.read_text(encoding="utf-8"))
            self._known = (version, {chunk: (name, begin) for chunk, (name, begin) in found.items()})
        return self._known[1]

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"


def _fill(paths: Sequence[Path]) -> list[list[Path]]:
    """Returns the files in groups, each of at least `JOINED_BYTES` but the last."""
    batches, size = [list[Path]()], 0
    for path in paths:
        if size >= JOINED_BYTES:
            batches, size = [*batches, []], 0
        batches[-1].append(path)
        size += path.stat().st_size
    return batches


def _is_small(path: Path) -> bool:
    try:
        return path.stat().st_size < SMALL_BYTES
    except FileNotFoundError:
        return False


def _copy(paths: Sequence[Path], target: Path, temporary: Path, without: Collection[str]) -> list[int]:
    """Copies the segments of some files into one and returns where each begins in it.

    Segments of `without` become empty and keep their places. Row groups of few values are joined.
    """
    begins, waiting, num_segments, num_cells = list[int](), list[pa.Table](), 0, 0
    with new_chunk(target, temporary) as writer:
        for path in paths:
            begins.append(num_segments)
            for group in _read_groups(path, without):
                waiting.append(group)
                num_segments += group.num_rows
                num_cells += pc.sum(pc.list_value_length(group.column("values"))).as_py() or 0
                if num_cells >= ROW_GROUP_CELLS:
                    _write_groups(writer, waiting)
                    waiting, num_cells = [], 0
        _write_groups(writer, waiting)
    return begins


def _read_groups(path: Path, without: Collection[str]) -> Iterator[pa.Table]:
    out = pa.array(sorted(without), pa.string())
    with pq.ParquetFile(path) as file:
        for k in range(file.num_row_groups):
            group = file.read_row_group(k, use_threads=False)
            marked = pc.is_in(group.column("episode").cast(pa.string()), value_set=out)
            yield _empty(group, marked) if pc.any(marked).as_py() else group


def _write_groups(writer: pq.ParquetWriter, groups: Sequence[pa.Table]) -> None:
    if groups:
        table = pa.concat_tables([group.cast(SEGMENTS_SCHEMA) for group in groups]).unify_dictionaries()
        writer.write_table(table, row_group_size=table.num_rows)


def _empty(group: pa.Table, marked: pa.ChunkedArray) -> pa.Table:
    """Returns a row group with nothing left in some of its segments."""
    columns = list[pa.ChunkedArray]()
    for field in SEGMENTS_SCHEMA:
        is_list = pa.types.is_list(field.type)
        kind = field.type if is_list else pa.string()
        kept = pc.if_else(marked, pa.scalar([] if is_list else None, kind), group.column(field.name).cast(kind))
        columns.append(kept if is_list else kept.dictionary_encode())
    return pa.Table.from_arrays(columns, schema=SEGMENTS_SCHEMA)
