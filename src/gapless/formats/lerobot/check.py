"""Checks a LeRobot data set by the rules of its version alone, whoever wrote it."""

import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.core.errors import LogError
from gapless.formats.lerobot.features import BOOKKEEPING, NUMBERS
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
        checker.check()
    except LogError as error:
        checker.demand(False, "readable", str(folder), str(error))
    return tuple(checker.broken)


@dataclass
class _Checker:
    """Collects broken rules of one data set."""

    folder: Path
    broken: list[BrokenRule] = field(default_factory=list)
    info: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, list[dict[str, np.ndarray]]] = field(default_factory=dict)  # feature -> statistics of episodes

    def demand(self, holds: bool, rule: str, file: str, expected: str) -> bool:
        """Enters a rule that does not hold; returns whether it does."""
        if not holds:
            self.broken.append(BrokenRule(rule, file, expected))
        return holds

    def check(self) -> None:
        """Checks everything, as far as what is broken lets it."""
        with explain_damage(self.folder / INFO, "JSON"):
            self.info = dict(json.loads((self.folder / INFO).read_bytes()))
        if not self._check_info() or not self._check_features():
            return
        is_v21 = self.info["codebase_version"] == V21
        with explain_damage(self.folder / "meta", "metadata of a LeRobot data set"):
            tasks = self._read_tasks(is_v21)
            episodes = self._read_episodes_v21() if is_v21 else self._read_episodes_v30()
        self._check_totals(tasks, episodes)
        first_row = 0
        for path, group in _group_by_file(episodes):
            try:
                first_row = self._check_file(path, group, first_row, tasks)
            except LogError as error:
                self.demand(False, "readable", self._name(path), str(error))
                first_row += sum(row["length"] for row in group)
        for row in episodes:
            self._check_videos(row)
        if not is_v21:
            self._check_set_statistics()

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.folder))

    def _check_info(self) -> bool:
        version = self.info.get("codebase_version")
        kinds = _VERSION_KINDS.get(str(version))
        text = f"codebase_version v2.1 or v3.0, not {version!r}"
        if not self.demand(kinds is not None, "info", INFO, text) or kinds is None:
            return False
        return all(
            [  # a list, so that each is looked at
                self.demand(
                    key in self.info and isinstance(self.info[key], kind) and not isinstance(self.info[key], bool),
                    "info",
                    INFO,
                    f"{key} as {' or '.join(each.__name__ for each in kind)}, not {self.info.get(key, 'left out')!r}",
                )
                for key, kind in (_INFO_KINDS | kinds).items()
            ]
        )

    def _check_features(self) -> bool:
        features = self.info["features"]
        good = [
            self.demand(
                isinstance(said, dict)
                and isinstance(said.get("dtype"), str)
                and isinstance(shape := said.get("shape"), list)
                and all(isinstance(size, int) and size >= 0 for size in shape)
                and "/" not in key,
                "features",
                INFO,
                f"{key} with a dtype, a shape of whole numbers, and no / in its name",
            )
            for key, said in features.items()
        ]
        wanted = {key: (dtype, [1]) for key, dtype in BOOKKEEPING.items()}
        for key, (dtype, shape) in wanted.items():
            said = features.get(key, {}) if all(good) else {"dtype": dtype, "shape": shape}
            found = (said.get("dtype"), said.get("shape"))
            good.append(self.demand(found == (dtype, shape), "features", INFO, f"{key} as {dtype} of shape [1]"))
        return all(good)

    def _read_tasks(self, is_v21: bool) -> dict[int, str]:
        name = "meta/tasks.jsonl" if is_v21 else "meta/tasks.parquet"
        path = require_inside(self.folder, name)
        if is_v21:
            rows = [(row["task_index"], row["task"]) for row in read_lines(path)]
        else:
            table = pq.read_table(path)
            index = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns") or []
            named = [column for column in index if column in table.column_names]
            self.demand(bool(named), "tasks", name, "a pandas table whose index are the task strings")
            texts = table[named[0]] if named else table.column(1)
            rows = list(zip(table["task_index"].to_pylist(), texts.to_pylist(), strict=True))
        numbers = [number for number, _ in rows]
        self.demand(numbers == list(range(len(rows))), "tasks", name, f"task_index from 0 on, not {numbers[:5]}")
        self.demand(len({text for _, text in rows}) == len(rows), "tasks", name, "each task once")
        return dict(rows)

    def _read_episodes_v21(self) -> list[dict[str, Any]]:
        """Returns the entries of episodes with their `stats`, the path of their `data`, and where both stand."""
        path = require_inside(self.folder, "meta/episodes_stats.jsonl")
        there = self.demand(path.is_file(), "statistics", self._name(path), "the file is there")
        stats = {row["episode_index"]: row["stats"] for row in (read_lines(path) if there else ())}
        rows = list(read_lines(require_inside(self.folder, "meta/episodes.jsonl")))
        for row in rows:
            place = {"episode_index": row["episode_index"]}
            place["episode_chunk"] = row["episode_index"] // self.info["chunks_size"]
            row |= {"data": fill_template(self.info["data_path"], self.folder, place), "place": place}
            row |= {"stats": stats.get(row["episode_index"], {}), "file": "meta/episodes.jsonl"}
        return rows

    def _read_episodes_v30(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for path in sorted(self.folder.glob("meta/episodes/*/*.parquet")):
            for row in read_episode_rows(path, statistics=True):
                place = {key: row[f"data/{key}"] for key in ("chunk_index", "file_index")}
                row |= {"data": fill_template(self.info["data_path"], self.folder, place), "file": self._name(path)}
                row["stats"] = {}
                for key, value in [(key, value) for key, value in row.items() if key.startswith("stats/")]:
                    row["stats"].setdefault(key.split("/")[1], {})[key.split("/")[2]] = value
                found.append(row)
        begin = 0
        for row in found:
            stated, wanted = (row["dataset_from_index"], row["dataset_to_index"]), (begin, begin + row["length"])
            text = f"dataset_from_index and _to_index of episode {row['episode_index']} as {wanted}, not {stated}"
            self.demand(stated == wanted, "episodes", row["file"], text)
            begin += row["length"]
        return found

    def _check_totals(self, tasks: Mapping[int, str], episodes: Sequence[Mapping[str, Any]]) -> None:
        indices = [row["episode_index"] for row in episodes]
        file = episodes[0]["file"] if episodes else "meta"
        self.demand(indices == list(range(len(indices))), "episodes", file, "episode_index from 0 on, each once")
        cameras = [key for key, said in self.info["features"].items() if said["dtype"] == "video"]
        counts = {"total_episodes": len(episodes), "total_frames": sum(row["length"] for row in episodes)}
        counts |= {"total_tasks": len(tasks)}
        if self.info["codebase_version"] == V21:
            chunks = -(-len(episodes) // max(1, self.info["chunks_size"]))
            counts |= {"total_videos": len(cameras) * len(episodes), "total_chunks": chunks}
        for key, count in counts.items():
            self.demand(self.info[key] == count, "totals", INFO, f"{key} as {count}, not {self.info[key]}")
        ends = [str(text).split(":") for text in self.info["splits"].values()]
        inside = all(len(e) == 2 and e[1].isdecimal() and int(e[1]) <= len(episodes) for e in ends)
        self.demand(inside, "splits", INFO, f"ranges of the {len(episodes)} episodes such as 0:{len(episodes)}")

    def _check_file(self, path: Path, group: list[dict[str, Any]], first_row: int, tasks: Mapping[int, str]) -> int:
        """Checks the rows of one data file; returns the number of the row after them."""
        if not path.is_file():
            raise log_error("the file is missing: give it", path)
        with explain_damage(path, "Parquet"), pq.ParquetFile(path) as file:
            keys = [each.name for each in file.schema_arrow if not pa.types.is_struct(each.type)]
            self._check_schema(path, file.schema_arrow)
            table = file.read(columns=keys).select(keys)
        total = sum(row["length"] for row in group)
        same = self.demand(table.num_rows == total, "episodes", self._name(path), f"{total} rows, not {table.num_rows}")
        begin = 0
        for row in group if same and set(BOOKKEEPING) <= set(keys) else []:
            rows = table.slice(begin, row["length"])
            self._check_rows(path, row, rows, first_row + begin, tasks)
            self._check_statistics(row, rows)
            begin += row["length"]
        return first_row + total

    def _check_schema(self, path: Path, schema: pa.Schema) -> None:
        listed = {key: said for key, said in self.info["features"].items() if said["dtype"] != "video"}
        odd = sorted(set(listed) ^ set(schema.names))
        self.demand(not odd, "schema", self._name(path), f"the columns that info.json lists as features, not {odd}")
        for key in set(listed) & set(schema.names):
            said, found = listed[key], schema.field(key).type
            if said["dtype"] in NUMBERS:
                text = f"{key} as {said['dtype']} of shape {said['shape']}, not {found}"
                self.demand(_is_of_type(found, said["dtype"], said["shape"]), "schema", self._name(path), text)

    def _check_rows(
        self, path: Path, row: Mapping[str, Any], table: pa.Table, first_row: int, tasks: Mapping[int, str]
    ) -> None:
        where = f"of episode {row['episode_index']}"
        own = {key: table[key].to_numpy() for key in BOOKKEEPING}
        numbers = np.arange(table.num_rows)
        wanted = {"episode_index": np.full(len(numbers), row["episode_index"])}
        wanted |= {"frame_index": numbers, "index": first_row + numbers}
        for key, values in wanted.items():
            text = f"{key} {where} from {values[:1]} on, not from {own[key][:1]}"
            self.demand(np.array_equal(own[key], values), "rows", self._name(path), text)
        off_s = np.abs(own["timestamp"] - numbers / self.info["fps"])
        limit_s = TIMESTAMP_TOLERANCE_S + np.spacing(np.float32(own["timestamp"].max(initial=0.0)))
        text = f"timestamp {where} as frame_index / fps, not {off_s.max(initial=0.0):.5f} s off"
        self.demand(bool(np.all(off_s <= limit_s)), "timestamps", self._name(path), text)
        used = set(own["task_index"].tolist())
        if self.demand(
            used <= set(tasks), "tasks", self._name(path), f"task_index {where} of tasks listed, not {used}"
        ):
            texts = {tasks[number] for number in used}
            self.demand(texts == set(row["tasks"]), "tasks", row["file"], f"tasks {where} as in its rows")

    def _check_statistics(self, row: Mapping[str, Any], table: pa.Table) -> None:
        where = "meta/episodes_stats.jsonl" if self.info["codebase_version"] == V21 else row["file"]
        for key, said in self.info["features"].items():
            if said["dtype"] not in (*NUMBERS, "video", "image"):
                continue
            stated = row["stats"].get(key) or {}
            text = f"{', '.join(BASIC)} of {key} of episode {row['episode_index']}"
            if not self.demand(all(stated.get(name) is not None for name in BASIC), "statistics", where, text):
                continue
            if said["dtype"] in NUMBERS and key in table.column_names:
                measured = _measure(table[key], table.num_rows)
                self.measured.setdefault(key, []).append(measured)
                self._compare(stated, measured, where, f"{key} of episode {row['episode_index']}")

    def _compare(self, stated: Mapping[str, Any], measured: Mapping[str, np.ndarray], file: str, what: str) -> None:
        limit = STATISTICS_TOLERANCE * np.fmax(np.abs(measured["min"]), np.abs(measured["max"])) + 1e-12
        for name in BASIC:
            found, wanted = np.asarray(stated[name], dtype=float).reshape(-1), measured[name]
            near = found.shape == wanted.shape and np.all(
                (np.abs(found - wanted) <= limit if name != "count" else found == wanted) | np.isnan(wanted)
            )
            self.demand(bool(near), "statistics", file, f"{name} of {what} as {wanted}, not {found}")

    def _check_set_statistics(self) -> None:
        file = "meta/stats.json"
        path = self.folder / file
        if not self.demand(path.is_file(), "statistics", file, "the file is there"):
            return
        with explain_damage(path, "JSON"):
            stated = dict(json.loads(path.read_bytes()))
        for key, measured in self.measured.items():
            complete = all(name in stated.get(key, {}) for name in BASIC)
            if self.demand(complete, "statistics", file, f"{', '.join(BASIC)} of {key}"):
                self._compare(stated[key], merge_statistics(measured), file, key)

    def _check_videos(self, row: Mapping[str, Any]) -> None:
        cameras = [key for key, said in self.info["features"].items() if said["dtype"] == "video"]
        for camera in (
            cameras if self.demand(not cameras or bool(self.info["video_path"]), "videos", INFO, "video_path") else []
        ):
            begin_s, end_s, place = 0.0, None, row.get("place")
            if place is None:
                said = {key: row.get(f"videos/{camera}/{key}") for key in ("chunk_index", "file_index")}
                begin_s, end_s = (row.get(f"videos/{camera}/{key}_timestamp") for key in ("from", "to"))
                text = f"videos/{camera}/ columns of episode {row['episode_index']}"
                if not self.demand(None not in (*said.values(), begin_s, end_s), "videos", row["file"], text):
                    continue
                place = said
            path = fill_template(self.info["video_path"], self.folder, {"video_key": camera, **place})
            if self.demand(path.is_file(), "videos", self._name(path), "the file is there"):
                self._check_frames(path, row, begin_s or 0.0, end_s)

    def _check_frames(self, path: Path, row: Mapping[str, Any], begin_s: float, end_s: float | None) -> None:
        if importlib.util.find_spec("av") is None:
            return
        try:
            times_s = np.sort(list_frames(path, path.stat().st_mtime_ns).times_s)
        except LogError as error:
            self.demand(False, "readable", self._name(path), str(error))
            return
        half_s = 0.5 / self.info["fps"]
        times_s = times_s[(times_s >= begin_s - half_s) & (times_s < (np.inf if end_s is None else end_s - half_s))]
        text = f"{row['length']} frames of episode {row['episode_index']}, not {len(times_s)}"
        if self.demand(len(times_s) == row["length"], "videos", self._name(path), text):
            off_s = np.abs(times_s - begin_s - np.arange(len(times_s)) / self.info["fps"]).max(initial=0.0)
            text = f"frames of episode {row['episode_index']} at its time stamps, not {off_s:.5f} s off"
            self.demand(off_s <= TIMESTAMP_TOLERANCE_S, "videos", self._name(path), text)


def _group_by_file(episodes: Sequence[dict[str, Any]]) -> list[tuple[Path, list[dict[str, Any]]]]:
    found: dict[Path, list[dict[str, Any]]] = {}
    for row in episodes:
        found.setdefault(row["data"], []).append(row)
    return list(found.items())


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
