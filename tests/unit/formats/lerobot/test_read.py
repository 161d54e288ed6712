import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gapless.core.errors import LogError
from gapless.formats.registry import find_format
from unit.formats.lerobot.sets import (
    KINDS,
    VERSIONS,
    edit_info,
    edit_table,
    find_real_set,
    list_data,
    make_recording,
    read_set,
    replace_column,
    write_set,
)


@pytest.mark.parametrize(
    ("name", "num_episodes", "num_frames"), [("g1_inspire_v21", 100, 35_965), ("so101_v30", 4, 1_492)]
)
def test_real_sets_come_in_whole(name: str, num_episodes: int, num_frames: int) -> None:
    found, skipped = read_set(find_real_set(name))
    assert (len(found), sum(len(each.times_s) for each in found)) == (num_episodes, num_frames)
    assert all("video file is missing" in each.why for each in skipped)
    assert all(each.conditions["task"] and each.origin.robot for each in found)


def test_a_real_episode_has_the_numbers_of_its_file() -> None:
    folder = find_real_set("so101_v30")
    table = pa.parquet.read_table(folder / "data/chunk-000/file-000.parquet")
    rows = [row for row in table.to_pylist() if row["episode_index"] == 2]
    found = read_set(folder)[0][2]
    assert found.name == "so101_v30_episode_000002"
    assert found.times_s.tolist() == [row["timestamp"] for row in rows]
    assert found.columns["action.elbow_flex.pos"].tolist() == [row["action"][2] for row in rows]
    assert set(found.types.values()) == {"float32"}
    assert not set(found.columns) & {"timestamp", "frame_index", "episode_index", "index", "task_index"}


def test_missing_videos_are_told_once_for_each_camera() -> None:
    skipped = read_set(find_real_set("g1_inspire_v21"))[1]
    assert [each.what for each in skipped] == ["observation.images.cam_high of 97 episodes"]


@VERSIONS
def test_known_episodes_are_not_read(version: str, tmp_path: Path) -> None:
    path = write_set(tmp_path, version)
    names = [each.name for each in read_set(path)[0]]
    assert [each.name for each in read_set(path, known=names[1:2])[0]] == [names[0], names[2]]
    for file in list_data(path):
        file.write_bytes(b"not read")
    assert read_set(path, known=names) == ([], [])


