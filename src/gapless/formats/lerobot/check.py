"""Checks a LeRobot data set by the rules of its version alone, whoever wrote it."""

import importlib.util
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.core.errors import LogError
from gapless.core.recording import Video
from gapless.core.signal import Array
from gapless.formats.arrays import as_object
from gapless.formats.lerobot.features import BOOKKEEPING, NUMBERS, is_feature
from gapless.formats.lerobot.layout import (
    INFO,
    TIMESTAMP_TOLERANCE_S,
    V21,
    V30,
    EpisodeEntry,
    read_entries,
    read_lines,
    read_tasks,
)
from gapless.formats.lerobot.read import is_list, list_row_columns, read_numbers
from gapless.formats.lerobot.statistics import BASIC, merge_statistics
from gapless.formats.lerobot.video import describe_misfit, list_frames
from gapless.formats.source import explain_damage, log_error, require_inside

STATISTICS_TOLERANCE = 1e-4  # of the largest number: means and deviations are taken in float32 by some recorders
_STATISTICS_FILES = {V21: "meta/episodes_stats.jsonl", V30: "meta/stats.json"}
_INFO_KINDS: dict[str, tuple[type, ...]] = {
    "robot_type": (str, type(None)),
    **dict.fromkeys(("total_episodes", "total_frames", "total_tasks", "chunks_size"), (int,)),
    "fps": (int, float),
    "splits": (dict,),
    "data_path": (str,),
    "video_path": (str, type(None)),
    "features": (dict,),
}
_VERSION_KINDS: dict[str, dict[str, tuple[type, ...]]] = {
    V21: {"total_videos": (int,), "total_chunks": (int,)},
    V30: {"data_files_size_in_mb": (int, float), "video_files_size_in_mb": (int, float)},
}


@dataclass(frozen=True)
class BrokenRule:
    """A rule of the format that a data set does not keep."""

    rule: str  # info, features, totals, splits, tasks, episodes, schema, rows, timestamps, statistics, videos, readable
    file: str  # inside the data set
    expected: str  # one line: what the rule wants, and what is there


def check_lerobot(folder: Path) -> tuple[BrokenRule, ...]:
    """Returns each rule of its version that a data set breaks; none for a good one."""
    checker = _Checker(folder)
    try:
        with explain_damage(folder / "meta", "metadata of a LeRobot data set"):
            checker.check()
    except LogError as error:
        checker.demand(False, "readable", "meta", str(error))
    return tuple(checker.broken)


