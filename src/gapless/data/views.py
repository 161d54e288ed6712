"""SQL over the tables and samples of the catalogue, which can change nothing and reaches nothing else."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import duckdb
import pyarrow as pa

from gapless.core.errors import CatalogueError, InputError, nearest
from gapless.data import view_sql
from gapless.data.rows import EPISODES_SCHEMA, INTERNAL_COLUMNS
from gapless.data.samples import SampleStore
from gapless.data.tables import explain_failure
from gapless.data.withdrawn import find_hidden

NUM_SIMILAR_IDS = 3  # shown for an id that does not exist
MAX_COMPARED_IDS = 1000  # as comparing a million letter by letter takes a minute
MAX_MEMORY_SHARE = 0.4  # of the machine's memory, for one question; what needs more goes through the disk
TABLE_FUNCTIONS = ("lineage", "range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree")
VIEWS = "the views episodes, artefacts, samples, labels, splits and consents"


@dataclass(frozen=True)
class CatalogueMoment:
    """What the catalogue holds at a moment, as Parquet files of its tables: files never change."""

    episodes: tuple[Path, ...]
    artefacts: tuple[Path, ...]
    events: tuple[Path, ...]  # what people said of episodes
    day: str  # in UTC: consent may end with it


class Views:
    """The views of one moment of the catalogue. Of a user's SQL only statements that read them reach DuckDB."""

    def __init__(self, database: duckdb.DuckDBPyConnection, store: SampleStore, moment: CatalogueMoment) -> None:
        """Makes the views in a database of `open_database`."""
        self.store, self._lock = store, Lock()
        self._connection = database.cursor()  # its temporary views are its own
        create = self._connection.execute
        with explain_failure("the catalogue cannot be read", store.folder.parent):
            create(f"CREATE TEMP VIEW recorded_episodes AS {view_sql.select_episodes(moment.episodes)}")
            create(f"CREATE TEMP VIEW events AS {view_sql.select_events(moment.events)}")
            create(f"CREATE TEMP VIEW artefacts AS {view_sql.select_artefacts(moment.artefacts)}")
            # What holds the data of people whose consent is withdrawn or has ended: id -> person
            self.hidden = find_hidden(self.select, moment.day)
            ids = list(self.hidden.episodes)
            create("CREATE TEMP TABLE hidden_episodes AS SELECT unnest($1::VARCHAR[]) AS id", (ids,))
            create(view_sql.SAID_VIEWS)
            create(view_sql.EPISODES_WITH_LABELS if moment.events else view_sql.EPISODES_AS_RECORDED)
            create(view_sql.LINEAGE)

    def run_query(self, sql: str) -> pa.Table:
        """Returns the rows that a user's query asks for.

        Raises:
            InputError: If it is not one statement that reads, or DuckDB refuses it.
        """
        with _explain_refusal("this query", VIEWS):
            statements = duckdb.extract_statements(sql)
            reads = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
            if len(statements) != 1 or statements[0].type not in reads:
                raise InputError("the catalogue is only read, never changed: write one SELECT statement")
            return self._run(sql, lambda: self._connection.sql(statements[0]))

    def select_ids(self, where: str, also: str = "true") -> tuple[str, ...]:
        """Returns the ids of the episodes for which a user's condition holds, and `also`, oldest first.

        Raises:
            InputError: If it is not one condition over the columns of `episodes`.
        """

        def select() -> duckdb.DuckDBPyRelation:
            kept = self._connection.view("episodes").filter(where).filter(also)
            return kept.order("added_at, name, id").select("id")

        columns = ", ".join(name for name in EPISODES_SCHEMA.names if name not in INTERNAL_COLUMNS)
        with _explain_refusal(f"the condition {where!r}", f"these columns: {columns}"):
            duckdb.SQLExpression(where)  # raises where it is not one expression
            found = self._run(f"SELECT id FROM episodes WHERE (\n{where}\n)", select)
            return tuple(row["id"] for row in found.to_pylist())

    def _run(self, sql: str, ask: Callable[[], duckdb.DuckDBPyRelation]) -> pa.Table:
        """Returns what `ask` gets, once `sql`, which is the same or alike, is known to be harmless."""
        for attempt in (0, 1, 2):  # a file of samples may be replaced while it is asked for
            chunks = self.chunks() if "samples" in sql.lower() else ()
            with self._lock:
                _require_views(self._connection, sql)
                try:
                    if "samples" in sql.lower():
                        view = view_sql.select_samples(self.store.files(chunks), self.store.folder)
                        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW samples AS {view}")
                    return ask().to_arrow_table()
                except duckdb.IOException:
                    if attempt == 2:
                        raise
        raise AssertionError

    def select(self, sql: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Returns the rows that a query of the catalogue's own asks for."""
        with explain_failure("the catalogue cannot be read", self.store.folder.parent), self._lock:
            return self._connection.sql(sql, params=list(values)).to_arrow_table().to_pylist()

    def unknown(self, what: str, id: str, known_sql: str) -> CatalogueError:
        """Returns the error for an id that is not among those of a query; it names the most similar ones."""
        sql = f"SELECT id FROM ({known_sql}) ORDER BY jaro_similarity(id, $1) DESC, id LIMIT {MAX_COMPARED_IDS}"
        shown = nearest(id, [row["id"] for row in self.select(sql, (id,))], NUM_SIMILAR_IDS)
        return CatalogueError(f"no {what} {id!r}; choose from: {shown}: {self.store.folder.parent}")

    def chunks(self) -> tuple[str, ...]:
        """Returns the chunks in which the samples of the episodes lie."""
        found = self.select("SELECT DISTINCT chunk FROM recorded_episodes WHERE chunk IS NOT NULL")
        return tuple(row["chunk"] for row in found)


def open_database(directory: Path) -> duckdb.DuckDBPyConnection:
    """Returns a database in memory that reaches nothing but a catalogue's folder, with its settings locked."""
    database = duckdb.connect(":memory:")
    memory = int(MAX_MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e6)
    for setting in (
        f"memory_limit = '{memory} MB'",
        "parquet_metadata_cache = true",  # files never change
        f"allowed_directories = [{view_sql.quote(directory)}]",
        f"temp_directory = {view_sql.quote(directory / 'temporary')}",
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
        if node.get("type") == "TABLE_FUNCTION":
            name = node["function"]["function_name"]
            if name not in TABLE_FUNCTIONS:
                raise InputError(f"{name}() is disabled, as it may read more than this catalogue: use {VIEWS}")
        elif node.get("type") == "BASE_TABLE":
            name = str(node["table_name"])
            if name.lower() in view_sql.INTERNAL_VIEWS or re.search(r"[./\\:*]", name) or node.get("catalog_name"):
                raise InputError(f"reading {name!r} is disabled: use {VIEWS}")


def _walk(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Yields all JSON objects in a tree."""
    if isinstance(tree, dict):
        yield tree
    for item in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _walk(item)
