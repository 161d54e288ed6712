"""The tables of the catalogue: rows in Delta, to which several processes add at once without losing any."""

import fcntl
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from gapless.core.errors import CatalogueError

COMPACT_ABOVE_FILES = 64
TARGET_BYTES = 64_000_000  # of a file of rows, about 300,000 episodes: larger ones are not rewritten
ROW_GROUP_ROWS = 4_096  # few enough that a row is read with its group in 3 ms, many enough for fast questions
WRITER = WriterProperties(compression="ZSTD", max_row_group_size=ROW_GROUP_ROWS)


@contextmanager
def explain_failure(what: str, place: Path) -> Iterator[None]:
    """Turns what the disk, Delta, Arrow or DuckDB raise into one line that says what cannot be done, and what to do."""
    try:
        yield
    except (DeltaError, duckdb.Error, pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())[:300]
        advice = "check space and permissions, or delete .gapless to start anew"
        raise CatalogueError(f"{what} ({reason}): {advice}: {place}") from error


@dataclass(frozen=True)
class Table:
    """A Delta table."""

    directory: Path
    schema: pa.Schema
    partition_by: tuple[str, ...] = ()  # columns whose values are kept in separate folders
    key: str = ""  # column in which every row has a value of its own; rows are found fast by it
    _seen: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    _opened: dict[Path, "_RowFile"] = field(default_factory=dict, compare=False, repr=False)

    def create(self) -> None:
        """Makes the table where there is none; several processes may try at once."""
        place = str(self.directory)
        with explain_failure("the catalogue's table cannot be made", self.directory):
            try:
                if not DeltaTable.is_deltatable(place):
                    self.directory.mkdir(exist_ok=True)
                    DeltaTable.create(self.directory, self.schema, "ignore", partition_by=list(self.partition_by))
            except DeltaError:
                if not DeltaTable.is_deltatable(place):  # else another process was first
                    raise
        self.files()

    def files(self) -> tuple[Path, ...]:
        """Returns the Parquet files that hold the rows at this moment. They stay readable for a week."""
        return tuple(path for path, _ in self._files_and_sizes())

    def find(self, key: str) -> dict[str, Any] | None:
        """Returns the row of a key, or None; fast where `compact` has sorted the rows."""
        for path in self.files():
            file = self._open(path)
            for group in file.find_groups([key]):
                if (place := pc.index(file.read(group, [self.key]).column(0), key).as_py()) >= 0:
                    row = file.read(group).slice(place, 1).to_pylist()[0]
                    return dict.fromkeys(self.schema.names) | self._partition(path) | row
        return None

    def find_known(self, keys: Collection[str], checked: Collection[Path] = ()) -> set[str]:
        """Returns those keys that are there, without looking into the files `checked`."""
        wanted, found = pa.array(sorted(keys), pa.string()), set[str]()
        for path in set(self.files()) - set(checked):
            file = self._open(path)
            for group in file.find_groups(keys):
                column = file.read(group, [self.key]).column(0)
                found |= set(column.filter(pc.is_in(column, value_set=wanted)).to_pylist())
        return found

    def append(self, rows: Sequence[Mapping[str, Any]], checked: Collection[Path] = ()) -> None:
        """Adds rows in one commit, all or none; Delta tries again where another process was faster.

        Rows whose key is there already are left out. `checked` are files in which the caller has looked for them.
        """
        with explain_failure("the catalogue's table cannot be written", self.directory), self.adding():
            known = self.find_known([row[self.key] for row in rows], checked) if self.key else set[str]()
            if new := [row for row in rows if not self.key or row[self.key] not in known]:
                options = {"mode": "append", "writer_properties": WRITER}
                write_deltalake(self._snapshot(), pa.Table.from_pylist(new, schema=self.schema), **options)
        if len(self._small_files()) > COMPACT_ABOVE_FILES:
            self._join(sort=False)

    def compact(self) -> None:
        """Joins small files into large ones, sorted by key. Rows stay; if another process is at it, nothing happens.

        Files that were joined, or that a killed process left, are deleted when a week old.
        """
        self._join(sort=bool(self.key))

    def _join(self, sort: bool) -> None:
        with (
            explain_failure("the catalogue's table cannot be compacted", self.directory),
            suppress(BlockingIOError, CommitFailedError),
            self.directory.with_suffix(".lock").open("w") as lock,
        ):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with the process, however that ends
            # Inside the lock: Delta 1.6 commits a compaction of files that another one has already
            # joined, whatever its commit properties say, and every row is then there twice.
            snapshot = self._snapshot()
            options = {"target_size": TARGET_BYTES, "writer_properties": WRITER}
            small = self._small_files()
            if sort and len(small) > len({path.parent for path in small}):
                snapshot.optimize.z_order([self.key], **options)
            elif not sort:
                snapshot.optimize.compact(**options)
            snapshot.vacuum(dry_run=False)

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Holds the lock of those that add rows with keys; readers and compaction do not wait for it."""
        with self.directory.with_suffix(".adding").open("w") as lock:
            if self.key:
                fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the process, however that ends
            yield

    def _files_and_sizes(self) -> tuple[tuple[Path, int], ...]:
        version, found = self._seen.get("files", (-1, ()))
        # Versions follow each other: while the next one's file is not there, nothing has changed.
        if version < 0 or (self.directory / "_delta_log" / f"{version + 1:020d}.json").exists():
            snapshot = self._snapshot()
            actions = snapshot.get_add_actions()
            # Not file_uris(): they are percent-encoded if the folder's name has a space.
            paths = (self.directory / path for path in actions["path"].to_pylist())
            found = tuple(zip(paths, actions["size_bytes"].to_pylist(), strict=True))
            self._seen["files"] = (snapshot.version(), found)
        return found

    def _small_files(self) -> list[Path]:
        return [path for path, size in self._files_and_sizes() if size < TARGET_BYTES / 2]

    def _open(self, path: Path) -> "_RowFile":
        if path not in self._opened:
            for gone in set(self._opened) - set(self.files()):
                del self._opened[gone]
            self._opened[path] = _RowFile(path, self.key)
        return self._opened[path]

    def _partition(self, path: Path) -> dict[str, str | None]:
        """Returns the columns that Delta keeps in the names of folders."""
        parts = (folder.partition("=") for folder in path.parent.relative_to(self.directory).parts)
        return {name: None if value == "__HIVE_DEFAULT_PARTITION__" else value for name, _, value in parts}

    def _snapshot(self) -> DeltaTable:
        with explain_failure("the catalogue's table cannot be read", self.directory):
            return DeltaTable(self.directory)


class _RowFile:
    """A file of rows that stays open, with the smallest and largest key of each row group."""

    def __init__(self, path: Path, key: str) -> None:
        self._file = pq.ParquetFile(path)
        about = self._file.metadata
        column = self._file.schema_arrow.get_field_index(key)
        groups = [about.row_group(k).column(column).statistics for k in range(about.num_row_groups)]
        known = [group is not None and group.has_min_max for group in groups]
        every = ("", chr(0x10FFFF))
        self._ranges = [(g.min, g.max) if has else every for g, has in zip(groups, known, strict=True)]

    def find_groups(self, keys: Collection[str]) -> list[int]:
        """Returns the row groups in which some keys may be."""
        ordered = sorted(keys)
        return [
            k for k, (low, high) in enumerate(self._ranges) if bisect_left(ordered, low) < bisect_right(ordered, high)
        ]

    def read(self, group: int, columns: list[str] | None = None) -> pa.Table:
        """Returns a row group."""
        return self._file.read_row_group(group, columns=columns, use_threads=False)
