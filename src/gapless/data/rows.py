"""The rows of the catalogue's two tables: as records, and as Delta stores them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, get_args

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


def episode_to_stored(id: str, episode: Episode, provenance: Provenance, added_at: str) -> dict[str, Any]:
    """Returns an episode as stored; raises CatalogueError if its source is none of those that exist."""
    if episode.source not in get_args(Source):
        known = ", ".join(get_args(Source))
        raise CatalogueError(f"episode {episode.name} has source {episode.source!r}: use one of {known}")
    same = ("name", "source", "outcome", "failed_in", "recorded_at", "duration_s")
    return {
        **{key: getattr(episode, key) for key in same},
        **provenance_to_stored(provenance),
        "id": id,
        "conditions": json.dumps(dict(episode.conditions), sort_keys=True),
        "added_at": added_at,
    }


def episode_from_stored(stored: Mapping[str, Any]) -> EpisodeRow:
    """Returns the record of a stored episode."""
    same = ("id", "name", "source", "outcome", "failed_in", "recorded_at", "duration_s")
    conditions, provenance = json.loads(stored["conditions"]), _provenance_from_stored(stored)
    return EpisodeRow(**{key: stored[key] for key in same}, conditions=conditions, provenance=provenance)


def artefact_from_stored(stored: Mapping[str, Any]) -> ArtefactRow:
    """Returns the record of a stored artefact."""
    same = {key: stored[key] for key in ("id", "kind", "created_at", "stored_at")}
    return ArtefactRow(**same, files=tuple(stored["files"]), provenance=_provenance_from_stored(stored))


def provenance_to_stored(provenance: Provenance) -> dict[str, Any]:
    """Returns the columns of a provenance."""
    config = json.dumps(dict(provenance.config), sort_keys=True)
    return {**asdict(provenance), "parents": list(provenance.parents), "config": config}


def _provenance_from_stored(stored: Mapping[str, Any]) -> Provenance:
    made_by, code_version, seed = (stored[key] for key in ("made_by", "code_version", "seed"))
    return Provenance(made_by, code_version, tuple(stored["parents"]), json.loads(stored["config"]), seed)
