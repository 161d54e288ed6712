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

_TEXT, _TEXTS = pa.string(), pa.list_(pa.string())
_PROVENANCE_FIELDS = [
    *(("made_by", _TEXT), ("code_version", _TEXT), ("parents", _TEXTS), ("config", _TEXT), ("seed", pa.int64()))
]
EPISODES_SCHEMA = pa.schema(
    [
        *((name, _TEXT) for name in ("id", "name", "source", "outcome", "failed_in", "conditions", "recorded_at")),
        *(("duration_s", pa.float64()), ("added_at", _TEXT), *_PROVENANCE_FIELDS),
    ]
)
ARTEFACTS_SCHEMA = pa.schema(
    [("id", _TEXT), ("kind", _TEXT), ("files", _TEXTS), ("created_at", _TEXT), *_PROVENANCE_FIELDS]
)


@dataclass(frozen=True)
class EpisodeRow:
    """What the catalogue knows of an episode without opening its samples; for the fields see `Episode`.

    Attributes:
        duration_s: Time from the first to the last measurement [s].
        provenance: What it was made from.
    """

    id: str
    name: str
    source: Source
    outcome: Outcome | None
    failed_in: str | None
    conditions: Mapping[str, str]
    recorded_at: str | None
    duration_s: float
    provenance: Provenance


@dataclass(frozen=True)
class ArtefactRow:
    """What the catalogue knows of an artefact without opening its files.

    Attributes:
        id: Its id.
        kind: Such as `fit`, `policy` or `report`.
        files: Names of its files, sorted.
        created_at: ISO 8601 time, UTC, at which it was first stored.
        stored_at: The time at which it was last stored: making the same again stores it again.
        provenance: What it was made from.
    """

    id: str
    kind: str
    files: tuple[str, ...]
    created_at: str
    stored_at: str
    provenance: Provenance


def now_text() -> str:
    """Returns the time now as ISO 8601 text in UTC whose order as text is its order in time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def check_provenance(provenance: Provenance) -> None:
    """Raises CatalogueError for a provenance that the tables could not give back."""
    if not isinstance(provenance, Provenance):  # type: ignore[reportUnnecessaryIsInstance]
        raise CatalogueError(
            f"nothing enters the catalogue without where it came from: give a Provenance, got {provenance!r}"
        )
    try:
        provenance.canonical()
    except (TypeError, ValueError) as error:
        raise CatalogueError(
            f"the config of what {provenance.made_by} made is not plain JSON ({error}): give numbers, "
            "text, lists and dicts only"
        ) from error
    if provenance.seed is not None and abs(provenance.seed) > MAX_SEED:
        raise CatalogueError(f"seed {provenance.seed} is too large: use one below 2**63")


def episode_to_stored(id: str, episode: Episode, provenance: Provenance, added_at: str) -> dict[str, Any]:
    """Returns an episode as stored; raises CatalogueError if its source is none of those that exist."""
    if episode.source not in get_args(Source):
        raise CatalogueError(
            f"episode {episode.name} has source {episode.source!r}: use one of {', '.join(get_args(Source))}"
        )
    same = ("name", "source", "outcome", "failed_in", "recorded_at", "duration_s")
    return {
        **{key: getattr(episode, key) for key in same},
        **_provenance_to_stored(provenance),
        "id": id,
        "conditions": json.dumps(dict(episode.conditions), sort_keys=True),
        "added_at": added_at,
    }


def artefact_to_stored(
    id: str, kind: str, files: tuple[str, ...], provenance: Provenance, created_at: str
) -> dict[str, Any]:
    """Returns an artefact as stored."""
    about = {"id": id, "kind": kind, "files": list(files), "created_at": created_at}
    return {**about, **_provenance_to_stored(provenance)}


def episode_from_stored(stored: Mapping[str, Any]) -> EpisodeRow:
    """Returns the record of a stored episode."""
    same = ("id", "name", "source", "outcome", "failed_in", "recorded_at", "duration_s")
    conditions, provenance = json.loads(stored["conditions"]), _provenance_from_stored(stored)
    return EpisodeRow(**{key: stored[key] for key in same}, conditions=conditions, provenance=provenance)


def artefact_from_stored(stored: Mapping[str, Any]) -> ArtefactRow:
    """Returns the record of a stored artefact."""
    same = {key: stored[key] for key in ("id", "kind", "created_at", "stored_at")}
    return ArtefactRow(**same, files=tuple(stored["files"]), provenance=_provenance_from_stored(stored))


def _provenance_to_stored(provenance: Provenance) -> dict[str, Any]:
    config = json.dumps(dict(provenance.config), sort_keys=True)
    return {**asdict(provenance), "parents": list(provenance.parents), "config": config}


def _provenance_from_stored(stored: Mapping[str, Any]) -> Provenance:
    made_by, code_version, seed = (stored[key] for key in ("made_by", "code_version", "seed"))
    return Provenance(made_by, code_version, tuple(stored["parents"]), json.loads(stored["config"]), seed)
