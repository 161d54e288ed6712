"""Where a LeRobot data set keeps what, in either version: its metadata, read and checked."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gapless.core.recording import DESCRIPTION_KEY, Video
from gapless.formats.arrays import as_object
from gapless.formats.lerobot.features import is_feature, list_features, name_columns
from gapless.formats.source import explain_damage, log_error, require_inside, require_memory

V21, V30 = "v2.1", "v3.0"
READ_VERSIONS = ("v2.0", V21, V30)  # v2.0 differs from v2.1 in its statistics only, which are not read
INFO = "meta/info.json"
DATA_PATHS = {
    V21: "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
    V30: "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
}
VIDEO_PATHS = {
    V21: "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
    V30: "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
}
CHUNK_FILES = 1000  # files in a folder, the format's default
TIMESTAMP_TOLERANCE_S = 1e-4  # between a time stamp and frame_index / fps, the format's default

_OWN_KEYS = {
    "episode_index",
    "episode_chunk",
    "tasks",
    "length",
    "dataset_from_index",
    "dataset_to_index",
    DESCRIPTION_KEY,
}
_OWN_PREFIXES = ("data/", "videos/", "stats/", "meta/")
_PLACE_V21 = {"episode_chunk": "episode_chunk", "episode_index": "episode_index"}
_TEXT_BYTES = 8  # memory for one byte of JSON, about
_PLACEHOLDER = re.compile(r"\{(\w+)(?::0?(\d{1,2})d)?\}")


@dataclass(frozen=True)
class EpisodeEntry:
    """What a data set's metadata say of one episode."""

    index: int
    num_frames: int
    first_row: int  # its first frame's number in the whole data set
    data: Path
    videos: tuple[Video, ...]
    said: Mapping[str, Any]  # what `describe_recording` said when gapless wrote it
    row: Mapping[str, Any]  # the entry itself

    @property
    def tasks(self) -> tuple[str, ...]:
        """Its task strings."""
        return tuple(map(str, self.row.get("tasks") or ()))

    @property
    def details(self) -> dict[str, Any]:
        """Entries that the format does not know, as plain JSON."""
        unknown = [key for key in self.row if key not in _OWN_KEYS and not key.startswith(_OWN_PREFIXES)]
        more = {key: self.row[key] for key in unknown if self.row[key] is not None}
        return json.loads(json.dumps(more, default=str))


@dataclass(frozen=True)
class DataSet:
    """The metadata of a LeRobot data set."""

    folder: Path
    info: Mapping[str, Any]
    columns: Mapping[str, tuple[str, ...]]  # numeric feature -> its columns
    tasks: Mapping[int, str]
    episodes: tuple[EpisodeEntry, ...]

    def name_episode(self, index: int) -> str:
        """Returns the name of an episode's recording."""
        return f"{self.folder.resolve().name}_episode_{index:06d}"

    def list_features(self, *dtypes: str) -> list[str]:
        """Returns the keys of features of some types."""
        return list_features(self.info["features"], *dtypes)


def find_version(folder: Path) -> str | None:
    """Returns the version that a folder's info.json names; `` where it names none, None where there is no such file."""
    try:
        version = json.loads((folder / INFO).read_bytes()).get("codebase_version")
    except (ValueError, AttributeError, RecursionError):
        return ""
    except OSError:
        return None
    return version if isinstance(version, str) else ""


def open_data_set(folder: Path) -> DataSet:
    """Returns the metadata of a data set; raises LogError where they are damaged or of an unknown version."""
    info = _read_info(folder)
    with explain_damage(folder / "meta", "metadata of a LeRobot data set"):
        tasks, episodes = read_tasks(folder, info), tuple(read_entries(folder, info))
    if len({entry.index for entry in episodes}) < len(episodes):
        raise log_error("its metadata list an episode twice: correct them", folder / "meta")
    return DataSet(folder, info, name_columns(info["features"]), dict(tasks), episodes)


