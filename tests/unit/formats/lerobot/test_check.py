import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gapless.core.recording import Video
from gapless.formats.lerobot.check import check_lerobot
from unit.formats.lerobot.sets import (
    VERSIONS,
    edit_info,
    edit_table,
    find_real_set,
    list_data,
    make_recording,
    make_video,
    replace_column,
    write_set,
)

EPISODES = "meta/episodes/chunk-000/file-000.parquet"


@pytest.mark.parametrize("name", ["g1_inspire_v21", "so101_v30"])
def test_real_sets_break_no_rule_but_absent_videos(name: str) -> None:
    assert {(each.rule, each.expected) for each in check_lerobot(find_real_set(name))} == {
        ("videos", "the file is there")
    }


def say(**changes: Any) -> Callable[[Path], None]:
    return lambda path: edit_info(path, lambda info: info.update(changes))


def drop(key: str) -> Callable[[Path], None]:
    return lambda path: edit_info(path, lambda info: info.pop(key))


def say_feature(key: str, **changes: Any) -> Callable[[Path], None]:
    return lambda path: edit_info(path, lambda info: info["features"].setdefault(key, {}).update(changes))


def change_rows(key: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], None]:
    def plant(path: Path) -> None:
        edit_table(list_data(path)[0], lambda t: replace_column(t, key, pa.array(change(t[key].to_numpy().copy()))))

    return plant


def change_one(key: str, row: int, value: float) -> Callable[[Path], None]:
    def change(values: np.ndarray) -> np.ndarray:
        values[row] = value
        return values

    return change_rows(key, change)


def drop_column(path: Path) -> None:
    edit_table(list_data(path)[0], lambda table: table.drop_columns(["touch"]))


def drop_row(path: Path) -> None:
    edit_table(list_data(path)[0], lambda table: table.slice(0, table.num_rows - 1))


def delete(name: str) -> Callable[[Path], None]:
    return lambda path: next(iter(sorted(path.glob(name)))).unlink()


def cut(name: str) -> Callable[[Path], None]:
    def plant(path: Path) -> None:
        file = next(iter(sorted(path.glob(name))))
        file.write_bytes(file.read_bytes()[:-40])

    return plant


