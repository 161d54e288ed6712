"""SQL over the catalogue, run by DuckDB without a way to change anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from gapless.core.errors import CatalogueError, InputError
from gapless.data.rows import ARTEFACTS_SCHEMA, EPISODES_SCHEMA

SAMPLES_COLUMNS = "NULL::VARCHAR AS episode, NULL::VARCHAR AS signal, NULL::VARCHAR AS name"
SAMPLES_COLUMNS += ", NULL::VARCHAR AS unit, NULL::DOUBLE AS time_s, NULL::DOUBLE AS value"
SQL_TYPES = {"string": "VARCHAR", "double": "DOUBLE", "int64": "BIGINT"}
EPISODE_COLUMNS = {"source": "regexp_extract(filename, 'source=([a-z]+)/[^/]*$', 1)"}  # Delta keeps it in the path
# An artefact that was stored again has a row for each time.
ARTEFACT_COLUMNS = {"created_at": "min(created_at)", "stored_at": "max(created_at)"}


@dataclass(frozen=True)
class Views:
    """The views `episodes`, `artefacts` and `samples` of one moment of the catalogue.

    DuckDB opens nothing but Parquet files below `directory`, its settings are locked, and only statements that read
    are passed to it.

    Attributes:
        directory: The catalogue's folder.
        episodes: Parquet files of the episodes table.
        artefacts: Parquet files of the artefacts table.
    """

    directory: Path
    episodes: tuple[Path, ...] = ()
    artefacts: tuple[Path, ...] = ()

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
            raise InputError(
                f"cannot answer this query: {_one_line(error)}; use the views episodes, artefacts and samples"
            ) from error

    def select(self, sql: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Returns the rows that a query of the catalogue's own asks for."""
        try:
            with self._connect(with_samples=False) as connection:
                return connection.sql(sql, params=list(values)).to_arrow_table().to_pylist()
        except duckdb.Error as error:
            raise CatalogueError(
                f"the catalogue cannot be read ({_one_line(error)}): delete it to start anew: {self.directory}"
            ) from error

    def _connect(self, with_samples: bool) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(":memory:")
        _create_view(connection, "episodes", EPISODES_SCHEMA, self.episodes, EPISODE_COLUMNS)
        _create_view(connection, "artefacts", ARTEFACTS_SCHEMA, self.artefacts, ARTEFACT_COLUMNS, "GROUP BY ALL")
        if with_samples:
            self._create_samples_view(connection)
        connection.execute(f"SET allowed_directories = [{_quote(self.directory)}]")
        connection.execute(f"SET temp_directory = {_quote(self.directory / 'temporary')}")
        connection.execute("SET python_enable_replacements = false")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection

    def _create_samples_view(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Shows the samples of episodes whose row is there; file names say which are needed at all."""
        if not self.episodes:
            connection.execute(f"CREATE VIEW samples AS SELECT {SAMPLES_COLUMNS} LIMIT 0")
            return
        pattern = _quote(self.directory / "samples" / "*" / "*.parquet")
        connection.execute(
            "CREATE VIEW samples AS SELECT parse_filename(filename, true) AS episode, signal, name, unit, "
            f"time_s, value FROM read_parquet({pattern}, filename = true, hive_partitioning = false) "
            "WHERE name IS NOT NULL AND parse_filename(filename, true) IN (SELECT id FROM episodes)"
        )


def _create_view(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    schema: pa.Schema,
    files: tuple[Path, ...],
    computed: dict[str, str],
    grouping: str = "",
) -> None:
    """Shows the rows of some Parquet files; columns of `computed` (name -> SQL) are computed from them."""
    types = {field.name: _sql_type(field.type) for field in schema} | dict.fromkeys(computed, "VARCHAR")
    if files:
        columns = [f"{computed.get(column, column)} AS {column}" for column in types]
        paths = ", ".join(_quote(file) for file in files)
        rest = f"FROM read_parquet([{paths}], filename = true, hive_partitioning = false) {grouping}"
    else:
        columns = [f"NULL::{kind} AS {column}" for column, kind in types.items()]
        rest = "LIMIT 0"
    connection.execute(f"CREATE VIEW {name} AS SELECT {', '.join(columns)} {rest}")


def _sql_type(kind: pa.DataType) -> str:
    return f"{_sql_type(kind.value_type)}[]" if pa.types.is_list(kind) else SQL_TYPES[str(kind)]


def _quote(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split("\n\nLINE")[0].split())
