"""A Delta table to which several processes append without losing or doubling a row."""

import fcntl
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from gapless.core.errors import CatalogueError

COMPACT_ABOVE_FILES = 64
MAX_WAIT_S = 120.0  # for other processes that commit all the time
MIN_PAUSE_S, MAX_PAUSE_S = 0.005, 0.5  # between two attempts; doubles from one to the next

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Table:
    """A Delta table in a folder.

    Attributes:
        directory: The folder.
        schema: Its columns.
        partition_by: Columns whose values are kept in separate folders.
    """

    directory: Path
    schema: pa.Schema
    partition_by: tuple[str, ...] = ()

    def create(self) -> None:
        """Makes the table where there is none; several processes may try at once."""
        try:
            if not DeltaTable.is_deltatable(str(self.directory)):
                self._create_once()
        except (DeltaError, OSError, ValueError) as error:
            raise self._failure("made", error) from error
        self.files()

    def _create_once(self) -> None:
        self.directory.mkdir(exist_ok=True)
        try:
            DeltaTable.create(self.directory, self.schema, "ignore", partition_by=list(self.partition_by))
        except DeltaError:
            if not DeltaTable.is_deltatable(str(self.directory)):
                raise  # otherwise another process was first

    def files(self) -> tuple[Path, ...]:
        """Returns the Parquet files that hold the rows at this moment. They stay readable for a week."""
        return self._files(self._snapshot())

    def append(self, choose: Callable[[tuple[Path, ...]], Rows]) -> None:
        """Appends rows in one commit, which holds only if no other commit came between.

        `choose` returns the rows to add, given the files of the table now. It is called again after each commit of
        another process that was faster, so that it can leave out what that one added.
        """
        give_up_at_s = time.monotonic() + MAX_WAIT_S
        pause_s = MIN_PAUSE_S
        while True:
            snapshot = self._snapshot()
            rows = choose(self._files(snapshot))
            if not rows:
                return
            try:
                self._commit(snapshot, rows)
            except CommitFailedError as error:
                if time.monotonic() > give_up_at_s:
                    raise self._failure("written: other processes write all the time", error) from error
                time.sleep(random.uniform(0.0, pause_s))
                pause_s = min(2 * pause_s, MAX_PAUSE_S)
            else:
                break
        if len(self._files(snapshot)) > COMPACT_ABOVE_FILES:
            self.compact()

    def compact(self) -> None:
        """Joins small files into large ones. Rows stay; if another process is at it, nothing happens.

        Files that were joined, or that a killed process left, are deleted when a week old.
        """
        try:
            with self.directory.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with the process, however that ends
                # Inside the lock: Delta 1.6 commits a compaction of files that another one has already
                # joined, whatever its commit properties say, and every row is then there twice.
                snapshot = self._snapshot()
                snapshot.optimize.compact()
                snapshot.vacuum(dry_run=False)
        except (BlockingIOError, CommitFailedError):
            return
        except (DeltaError, OSError) as error:
            raise self._failure("compacted", error) from error

    def _commit(self, snapshot: DeltaTable, rows: Rows) -> None:
        data = pa.Table.from_pylist(list(rows), schema=self.schema)
        try:
            # Without retries, Delta refuses the commit if the table is no longer at the snapshot's version.
            only_next = CommitProperties(max_commit_retries=0)
            write_deltalake(snapshot, data, mode="append", commit_properties=only_next)
        except CommitFailedError:
            raise
        except (DeltaError, OSError) as error:
            raise self._failure("written", error) from error

    def _snapshot(self) -> DeltaTable:
        try:
            return DeltaTable(self.directory)
        except (DeltaError, OSError, ValueError) as error:
            raise self._failure("read", error) from error

    def _files(self, snapshot: DeltaTable) -> tuple[Path, ...]:
        # Not file_uris(): they are percent-encoded if the folder's name has a space.
        return tuple(self.directory / path for path in snapshot.get_add_actions()["path"].to_pylist())

    def _failure(self, what: str, error: Exception) -> CatalogueError:
        reason = " ".join(str(error).split())[:300]
        return CatalogueError(
            f"the catalogue's table cannot be {what} ({reason}): check space and permissions, or "
            f"delete it to start anew: {self.directory}"
        )