def change_lines(name: str, change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Returns a fault in the first line of a file of JSON lines."""

    def plant(path: Path) -> None:
        rows = [json.loads(line) for line in (path / name).read_text(encoding="utf-8").splitlines()]
        change(rows[0])
        (path / name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    return plant


def change_episodes(key: str, value: Any) -> Callable[[Path], None]:
    """Returns a fault in the entry of episode 1 (v3.0)."""

    def plant(path: Path) -> None:
        edit_table(
            path / EPISODES, lambda t: replace_column(t, key, [*t[key].to_pylist()[:1], value, *t[key].to_pylist()[2:]])
        )

    return plant


def change_stats(path: Path) -> None:
    stats = json.loads((path / "meta/stats.json").read_text(encoding="utf-8"))
    stats["action"]["std"][0] *= 1.1
    (path / "meta/stats.json").write_text(json.dumps(stats), encoding="utf-8")


BOTH: dict[str, tuple[str, Callable[[Path], None]]] = {
    "unknown version": ("info", say(codebase_version="v9")),
    "no rate": ("info", drop("fps")),
    "rate as text": ("info", say(fps="20")),
    "no robot_type": ("info", drop("robot_type")),
    "wrong number of episodes": ("totals", say(total_episodes=4)),
    "wrong number of frames": ("totals", say(total_frames=91)),
    "wrong number of tasks": ("totals", say(total_tasks=2)),
    "split of too many episodes": ("splits", say(splits={"train": "0:4"})),
    "feature without shape": ("features", say_feature("other", dtype="float32")),
    "timestamp of another type": ("features", say_feature("timestamp", dtype="float64")),
    "feature that the data lack": ("schema", say_feature("other", dtype="float32", shape=[1])),
    "feature of another type": ("schema", say_feature("touch", dtype="int64")),
    "vector of another length": ("schema", say_feature("observation.state", shape=[3])),
    "column that is gone": ("schema", drop_column),
    "row that is gone": ("episodes", drop_row),
    "file that is gone": ("readable", delete("data/*/*.parquet")),
    "data cut off": ("readable", cut("data/*/*.parquet")),
    "info.json cut off": ("readable", cut("meta/info.json")),
    "rate of another clock": ("timestamps", say(fps=21)),
    "one stamp off": ("timestamps", change_one("timestamp", 3, 0.1502)),
    "frame_index with a gap": ("rows", change_one("frame_index", 5, 6)),
    "index with a gap": ("rows", change_one("index", 29, 30)),
    "episode_index of another": ("rows", change_one("episode_index", 0, 1)),
    "task that is not listed": ("tasks", change_one("task_index", 2, 7)),
    "numbers that changed": ("statistics", change_rows("touch", lambda values: ~values)),
}
ONLY_V21 = {
    "wrong number of videos": ("totals", say(total_videos=3)),
    "wrong number of chunks": ("totals", say(total_chunks=2)),
    "no statistics": ("statistics", delete("meta/episodes_stats.jsonl")),
    "mean is gone": (
        "statistics",
        change_lines("meta/episodes_stats.jsonl", lambda row: row["stats"]["touch"].pop("mean")),
    ),
    "length is wrong": ("episodes", change_lines("meta/episodes.jsonl", lambda row: row.update(length=31))),
    "task text of another": ("tasks", change_lines("meta/episodes.jsonl", lambda row: row.update(tasks=["jump"]))),
    "task numbers from 1": ("tasks", change_lines("meta/tasks.jsonl", lambda row: row.update(task_index=1))),
    "index of episode twice": (
        "episodes",
        change_lines("meta/episodes.jsonl", lambda row: row.update(episode_index=1)),
    ),
}
ONLY_V30 = {
    "no file size": ("info", drop("data_files_size_in_mb")),
    "begin is wrong": ("episodes", change_episodes("dataset_from_index", 29)),
    "end is wrong": ("episodes", change_episodes("dataset_to_index", 61)),
    "mean is wrong": ("statistics", change_episodes("stats/observation.state/mean", [9.0, 9.0])),
    "count is wrong": ("statistics", change_episodes("stats/action/count", [29])),
    "no stats.json": ("statistics", delete("meta/stats.json")),
    "std of the set is wrong": ("statistics", change_stats),
    "tasks without an index": (
        "tasks",
        lambda path: edit_table(path / "meta/tasks.parquet", lambda t: t.replace_schema_metadata()),
    ),
    "tasks cut off": ("readable", cut("meta/tasks.parquet")),
}
FAULTS = [("v2.1", name, *fault) for name, fault in {**BOTH, **ONLY_V21}.items()]
FAULTS += [("v3.0", name, *fault) for name, fault in {**BOTH, **ONLY_V30}.items()]


@pytest.mark.parametrize(("version", "name", "rule", "plant"), FAULTS, ids=[f"{v}: {name}" for v, name, *_ in FAULTS])
def test_a_planted_fault_is_named(
    version: str, name: str, rule: str, plant: Callable[[Path], None], tmp_path: Path
) -> None:
    path = write_set(tmp_path, version)
    assert check_lerobot(path) == ()
    plant(path)
    found = check_lerobot(path)
    assert rule in {each.rule for each in found}
    assert all("\n" not in each.expected for each in found)


@VERSIONS
@pytest.mark.parametrize("num_frames", [0, 29], ids=["absent", "short"])
def test_a_video_that_is_absent_or_short_is_named(num_frames: int, version: str, tmp_path: Path) -> None:
    given = replace(make_recording(), videos=(Video("cam", make_video(tmp_path / "film.mp4", 30)),))
    path = write_set(tmp_path, version, [given])
    assert check_lerobot(path) == ()
    film = next(path.rglob("*.mp4"))
    film.unlink()
    if num_frames:
        make_video(film, num_frames)
    assert [each.rule for each in check_lerobot(path)] == ["videos"]
    assert check_lerobot(path)[0].file == str(film.relative_to(path))
