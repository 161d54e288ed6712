"""The rows of the catalogue's two tables: as records, and as Delta stores them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, get_args

import pyarrow as pa

from gapless.core.episode import Episode, Outcome, Source
from gapless.core.errors import CatalogueError
from gapless.core.provenance import Provenance

LARGEST_SEED = 2**63 - 1

_PROVENANCE_FIELDS = [
    pa.field("made_by", pa.string()),
    pa.field("code_version", pa.string()),
    pa.field("parents", pa.list_(pa.string())),
    pa.field("config", pa.string()),
    pa.field("seed", pa.int64()),
]

EPISODES_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("name", pa.string()),
        pa.field("source", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("failed_in", pa.string()),
        pa.field("conditions", pa.string()),
        pa.field("recorded_at", pa.string()),
        pa.field("duration_s", pa.float64()),
        pa.field("added_at", pa.string()),
        *_PROVENANCE_FIELDS,
    ]
)

ARTEFACTS_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("files", pa.list_(pa.string())),
        pa.field("created_at", pa.string()),
        *_PROVENANCE_FIELDS,
    ]
)


@dataclass(frozen=True)
class EpisodeRow:
    """What the catalogue knows of an episode without opening its samples.

    Attributes:
        id: Its id.
        name: What the run was called.
        source: `real`, `twin` or `sim`.
        outcome: Whether the task succeeded; None where nobody said.
        failed_in: The phase in which it failed; None where unknown or not failed.
        conditions: Circumstances such as `{"object": "mug"}`.
        recorded_at: ISO 8601 time; None where unknown.
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
        created_at: ISO 8601 time, UTC, at which it was first added.
        provenance: What it was made from.
    """

    id: str
    kind: str
    files: tuple[str, ...]
    created_at: str
    provenance: Provenance


def now_text() -> str:
    """Returns the time now as ISO 8601 text in UTC whose order as text is its order in time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def check_provenance(provenance: Provenance) -> None:
    """Refuses a provenance that the tables could not give back.

    Raises:
        CatalogueError: If the configuration is not plain JSON or the seed does not fit 64 bits.
    """
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
    if provenance.seed is not None and abs(provenance.seed) > LARGEST_SEED:
        raise CatalogueError(f"seed {provenance.seed} is too large: use one below 2**63")


def stored_episode(id: str, episode: Episode, provenance: Provenance, added_at: str) -> dict[str, Any]:
    """Returns the stored row of an episode.

    Raises:
        CatalogueError: If its source is none of those that exist.
    """
    if episode.source not in get_args(Source):
        raise CatalogueError(
            f"episode {episode.name} has source {episode.source!r}: use one of {', '.join(get_args(Source))}"
        )
    return {
        "id": id,
        "name": episode.name,
        "source": episode.source,
        "outcome": episode.outcome,
        "failed_in": episode.failed_in,
        "conditions": json.dumps(dict(episode.conditions), sort_keys=True),
        "recorded_at": episode.recorded_at,
        "duration_s": episode.duration_s,
        "added_at": added_at,
        **_stored_provenance(provenance),
    }


def stored_artefact(
    id: str, kind: str, files: tuple[str, ...], provenance: Provenance, created_at: str
) -> dict[str, Any]:
    """Returns the stored row of an artefact."""
    about = {"id": id, "kind": kind, "files": list(files), "created_at": created_at}
    return about | _stored_provenance(provenance)


def episode_row(stored: Mapping[str, Any]) -> EpisodeRow:
    """Returns the record of a stored row."""
    return EpisodeRow(
        id=stored["id"],
        name=stored["name"],
        source=stored["source"],
        outcome=stored["outcome"],
        failed_in=stored["failed_in"],
        conditions=json.loads(stored["conditions"]),
        recorded_at=stored["recorded_at"],
        duration_s=stored["duration_s"],
        provenance=_provenance(stored),
    )


def artefact_row(stored: Mapping[str, Any]) -> ArtefactRow:
    """Returns the record of a stored row."""
    files = tuple(stored["files"])
    return ArtefactRow(stored["id"], stored["kind"], files, stored["created_at"], _provenance(stored))


def _stored_provenance(provenance: Provenance) -> dict[str, Any]:
    return {
        "made_by": provenance.made_by,
        "code_version": provenance.code_version,
        "parents": list(provenance.parents),
        "config": json.dumps(dict(provenance.config), sort_keys=True),
        "seed": provenance.seed,
    }


def _provenance(stored: Mapping[str, Any]) -> Provenance:
    return Provenance(
        made_by=stored["made_by"],
        code_version=stored["code_version"],
        parents=tuple(stored["parents"]),
        config=json.loads(stored["config"]),
        seed=stored["seed"],
    )
