"""A table of the catalogue: Delta rows, each with files. Several processes add rows without losing or doubling one."""

import fcntl
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from gapless.core.errors import CatalogueError
from gapless.data.query import Views

COMPACT_ABOVE_FILES = 64
MAX_WAIT_S = 120.0  # for other processes that commit all the time
MIN_PAUSE_S, MAX_PAUSE_S = 0.005, 0.5  # between two attempts; doubles from one to the next
NUM_SIMILAR_IDS = 3  # shown for an id that does not exist
# Ids that need no further row: episodes that are there; of each kind the artefact that was stored last.
NEED_NO_ROW = {
    "episodes": "SELECT id FROM episodes WHERE id IN (SELECT unnest($1::VARCHAR[]))",
    "artefacts": "SELECT id FROM artefacts WHERE id IN (SELECT unnest($1::VARCHAR[])) AND stored_at = "
    "(SELECT max(stored_at) FROM artefacts AS other WHERE other.kind = artefacts.kind)",
}
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Table:
    """A Delta table, and where the files of its rows lie.

    Attributes:
        name: Its name.
        catalogue: The catalogue's folder.
        schema: Its columns.
        path_of: Returns where the samples or files of an id lie.
        partition_by: Columns whose values are kept in separate folders.
    """

    name: Literal["episodes", "artefacts"]
    catalogue: Path
    schema: pa.Schema
    path_of: Callable[[str], Path]
    partition_by: tuple[str, ...] = ()

    @property
    def directory(self) -> Path:
        """The folder of the Delta table."""
        return self.catalogue / "tables" / self.name

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

    def views(self) -> Views:
        """Returns the view of this table at this moment."""
        return Views(self.catalogue, **{self.name: self.files()})

    def row(self, id: str) -> dict[str, Any]:
        """Returns the stored row of an id."""
        views = self.views()
        found = views.select(f"SELECT * FROM {self.name} WHERE id = $1", (id,))
        if not found:
            raise unknown_id(self.name.removesuffix("s"), self.name, id, views)
        return found[0]

    def add(self, rows: Mapping[str, Mapping[str, Any]], write: Callable[[str], None]) -> None:
        """Adds, in one commit, those rows that are needed; see `NEED_NO_ROW`.

        What has a row has its files, but not the other way round: a process may be killed in between. So an id
        without files is new, and only the others need a look into the table.

        `rows` are by id; `write` writes the files of an id, whole or not at all.
        """

        def choose(files: tuple[Path, ...]) -> list[Mapping[str, Any]]:
            written = [id for id in rows if self.path_of(id).exists()]
            views = Views(self.catalogue, **{self.name: files})
            found = views.select(NEED_NO_ROW[self.name], (written,)) if files and written else []
            needed = [id for id in rows if id not in {row["id"] for row in found}]
            for id in set(needed) - set(written):
                write(id)
            return [rows[id] for id in needed]

        try:
            self._append(choose)
        except OSError as error:
            raise CatalogueError(
                f"the catalogue cannot be written ({error.strerror or error}): check space and "
                f"permissions: {self.catalogue}"
            ) from error

    def _append(self, choose: Callable[[tuple[Path, ...]], Rows]) -> None:
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

    def _commit(self, snapshot: DeltaTable, rows: Rows) -> None:
        data = pa.Table.from_pylist(list(rows), schema=self.schema)
        try:
            # Without retries, Delta refuses the commit if the table is no longer at the snapshot's version.
            write_deltalake(snapshot, data, mode="append", commit_properties=CommitProperties(max_commit_retries=0))
        except CommitFailedError:
            raise
        except (DeltaError, OSError) as error:
            raise self._failure("written", error) from error

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


def unknown_id(label: str, relation: str, id: str, views: Views) -> CatalogueError:
    """Returns the error for an id that is not there: how many are, and which are most alike."""
    count = views.select(f"SELECT count(*) AS count FROM {relation}")[0]["count"]
    order = f"ORDER BY levenshtein(id, $1), id LIMIT {NUM_SIMILAR_IDS}"
    similar = [row["id"] for row in views.select(f"SELECT id FROM {relation} {order}", (id,))]
    shown = f", most alike: {', '.join(similar)}" if similar else ""
    return CatalogueError(f"no {label} {id!r}; {count} exist{shown}; choose an id of `SELECT id`: {views.directory}")
