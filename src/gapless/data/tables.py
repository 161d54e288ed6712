"""The tables of the catalogue: Delta rows, and SQL over them that can change nothing.

Several processes may add the same row, each without waiting for the others; the views show it once.
"""

import fcntl
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from gapless.core.episode import Episode, Outcome, Source
from gapless.core.errors import CatalogueError, InputError, nearest
from gapless.core.provenance import Provenance
from gapless.data.event_views import create_event_views

COMPACT_ABOVE_FILES = 64
NUM_SIMILAR_IDS = 3  # shown for an id that does not exist
# Columns of the views that are computed from the rows; Delta keeps the source in the path.
EPISODE_COLUMNS = {
    "source": "regexp_extract(filename, 'source=([a-z]+)/[^/]*$', 1)",
    "added_at": "min(added_at)",
}
ARTEFACT_COLUMNS = {"created_at": "min(created_at)", "stored_at": "max(created_at)"}
MAX_SEED = 2**63 - 1  # what 64 bits hold
_TEXT, _TEXTS, _NUMBER = pa.string(), pa.list_(pa.string()), pa.float64()
_PROVENANCE_FIELDS = [
    *(("made_by", _TEXT), ("code_version", _TEXT), ("parents", _TEXTS), ("config", _TEXT), ("seed", pa.int64()))
]
EPISODES_SCHEMA = pa.schema(
    [
        *((name, _TEXT) for name in ("id", "name", "source", "outcome", "failed_in", "conditions", "recorded_at")),
        *(("duration_s", _NUMBER), ("added_at", _TEXT), ("signals_id", _TEXT), ("participants", _TEXTS)),
        ("num_rows", pa.int64()),
        *_PROVENANCE_FIELDS,
    ]
)
EVENTS_SCHEMA = pa.schema(  # what people said of episodes
    [
        *((name, _TEXT) for name in ("id", "kind", "name", "said_by", "said_at")),
        *(("episodes", _TEXTS), ("signals", _TEXTS), ("said", _TEXT)),
    ]
)
ARTEFACTS_SCHEMA = pa.schema(
    [("id", _TEXT), ("kind", _TEXT), ("files", _TEXTS), ("created_at", _TEXT), *_PROVENANCE_FIELDS]
)
SAMPLES_SCHEMA = pa.schema(  # of the view; files keep texts as dictionaries
    [*((name, _TEXT) for name in ("episode", "signal", "name", "unit")), ("time_s", _NUMBER), ("value", _NUMBER)]
)


@dataclass(frozen=True)
class EpisodeRow:
    """What the catalogue knows of an episode without opening its samples; for the fields see `Episode`."""

    id: str
    name: str
    source: Source
    outcome: Outcome | None
    failed_in: str | None
    conditions: Mapping[str, str]
    recorded_at: str | None
    duration_s: float  # from the first to the last measurement [s]
    provenance: Provenance


@dataclass(frozen=True)
class ArtefactRow:
    """What the catalogue knows of an artefact without opening its files."""

    id: str
    kind: str  # such as `fit`, `policy` or `report`
    files: tuple[str, ...]  # names of its files, sorted
    created_at: str  # ISO 8601 time, UTC, at which it was first stored
    stored_at: str  # the time at which it was last stored: making the same again stores it again
    provenance: Provenance


Row = TypeVar("Row", EpisodeRow, ArtefactRow)
# lineage('ID'): all that an episode or artefact was made from, with how many steps lie between
_LINEAGE = """
CREATE MACRO lineage(of_id) AS TABLE
WITH RECURSIVE entries AS (
    SELECT id, source || ' episode' AS what, name, parents FROM episodes
    UNION ALL SELECT id, kind, NULL, parents FROM artefacts
), up(id, steps) AS (
    SELECT unnest(parents), 1 FROM entries WHERE id = of_id
    UNION SELECT unnest(entries.parents), steps + 1 FROM entries JOIN up ON entries.id = up.id
), found AS (SELECT id, min(steps) AS steps FROM up GROUP BY id)
SELECT found.id, steps, coalesce(what, 'not in this catalogue') AS what, name
FROM found LEFT JOIN entries ON entries.id = found.id ORDER BY steps, found.id
"""


def check_provenance(provenance: Provenance) -> None:
    """Raises CatalogueError for a provenance that the tables could not give back."""
    try:
        provenance.canonical()
    except (TypeError, ValueError) as error:
        text = f"the config of what {provenance.made_by} made is not plain JSON ({error})"
        raise CatalogueError(f"{text}: give numbers, text, lists and dicts only") from error
    if provenance.seed is not None and abs(provenance.seed) > MAX_SEED:
        raise CatalogueError(f"seed {provenance.seed} is too large: use one below 2**63")


def to_stored(record: Episode | Provenance) -> dict[str, Any]:
    """Returns those fields of a record that the tables have, mappings as JSON and tuples as lists."""
    stored: dict[str, Any] = {}
    for name in (field.name for field in fields(record) if field.name in EPISODES_SCHEMA.names):
        value = getattr(record, name)
        value = json.dumps(dict(value), sort_keys=True) if isinstance(value, Mapping) else value
        stored[name] = list(value) if isinstance(value, tuple) else value
    return stored


