"""SQL over the tables and samples of the catalogue, which can change nothing and reaches nothing else."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.core.errors import CatalogueError, InputError, nearest
from gapless.data.event_views import INTERNAL_VIEWS, create_event_views
from gapless.data.rows import ARTEFACTS_SCHEMA, EPISODES_SCHEMA, EVENTS_SCHEMA, INTERNAL_COLUMNS, SAMPLES_SCHEMA
from gapless.data.samples import SampleStore
from gapless.data.tables import explain_failure

NUM_SIMILAR_IDS = 3  # shown for an id that does not exist
MAX_COMPARED_IDS = 1000  # as comparing a million letter by letter takes a minute
MAX_MEMORY_SHARE = 0.4  # of the machine's memory, for one question; what needs more goes through the disk
# Columns of the view that are computed from the rows; storing an artefact again adds a row.
ARTEFACT_COLUMNS = {"created_at": "min(created_at)", "stored_at": "max(created_at)"}
_THE_VIEWS = "the views episodes, artefacts, samples, labels, splits and consents"
TABLE_FUNCTIONS = ("lineage", "range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree")
# lineage('ID'): all that an episode or artefact was made from, with how many steps lie between
_LINEAGE = """
CREATE TEMP MACRO lineage(of_id) AS TABLE
WITH RECURSIVE entries AS (
    SELECT id, coalesce(source || ' ', '') || 'episode' AS what, name, parents FROM episodes
    UNION ALL SELECT id, kind, NULL, parents FROM artefacts
), up(id, steps) AS (
    SELECT unnest(parents), 1 FROM entries WHERE id = of_id
    UNION SELECT unnest(entries.parents), steps + 1 FROM entries JOIN up ON entries.id = up.id
), found AS (SELECT id, min(steps) AS steps FROM up GROUP BY id)
SELECT found.id, steps, coalesce(what, 'not in this catalogue') AS what, name
FROM found LEFT JOIN entries ON entries.id = found.id ORDER BY steps, found.id
"""


@dataclass(frozen=True)
class Views:
    """The views `episodes`, `artefacts` and `samples` of one moment of the catalogue.

    Of a user's SQL only statements that read these views are passed to DuckDB. Files never change, so that views of
    the same files serve on.
    """

    directory: Path  # the catalogue's folder
    store: SampleStore
    database: duckdb.DuckDBPyConnection  # of `open_database`
    episodes: tuple[Path, ...] = ()  # Parquet files of the episodes table
    artefacts: tuple[Path, ...] = ()  # Parquet files of the artefacts table
    events: tuple[Path, ...] = ()  # Parquet files of what people said of episodes
    hidden: tuple[str, ...] = ()  # ids of the episodes that users are not shown
    _lock: Lock = field(default_factory=Lock, compare=False)

    def run_query(self, sql: str) -> pa.Table:
        """Returns the rows that a user's query asks for.

        Raises:
            InputError: If it is not one statement that reads, or DuckDB refuses it.
        """
        with _explain_refusal("this query", _THE_VIEWS):
            statements = duckdb.extract_statements(sql)
            reads = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
            if len(statements) != 1 or statements[0].type not in reads:
                raise InputError("the catalogue is only read, never changed: write one SELECT statement")
            return self._run(sql, lambda connection: connection.sql(statements[0]))

    def select_ids(self, where: str, also: str = "true") -> tuple[str, ...]:
        """Returns the ids of the episodes for which a user's condition holds, and `also`, oldest first.

        Raises:
            InputError: If it is not one condition over the columns of `episodes`.
        """

        def select(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
            kept = connection.view("episodes").filter(where).filter(also)
            return kept.order("added_at, name, id").select("id")

        columns = ", ".join(name for name in EPISODES_SCHEMA.names if name not in INTERNAL_COLUMNS)
        with _explain_refusal(f"the condition {where!r}", f"these columns: {columns}"):
            duckdb.SQLExpression(where)  # raises where it is not one expression
            found = self._run(f"SELECT id FROM episodes WHERE (\n{where}\n)", select)
            return tuple(row["id"] for row in found.to_pylist())

    def _run(self, sql: str, ask: Callable[[duckdb.DuckDBPyConnection], duckdb.DuckDBPyRelation]) -> pa.Table:
        """Returns what `ask` gets on a connection, once `sql`, which is the same or alike, is known to be harmless."""
        for attempt in (0, 1, 2):  # a file of samples may be replaced while it is asked for
            chunks = self.chunks() if "samples" in sql.lower() else ()
            with self._lock:
                _require_views(self._connection, sql)
                try:
                    if "samples" in sql.lower():
                        view = _samples_sql(self.store.files(chunks), self.directory / "samples")
                        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW samples AS {view}")
                    return ask(self._connection).to_arrow_table()
                except duckdb.IOException:
                    if attempt == 2:
                        raise
        raise AssertionError

    def select(self, sql: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Returns the rows that a query of the catalogue's own asks for."""
        with explain_failure("the catalogue cannot be read", self.directory), self._lock:
            return self._connection.sql(sql, params=list(values)).to_arrow_table().to_pylist()

    def row(self, view: str, id: str) -> dict[str, Any]:
        """Returns the row of an id in `episodes` or `artefacts`; raises CatalogueError where there is none."""
        if found := self.select(f"SELECT * FROM {view} WHERE id = $1", (id,)):
            return found[0]
        raise self.unknown(view.removesuffix("s"), id, f"SELECT id FROM {view}")

    def unknown(self, what: str, id: str, known_sql: str) -> CatalogueError:
        """Returns the error for an id that is not among those of a query; it names the most similar ones."""
        sql = f"SELECT id FROM ({known_sql}) ORDER BY jaro_similarity(id, $1) DESC, id LIMIT {MAX_COMPARED_IDS}"
        shown = nearest(id, [row["id"] for row in self.select(sql, (id,))], NUM_SIMILAR_IDS)
        return CatalogueError(f"no {what} {id!r}; choose from: {shown}: {self.directory}")

    def chunks(self) -> tuple[str, ...]:
        """Returns the chunks in which the samples of the episodes lie."""
        found = self.select("SELECT DISTINCT chunk FROM recorded_episodes WHERE chunk IS NOT NULL")
        return tuple(row["chunk"] for row in found)

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        connection = self.database.cursor()  # its temporary views are its own
        connection.execute(f"CREATE TEMP VIEW recorded_episodes AS {_episodes_sql(self.episodes)}")
        connection.execute(f"CREATE TEMP VIEW events AS {_events_sql(self.events)}")
        create_event_views(connection, self.hidden, bool(self.events))
        connection.execute(f"CREATE TEMP VIEW artefacts AS {_artefacts_sql(self.artefacts)}")
        connection.execute(_LINEAGE)
        return connection