@pytest.mark.parametrize("version", ["v1.6", "v4.0", None])
def test_other_versions_are_refused_by_name(version: str | None, tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1")
    edit_info(path, lambda info: info.update(codebase_version=version))
    assert find_format(path) in KINDS.values()
    with pytest.raises(LogError, match=r"not read.* v2\.0, v2\.1, v3\.0"):
        read_set(path)


def test_version_2_0_is_read_as_2_1(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1")
    edit_info(path, lambda info: info.update(codebase_version="v2.0"))
    assert find_format(path) is KINDS["v2.1"]
    assert len(read_set(path)[0]) == 3


@VERSIONS
@pytest.mark.parametrize("template", ["../{episode_index}.parquet", "/etc/{episode_index}", "data/{nothing}.parquet"])
def test_paths_do_not_lead_out_of_the_folder(version: str, template: str, tmp_path: Path) -> None:
    path = write_set(tmp_path, version)
    named = template if version == "v2.1" else template.replace("episode_index", "file_index")
    edit_info(path, lambda info: info.update(data_path=named))
    with pytest.raises(LogError, match=r"outside of its folder|asks for"):
        read_set(path)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1")
    file = list_data(path)[0]
    file.rename(tmp_path / "elsewhere.parquet")
    file.symlink_to(tmp_path / "elsewhere.parquet")
    with pytest.raises(LogError, match="outside of its folder"):
        read_set(path)


def test_a_cut_file_costs_its_own_episodes(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1")
    file = list_data(path)[1]
    file.write_bytes(file.read_bytes()[:500])
    found, skipped = read_set(path)
    assert [each.name[-1] for each in found] == ["0", "2"]
    assert [each.what for each in skipped] == ["set_v2.1_episode_000001"]
    assert "cut off" in skipped[0].why
    assert "episode_000001.parquet" in skipped[0].why


def test_a_cut_file_of_several_episodes_names_them(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v3.0")
    list_data(path)[0].write_bytes(b"PAR1")
    found, skipped = read_set(path)
    assert found == []
    assert [each.what for each in skipped] == ["3 episodes, set_v3.0_episode_000000 to set_v3.0_episode_000002"]


def shorten(table: pa.Table) -> pa.Table:
    """Leaves out one row of episode 1."""
    keep = np.ones(table.num_rows, dtype=bool)
    keep[np.flatnonzero(table["episode_index"].to_numpy() == 1)[-1]] = False
    return table.filter(pa.array(keep))


@VERSIONS
def test_frame_counts_that_disagree_skip_the_episode_by_name(version: str, tmp_path: Path) -> None:
    path = write_set(tmp_path, version)
    edit_table(list_data(path)[1 if version == "v2.1" else 0], shorten)
    found, skipped = read_set(path)
    assert len(found) == 2
    assert [each.what for each in skipped] == [f"set_{version}_episode_000001"]
    assert skipped[0].why.startswith("30 frames by its metadata, 29 in the data")


def test_more_episodes_counted_than_listed_is_told(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1")
    edit_info(path, lambda info: info.update(total_episodes=5))
    assert [each.why for each in read_set(path)[1]] == ["info.json counts 5 episodes and its metadata list 3"]


@pytest.mark.parametrize(
    ("stamp", "row"), [(0.0, 3), (0.05, 4), (float("nan"), 5)], ids=["backward", "repeated", "missing"]
)
def test_rows_without_a_later_time_are_left_out(stamp: float, row: int, tmp_path: Path) -> None:
    times_s = (np.arange(30) * 0.25).astype(np.float32).astype(float)
    path = write_set(tmp_path, "v2.1", [make_recording(times_s=times_s)])
    times_s[row] = stamp
    edit_table(list_data(path)[0], lambda table: replace_column(table, "timestamp", times_s))
    found, skipped = read_set(path)
    assert found[0].times_s.tolist() == np.delete(times_s, row).tolist()
    assert found[0].columns["frame_index"].tolist() == [i for i in range(30) if i != row]  # not derivable any more
    assert [each.what for each in skipped] == ["set_v2.1_episode_000000: 1 of 30 rows"]


def test_time_that_does_not_begin_at_0_is_kept_and_comes_back(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v3.0", [make_recording(times_s=np.arange(30) * 0.25)])
    stamps = np.arange(30) * 0.25 + 8
    edit_table(list_data(path)[0], lambda table: replace_column(table, "timestamp", stamps))
    found = read_set(path)[0][0]
    assert found.times_s.tolist() == (stamps - 8).tolist()
    assert found.columns["timestamp"].tolist() == stamps.tolist()
    again = read_set(write_set(tmp_path, "v2.1", [found]))[0][0]
    assert again.columns["timestamp"].tolist() == stamps.tolist()
    assert again.types["timestamp"] == "float32"


NAMES: list[tuple[Any, list[str]]] = [
    (["a", "b"], ["v.a", "v.b"]),
    ([["a", "b"]], ["v.a", "v.b"]),
    ({"motors": ["a", "b"]}, ["v.a", "v.b"]),
    ({"b": 1, "a": 0}, ["v.a", "v.b"]),
    (None, ["v_0", "v_1"]),
    (["vector"], ["v_0", "v_1"]),
    (["a", "a"], ["v_0", "v_1"]),
]


@pytest.mark.parametrize(("names", "columns"), NAMES)
def test_elements_are_named_however_names_are_nested(names: Any, columns: list[str], tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1", [make_recording(columns={"action.a": np.arange(30.0), "action.b": np.ones(30)})])

    def rename(info: dict[str, Any]) -> None:
        info["features"]["v"] = info["features"].pop("action") | {"names": names}

    edit_info(path, rename)
    edit_table(list_data(path)[0], lambda t: t.rename_columns(["v" if n == "action" else n for n in t.column_names]))
    found = read_set(path)[0][0]
    assert list(found.columns) == columns
    assert found.columns[columns[0]].tolist() == list(range(30))
    again = read_set(write_set(tmp_path, "v3.0", [found]))[0][0]
    assert again.details["features"]["v"] == found.details["features"]["v"]


def test_features_of_more_dimensions_are_read_row_by_row(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1", [make_recording()])
    grid = [[[row, row + 0.5], [row + 0.25, row + 0.75]] for row in range(30)]
    edit_table(list_data(path)[0], lambda table: table.append_column("grid", pa.array(grid)))
    edit_info(path, lambda info: info["features"].update(grid={"dtype": "float64", "shape": [2, 2], "names": None}))
    found = read_set(path)[0][0]
    assert [found.columns[f"grid_{i}"][3] for i in range(4)] == [3, 3.5, 3.25, 3.75]
    again = read_set(write_set(tmp_path, "v3.0", [found]))[0][0]
    assert again.columns["grid_3"].tolist() == found.columns["grid_3"].tolist()
    assert again.details["features"]["grid"]["shape"] == [2, 2]


def add_text(values: list[str]) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.append_column("note", pa.array(values))


def test_text_is_kept_where_constant_and_told_where_not(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1")
    edit_info(path, lambda info: info["features"].update(note={"dtype": "string", "shape": [1], "names": None}))
    edit_table(list_data(path)[0], add_text(["calm"] * 30))
    edit_table(list_data(path)[1], add_text(["calm"] * 29 + ["wild"]))
    edit_table(list_data(path)[2], add_text(["calm", "wild"] * 15))
    found, skipped = read_set(path)
    assert [each.details.get("strings") for each in found] == [{"note": "calm"}, None, None]
    assert [each.what for each in skipped] == ["note of 2 episodes"]


def test_images_in_parquet_are_told_once(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1")
    edit_info(path, lambda info: info["features"].update(cam={"dtype": "image", "shape": [4, 4, 3], "names": None}))
    image = pa.array([{"bytes": b"png", "path": None}] * 30)
    for file in list_data(path):
        edit_table(file, lambda table: table.append_column("cam", image))
    found, skipped = read_set(path)
    assert len(found) == 3
    assert [each.what for each in skipped] == ["cam"]


def test_a_column_that_float64_cannot_hold_is_told(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1", [make_recording()])
    edit_info(path, lambda info: info["features"].update(ns={"dtype": "int64", "shape": [1], "names": None}))
    edit_table(list_data(path)[0], lambda table: table.append_column("ns", pa.array([2**60 + i for i in range(30)])))
    found, skipped = read_set(path)
    assert "ns" not in found[0].columns
    assert "2**53" in skipped[0].why


def test_a_column_that_info_does_not_list_is_told(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1", [make_recording()])
    edit_table(list_data(path)[0], lambda table: table.append_column("extra", pa.array(np.ones(30))))
    assert [each.what for each in read_set(path)[1]] == ["extra of 1 episodes"]


def test_empty_cells_are_nan(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1", [make_recording()])
    flags = [None, True, *[False] * 28]
    edit_table(list_data(path)[0], lambda table: replace_column(table, "touch", flags))
    touch = read_set(path)[0][0].columns["touch"]
    assert np.isnan(touch[0])
    assert touch[1:].tolist() == [1.0] + [0.0] * 28


def test_several_tasks_keep_the_column_and_their_texts(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1", [make_recording(conditions={"task": "pick"})])
    lines = [{"task_index": 0, "task": "pick"}, {"task_index": 1, "task": "place"}]
    (path / "meta/tasks.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    edit_table(list_data(path)[0], lambda table: replace_column(table, "task_index", [0] * 20 + [1] * 10))
    found = read_set(path)[0][0]
    assert "task" not in found.conditions
    assert found.details["tasks"] == {"0": "pick", "1": "place"}
    again = read_set(write_set(tmp_path, "v3.0", [make_recording(1, conditions={"task": "wait"}), found]))[0]
    assert again[0].conditions == {"task": "wait"}
    texts = again[1].details["tasks"]
    assert [texts[str(int(i))] for i in again[1].columns["task_index"]] == ["pick"] * 20 + ["place"] * 10


def test_row_groups_that_cut_through_episodes_are_joined(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v3.0")
    file = list_data(path)[0]
    given = read_set(path)[0]
    pa.parquet.write_table(pa.parquet.read_table(file), file, row_group_size=7)
    found = read_set(path)[0]
    assert [len(each.times_s) for each in found] == [30, 30, 30]
    assert all(
        a.columns["action.a"].tolist() == b.columns["action.a"].tolist() for a, b in zip(given, found, strict=True)
    )


def test_entries_that_the_format_does_not_know_are_kept(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1", [make_recording()])
    row = json.loads((path / "meta/episodes.jsonl").read_text(encoding="utf-8"))
    (path / "meta/episodes.jsonl").write_text(json.dumps({**row, "success": True}), encoding="utf-8")
    edit_info(path, lambda info: info.update(splits={"train": "0:0", "test": "0:1"}))
    found = read_set(path)[0][0]
    assert found.details["episode"] == {"success": True}
    assert found.details["split"] == "test"


def test_an_episode_listed_twice_is_refused(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v2.1", [make_recording()])
    line = (path / "meta/episodes.jsonl").read_text(encoding="utf-8")
    (path / "meta/episodes.jsonl").write_text(line * 2, encoding="utf-8")
    with pytest.raises(LogError, match="twice"):
        read_set(path)
