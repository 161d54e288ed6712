"""The folder of samples: chunks as they were committed, and larger files that small ones were joined into.

Joining copies all pieces, one chunk after the other, so that a piece keeps its place within its chunk. The file
`joined.json` says for each chunk that was joined in which file it lies now, and from which piece on. It is replaced as
a whole, so that every process sees it before or after, and the rows of the episodes stay as they are.
"""

import fcntl
import json
import os
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import log
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gapless.data.chunks import PIECES_SCHEMA, ROW_GROUP_CELLS, ChunkReader, Piece, new_chunk, write_chunk

SMALL_BYTES = 16_000_000  # smaller files are joined: what an import writes is larger, and is written once
JOINED_BYTES = 256_000_000  # a joined file ends with the chunk that reaches this
# Adding joins by itself when so many files are of about one size (by a factor of 16): each value is then
# rewritten a few times in all, however many episodes follow.
JOIN_ABOVE_FILES = 32
SIZE_FACTOR = 16
MAX_REPLACED_AGE_S = 3600.0  # for readers that looked before a file was replaced
MAX_LEFTOVER_AGE_S = 7 * 24 * 3600.0  # of what a killed process left: a suspended one may still go on
MAX_OPEN_FILES = 8
_JOINED = "joined"


class SampleStore:
    """Pieces of columns in chunks; several processes may add and read, one at a time joins."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        """Takes the folder, and one of the same file system for unfinished files."""
        self.folder = folder
        self._temporary = temporary
        self._index = folder / "joined.json"
        self._known: tuple[tuple[int, int], dict[str, tuple[str, int]]] | None = None
        self._readers = dict[Path, ChunkReader]()

    def write(self, entries: Mapping[str, Sequence[Piece]]) -> tuple[str, dict[str, tuple[int, int]]]:
        """Writes the pieces of some episodes and returns the chunk, and each one's first piece and their number."""
        chunk = uuid.uuid4().hex[:16]
        return chunk, write_chunk(self._path(chunk), self._temporary, entries)

    def read(self, chunk: str, first: int, count: int) -> list[Piece]:
        """Returns the pieces of an episode; none where they were deleted."""
        for attempt in range(3):  # the file may be replaced between the look into the index and the opening
            path, begin = self.place(chunk)
            try:
                return self._reader(path).read(begin + first, count)
            except FileNotFoundError:
                if attempt == 2:
                    raise
        raise AssertionError

    def place(self, chunk: str) -> tuple[Path, int]:
        """Returns the file that holds a chunk, and the chunk's first piece in it."""
        name, begin = self._moves().get(chunk, (chunk, 0))
        return self._path(name), begin

    def files(self, chunks: Collection[str]) -> tuple[Path, ...]:
        """Returns the files that hold some chunks."""
        moves = self._moves()
        return tuple(sorted({self._path(moves[c][0] if c in moves else c) for c in chunks}))

    def needs_joining(self) -> bool:
        """Returns whether many files are of about one size, and small."""
        return any(len(group) > JOIN_ABOVE_FILES for group in self._by_size().values())

    def compact(self, chunks: Collection[str], without: Collection[str] = (), *, all_sizes: bool = True) -> None:
        """Joins small files and deletes those that nothing refers to; if another process is at it, nothing happens.

        Args:
            chunks: What the rows of the episodes refer to.
            without: Episodes whose samples are deleted, at once.
            all_sizes: Whether all small files are joined, or only where there are many of about one size.
        """
        with self._lock(wait=bool(without)) as free:
            if free:
                chunks = {*chunks, *self._moves()}  # another process may have joined some committed since the look
                present = {path for path in self.files(chunks) if path.exists()}
                marked = self._find(present, without)
                groups = self._by_size().values() if not all_sizes else [[p for p in present if _is_small(p)]]
                for group in groups:
                    if len(group) > (1 if all_sizes else JOIN_ABOVE_FILES):
                        marked |= present & set(group)
                if marked:
                    self._join(sorted(marked), chunks, without)
                self._delete_leftovers(set(self.files({*chunks, *self._moves()})), bool(without))

    def _by_size(self) -> dict[int, list[Path]]:
        """Returns the small files that were not replaced yet, grouped by size."""
        groups, moves = dict[int, list[Path]](), self._moves()
        targets = {name for name, _ in moves.values()}
        for path in self.folder.glob("*.parquet"):
            name = path.stem
            if name not in moves and (name in targets or not name.startswith(_JOINED)) and _is_small(path):
                groups.setdefault(int(log(max(path.stat().st_size, 1), SIZE_FACTOR)), []).append(path)
        return groups

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
        self._write_index(moves)
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
        moves = self._moves()
        for path in set(self.folder.glob("*.parquet")) - set(used):
            replaced = path.stem in moves or path.stem.startswith(_JOINED)
            limit_s = MAX_REPLACED_AGE_S if replaced else MAX_LEFTOVER_AGE_S
            with suppress(FileNotFoundError):
                if (replaced and all_replaced) or time.time() - path.stat().st_mtime > limit_s:
                    path.unlink()

    def _reader(self, path: Path) -> ChunkReader:
        if path not in self._readers:
            while len(self._readers) >= MAX_OPEN_FILES:
                del self._readers[next(iter(self._readers))]
            self._readers[path] = ChunkReader(path)
        return self._readers[path]

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

    def _write_index(self, moves: Mapping[str, tuple[str, int]]) -> None:
        unfinished = self._temporary / f"{uuid.uuid4().hex}.json"
        unfinished.write_text(json.dumps(moves), encoding="utf-8")
        os.replace(unfinished, self._index)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"

    @contextmanager
    def _lock(self, *, wait: bool) -> Iterator[bool]:
        """Holds the lock of those that join; yields False where another process has it and `wait` is not set."""
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "join.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True  # ends with the process, however that ends


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
    """Copies the pieces of some files into one and returns where each begins in it.

    Pieces of `without` become empty and keep their places. Row groups of few values are joined.
    """
    begins, waiting, num_pieces, num_cells = list[int](), list[pa.Table](), 0, 0
    with new_chunk(target, temporary) as writer:
        for path in paths:
            begins.append(num_pieces)
            for group in _read_groups(path, without):
                waiting.append(group)
                num_pieces += group.num_rows
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
        table = pa.concat_tables([group.cast(PIECES_SCHEMA) for group in groups]).unify_dictionaries()
        writer.write_table(table, row_group_size=table.num_rows)


def _empty(group: pa.Table, marked: pa.ChunkedArray) -> pa.Table:
    """Returns a row group with nothing left in some of its pieces."""
    columns = list[pa.ChunkedArray]()
    for field in PIECES_SCHEMA:
        is_list = pa.types.is_list(field.type)
        kind = field.type if is_list else pa.string()
        kept = pc.if_else(marked, pa.scalar([] if is_list else None, kind), group.column(field.name).cast(kind))
        columns.append(kept if is_list else kept.dictionary_encode())
    return pa.Table.from_arrays(columns, schema=PIECES_SCHEMA)