def read_tasks(folder: Path, info: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Returns number and text of each task."""
    if info["codebase_version"] != V30:
        rows = read_lines(require_inside(folder, "meta/tasks.jsonl"))
        return [(int(row["task_index"]), str(row["task"])) for row in rows]
    with pq.ParquetFile(require_inside(folder, "meta/tasks.parquet"), page_checksum_verification=True) as file:
        table = file.read()
    texts = (table[k] for k, each in enumerate(table.schema.types) if each in (pa.string(), pa.large_string()))
    return list(zip(table["task_index"].to_pylist(), next(texts).to_pylist(), strict=True))  # the index, whatever named


def read_entries(folder: Path, info: Mapping[str, Any], *, statistics: bool = False) -> Iterator[EpisodeEntry]:
    """Yields what the metadata say of each episode, in their order."""
    is_v30, first_row = info["codebase_version"] == V30, 0
    for row in _read_episode_rows(folder, statistics=statistics) if is_v30 else _read_episode_lines(folder, info):
        cameras = list_features(info["features"], "video") if info.get("video_path") else []
        yield EpisodeEntry(
            index=int(row["episode_index"]),
            num_frames=int(row["length"]),
            first_row=int(row.get("dataset_from_index", first_row)),
            data=fill_template(info["data_path"], folder, _find_place(row, "data", is_v30)),
            videos=tuple(_find_video(row, camera, folder, info, is_v30) for camera in cameras),
            said=_read_said(row),
            row=row,
        )
        first_row += int(row["length"])


def number_file(number: int, index: int) -> dict[str, int]:
    """Returns what the path of a written file has for the templates of both versions.

    Args:
        number: Of the file, from 0 on.
        index: Of its (first) episode.
    """
    chunk, rest = divmod(number, CHUNK_FILES)
    return {"chunk_index": chunk, "file_index": rest, "episode_chunk": chunk, "episode_index": index}


def fill_template(template: str, folder: Path, values: Mapping[str, Any]) -> Path:
    """Returns the path that a template of info.json gives; raises LogError where it leads out of the folder."""

    def fill(found: re.Match[str]) -> str:
        if found[1] not in values:
            raise log_error(f"a path in it asks for {found[0]}, give {', '.join(values)}", folder / INFO)
        return f"{values[found[1]]:0{found[2]}d}" if found[2] else str(values[found[1]])

    return require_inside(folder, _PLACEHOLDER.sub(fill, template))


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the objects of a file with one JSON object in each line."""
    require_memory(path.stat().st_size * _TEXT_BYTES, path)
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def _read_info(folder: Path) -> dict[str, Any]:
    path = require_inside(folder, INFO)
    with explain_damage(path, "JSON"):
        require_memory(path.stat().st_size * _TEXT_BYTES, path)
        info = json.loads(path.read_bytes())
        version = info.get("codebase_version")
    if version not in READ_VERSIONS:
        raise log_error(f"LeRobot {version!r} is not read, convert it to one of {', '.join(READ_VERSIONS)}", path)
    if not isinstance(info.get("fps"), int | float) or not 0 < info["fps"] < 1e6:
        raise log_error(f"fps is {info.get('fps')!r}, give a number above 0", path)
    features = info.get("features")
    if not isinstance(features, dict) or not all(map(is_feature, features.values())):
        raise log_error("features lack a type or a shape: give each `dtype` and `shape`", path)
    if not isinstance(info.get("data_path"), str):
        raise log_error("data_path is missing: give the path of the data, as the format says", path)
    return info


def _read_episode_lines(folder: Path, info: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the entries of v2.1, with the chunk in which each episode lies."""
    rows = list(read_lines(require_inside(folder, "meta/episodes.jsonl")))
    size = int(info.get("chunks_size") or CHUNK_FILES)
    chunks = ({**row, "episode_chunk": int(row["episode_index"]) // size} for row in rows)
    return sorted(chunks, key=lambda row: row["episode_index"])


def _read_episode_rows(folder: Path, *, statistics: bool) -> Iterator[dict[str, Any]]:
    """Yields the entries of v3.0."""
    for path in sorted(folder.glob("meta/episodes/*/*.parquet")):
        path = require_inside(folder, str(path.relative_to(folder)))
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            names = [name for name in file.schema_arrow.names if statistics or not name.startswith("stats/")]
            yield from file.read(columns=names).select(names).to_pylist()


def _find_place(row: Mapping[str, Any], what: str, is_v30: bool) -> dict[str, int]:
    """Returns the numbers in the path of a file of an episode."""
    keys = {key: f"{what}/{key}" for key in ("chunk_index", "file_index")} if is_v30 else _PLACE_V21
    return {key: int(row[name]) for key, name in keys.items()}


def _find_video(row: Mapping[str, Any], camera: str, folder: Path, info: Mapping[str, Any], is_v30: bool) -> Video:
    what = f"videos/{camera}"
    place = {"video_key": camera, **_find_place(row, what, is_v30)}
    times_s = [float(row[f"{what}/{key}"]) for key in ("from_timestamp", "to_timestamp")] if is_v30 else []
    return Video(camera, fill_template(info["video_path"], folder, place), *times_s)


def _read_said(row: Mapping[str, Any]) -> dict[str, Any]:
    said = row.get(DESCRIPTION_KEY)
    return as_object(json.loads(said) if isinstance(said, str) else said)
