"""The tables of the catalogue: Delta rows, each with files, and SQL over them that can change nothing.

Several processes add rows without losing or doubling one.
"""

import fcntl
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import duckdb
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from gapless.core.errors import CatalogueError, InputError
from gapless.data.rows import ARTEFACTS_SCHEMA, EPISODES_SCHEMA

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
SAMPLES_COLUMNS = "NULL::VARCHAR AS episode, NULL::VARCHAR AS signal, NULL::VARCHAR AS name"
SAMPLES_COLUMNS += ", NULL::VARCHAR AS unit, NULL::DOUBLE AS time_s, NULL::DOUBLE AS value"
SQL_TYPES = {"string": "VARCHAR", "double": "DOUBLE", "int64": "BIGINT", "list<item: string>": "VARCHAR[]"}
EPISODE_COLUMNS = {"source": "regexp_extract(filename, 'source=([a-z]+)/[^/]*$', 1)"}  # Delta keeps it in the path
# An artefact that was stored again has a row for each time.
ARTEFACT_COLUMNS = {"created_at": "min(created_at)", "stored_at": "max(created_at)"}
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Views:
    """The views `episodes`, `artefacts` and `samples` of one moment of the catalogue.

    DuckDB opens nothing but Parquet files below `directory`, its settings are locked, and only statements that read
    are passed to it.
    """

    directory: Path  # the catalogue's folder
    episodes: tuple[Path, ...] = ()  # Parquet files of the episodes table
    artefacts: tuple[Path, ...] = ()  # Parquet files of the artefacts table

    def run_query(self, sql: str) -> pa.Table:
        """Returns the rows that a user's query asks for.

        Raises:
            InputError: If it is not one statement that reads, or DuckDB refuses it.
        """
        try:
            statements = duckdb.extract_statements(sql)
            reads = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
            if len(statements) != 1 or statements[0].type not in reads:
                raise InputError("the catalogue is only read, never changed: write one SELECT statement")
            with self._connect(with_samples="samples" in sql.lower()) as connection:
                return connection.sql(statements[0]).to_arrow_table()
        except duckdb.Error as error:
            text = f"cannot answer this query: {_one_line(error)}; use the views episodes, artefacts and samples"
            raise InputError(text) from error

    def select(self, sql: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Returns the rows that a query of the catalogue's own asks for."""
        try:
            with self._connect(with_samples=False) as connection:
                return connection.sql(sql, params=list(values)).to_arrow_table().to_pylist()
        except duckdb.Error as error:
            text = f"the catalogue cannot be read ({_one_line(error)}): delete it to start anew: {self.directory}"
            raise CatalogueError(text) from error

    def unknown_id(self, label: str, relation: str, id: str) -> CatalogueError:
        """Returns the error for an id that is not there: how many are, and which are most alike."""
        count = self.select(f"SELECT count(*) AS count FROM {relation}")[0]["count"]
        order = f"ORDER BY levenshtein(id, $1), id LIMIT {NUM_SIMILAR_IDS}"
        similar = [row["id"] for row in self.select(f"SELECT id FROM {relation} {order}", (id,))]
        shown = f", most alike: {', '.join(similar)}" if similar else ""
        return CatalogueError(f"no {label} {id!r}; {count} exist{shown}; choose an id of `SELECT id`: {self.directory}")

    def _connect(self, with_samples: bool) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(":memory:")
        connection.execute(_view_sql("episodes", EPISODES_SCHEMA, self.episodes, EPISODE_COLUMNS))
        connection.execute(_view_sql("artefacts", ARTEFACTS_SCHEMA, self.artefacts, ARTEFACT_COLUMNS, "GROUP BY ALL"))
        if with_samples and self.episodes:  # of episodes whose row is there; file names say which are needed at all
            pattern = _quote(self.directory / "samples" / "*" / "*.parquet")
            connection.execute(
                "CREATE VIEW samples AS SELECT parse_filename(filename, true) AS episode, signal, name, unit, "
                f"time_s, value FROM read_parquet({pattern}, filename = true, hive_partitioning = false) "
                "WHERE name IS NOT NULL AND parse_filename(filename, true) IN (SELECT id FROM episodes)"
            )
        elif with_samples:
            connection.execute(f"CREATE VIEW samples AS SELECT {SAMPLES_COLUMNS} LIMIT 0")
        connection.execute(f"SET allowed_directories = [{_quote(self.directory)}]")
        connection.execute(f"SET temp_directory = {_quote(self.directory / 'temporary')}")
        for setting in ("python_enable_replacements = false", "enable_external_access = false"):
            connection.execute(f"SET {setting}")
        connection.execute("SET lock_configuration = true")
        return connection


def _view_sql(
    name: str, schema: pa.Schema, files: tuple[Path, ...], computed: dict[str, str], grouping: str = ""
) -> str:
    """Returns what shows the rows of some Parquet files; columns of `computed` (name -> SQL) are computed from them."""
    types = {field.name: SQL_TYPES[str(field.type)] for field in schema} | dict.fromkeys(computed, "VARCHAR")
    if files:
        columns = [f"{computed.get(column, column)} AS {column}" for column in types]
        paths = ", ".join(_quote(file) for file in files)
        rest = f"FROM read_parquet([{paths}], filename = true, hive_partitioning = false) {grouping}"
    else:
        columns = [f"NULL::{kind} AS {column}" for column, kind in types.items()]
        rest = "LIMIT 0"
    return f"CREATE VIEW {name} AS SELECT {', '.join(columns)} {rest}"


def _quote(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split("\n\nLINE")[0].split())


@dataclass(frozen=True)
class Table:
    """A Delta table, and where the files of its rows lie."""

    name: Literal["episodes", "artefacts"]
    catalogue: Path  # the catalogue's folder
    schema: pa.Schema
    path_of: Callable[[str], Path]  # returns where the samples or files of an id lie
    partition_by: tuple[str, ...] = ()  # columns whose values are kept in separate folders

    @property
    def directory(self) -> Path:
        """The folder of the Delta table."""
        return self.catalogue / "tables" / self.name

    def create(self) -> None:
        """Makes the table where there is none; several processes may try at once."""
        place = str(self.directory)
        try:
            if not DeltaTable.is_deltatable(place):
                self.directory.mkdir(exist_ok=True)
                DeltaTable.create(self.directory, self.schema, "ignore", partition_by=list(self.partition_by))
        except (DeltaError, OSError, ValueError) as error:
            if not (isinstance(error, DeltaError) and DeltaTable.is_deltatable(place)):  # else another one was first
                raise self._failure("made", error) from error
        self.files()

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
            raise views.unknown_id(self.name.removesuffix("s"), self.name, id)
        return found[0]

    def add(self, rows: Mapping[str, Mapping[str, Any]], write: Callable[[str], None]) -> None:
        """Adds, in one commit, those rows that are needed; see `NEED_NO_ROW`.

        The commit holds only if no other commit came between; after one of another process that was faster, what is
        needed is found anew. `rows` are by id; `write` writes the files of an id, whole or not at all.
        """
        give_up_at_s, pause_s = time.monotonic() + MAX_WAIT_S, MIN_PAUSE_S
        while True:
            snapshot = self._snapshot()
            try:
                needed = self._write_needed(self._files(snapshot), rows, write)
            except OSError as error:
                text = f"the catalogue cannot be written ({error.strerror or error}): check space and permissions"
                raise CatalogueError(f"{text}: {self.catalogue}") from error
            if not needed:
                return
            try:
                self._commit(snapshot, needed)
                break
            except CommitFailedError as error:
                if time.monotonic() > give_up_at_s:
                    raise self._failure("written: other processes write all the time", error) from error
                time.sleep(random.uniform(0.0, pause_s))
                pause_s = min(2 * pause_s, MAX_PAUSE_S)
        if len(self._files(snapshot)) > COMPACT_ABOVE_FILES:
            self.compact()

    def _write_needed(
        self, files: tuple[Path, ...], rows: Mapping[str, Mapping[str, Any]], write: Callable[[str], None]
    ) -> Rows:
        """Returns the rows that a table of these files needs, their files written.

        What has a row has its files, but not the other way round: a process may be killed in between. So an id
        without files is new, and only the others need a look into the table.
        """
        written = [id for id in rows if self.path_of(id).exists()]
        views = Views(self.catalogue, **{self.name: files})
        found = views.select(NEED_NO_ROW[self.name], (written,)) if files and written else []
        needed = [id for id in rows if id not in {row["id"] for row in found}]
        for id in set(needed) - set(written):
            write(id)
        return [rows[id] for id in needed]

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
        text = f"the catalogue's table cannot be {what} ({reason}): check space and permissions, or delete it to start"
        return CatalogueError(f"{text} anew: {self.directory}")
