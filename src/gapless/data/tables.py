"""The tables of the catalogue: Delta rows, and SQL over them that can change nothing.

Several processes may add the same row, each without waiting for the others; the views show it once.
"""

import fcntl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from gapless.core.errors import CatalogueError, InputError, nearest
from gapless.data.rows import ARTEFACTS_SCHEMA, EPISODES_SCHEMA, SAMPLES_SCHEMA

COMPACT_ABOVE_FILES = 64
NUM_SIMILAR_IDS = 3  # shown for an id that does not exist
# Columns of the views that are computed from the rows; Delta keeps the source in the path.
EPISODE_COLUMNS = {
    "source": "regexp_extract(filename, 'source=([a-z]+)/[^/]*$', 1)",
    "added_at": "min(added_at)",
}
ARTEFACT_COLUMNS = {"created_at": "min(created_at)", "stored_at": "max(created_at)"}


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

    def row(self, view: str, id: str) -> dict[str, Any]:
        """Returns the row of an id in `episodes` or `artefacts`; raises CatalogueError where there is none."""
        if found := self.select(f"SELECT * FROM {view} WHERE id = $1", (id,)):
            return found[0]
        known = [row["id"] for row in self.select(f"SELECT id FROM {view}")]
        shown = nearest(id, known, NUM_SIMILAR_IDS)
        raise CatalogueError(f"no {view.removesuffix('s')} {id!r}; choose from: {shown}: {self.directory}")

    def _connect(self, with_samples: bool) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(":memory:")
        _create_view(connection, "episodes", EPISODES_SCHEMA, self.episodes, EPISODE_COLUMNS)
        _create_view(connection, "artefacts", ARTEFACTS_SCHEMA, self.artefacts, ARTEFACT_COLUMNS)
        if with_samples and self.episodes:  # of episodes whose row is there; file names say which are needed at all
            pattern = _quote(self.directory / "samples" / "*" / "*.parquet")
            connection.execute(
                "CREATE VIEW samples AS SELECT parse_filename(filename, true) AS episode, signal, name, unit, "
                f"time_s, value FROM read_parquet({pattern}, filename = true, hive_partitioning = false) "
                "WHERE name IS NOT NULL AND parse_filename(filename, true) IN (SELECT id FROM episodes)"
            )
        elif with_samples:
            connection.register("samples", SAMPLES_SCHEMA.empty_table())
        connection.execute(f"SET allowed_directories = [{_quote(self.directory)}]")
        connection.execute(f"SET temp_directory = {_quote(self.directory / 'temporary')}")
        for setting in ("python_enable_replacements = false", "enable_external_access = false"):
            connection.execute(f"SET {setting}")
        connection.execute("SET lock_configuration = true")
        return connection


def _create_view(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    schema: pa.Schema,
    files: tuple[Path, ...],
    computed: Mapping[str, str],
) -> None:
    """Makes a view with one row per id of some Parquet files; columns of `computed` (name -> SQL) follow from them."""
    columns = list(dict.fromkeys([*schema.names, *computed]))
    if not files:
        fields = [schema.field(column) if column in schema.names else (column, pa.string()) for column in columns]
        connection.register(name, pa.schema(fields).empty_table())
        return
    selected = ", ".join(f"{computed.get(column, column)} AS {column}" for column in columns)
    paths = ", ".join(_quote(file) for file in files)
    source = f"read_parquet([{paths}], filename = true, hive_partitioning = false)"
    connection.execute(f"CREATE VIEW {name} AS SELECT {selected} FROM {source} GROUP BY ALL")


def _quote(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split("\n\nLINE")[0].split())


@dataclass(frozen=True)
class Table:
    """A Delta table."""

    directory: Path
    schema: pa.Schema
    partition_by: tuple[str, ...] = ()  # columns whose values are kept in separate folders

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
        # Not file_uris(): they are percent-encoded if the folder's name has a space.
        return tuple(self.directory / path for path in self._snapshot().get_add_actions()["path"].to_pylist())

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Adds rows in one commit, all or none; Delta tries again where another process was faster."""
        data = pa.Table.from_pylist(list(rows), schema=self.schema)
        try:
            write_deltalake(self._snapshot(), data, mode="append")
        except (DeltaError, OSError) as error:
            raise self._failure("written", error) from error
        if len(self.files()) > COMPACT_ABOVE_FILES:
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

    def _snapshot(self) -> DeltaTable:
        try:
            return DeltaTable(self.directory)
        except (DeltaError, OSError, ValueError) as error:
            raise self._failure("read", error) from error

    def _failure(self, what: str, error: Exception) -> CatalogueError:
        reason = " ".join(str(error).split())[:300]
        text = f"the catalogue's table cannot be {what} ({reason}): check space and permissions, or delete it to start"
        return CatalogueError(f"{text} anew: {self.directory}")
