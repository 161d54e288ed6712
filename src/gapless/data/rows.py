"""The rows of the catalogue's two tables: as records, and as Delta stores them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, TypeVar

import pyarrow as pa

from gapless.core.episode import Episode, Outcome, Source
from gapless.core.errors import CatalogueError
from gapless.core.provenance import Provenance

MAX_SEED = 2**63 - 1  # what 64 bits hold

_TEXT, _TEXTS, _NUMBER = pa.string(), pa.list_(pa.string()), pa.float64()
_PROVENANCE_FIELDS = [
    *(("made_by", _TEXT), ("code_version", _TEXT), ("parents", _TEXTS), ("config", _TEXT), ("seed", pa.int64()))
]
EPISODES_SCHEMA = pa.schema(
    [
        *((name, _TEXT) for name in ("id", "name", "source", "outcome", "failed_in", "conditions", "recorded_at")),
        *(("duration_s", _NUMBER), ("added_at", _TEXT), *_PROVENANCE_FIELDS),
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


def now_text() -> str:
    """Returns the time now as ISO 8601 text in UTC whose order as text is its order in time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def check_provenance(provenance: Provenance) -> None:
    """Raises CatalogueError for a provenance that the tables could not give back."""
    if not isinstance(provenance, Provenance):  # type: ignore[reportUnnecessaryIsInstance]
        text = "nothing enters the catalogue without where it came from"
        raise CatalogueError(f"{text}: give a Provenance, got {provenance!r}")
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
