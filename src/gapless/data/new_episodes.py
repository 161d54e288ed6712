"""What an episode or a recording becomes when it is added, an id, a row and segments; and how it is read back."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from gapless.core.episode import Episode, Source
from gapless.core.errors import CatalogueError
from gapless.core.provenance import Provenance, content_id, episode_content
from gapless.core.recording import Origin, Recording, describe_recording
from gapless.data.chunks import Segment, cut_episode, cut_recording, describe_segments, join_columns, join_series
from gapless.data.media import identify_videos, restore_videos
from gapless.data.rows import EpisodeRow, check_provenance, from_stored, to_stored

_SAID = ("outcome", "failed_in", "conditions", "recorded_at")  # of both, in fields of their own


@dataclass(frozen=True)
class NewEpisode:
    """An episode or a recording on its way into the catalogue."""

    id: str
    row: dict[str, Any]  # all columns but where its samples lie, and when it was added
    segments: list[Segment]

    @property
    def num_cells(self) -> int:
        """Number of values."""
        return sum(len(segment.times_s) for segment in self.segments)


def store_episode(episode: Episode, provenance: Provenance, origin: Origin) -> NewEpisode:
    """Returns what is stored of an episode that is mapped to a model."""
    _check(episode, provenance)
    id = content_id(episode_content(episode), provenance)
    segments = cut_episode(episode.commands, episode.measurements)
    return NewEpisode(id, _make_row(id, episode, segments, provenance, origin, {}), segments)


def store_recording(
    recording: Recording, provenance: Provenance, format: str | None, quality: Sequence[str], files: dict[Path, str]
) -> NewEpisode:
    """Returns what is stored of a recording; names of its video files are added to `files`."""
    _check(recording, provenance)
    videos, segments = identify_videos(recording.videos, files), cut_recording(recording)
    try:
        said = json.dumps([recording.name, describe_recording(recording), videos], sort_keys=True)
    except (TypeError, ValueError) as error:
        text = f"the details of recording {recording.name} are not plain JSON ({error})"
        raise CatalogueError(f"{text}: give numbers, text, lists and dicts only") from error
    digest = hashlib.sha256(said.encode() + recording.times_s.tobytes())
    for name, values in recording.columns.items():
        digest.update(json.dumps(name).encode() + values.tobytes())
    id = content_id(digest.digest(), provenance)
    about = {"start_ns": recording.start_ns, "types": dict(recording.types), "details": dict(recording.details)}
    row = _make_row(id, recording, segments, provenance, recording.origin, {**about, "videos": videos})
    row |= {"format": format, "quality": list(quality)}
    row |= {"cameras": [v["camera"] for v in videos], "media": sorted({v["file"] for v in videos})}
    return NewEpisode(id, row, segments)


def read_episode(stored: Mapping[str, Any], segments: Sequence[Segment]) -> Episode:
    """Returns the episode of a stored row and its segments."""
    row, (commands, measurements) = from_stored(EpisodeRow, stored), join_series(segments)
    said = {key: getattr(row, key) for key in _SAID}
    return Episode(row.name, cast(Source, row.source), commands, measurements, **said)


def read_recording(stored: Mapping[str, Any], segments: Sequence[Segment], media: Path) -> Recording:
    """Returns the recording of a stored row and its segments; `media` is the folder of its videos."""
    row, about = from_stored(EpisodeRow, stored), json.loads(stored["description"] or "{}")
    times_s, columns = join_columns(segments)
    said = {key: getattr(row, key) for key in ("source", "origin", *_SAID)}
    said |= {key: about[key] for key in ("start_ns", "types", "details") if key in about}
    return Recording(row.name, times_s, columns, videos=restore_videos(about.get("videos", ()), media), **said)


def _check(record: Episode | Recording, provenance: Provenance) -> None:
    check_provenance(provenance)
    unknown = record.source is None and isinstance(record, Recording)
    if record.source not in get_args(Source) and not unknown:
        known = ", ".join(get_args(Source))
        raise CatalogueError(f"episode {record.name} has source {record.source!r}: use one of {known}")


def _make_row(
    id: str,
    record: Episode | Recording,
    segments: Sequence[Segment],
    provenance: Provenance,
    origin: Origin,
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Returns the columns that both have; `about` is what has no column, and the view does not show."""
    own = {**about, "parents": list(origin.parents)}  # those of the column are of both
    description = json.dumps({key: value for key, value in own.items() if value not in (None, {}, [])})
    parents = list(dict.fromkeys([*provenance.parents, *origin.parents]))
    stored = {**to_stored(record), **to_stored(origin), **to_stored(provenance), **describe_segments(segments)}
    return {**stored, "id": id, "duration_s": record.duration_s, "parents": parents, "description": description}
