"""The SQL of the views over the catalogue's files; for their columns see `Catalogue.query`."""

import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gapless.data.rows import ARTEFACTS_SCHEMA, EPISODES_SCHEMA, EVENTS_SCHEMA, SAMPLES_SCHEMA

INTERNAL_VIEWS = ("recorded_episodes", "hidden_episodes", "events")  # that users are not shown
# Columns of the view that are computed from the rows; storing an artefact again adds a row.
ARTEFACT_COLUMNS = {"created_at": "min(created_at)", "stored_at": "max(created_at)"}
# lineage('ID'): all that an episode or artefact was made from, with how many steps lie between
LINEAGE = """
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
# Rows are about episodes that may be shown. `said_at || label` orders labels: those said at one moment by their ids.
SAID_VIEWS = """
CREATE TEMP VIEW labels AS SELECT * FROM (
    SELECT id AS label, unnest(episodes) AS episode, said_at, said_by, said->>'outcome' AS outcome,
        said->>'failed_in' AS failed_in, said->>'reason' AS reason, CAST(said->'conditions' AS VARCHAR) AS conditions,
        CAST(said->'tags' AS VARCHAR[]) AS tags
    FROM events WHERE kind = 'label'
) WHERE episode NOT IN (SELECT id FROM hidden_episodes);
CREATE TEMP VIEW splits AS SELECT * FROM (
    SELECT name, said->>'purpose' AS purpose, said_at AS frozen_at, unnest(episodes) AS episode FROM events
    WHERE kind = 'split'
) WHERE episode NOT IN (SELECT id FROM hidden_episodes);
CREATE TEMP VIEW consents AS SELECT name AS person, said->>'what' AS what, said->>'scope' AS scope,
    said->>'until' AS until, said_at, said_by FROM events WHERE kind = 'consent';
"""
EPISODES_WITH_LABELS = """
CREATE TEMP VIEW episodes AS WITH verdicts AS (
    SELECT episode, arg_max({'outcome': outcome, 'failed_in': failed_in, 'reason': reason, 'said_by': said_by},
        said_at || label) AS newest
    FROM labels WHERE outcome IS NOT NULL GROUP BY episode
), joined AS (
    SELECT episode, list_reduce(list(CAST(conditions AS JSON) ORDER BY said_at, label),
        lambda earlier, later: json_merge_patch(earlier, later)) AS conditions
    FROM labels GROUP BY episode
), tagged AS (
    SELECT episode, list_sort(list_distinct(flatten(list(tags)))) AS tags
    FROM (SELECT episode, said_by, arg_max(tags, said_at || label) AS tags FROM labels WHERE len(tags) > 0 GROUP BY ALL)
    GROUP BY episode
)
SELECT recorded_episodes.* REPLACE (
    coalesce(newest.outcome, outcome) AS outcome,
    CASE WHEN newest IS NULL THEN failed_in ELSE newest.failed_in END AS failed_in,
    CASE WHEN joined.conditions IS NULL THEN recorded_episodes.conditions
    ELSE CAST(json_merge_patch(recorded_episodes.conditions, joined.conditions) AS VARCHAR) END AS conditions
), newest.reason AS reason, newest.said_by AS labelled_by, coalesce(tags, []) AS tags
FROM recorded_episodes LEFT JOIN verdicts ON verdicts.episode = recorded_episodes.id
LEFT JOIN joined ON joined.episode = recorded_episodes.id LEFT JOIN tagged ON tagged.episode = recorded_episodes.id
WHERE recorded_episodes.id NOT IN (SELECT id FROM hidden_episodes);
"""
# While nobody said anything, so that nothing is joined.
EPISODES_AS_RECORDED = """
CREATE TEMP VIEW episodes AS SELECT *, NULL::VARCHAR AS reason, NULL::VARCHAR AS labelled_by, []::VARCHAR[] AS tags
FROM recorded_episodes;
"""


def select_episodes(files: Sequence[Path]) -> str:
    """Returns the SQL of all episodes, one part per folder of a source, as Delta keeps the source in the path."""
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
    return " UNION ALL ".join(parts) or _select_nothing(EPISODES_SCHEMA)


def select_events(files: Sequence[Path]) -> str:
    """Returns the SQL of all that people said."""
    return f"SELECT * FROM {_read(files)}" if files else _select_nothing(EVENTS_SCHEMA)


def select_artefacts(files: Sequence[Path]) -> str:
    """Returns the SQL of all artefacts."""
    columns = list(dict.fromkeys([*ARTEFACTS_SCHEMA.names, *ARTEFACT_COLUMNS]))
    selected = ", ".join(f"{ARTEFACT_COLUMNS.get(column, column)} AS {column}" for column in columns)
    source = _read(files) if files else f"({_select_nothing(ARTEFACTS_SCHEMA)})"
    return f"SELECT {selected} FROM {source} GROUP BY ALL"


def select_samples(files: Sequence[Path], folder: Path) -> str:
    """Returns the SQL of the samples of those episodes whose row is there; `folder` holds all of their files."""
    parts = list[str]()
    if files:
        parts.append(
            "SELECT episode, signal, name, unit, unnest(times_s) AS time_s, unnest(values) AS value "
            f"FROM {_read(files)} WHERE name IS NOT NULL AND (episode, chunk) IN (SELECT id, chunk FROM episodes)"
        )
    if any(folder.glob("??/*.parquet")):  # of the version before
        inside = f"read_parquet({quote(folder / '??' / '*.parquet')}, filename = true, hive_partitioning = false)"
        parts.append(
            f"SELECT parse_filename(filename, true) AS episode, signal, name, unit, time_s, value FROM {inside} WHERE "
            "name IS NOT NULL AND parse_filename(filename, true) IN (SELECT id FROM episodes WHERE chunk IS NULL)"
        )
    return " UNION ALL ".join(parts) or _select_nothing(SAMPLES_SCHEMA)


def quote(text: Path | str) -> str:
    """Returns a text as SQL writes it."""
    return "'" + str(text).replace("'", "''") + "'"


def _read(files: Sequence[Path]) -> str:
    return f"read_parquet([{', '.join(map(quote, files))}], hive_partitioning = false)"


def _select_nothing(schema: pa.Schema) -> str:
    columns = ", ".join(f"NULL::{_sql_type(field.type)} AS {field.name}" for field in schema)
    return f"SELECT {columns} WHERE false"


def _sql_type(kind: pa.DataType) -> str:
    names = {pa.string(): "VARCHAR", pa.float64(): "DOUBLE", pa.int64(): "BIGINT", pa.bool_(): "BOOLEAN"}
    return f"{names[kind.value_type]}[]" if isinstance(kind, pa.ListType) else names[kind]
