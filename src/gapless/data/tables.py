"""The tables of the catalogue: rows in Delta, to which several processes add at once without losing any."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from gapless.core.errors import CatalogueError
from gapless.data.files import hold_lock

COMPACT_ABOVE_FILES = 64
TARGET_BYTES = 64_000_000  # of a file of rows, about 300,000 episodes: larger ones are not rewritten
ROW_GROUP_ROWS = 4_096  # few enough that a row is read with its group in 3 ms, many enough for fast questions
WRITER = WriterProperties(compression="ZSTD", max_row_group_size=ROW_GROUP_ROWS)
NO_STATISTICS = {"delta.dataSkippingNumIndexedCols": "0"}  # in the log, where names of people would stay
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # in the name of a folder


@contextmanager
def explain_failure(what: str, place: Path) -> Iterator[None]:
    """Turns what the disk, Delta, Arrow or DuckDB raise into one line that says what cannot be done, and what to do."""
    try:
        yield
    except (DeltaError, duckdb.Error, pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())[:300]
        advice = "check space and permissions, or delete .gapless to start anew"
        raise CatalogueError(f"{what} ({reason}): {advice}: {place}") from error


class Table:
    """A Delta table."""

    def __init__(self, directory: Path, schema: pa.Schema, partition_by: str = "", key: str = "") -> None:
        """Takes a folder, which need not be there yet.

        Args:
            directory: The folder.
            schema: Of the rows.
            partition_by: Column whose values are kept in separate folders.
            key: Column in which every row has a value of its own; rows are found fast by it.
        """
        self.directory, self.schema, self._partition_by, self._key = directory, schema, partition_by, key
        self._version, self._sizes = -1, dict[Path, int]()  # of the files at this version
        self._opened = dict[Path, "_RowFile"]()

    def create(self) -> None:
        """Makes the table where there is none; several processes may try at once."""
        place, partitions = str(self.directory), [self._partition_by] if self._partition_by else None
        with explain_failure("the catalogue's table cannot be made", self.directory):
            try:
                if not DeltaTable.is_deltatable(place):
                    self.directory.mkdir(exist_ok=True)
                    options: dict[str, Any] = {"partition_by": partitions, "configuration": NO_STATISTICS}
                    DeltaTable.create(self.directory, self.schema, "ignore", **options)
            except DeltaError:
                if not DeltaTable.is_deltatable(place):  # else another process was first
                    raise
        self.files()

    def files(self) -> tuple[Path, ...]:
        """Returns the Parquet files that hold the rows at this moment; none while there is no table.

        They stay readable for a week, unless `rewrite` deletes them.
        """
        # Versions follow each other: while the next one's file is not there, nothing has changed.
        log = self.directory / "_delta_log"
        if log.is_dir() if self._version < 0 else (log / f"{self._version + 1:020d}.json").exists():
            snapshot = self._snapshot()
            actions = snapshot.get_add_actions()
            # Not file_uris(): they are percent-encoded if the folder's name has a space.
            paths = (self.directory / path for path in actions["path"].to_pylist())
            self._sizes = dict(zip(paths, actions["size_bytes"].to_pylist(), strict=True))
            self._version = snapshot.version()
            self._opened = {path: file for path, file in self._opened.items() if path in self._sizes}
        return tuple(self._sizes)

    def find(self, keys: Collection[str], columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Returns the rows of some keys, in any order; fast where `compact` has sorted the rows."""
        found, wanted = list[dict[str, Any]](), pa.array(sorted(keys), pa.string())
        for path in self.files():
            file = self._open(path)
            for group in file.find_groups(wanted.to_pylist()):
                marked = pc.is_in(file.read(group, [self._key]).column(0), value_set=wanted)
                if pc.any(marked).as_py():
                    rows = file.read(group, columns).filter(marked).to_pylist()
                    found += [dict.fromkeys(columns or self.schema.names) | self._partition(path) | row for row in rows]
        return found

    def find_known(self, keys: Collection[str]) -> set[str]:
        """Returns those keys that are there."""
        return {row[self._key] for row in self.find(keys, [self._key])}

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Adds rows in one commit, all or none; Delta tries again where another process was faster.

        Rows whose key is there already are left out.
        """
        lock = self.adding() if self._key else nullcontext()
        with explain_failure("the catalogue's table cannot be written", self.directory), lock:
            known = self.find_known([row[self._key] for row in rows]) if self._key else set[str]()
            if new := [row for row in rows if not self._key or row[self._key] not in known]:
                options = {"mode": "append", "writer_properties": WRITER}
                write_deltalake(self._snapshot(), pa.Table.from_pylist(new, schema=self.schema), **options)
        if len(self._small_files()) > COMPACT_ABOVE_FILES:
            self._join(sort=False)

    def compact(self) -> None:
        """Joins small files into large ones, sorted by key. Rows stay; if another process is at it, nothing happens.

        Files that were joined, or that a killed process left, are deleted when a week old.
        """
        self._join(sort=bool(self._key))

    def _join(self, sort: bool) -> None:
        with (
            explain_failure("the catalogue's table cannot be compacted", self.directory),
            suppress(CommitFailedError),
            self._rewriting(wait=False) as free,
        ):
            if not free:
                return
            # Inside the lock: Delta 1.6 commits a compaction of files that another one has already
            # joined, whatever its commit properties say, and every row is then there twice.
            snapshot, small = self._snapshot(), self._small_files()
            options = {"target_size": TARGET_BYTES, "writer_properties": WRITER}
            if sort and len(small) > len({path.parent for path in small}):
                snapshot.optimize.z_order([self._key], **options)
            elif not sort:
                snapshot.optimize.compact(**options)
            snapshot.vacuum(dry_run=False)

    def rewrite(self, keys: Collection[str], change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Changes the rows of some keys in one commit; the files that held them before are deleted at once.

        Costs a pass over the table. A reader of another process that looked just before may have to look again.
        """
        with (
            explain_failure("the catalogue's table cannot be rewritten", self.directory),
            self.adding(),  # so that no process has written a file that it is about to commit
            self._rewriting(wait=True),
        ):
            # Not Delta's own `update`: the text columns that it writes are of a type that Arrow cannot compare.
            options = {"partitioning": "hive", "partition_base_dir": str(self.directory)}
            old = ds.dataset(list(map(str, self.files())), self.schema, format="parquet", **options)
            new = pa.RecordBatchReader.from_batches(self.schema, _change(old, pc.field(self._key).isin(keys), change))
            write_deltalake(self._snapshot(), new, mode="overwrite", writer_properties=WRITER)
            self._snapshot().vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)

    def adding(self) -> AbstractContextManager[bool]:
        """Holds the lock of those that add what depends on what is there; readers and compaction do not wait for it."""
        return hold_lock(self.directory.with_suffix(".adding"))

    def _rewriting(self, *, wait: bool) -> AbstractContextManager[bool]:
        return hold_lock(self.directory.with_suffix(".lock"), wait=wait)

    def _small_files(self) -> list[Path]:
        self.files()
        return [path for path, size in self._sizes.items() if size < TARGET_BYTES / 2]

    def _open(self, path: Path) -> "_RowFile":
        if path not in self._opened:
            self._opened[path] = _RowFile(path, self._key)
        return self._opened[path]

    def _partition(self, path: Path) -> dict[str, str | None]:
        """Returns the column that Delta keeps in the names of folders."""
        value = path.parent.name.partition("=")[2]
        return {self._partition_by: None if value == _NO_VALUE else value} if self._partition_by else {}

    def _snapshot(self) -> DeltaTable:
        with explain_failure("the catalogue's table cannot be read", self.directory):
            return DeltaTable(self.directory)


def _change(
    rows: ds.Dataset, which: pc.Expression, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> Iterator[pa.RecordBatch]:
    for batch in rows.to_batches(use_threads=False, batch_readahead=1, fragment_readahead=1):
        table = pa.Table.from_batches([batch])
        changed = pa.Table.from_pylist([change(row) for row in table.filter(which).to_pylist()], rows.schema)
        yield from (*table.filter(~which).to_batches(), *changed.to_batches())


class _RowFile:
    """A file of rows that stays open, with the smallest and largest key of each row group."""

    def __init__(self, path: Path, key: str) -> None:
        self._file = pq.ParquetFile(path)
        about, column = self._file.metadata, self._file.schema_arrow.get_field_index(key)
        groups = [about.row_group(k).column(column).statistics for k in range(about.num_row_groups)]
        self._ranges = [(group.min, group.max) for group in groups]

    def find_groups(self, ordered: Sequence[str]) -> list[int]:
        """Returns the row groups in which some keys, which are sorted, may be."""
        return [
            k for k, (low, high) in enumerate(self._ranges) if bisect_left(ordered, low) < bisect_right(ordered, high)
        ]

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Returns a row group."""
        return self._file.read_row_group(group, columns=columns, use_threads=False)