def from_stored(kind: type[Row], stored: Mapping[str, Any]) -> Row:
    """Returns the record of a stored row."""
    values: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in stored.items()}
    values |= {key: json.loads(stored[key]) for key in ("conditions", "config") if key in stored}
    provenance = Provenance(**{field.name: values[field.name] for field in fields(Provenance)})
    own = (field.name for field in fields(kind) if field.name != "provenance")
    return kind(**{name: values[name] for name in own}, provenance=provenance)


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
class Views:
    """The views `episodes`, `artefacts` and `samples` of one moment of the catalogue.

    DuckDB opens nothing but Parquet files below `directory`, its settings are locked, and only statements that read
    are passed to it.
    """

    directory: Path  # the catalogue's folder
    episodes: tuple[Path, ...] = ()  # Parquet files of the episodes table
    artefacts: tuple[Path, ...] = ()  # Parquet files of the artefacts table
    events: tuple[Path, ...] = ()  # Parquet files of what people said
    hidden: tuple[str, ...] = ()  # ids of the episodes that only `recorded_episodes` shows

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
            reason = " ".join(str(error).split("\n\nLINE")[0].split())
            text = f"cannot answer this query: {reason}; use the views episodes, artefacts and samples"
            raise InputError(text) from error

    def select(self, sql: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Returns the rows that a query of the catalogue's own asks for."""
        failing = "the catalogue cannot be read"
        with explain_failure(failing, self.directory), self._connect(with_samples=False) as connection:
            return connection.sql(sql, params=list(values)).to_arrow_table().to_pylist()

    def row(self, view: str, id: str) -> dict[str, Any]:
        """Returns the row of an id in `episodes` or `artefacts`; raises CatalogueError where there is none."""
        if found := self.select(f"SELECT * FROM {view} WHERE id = $1", (id,)):
            return found[0]
        known = [row["id"] for row in self.select(f"SELECT id FROM {view}")]
        shown = nearest(id, known, NUM_SIMILAR_IDS)
        raise CatalogueError(f"no {view.removesuffix('s')} {id!r}; choose from: {shown}: {self.directory}")

    def _connect(self, with_samples: bool) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(":memory:")
        _create_view(connection, "recorded_episodes", EPISODES_SCHEMA, self.episodes, EPISODE_COLUMNS)
        _create_view(connection, "artefacts", ARTEFACTS_SCHEMA, self.artefacts, ARTEFACT_COLUMNS)
        _create_view(connection, "events", EVENTS_SCHEMA, self.events, {})
        create_event_views(connection, self.hidden, bool(self.events or self.hidden))
        if with_samples and self.episodes:  # of episodes whose row is there; file names say which are needed at all
            pattern = _quote(self.directory / "samples" / "*" / "*.parquet")
            connection.execute(
                "CREATE VIEW samples AS SELECT parse_filename(filename, true) AS episode, signal, name, unit, "
                f"time_s, value FROM read_parquet({pattern}, filename = true, hive_partitioning = false) "
                "WHERE name IS NOT NULL AND parse_filename(filename, true) IN (SELECT id FROM episodes)"
            )
        elif with_samples:
            connection.register("samples", SAMPLES_SCHEMA.empty_table())
        connection.execute(_LINEAGE)
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


@dataclass(frozen=True)
class Table:
    """A Delta table."""

    directory: Path
    schema: pa.Schema
    partition_by: tuple[str, ...] = ()  # columns whose values are kept in separate folders

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
        # Not file_uris(): they are percent-encoded if the folder's name has a space.
        return tuple(self.directory / path for path in self._snapshot().get_add_actions()["path"].to_pylist())

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Adds rows in one commit, all or none; Delta tries again where another process was faster."""
        data = pa.Table.from_pylist(list(rows), schema=self.schema)
        with explain_failure("the catalogue's table cannot be written", self.directory):
            write_deltalake(self._snapshot(), data, mode="append")
        if len(self.files()) > COMPACT_ABOVE_FILES:
            self.compact()

    def compact(self) -> None:
        """Joins small files into large ones. Rows stay; if another process is at it, nothing happens.

        Files that were joined, or that a killed process left, are deleted when a week old.
        """
        with (
            explain_failure("the catalogue's table cannot be compacted", self.directory),
            suppress(BlockingIOError, CommitFailedError),
            self.directory.with_suffix(".lock").open("w") as lock,
        ):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with the process, however that ends
            # Inside the lock: Delta 1.6 commits a compaction of files that another one has already
            # joined, whatever its commit properties say, and every row is then there twice.
            snapshot = self._snapshot()
            snapshot.optimize.compact()
            snapshot.vacuum(dry_run=False)

    def remove(self, ids: Sequence[str]) -> None:
        """PLACEHOLDER until the reworked catalogue is merged."""
        with explain_failure("the catalogue's table cannot be compacted", self.directory):
            self._snapshot().delete("id IN (" + ", ".join(f"'{id}'" for id in ids) + ")")
            self._snapshot().vacuum(0, dry_run=False, enforce_retention_duration=False)

    def _snapshot(self) -> DeltaTable:
        with explain_failure("the catalogue's table cannot be read", self.directory):
            return DeltaTable(self.directory)
