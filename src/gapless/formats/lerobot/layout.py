"""Where a LeRobot data set keeps what, in either version: its metadata, read and checked."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gapless.core.recording import DESCRIPTION_KEY, Video
from gapless.formats.lerobot.features import is_feature, name_columns
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

_OWN_KEYS = {"episode_index", "tasks", "length", "dataset_from_index", "dataset_to_index", DESCRIPTION_KEY}
_OWN_PREFIXES = ("data/", "videos/", "stats/", "meta/")
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
    tasks: tuple[str, ...]
    said: Mapping[str, Any]  # what `describe_recording` said when gapless wrote it
    details: Mapping[str, Any] = field(default_factory=dict)  # entries that the format does not know


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
        return [key for key, feature in self.info["features"].items() if feature["dtype"] in dtypes]


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
        if info["codebase_version"] == V30:
            tasks = _read_tasks_table(require_inside(folder, "meta/tasks.parquet"))
            episodes = tuple(_read_entries_v30(folder, info))
        else:
            rows = read_lines(require_inside(folder, "meta/tasks.jsonl"))
            tasks = {int(row["task_index"]): str(row["task"]) for row in rows}
            episodes = tuple(_read_entries_v21(folder, info))
    if len({entry.index for entry in episodes}) < len(episodes):
        raise log_error("its metadata list an episode twice: correct them", folder / "meta")
    return DataSet(folder, info, name_columns(info["features"]), tasks, episodes)


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


def _read_entries_v21(folder: Path, info: Mapping[str, Any]) -> Iterator[EpisodeEntry]:
    first_row = 0
    rows = sorted(read_lines(require_inside(folder, "meta/episodes.jsonl")), key=lambda row: row["episode_index"])
    for row in rows:
        index = int(row["episode_index"])
        place = {"episode_chunk": index // int(info.get("chunks_size") or CHUNK_FILES), "episode_index": index}
        paths = {camera: {"video_key": camera, **place} for camera in _list_cameras(info)}
        videos = tuple(Video(camera, fill_template(info["video_path"], folder, at)) for camera, at in paths.items())
        yield _make_entry(row, first_row, fill_template(info["data_path"], folder, place), videos)
        first_row += int(row["length"])


def _read_entries_v30(folder: Path, info: Mapping[str, Any]) -> Iterator[EpisodeEntry]:
    first_row = 0
    for path in sorted(folder.glob("meta/episodes/*/*.parquet")):
        for row in read_episode_rows(require_inside(folder, str(path.relative_to(folder)))):
            data = fill_template(info["data_path"], folder, _find_place(row, "data"))
            videos = tuple(_find_video(row, camera, folder, info) for camera in _list_cameras(info))
            yield _make_entry(row, int(row.get("dataset_from_index", first_row)), data, videos)
            first_row += int(row["length"])


def read_episode_rows(path: Path, *, statistics: bool = False) -> list[dict[str, Any]]:
    """Returns the rows of a file of meta/episodes (v3.0)."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        names = [name for name in file.schema_arrow.names if statistics or not name.startswith("stats/")]
        return file.read(columns=names).select(names).to_pylist()


def _find_place(row: Mapping[str, Any], what: str) -> dict[str, int]:
    return {key: int(row[f"{what}/{key}"]) for key in ("chunk_index", "file_index")}


def _find_video(row: Mapping[str, Any], camera: str, folder: Path, info: Mapping[str, Any]) -> Video:
    what = f"videos/{camera}"
    path = fill_template(info["video_path"], folder, {"video_key": camera, **_find_place(row, what)})
    return Video(camera, path, float(row[f"{what}/from_timestamp"]), float(row[f"{what}/to_timestamp"]))


def _list_cameras(info: Mapping[str, Any]) -> list[str]:
    """Returns the cameras that have video files."""
    cameras = [key for key, feature in info["features"].items() if feature["dtype"] == "video"]
    return cameras if isinstance(info.get("video_path"), str) else []


def _make_entry(row: Mapping[str, Any], first_row: int, data: Path, videos: tuple[Video, ...]) -> EpisodeEntry:
    more = {k: v for k, v in row.items() if k not in _OWN_KEYS and not k.startswith(_OWN_PREFIXES) and v is not None}
    said = row.get(DESCRIPTION_KEY)
    said = json.loads(said) if isinstance(said, str) else said
    return EpisodeEntry(
        index=int(row["episode_index"]),
        num_frames=int(row["length"]),
        first_row=first_row,
        data=data,
        videos=videos,
        tasks=tuple(map(str, row.get("tasks") or ())),
        said=said if isinstance(said, dict) else {},
        details=json.loads(json.dumps(more, default=str)),
    )


def _read_tasks_table(path: Path) -> dict[int, str]:
    """Returns the task strings of a table whose index, under whatever name, they are (v3.0)."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        table = file.read()
    text = next(
        each.name for each in table.schema if pa.types.is_string(each.type) or pa.types.is_large_string(each.type)
    )
    return dict(zip(table["task_index"].to_pylist(), table[text].to_pylist(), strict=True))
