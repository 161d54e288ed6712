"""Checks a LeRobot data set by the rules of its version alone, whoever wrote it."""

import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.core.errors import LogError
from gapless.formats.lerobot.features import BOOKKEEPING, NUMBERS, is_feature
from gapless.formats.lerobot.layout import (
    INFO,
    TIMESTAMP_TOLERANCE_S,
    V21,
    V30,
    fill_template,
    read_episode_rows,
    read_lines,
)
from gapless.formats.lerobot.statistics import BASIC, merge_statistics
from gapless.formats.lerobot.video import list_frames
from gapless.formats.source import explain_damage, log_error, require_inside

STATISTICS_TOLERANCE = 1e-4  # of the largest number: means and deviations are taken in float32 by some recorders

_INFO_KINDS: dict[str, tuple[type, ...]] = {
    "robot_type": (str, type(None)),
    "total_episodes": (int,),
    "total_frames": (int,),
    "total_tasks": (int,),
    "chunks_size": (int,),
    "fps": (int, float),
    "splits": (dict,),
    "data_path": (str,),
    "video_path": (str, type(None)),
    "features": (dict,),
}
_VERSION_KINDS = {
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
        if self.broken:
            return
        is_v21 = self.info["codebase_version"] == V21
        self._check_tasks(list(self._read_tasks_v21() if is_v21 else self._read_tasks_v30()))
        episodes = self._read_episodes_v21() if is_v21 else self._read_episodes_v30()
        self._check_totals(episodes)
        files: dict[Path, list[dict[str, Any]]] = {}
        for row in episodes:
            files.setdefault(row["data"], []).append(row)
        for path, group in files.items():
            try:
                self._check_file(path, group)
            except LogError as error:
                self.demand(False, "readable", path, str(error))
        for row in episodes:
            for camera in self._list_features("video"):
                self._check_video(row, camera)
        if not is_v21:
            self._check_set_statistics()

    def _list_features(self, *dtypes: str) -> dict[str, dict[str, Any]]:
        return {key: said for key, said in self.info["features"].items() if said["dtype"] in dtypes}

    def _check_info(self) -> None:
        version = str(self.info.get("codebase_version"))
        self.demand(version in _VERSION_KINDS, "info", INFO, f"codebase_version v2.1 or v3.0, not {version}")
        for key, kinds in (_INFO_KINDS | _VERSION_KINDS.get(version, {})).items():
            good = key in self.info and isinstance(self.info[key], kinds) and not isinstance(self.info[key], bool)
            named = " or ".join(kind.__name__ for kind in kinds)
            self.demand(good, "info", INFO, f"{key} as {named}, not {self.info.get(key, 'left out')!r}")
        for key, said in self.info["features"].items() if not self.broken else ():
            wants = f"{key} with a dtype, a shape of whole numbers, and no / in its name"
            if self.demand(is_feature(said) and "/" not in key, "features", INFO, wants):
                there = said["dtype"] != "video" or bool(self.info["video_path"])
                self.demand(there, "videos", INFO, f"video_path, as {key} is a video")
        for key, dtype in BOOKKEEPING.items() if not self.broken else ():
            said = self.info["features"].get(key, {})
            good = (said.get("dtype"), said.get("shape")) == (dtype, [1])
            self.demand(good, "features", INFO, f"{key} as {dtype} of shape [1]")

    def _read_tasks_v21(self) -> Iterator[tuple[int, str]]:
        for row in read_lines(require_inside(self.folder, "meta/tasks.jsonl")):
            yield row["task_index"], row["task"]

    def _read_tasks_v30(self) -> Iterator[tuple[int, str]]:
        path = require_inside(self.folder, "meta/tasks.parquet")
        table = pq.read_table(path)
        index = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns") or [None]
        if self.demand(
            index[0] in table.column_names, "tasks", path, "a pandas table whose index are the task strings"
        ):
            yield from zip(table["task_index"].to_pylist(), table[str(index[0])].to_pylist(), strict=True)

    def _check_tasks(self, tasks: list[tuple[int, str]]) -> None:
        numbers, texts = [number for number, _ in tasks], {text for _, text in tasks}
        self.demand(numbers == list(range(len(tasks))), "tasks", "meta", f"task_index from 0 on, not {numbers[:5]}")
        self.demand(len(texts) == len(tasks), "tasks", "meta", "each task once")
        self.demand(self.info["total_tasks"] == len(tasks), "totals", INFO, f"total_tasks as {len(tasks)}")
        self.tasks = dict(tasks)

    def _read_episodes_v21(self) -> list[dict[str, Any]]:
        """Returns the entries of episodes with the path of their `data`, their `stats`, and where those stand."""
        path = require_inside(self.folder, "meta/episodes_stats.jsonl")
        there = self.demand(path.is_file(), "statistics", path, "the file is there")
        stats = {row["episode_index"]: row["stats"] for row in (read_lines(path) if there else ())}
        rows = list(read_lines(require_inside(self.folder, "meta/episodes.jsonl")))
        for row in rows:
            place = {"episode_index": row["episode_index"]}
            place["episode_chunk"] = row["episode_index"] // self.info["chunks_size"]
            row |= {"data": fill_template(self.info["data_path"], self.folder, place), "place": place}
            row |= {"stats": stats.get(row["episode_index"], {}), "file": path}
        return rows

    def _read_episodes_v30(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for path in sorted(self.folder.glob("meta/episodes/*/*.parquet")):
            for row in read_episode_rows(path, statistics=True):
                place = {key: row[f"data/{key}"] for key in ("chunk_index", "file_index")}
                stats: dict[str, dict[str, Any]] = {}
                for _, key, name in (column.split("/") for column in row if column.startswith("stats/")):
                    stats.setdefault(key, {})[name] = row[f"stats/{key}/{name}"]
                data = fill_template(self.info["data_path"], self.folder, place)
                rows.append({**row, "data": data, "stats": stats, "file": path})
        return rows

    def _check_totals(self, episodes: Sequence[dict[str, Any]]) -> None:
        begin = 0
        for number, row in enumerate(episodes):
            row["begin"], end = begin, begin + row["length"]
            index = row["episode_index"]
            self.demand(index == number, "episodes", row["file"], f"episode_index from 0 on, not {index} at {number}")
            stated = (row.get("dataset_from_index", begin), row.get("dataset_to_index", end))
            wants = f"dataset_from_index and _to_index of episode {index} as {(begin, end)}, not {stated}"
            self.demand(stated == (begin, end), "episodes", row["file"], wants)
            begin = end
        count = len(episodes)
        counts = {"total_episodes": count, "total_frames": begin}
        if self.info["codebase_version"] == V21:
            counts |= {"total_videos": len(self._list_features("video")) * count}
            counts |= {"total_chunks": -(-count // max(1, self.info["chunks_size"]))}
        for key, wanted in counts.items():
            self.demand(self.info[key] == wanted, "totals", INFO, f"{key} as {wanted}, not {self.info[key]}")
        ends = [str(text).split(":") for text in self.info["splits"].values()]
        inside = all(len(each) == 2 and each[1].isdecimal() and int(each[1]) <= count for each in ends)
        self.demand(inside, "splits", INFO, f"ranges of the {count} episodes such as 0:{count}")

    def _check_file(self, path: Path, group: list[dict[str, Any]]) -> None:
        if not path.is_file():
            raise log_error("the file is missing: give it", path)
        with explain_damage(path, "Parquet"), pq.ParquetFile(path) as file:
            keys = [each.name for each in file.schema_arrow if not pa.types.is_struct(each.type)]
            self._check_schema(path, file.schema_arrow)
            table = file.read(columns=keys).select(keys)
        total = sum(row["length"] for row in group)
        if not self.demand(table.num_rows == total, "episodes", path, f"{total} rows, not {table.num_rows}"):
            return
        begin = 0
        for row in group if set(BOOKKEEPING) <= set(keys) else []:
            rows = table.slice(begin, row["length"])
            self._check_rows(path, row, rows)
            self._check_statistics(row, rows)
            begin += row["length"]

    def _check_schema(self, path: Path, schema: pa.Schema) -> None:
        odd = sorted(set(self.info["features"]) - set(self._list_features("video")) ^ set(schema.names))
        self.demand(not odd, "schema", path, f"the columns that info.json lists as features, not {odd}")
        for key, said in self._list_features(*NUMBERS).items():
            if key in schema.names:
                found = schema.field(key).type
                wants = f"{key} as {said['dtype']} of shape {said['shape']}, not {found}"
                self.demand(_is_of_type(found, said["dtype"], said["shape"]), "schema", path, wants)

    def _check_rows(self, path: Path, row: dict[str, Any], table: pa.Table) -> None:
        where = f"of episode {row['episode_index']}"
        own = {key: table[key].to_numpy() for key in BOOKKEEPING}
        numbers = np.arange(table.num_rows)
        index = np.full(len(numbers), row["episode_index"])
        for key, wanted in {"episode_index": index, "frame_index": numbers, "index": row["begin"] + numbers}.items():
            same = np.array_equal(own[key], wanted)
            self.demand(same, "rows", path, f"{key} {where} from {wanted[:1]} on, not from {own[key][:1]}")
        off_s = np.abs(own["timestamp"] - numbers / self.info["fps"])
        limit_s = TIMESTAMP_TOLERANCE_S + np.spacing(np.float32(own["timestamp"].max(initial=0.0)))
        wants = f"timestamp {where} as frame_index / fps, not {off_s.max(initial=0.0):.5f} s off"
        self.demand(bool(np.all(off_s <= limit_s)), "timestamps", path, wants)
        used = set(own["task_index"].tolist())
        if self.demand(used <= set(self.tasks), "tasks", path, f"task_index {where} of listed tasks, not {used}"):
            same = {self.tasks[number] for number in used} == set(row["tasks"])
            self.demand(same, "tasks", "meta", f"tasks {where} as in its rows, not {row['tasks']}")

    def _check_statistics(self, row: dict[str, Any], table: pa.Table) -> None:
        for key, said in self._list_features(*NUMBERS, "video", "image").items():
            what = f"{key} of episode {row['episode_index']}"
            if said["dtype"] in NUMBERS and key in table.column_names:
                measured = _measure(table[key], table.num_rows)
                self.measured.setdefault(key, []).append(measured)
                self._compare(row["stats"].get(key), measured, row["file"], what)
            else:
                self._compare(row["stats"].get(key), {}, row["file"], what)

    def _compare(self, stated: Any, measured: Mapping[str, np.ndarray], file: str | Path, what: str) -> None:
        stated = stated if isinstance(stated, dict) else {}
        lacking = [name for name in BASIC if stated.get(name) is None]
        if not self.demand(not lacking, "statistics", file, f"{', '.join(lacking)} of {what}") or not measured:
            return
        limit = STATISTICS_TOLERANCE * np.fmax(np.abs(measured["min"]), np.abs(measured["max"])) + 1e-12
        for name in BASIC:
            found, wanted = np.asarray(stated[name], dtype=float).reshape(-1), measured[name]
            same = found.shape == wanted.shape
            near = same and np.all((np.abs(found - wanted) <= (0 if name == "count" else limit)) | np.isnan(wanted))
            self.demand(bool(near), "statistics", file, f"{name} of {what} as {wanted}, not {found}")

    def _check_set_statistics(self) -> None:
        path = require_inside(self.folder, "meta/stats.json")
        if self.demand(path.is_file(), "statistics", path, "the file is there"):
            stated = dict(json.loads(path.read_bytes()))
            for key, measured in self.measured.items():
                self._compare(stated.get(key), merge_statistics(measured), path, key)

    def _check_video(self, row: dict[str, Any], camera: str) -> None:
        place: dict[str, Any] = row.get("place", {})
        begin_s, end_s = 0.0, np.inf
        if not place:
            keys = ("chunk_index", "file_index", "from_timestamp", "to_timestamp")
            place = {key: row.get(f"videos/{camera}/{key}") for key in keys}
            wants = f"videos/{camera}/ {', '.join(keys)} of episode {row['episode_index']}"
            if not self.demand(None not in place.values(), "videos", row["file"], wants):
                return
            begin_s, end_s = float(place["from_timestamp"]), float(place["to_timestamp"])
        path = fill_template(self.info["video_path"], self.folder, {"video_key": camera, **place})
        there = self.demand(path.is_file(), "videos", path, "the file is there")
        if not there or importlib.util.find_spec("av") is None:
            return
        try:
            times_s = np.sort(list_frames(path, path.stat().st_mtime_ns).times_s)
        except LogError as error:
            self.demand(False, "readable", path, str(error))
            return
        times_s = times_s[(times_s >= begin_s - 0.5 / self.info["fps"]) & (times_s < end_s - 0.5 / self.info["fps"])]
        wants = f"{row['length']} frames of episode {row['episode_index']}, not {len(times_s)}"
        if self.demand(len(times_s) == row["length"], "videos", path, wants):
            off_s = np.abs(times_s - begin_s - np.arange(len(times_s)) / self.info["fps"]).max(initial=0.0)
            wants = f"frames of episode {row['episode_index']} at its time stamps, not {off_s:.5f} s off"
            self.demand(off_s <= TIMESTAMP_TOLERANCE_S, "videos", path, wants)


def _is_of_type(found: pa.DataType, dtype: str, shape: Sequence[int]) -> bool:
    for size in () if list(shape) == [1] else shape:
        if not (pa.types.is_list(found) or pa.types.is_large_list(found) or pa.types.is_fixed_size_list(found)):
            return False
        if pa.types.is_fixed_size_list(found) and found.list_size != size:
            return False
        found = found.value_type
    return found == pa.from_numpy_dtype(np.dtype(dtype))


def _measure(column: pa.ChunkedArray, num_rows: int) -> dict[str, np.ndarray]:
    """Returns the statistics of a feature; NaN of elements that lack some cells."""
    array = column.combine_chunks()
    while pa.types.is_nested(array.type):
        array = array.flatten()
    matrix = array.to_numpy(zero_copy_only=False).astype(float).reshape(num_rows, -1)
    found = {name: getattr(np, name)(matrix, axis=0) for name in ("min", "max", "mean", "std")}
    return {**found, "count": np.array([float(num_rows)])}
