"""What an episode or a recording becomes when it is added: an id, a row, and pieces of columns."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from gapless.core.episode import Episode, Source
from gapless.core.errors import CatalogueError
from gapless.core.provenance import Provenance, content_id, episode_content
from gapless.core.recording import Origin, Recording, describe_recording
from gapless.data.chunks import Piece, cut_episode, cut_recording, describe_pieces, join_columns
from gapless.data.media import identify_videos, restore_videos
from gapless.data.rows import EpisodeRow, check_provenance, from_stored, to_stored, to_stored_with_origin


@dataclass(frozen=True)
class Entry:
    """An episode on its way into the catalogue."""

    id: str
    row: dict[str, Any]  # all columns but where its samples lie, and when it was added
    pieces: list[Piece]

    @property
    def num_cells(self) -> int:
        """Number of values."""
        return sum(len(piece.times_s) for piece in self.pieces)


def make_episode_entry(episode: Episode, provenance: Provenance, origin: Origin) -> Entry:
    """Returns the entry of an episode that is mapped to a model."""
    _check(episode, provenance)
    id = content_id(episode_content(episode), provenance)
    pieces = cut_episode(episode.commands, episode.measurements)
    said = {"parents": list(origin.parents)} if origin.parents else {}
    return _make_entry(id, episode, pieces, provenance, origin, {"description": json.dumps(said)})


def make_recording_entry(
    recording: Recording, provenance: Provenance, format: str | None, quality: Sequence[str], files: dict[Path, str]
) -> Entry:
    """Returns the entry of a recording; names of its video files are added to `files`."""
    _check(recording, provenance)
    videos = identify_videos(recording.videos, files)
    pieces = cut_recording(recording)
    try:
        said = json.dumps([recording.name, describe_recording(recording), videos], sort_keys=True)
    except (TypeError, ValueError) as error:
        text = f"the details of recording {recording.name} are not plain JSON ({error})"
        raise CatalogueError(f"{text}: give numbers, text, lists and dicts only") from error
    digest = hashlib.sha256(said.encode() + recording.times_s.tobytes())
    for name, values in recording.columns.items():
        digest.update(json.dumps(name).encode() + values.tobytes())
    about = {"start_ns": recording.start_ns, "types": dict(recording.types), "details": dict(recording.details)}
    about |= {"videos": videos, "parents": list(recording.origin.parents)}
    kept = {key: value for key, value in about.items() if value not in (None, {}, [])}
    row = {"format": format, "quality": list(quality), "description": json.dumps(kept)}
    row |= {"cameras": [v["camera"] for v in videos], "media": sorted({v["file"] for v in videos})}
    id = content_id(digest.digest(), provenance)
    return _make_entry(id, recording, pieces, provenance, recording.origin, row)


def read_recording_entry(stored: Mapping[str, Any], pieces: Sequence[Piece], media: Path) -> Recording:
    """Returns the recording of a stored row and its pieces; `media` is the folder of its videos."""
    if not stored["is_recording"]:
        raise CatalogueError(f"{stored['id']} is mapped to a model, not a recording: use `episode`")
    row, said = from_stored(EpisodeRow, stored), json.loads(stored["description"])
    times_s, columns = join_columns(pieces)
    about = {
        key: getattr(row, key) for key in ("source", "outcome", "failed_in", "conditions", "recorded_at", "origin")
    }
    about |= {key: said[key] for key in ("start_ns", "types", "details") if key in said}
    return Recording(row.name, times_s, columns, videos=restore_videos(said.get("videos", ()), media), **about)


def place_pieces(place: tuple[int, int]) -> dict[str, int]:
    """Returns the columns of a row that say where in its chunk the samples lie."""
    return {"first_piece": place[0], "num_pieces": place[1]}


def _check(record: Episode | Recording, provenance: Provenance) -> None:
    check_provenance(provenance)
    unknown = record.source is None and isinstance(record, Recording)
    if record.source not in get_args(Source) and not unknown:
        known = ", ".join(get_args(Source))
        raise CatalogueError(f"episode {record.name} has source {record.source!r}: use one of {known}")


def _make_entry(
    id: str,
    record: Episode | Recording,
    pieces: list[Piece],
    provenance: Provenance,
    origin: Origin,
    about: Mapping[str, Any],
) -> Entry:
    stored = {**to_stored(record), **to_stored_with_origin(provenance, origin), **describe_pieces(pieces)}
    return Entry(id, {"id": id, "duration_s": record.duration_s, **stored, **about}, pieces)