@dataclass
class _Checker:
    """Collects broken rules of one data set."""

    folder: Path
    broken: list[BrokenRule] = field(default_factory=list)
    info: dict[str, Any] = field(default_factory=dict)
    tasks: dict[int, str] = field(default_factory=dict)
    measured: dict[str, list[dict[str, np.ndarray]]] = field(default_factory=dict)  # feature -> statistics of episodes

    def demand(self, holds: bool, rule: str, file: str | Path, expected: str) -> bool:
        """Enters a rule that does not hold; returns whether it does."""
        if not holds:
            name = str(file.relative_to(self.folder)) if isinstance(file, Path) else file
            self.broken.append(BrokenRule(rule, name, expected))
        return holds

    def check(self) -> None:
        """Checks everything, as far as what is broken lets it."""
        self.info = dict(json.loads(require_inside(self.folder, INFO).read_bytes()))
        self._check_info()
        if not self.broken:
            self._check_features()
        if self.broken:
            return
        self._check_tasks()
        episodes = self._check_episodes(list(read_entries(self.folder, self.info, statistics=True)))
        stated = self._read_statistics(episodes)
        files: dict[Path, list[EpisodeEntry]] = {}
        for entry in episodes:
            files.setdefault(entry.data, []).append(entry)
        for path, group in files.items():
            try:
                self._check_file(path, group, stated)
            except LogError as error:
                self.demand(False, "readable", path, str(error))
        for entry in episodes:
            for video in entry.videos:
                self._check_video(entry, video)
        for key, measured in self.measured.items() if self.info["codebase_version"] == V30 else ():
            self._compare(stated.get(None, {}).get(key), merge_statistics(measured), key)

    def _list_features(self, *dtypes: str) -> dict[str, dict[str, Any]]:
        return {key: said for key, said in self.info["features"].items() if said["dtype"] in dtypes}

    def _check_info(self) -> None:
        version = str(self.info.get("codebase_version"))
        self.demand(version in _VERSION_KINDS, "info", INFO, f"codebase_version v2.1 or v3.0, not {version}")
        for key, kinds in (_INFO_KINDS | _VERSION_KINDS.get(version, {})).items():
            good = key in self.info and isinstance(self.info[key], kinds) and not isinstance(self.info[key], bool)
            named = " or ".join(kind.__name__ for kind in kinds)
            self.demand(good, "info", INFO, f"{key} as {named}, not {self.info.get(key, 'left out')!r}")

    def _check_features(self) -> None:
        features = self.info["features"]
        for key, said in features.items():
            wants = f"{key} with a dtype, a shape of whole numbers, and no / in its name"
            if self.demand(is_feature(said) and "/" not in key, "features", INFO, wants):
                there = said["dtype"] != "video" or bool(self.info["video_path"])
                self.demand(there, "videos", INFO, f"video_path, as {key} is a video")
        for key, dtype in BOOKKEEPING.items():
            said = as_object(features.get(key))
            good = (said.get("dtype"), said.get("shape")) == (dtype, [1])
            self.demand(good, "features", INFO, f"{key} as {dtype} of shape [1]")

    def _check_tasks(self) -> None:
        tasks = read_tasks(self.folder, self.info)
        if self.info["codebase_version"] == V30:
            schema = pq.read_schema(self.folder / "meta/tasks.parquet")
            index = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns") or [None]
            wants = "a pandas table whose index are the task strings"
            self.demand(index[0] in schema.names, "tasks", "meta/tasks.parquet", wants)
        numbers = [number for number, _ in tasks]
        self.demand(numbers == list(range(len(tasks))), "tasks", "meta", f"task_index from 0 on, not {numbers[:5]}")
        self.demand(len({text for _, text in tasks}) == len(tasks), "tasks", "meta", "each task once")
        self.demand(self.info["total_tasks"] == len(tasks), "totals", INFO, f"total_tasks as {len(tasks)}")
        self.tasks = dict(tasks)

    def _check_episodes(self, episodes: list[EpisodeEntry]) -> list[EpisodeEntry]:
        """Returns the entries with the first rows that their lengths give."""
        found: list[EpisodeEntry] = []
        begin = 0
        for number, entry in enumerate(episodes):
            found.append(replace(entry, first_row=begin))
            end = begin + entry.num_frames
            wants = f"episode_index from 0 on, not {entry.index} at {number}"
            self.demand(entry.index == number, "episodes", "meta/episodes", wants)
            stated = (entry.first_row, entry.row.get("dataset_to_index", end))
            wants = f"dataset_from_index and _to_index of episode {entry.index} as {(begin, end)}, not {stated}"
            self.demand(stated == (begin, end), "episodes", "meta/episodes", wants)
            begin = end
        counts = {"total_episodes": len(episodes), "total_frames": begin}
        if self.info["codebase_version"] == V21:
            counts |= {"total_videos": len(self._list_features("video")) * len(episodes)}
            counts |= {"total_chunks": -(-len(episodes) // max(1, self.info["chunks_size"]))}
        for key, wanted in counts.items():
            self.demand(self.info[key] == wanted, "totals", INFO, f"{key} as {wanted}, not {self.info[key]}")
        ends = [str(text).split(":") for text in self.info["splits"].values()]
        inside = all(len(each) == 2 and each[1].isdecimal() and int(each[1]) <= len(episodes) for each in ends)
        self.demand(inside, "splits", INFO, f"ranges of the {len(episodes)} episodes such as 0:{len(episodes)}")
        return found

    def _read_statistics(self, episodes: Sequence[EpisodeEntry]) -> dict[int | None, dict[str, Any]]:
        """Returns the statistics that are stated of each episode, and under None of the whole set (v3.0)."""
        path = require_inside(self.folder, _STATISTICS_FILES[self.info["codebase_version"]])
        if not self.demand(path.is_file(), "statistics", path, "the file is there"):
            return {}
        if self.info["codebase_version"] == V21:
            return {row["episode_index"]: row["stats"] for row in read_lines(path)}
        found: dict[int | None, dict[str, Any]] = {None: dict(json.loads(path.read_bytes()))}
        for entry in episodes:
            for _, key, name in (column.split("/") for column in entry.row if column.startswith("stats/")):
                stats = found.setdefault(entry.index, {})
                stats.setdefault(key, {})[name] = entry.row[f"stats/{key}/{name}"]
        return found

    def _check_file(self, path: Path, group: list[EpisodeEntry], stated: Mapping[int | None, dict[str, Any]]) -> None:
        if not path.is_file():
            raise log_error("the file is missing: give it", path)
        with explain_damage(path, "Parquet"), pq.ParquetFile(path) as file:
            schema, keys = file.schema_arrow, list_row_columns(file)
            table = file.read(columns=keys).select(keys)
        odd = sorted(set(self.info["features"]) - set(self._list_features("video")) ^ set(schema.names))
        self.demand(not odd, "schema", path, f"the columns that info.json lists as features, not {odd}")
        for key, said in self._list_features(*NUMBERS).items():
            if key in schema.names and not _is_of_type(schema.field(key).type, said["dtype"], said["shape"]):
                wants = f"{key} as {said['dtype']} of shape {said['shape']}, not {schema.field(key).type}"
                self.demand(False, "schema", path, wants)
        total = sum(entry.num_frames for entry in group)
        if not self.demand(table.num_rows == total, "episodes", path, f"{total} rows, not {table.num_rows}"):
            return
        for entry in group if set(BOOKKEEPING) <= set(keys) else []:
            rows = table.slice(entry.first_row - group[0].first_row, entry.num_frames)
            self._check_rows(path, entry, rows)
            self._check_statistics(path, entry.index, rows, stated.get(entry.index, {}))

    def _check_rows(self, path: Path, entry: EpisodeEntry, table: pa.Table) -> None:
        where = f"of episode {entry.index}"
        own = {key: table[key].to_numpy() for key in BOOKKEEPING}
        rows = np.arange(table.num_rows)
        wanted = {
            "frame_index": rows,
            "index": entry.first_row + rows,
            "episode_index": np.full(len(rows), entry.index),
        }
        for key, numbers in wanted.items():
            wants = f"{key} {where} from {numbers[:1]} on, not from {own[key][:1]}"
            self.demand(np.array_equal(own[key], numbers), "rows", path, wants)
        off_s = np.abs(own["timestamp"] - rows / self.info["fps"])
        limit_s = TIMESTAMP_TOLERANCE_S + np.spacing(np.float32(own["timestamp"].max(initial=0.0)))
        wants = f"timestamp {where} as frame_index / fps, not {off_s.max(initial=0.0):.5f} s off"
        self.demand(bool(np.all(off_s <= limit_s)), "timestamps", path, wants)
        used = set(own["task_index"].tolist())
        if self.demand(used <= set(self.tasks), "tasks", path, f"task_index {where} of listed tasks, not {used}"):
            same = {self.tasks[number] for number in used} == set(entry.tasks)
            self.demand(same, "tasks", "meta", f"tasks {where} as in its rows, not {entry.tasks}")

    def _check_statistics(self, path: Path, index: int, table: pa.Table, stated: Mapping[str, Any]) -> None:
        for key, said in self._list_features(*NUMBERS, "video", "image").items():
            measured: dict[str, np.ndarray] = {}
            if said["dtype"] in NUMBERS and key in table.column_names:
                measured = _measure(read_numbers(table, key, math.prod(said["shape"]), path)[0])
                self.measured.setdefault(key, []).append(measured)
            self._compare(stated.get(key), measured, f"{key} of episode {index}")

    def _compare(self, stated: Any, measured: Mapping[str, np.ndarray], what: str) -> None:
        file, stated = _STATISTICS_FILES[self.info["codebase_version"]], as_object(stated)
        lacking = [name for name in BASIC if stated.get(name) is None]
        if not self.demand(not lacking, "statistics", file, f"{', '.join(lacking)} of {what}") or not measured:
            return
        limit = STATISTICS_TOLERANCE * np.fmax(np.abs(measured["min"]), np.abs(measured["max"])) + 1e-12
        for name in BASIC:
            found, wanted = np.asarray(stated[name], dtype=float).reshape(-1), measured[name]
            same = found.shape == wanted.shape
            near = same and np.all((np.abs(found - wanted) <= (0 if name == "count" else limit)) | np.isnan(wanted))
            self.demand(bool(near), "statistics", file, f"{name} of {what} as {wanted}, not {found}")

    def _check_video(self, entry: EpisodeEntry, video: Video) -> None:
        there = self.demand(video.path.is_file(), "videos", video.path, "the file is there")
        if not there or importlib.util.find_spec("av") is None:
            return
        try:
            frames = list_frames(video.path, video.path.stat().st_mtime_ns)
        except LogError as error:
            self.demand(False, "readable", video.path, str(error))
            return
        times_s = frames.times_s[frames.find_rows(video, self.info["fps"])] - video.begin_s
        misfit = describe_misfit(times_s, entry.num_frames, self.info["fps"])
        self.demand(not misfit, "videos", video.path, f"a frame for each row of episode {entry.index}: {misfit}")


def _is_of_type(found: pa.DataType, dtype: str, shape: Sequence[int]) -> bool:
    for size in () if list(shape) == [1] else shape:
        if not is_list(found) or (pa.types.is_fixed_size_list(found) and found.list_size != size):
            return False
        found = found.value_type
    return found == pa.from_numpy_dtype(np.dtype(dtype))


def _measure(matrix: Array) -> dict[str, np.ndarray]:
    """Returns the statistics of a feature; NaN of elements that lack some cells."""
    found = {name: getattr(np, name)(matrix, axis=0) for name in ("min", "max", "mean", "std")}
    return {**found, "count": np.array([float(len(matrix))])}