def open_database(directory: Path) -> duckdb.DuckDBPyConnection:
    """Returns a database in memory that reaches nothing but a catalogue's folder, with its settings locked."""
    database = duckdb.connect(":memory:")
    memory = int(MAX_MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e6)
    for setting in (
        f"memory_limit = '{memory} MB'",
        "parquet_metadata_cache = true",  # files never change
        f"allowed_directories = [{_quote(directory)}]",
        f"temp_directory = {_quote(directory / 'temporary')}",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        database.execute(f"SET {setting}")
    return database


@contextmanager
def _explain_refusal(what: str, names: str) -> Iterator[None]:
    """Turns what DuckDB says of a user's SQL into one line."""
    try:
        yield
    except (duckdb.Error, RuntimeError) as error:
        reason = " ".join(str(error).split("\n\nLINE")[0].split())
        raise InputError(f"cannot answer {what}: {reason}; use {names}") from error


def _require_views(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Raises InputError for SQL that reads anything but views: files, settings, other databases."""
    plain = re.sub(r"^\s*EXPLAIN(\s+ANALYZE)?\s", "", sql, flags=re.IGNORECASE)
    tree = json.loads(connection.execute("SELECT json_serialize_sql($1)", (plain,)).fetchall()[0][0])
    if tree["error"]:
        raise InputError("this statement cannot be checked to only read: write one SELECT statement")
    for node in _walk(tree):
        kind = node.get("type")
        name = node.get("function", {}).get("function_name") if kind == "TABLE_FUNCTION" else node.get("table_name")
        if kind == "TABLE_FUNCTION" and name not in TABLE_FUNCTIONS:
            text = f"{name}() is disabled, as it may read more than this catalogue"
            raise InputError(f"{text}: use {_THE_VIEWS}")
        if kind == "BASE_TABLE" and str(name).lower() in INTERNAL_VIEWS:
            raise InputError(f"reading {name!r} is disabled: use {_THE_VIEWS}")
        if kind == "BASE_TABLE" and (re.search(r"[./\\:*]", str(name)) or node.get("catalog_name")):
            raise InputError(f"reading {name!r} is disabled: use {_THE_VIEWS}")


def _walk(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Yields all JSON objects in a tree."""
    if isinstance(tree, dict):
        yield tree
    for item in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _walk(item)


def _episodes_sql(files: tuple[Path, ...]) -> str:
    """Returns the view of the episodes, one part per folder of a source, as Delta keeps the source in the path."""
    parts, folders = list[str](), dict[str, list[Path]]()
    for file in files:
        folders.setdefault(file.parent.name, []).append(file)
    for folder, inside in sorted(folders.items()):
        known = re.fullmatch("source=([a-z]+)", folder)
        constants = {"source": f"'{known[1]}'" if known else "NULL::VARCHAR"}
        own = pq.read_schema(inside[0]).names  # fewer in a catalogue of the version before that cannot be written to
        missing = [name for name in EPISODES_SCHEMA.names if name not in own and name not in constants]
        constants |= {name: f"NULL::{_sql_type(EPISODES_SCHEMA.field(name).type)}" for name in missing}
        selected = ", ".join(f"{constants.get(name, name)} AS {name}" for name in EPISODES_SCHEMA.names)
        # Rows without chunks are of the version before, which wrote a row several times now and then.
        distinct = "QUALIFY row_number() OVER (PARTITION BY id ORDER BY added_at) = 1" if "chunk" in missing else ""
        parts.append(f"SELECT {selected} FROM {_read(inside)} {distinct}")
    return " UNION ALL ".join(parts) or _nothing(EPISODES_SCHEMA)


def _events_sql(files: tuple[Path, ...]) -> str:
    return f"SELECT DISTINCT ON (id) * FROM {_read(files)}" if files else _nothing(EVENTS_SCHEMA)


def _artefacts_sql(files: tuple[Path, ...]) -> str:
    columns = list(dict.fromkeys([*ARTEFACTS_SCHEMA.names, *ARTEFACT_COLUMNS]))
    selected = ", ".join(f"{ARTEFACT_COLUMNS.get(column, column)} AS {column}" for column in columns)
    source = _read(files) if files else f"({_nothing(ARTEFACTS_SCHEMA)})"
    return f"SELECT {selected} FROM {source} GROUP BY ALL"


def _samples_sql(chunks: Sequence[Path], folder: Path) -> str:
    """Returns the view of the samples of those episodes whose row is there."""
    parts = list[str]()
    if chunks:
        parts.append(
            "SELECT episode, signal, name, unit, unnest(times_s) AS time_s, unnest(values) AS value "
            f"FROM {_read(chunks)} WHERE name IS NOT NULL AND (episode, chunk) IN (SELECT id, chunk FROM episodes)"
        )
    if any(folder.glob("??/*.parquet")):  # of the version before
        inside = f"read_parquet({_quote(folder / '??' / '*.parquet')}, filename = true, hive_partitioning = false)"
        parts.append(
            f"SELECT parse_filename(filename, true) AS episode, signal, name, unit, time_s, value FROM {inside} WHERE "
            "name IS NOT NULL AND parse_filename(filename, true) IN (SELECT id FROM episodes WHERE chunk IS NULL)"
        )
    return " UNION ALL ".join(parts) or _nothing(SAMPLES_SCHEMA)


def _read(files: Sequence[Path]) -> str:
    return f"read_parquet([{', '.join(map(_quote, files))}], hive_partitioning = false)"


def _nothing(schema: pa.Schema) -> str:
    columns = ", ".join(f"NULL::{_sql_type(field.type)} AS {field.name}" for field in schema)
    return f"SELECT {columns} WHERE false"


def _sql_type(kind: pa.DataType) -> str:
    names = {pa.string(): "VARCHAR", pa.float64(): "DOUBLE", pa.int64(): "BIGINT", pa.bool_(): "BOOLEAN"}
    return f"{names[kind.value_type]}[]" if isinstance(kind, pa.ListType) else names[kind]


def _quote(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
