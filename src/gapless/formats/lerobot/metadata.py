"""Writes the metadata of LeRobot data sets: info, tasks, episodes and their statistics."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gapless.core.recording import DESCRIPTION_KEY
from gapless.formats.lerobot.data_files import DATA_FILE_MB
from gapless.formats.lerobot.features import list_features, name_columns
from gapless.formats.lerobot.layout import CHUNK_FILES, DATA_PATHS, INFO, V21, V30, VIDEO_PATHS, number_file
from gapless.formats.lerobot.statistics import BASIC, QUANTILES, Statistics, format_statistics, merge_statistics

VIDEO_FILE_MB = 200  # of a v3.0 file, the format's default; ours hold one episode each

Features = Mapping[str, Mapping[str, Any]]  # as info.json has them


@dataclass(frozen=True)
class WrittenEpisode:
    """What is known of a written episode."""

    index: int
    num_frames: int
    tasks: list[str]
    place: Mapping[str, int]  # of its data file
    statistics: Mapping[str, Statistics]
    said: Mapping[str, Any]  # what `describe_recording` says and the format has no place for
    types: Mapping[str, str]  # column -> type in which it was recorded


def write_metadata(
    folder: Path, version: str, fps: float, features: Features, tasks: Sequence[str], rows: Sequence[WrittenEpisode]
) -> None:
    """Writes everything under `meta`."""
    (folder / "meta").mkdir(exist_ok=True)
    _write_json(folder / INFO, _make_info(version, fps, features, tasks, rows))
    if version == V21:
        numbered = ({"task_index": number, "task": task} for number, task in enumerate(tasks))
        _write_lines(folder / "meta/tasks.jsonl", numbered)
        _write_lines(folder / "meta/episodes.jsonl", (_make_row(row, features) for row in rows))
        statistics = ({"episode_index": row.index, "stats": _list_statistics(row, features, BASIC)} for row in rows)
        _write_lines(folder / "meta/episodes_stats.jsonl", statistics)
        return
    _write_tasks_table(folder / "meta/tasks.parquet", tasks)
    _write_episodes_table(folder / "meta/episodes/chunk-000/file-000.parquet", fps, features, rows)
    merged = {key: merge_statistics([row.statistics[key] for row in rows]) for key in features}
    names = (*BASIC, *QUANTILES)
    named = {key: format_statistics(found, features[key]["dtype"], names) for key, found in merged.items()}
    _write_json(folder / "meta/stats.json", named)


def _make_info(
    version: str, fps: float, features: Features, tasks: Sequence[str], rows: Sequence[WrittenEpisode]
) -> dict[str, Any]:
    cameras = list_features(features, "video")
    robots = {row.said.get("origin", {}).get("robot") for row in rows}
    info: dict[str, Any] = {"codebase_version": version, "robot_type": robots.pop() if len(robots) == 1 else None}
    info |= {"total_episodes": len(rows), "total_frames": sum(row.num_frames for row in rows)}
    info |= {"total_tasks": len(tasks)}
    if version == V21:
        info |= {"total_videos": len(cameras) * len(rows), "total_chunks": -(-len(rows) // CHUNK_FILES)}
    info |= {"chunks_size": CHUNK_FILES}
    if version == V30:
        info |= {"data_files_size_in_mb": DATA_FILE_MB, "video_files_size_in_mb": VIDEO_FILE_MB}
    info |= {"fps": int(fps) if fps == int(fps) else fps, "splits": {"train": f"0:{len(rows)}"}}
    info |= {"data_path": DATA_PATHS[version], "video_path": VIDEO_PATHS[version] if cameras else None}
    return {**info, "features": features}


def _make_row(row: WrittenEpisode, features: Features) -> dict[str, Any]:
    """Returns an episode's entry; what the format has no place for is JSON in an entry of its own."""
    written = {c: features[key]["dtype"] for key, names in name_columns(features).items() for c in names}
    types = {c: dtype for c, dtype in row.types.items() if dtype != written.get(c, "int64")}
    said = {**row.said, **({"types": types} if types else {})}
    entry = {"episode_index": row.index, "tasks": row.tasks, "length": row.num_frames}
    return {**entry, DESCRIPTION_KEY: json.dumps(said)}


def _list_statistics(row: WrittenEpisode, features: Features, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    return {key: format_statistics(row.statistics[key], features[key]["dtype"], names) for key in features}


def _write_episodes_table(path: Path, fps: float, features: Features, rows: Sequence[WrittenEpisode]) -> None:
    path.parent.mkdir(parents=True)
    entries = list(_list_entries(fps, features, rows))
    pq.write_table(pa.Table.from_pylist(entries), path, write_page_checksum=True)


def _list_entries(fps: float, features: Features, rows: Sequence[WrittenEpisode]) -> Iterator[dict[str, Any]]:
    """Yields the columns of meta/episodes for each episode."""
    cameras = list_features(features, "video")
    first_row = 0
    for row in rows:
        entry = _make_row(row, features) | {f"data/{key}": row.place[key] for key in ("chunk_index", "file_index")}
        entry |= {"dataset_from_index": first_row, "dataset_to_index": first_row + row.num_frames}
        for camera in cameras:
            place = number_file(row.index, row.index)
            said = {key: place[key] for key in ("chunk_index", "file_index")}
            said |= {"from_timestamp": 0.0, "to_timestamp": row.num_frames / fps}
            entry |= {f"videos/{camera}/{key}": value for key, value in said.items()}
        for key, found in _list_statistics(row, features, (*BASIC, *QUANTILES)).items():
            entry |= {f"stats/{key}/{name}": values for name, values in found.items()}
        first_row += row.num_frames
        yield entry | {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}


def _write_tasks_table(path: Path, tasks: Sequence[str]) -> None:
    """Writes tasks as the format has them: a pandas table whose index is the text."""
    index = {"name": None, "field_name": "__index_level_0__", "pandas_type": "unicode", "numpy_type": "object"}
    number = {"name": "task_index", "field_name": "task_index", "pandas_type": "int64", "numpy_type": "int64"}
    columns = [{**each, "metadata": None} for each in (number, index)]
    labels = {**index, "field_name": None, "metadata": {"encoding": "UTF-8"}}
    said = {"index_columns": ["__index_level_0__"], "column_indexes": [labels], "columns": columns, "attributes": {}}
    said |= {"creator": {"library": "pyarrow", "version": pa.__version__}, "pandas_version": "2.2.0"}
    table = pa.table({"task_index": pa.array(range(len(tasks)), pa.int64()), "__index_level_0__": list(tasks)})
    pq.write_table(table.replace_schema_metadata({"pandas": json.dumps(said)}), path, write_page_checksum=True)


def _write_lines(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=4), encoding="utf-8")
