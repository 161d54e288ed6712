"""The rows of the catalogue's tables, and the records that they come back as."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import pyarrow as pa

from gapless.core.episode import Episode, Outcome, Source
from gapless.core.errors import CatalogueError
from gapless.core.provenance import Provenance
from gapless.core.recording import Origin, Recording

MAX_SEED = 2**63 - 1  # what 64 bits hold
_TEXT, _TEXTS, _NUMBER, _COUNT = pa.string(), pa.list_(pa.string()), pa.float64(), pa.int64()
_PROVENANCE_FIELDS = [
    *(("made_by", _TEXT), ("code_version", _TEXT), ("parents", _TEXTS), ("config", _TEXT), ("seed", _COUNT))
]
_ORIGIN_KINDS = {"participants": _TEXTS}  # others are texts; parents are those of the provenance
ORIGIN_COLUMNS = tuple(each.name for each in fields(Origin) if each.name != "parents")
EPISODES_SCHEMA = pa.schema(
    [
        *((name, _TEXT) for name in ("id", "name", "source", "outcome", "failed_in", "conditions", "recorded_at")),
        *(("duration_s", _NUMBER), ("added_at", _TEXT), *_PROVENANCE_FIELDS),
        *(("is_recording", pa.bool_()), ("num_rows", _COUNT), ("signals_id", _TEXT), ("format", _TEXT)),
        *((name, _ORIGIN_KINDS.get(name, _TEXT)) for name in ORIGIN_COLUMNS),
        *(("quality", _TEXTS), ("cameras", _TEXTS), ("media", _TEXTS), ("description", _TEXT)),
        *(("chunk", _TEXT), ("first_segment", _COUNT), ("num_segments", _COUNT)),
    ]
)
ARTEFACTS_SCHEMA = pa.schema(
    [("id", _TEXT), ("kind", _TEXT), ("files", _TEXTS), ("created_at", _TEXT), *_PROVENANCE_FIELDS]
)
EVENTS_SCHEMA = pa.schema(  # what people said of episodes
    [
        *((name, _TEXT) for name in ("id", "kind", "name", "said_by", "said_at")),
        *(("episodes", _TEXTS), ("signals", _TEXTS), ("said", _TEXT)),
    ]
)
SAMPLES_SCHEMA = pa.schema(  # of the view
    [*((name, _TEXT) for name in ("episode", "signal", "name", "unit")), ("time_s", _NUMBER), ("value", _NUMBER)]
)
INTERNAL_COLUMNS = ("media", "description", "chunk", "first_segment", "num_segments")  # of no use in conditions
KEPT_COLUMNS = (  # of an episode whose data is deleted: what tells it again, and what was made from it
    *("id", "source", "duration_s", "added_at", "code_version", "parents", "is_recording", "num_rows", "signals_id"),
    *("chunk", "first_segment", "num_segments"),
)
_STORED = frozenset(EPISODES_SCHEMA.names)
_JSON_COLUMNS = ("conditions", "config", "parameters")


@dataclass(frozen=True)
class EpisodeRow:
    """What the catalogue knows of an episode without opening its samples; for the fields see `Episode`."""

    id: str
    name: str
    source: Source | None  # None for recordings of which nobody said it
    outcome: Outcome | None
    failed_in: str | None
    conditions: Mapping[str, str]
    recorded_at: str | None
    duration_s: float  # from the first to the last measurement [s]
    provenance: Provenance
    is_recording: bool = False  # as recorded, under its own names; otherwise mapped to a model
    num_rows: int = 0  # different times at which something was measured
    signals_id: str = ""  # the same for the same numbers under the same column names
    format: str | None = None  # of the files that it was imported from
    quality: tuple[str, ...] = ()  # flags such as `stuck`
    origin: Origin = field(default_factory=Origin)  # its parents are among those of the provenance


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


def check_provenance(provenance: Provenance) -> None:
    """Raises CatalogueError for a provenance that the tables could not give back."""
    try:
        provenance.canonical()
    except (TypeError, ValueError) as error:
        text = f"the config of what {provenance.made_by} made is not plain JSON ({error})"
        raise CatalogueError(f"{text}: give numbers, text, lists and dicts only") from error
    if provenance.seed is not None and abs(provenance.seed) > MAX_SEED:
        raise CatalogueError(f"seed {provenance.seed} is too large: use one below 2**63")


def to_stored(record: Episode | Recording | Provenance | Origin) -> dict[str, Any]:
    """Returns those fields of a record that the tables have, mappings as JSON and tuples as lists."""
    stored: dict[str, Any] = {}
    for name in (each.name for each in fields(record) if each.name in _STORED):
        value = getattr(record, name)
        value = json.dumps(dict(value), sort_keys=True) if isinstance(value, Mapping) else value
        stored[name] = list(value) if isinstance(value, tuple) else value
    return stored


def forget(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the row of an episode whose data is deleted: it names nobody, and its own name is its id."""
    about = {"name": stored["id"], "conditions": "{}", "made_by": f"{stored['made_by'].split()[0]} of what was deleted"}
    return {name: stored[name] for name in KEPT_COLUMNS} | about


def from_stored(kind: type[Row], stored: Mapping[str, Any]) -> Row:
    """Returns the record of a stored row."""
    values: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in stored.items()}
    values |= {key: json.loads(stored[key] or "{}") for key in _JSON_COLUMNS if key in stored}
    provenance = Provenance(**{each.name: values[each.name] for each in fields(Provenance)})
    if kind is EpisodeRow:
        said = json.loads(values["description"] or "{}")
        about: dict[str, Any] = {name: values[name] for name in ORIGIN_COLUMNS}
        about["participants"] = values["participants"] or ()
        values["origin"] = Origin(**about, parents=tuple(said.get("parents", ())))
        values |= {"is_recording": bool(values["is_recording"]), "quality": values["quality"] or ()}
        values |= {key: values[key] or default for key, default in (("num_rows", 0), ("signals_id", ""))}
    own = (each.name for each in fields(kind) if each.name != "provenance")
    return kind(**{name: values[name] for name in own}, provenance=provenance)
