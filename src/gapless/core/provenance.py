"""Where every artefact comes from, and the id that follows from it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gapless.core.episode import Episode


@dataclass(frozen=True)
class Provenance:
    """What an artefact was made from."""

    made_by: str  # the verb, or the file, that made it
    code_version: str  # version of gapless that made it
    parents: tuple[str, ...] = ()  # ids of the artefacts it was made from
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])  # the options in force, as plain JSON values
    seed: int | None = None  # seed of the random numbers used; None where none were

    def canonical(self) -> str:
        """Returns one text per meaning: JSON with sorted keys."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))


def content_id(content: bytes, provenance: Provenance) -> str:
    """Returns the id of an artefact: 32 hex digits of SHA-256 over its content and provenance."""
    digest = hashlib.sha256()
    digest.update(hashlib.sha256(content).digest())
    digest.update(provenance.canonical().encode())
    return digest.hexdigest()[:32]


def episode_content(episode: Episode) -> bytes:
    """Returns the bytes that identify an episode: its signals, outcome and conditions."""
    digest = hashlib.sha256()
    for series in (episode.commands, episode.measurements):
        digest.update(json.dumps([series.names, series.units, series.values.shape]).encode())
        digest.update(series.times_s.tobytes())
        digest.update(series.values.tobytes())
    about = [episode.name, episode.source, episode.outcome, episode.failed_in]
    about += [sorted(episode.conditions.items()), episode.recorded_at]
    digest.update(json.dumps(about).encode())
    return digest.digest()
