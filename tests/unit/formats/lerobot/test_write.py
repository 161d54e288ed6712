import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from gapless.core.errors import InputError
from gapless.core.recording import Origin, Recording
from gapless.formats.lerobot.check import check_lerobot
from gapless.formats.lerobot.write import find_rate, is_regular
from unit.formats.lerobot.sets import (
    FPS,
    KINDS,
    VERSIONS,
    find_real_set,
    list_data,
    make_recording,
    read_set,
    write_set,
)


def read_info(path: Path) -> dict[str, Any]:
    return json.loads((path / "meta/info.json").read_text(encoding="utf-8"))


def assert_same_numbers(given: list[Recording], found: list[Recording]) -> None:
    for one, other in zip(given, found, strict=True):
        np.testing.assert_array_equal(one.times_s, other.times_s)
        assert set(one.columns) == set(other.columns)
        for name, values in one.columns.items():
            np.testing.assert_array_equal(values, other.columns[name], err_msg=name)
        assert other.types == one.types


def write_what_fits(path: Path, version: str, recordings: list[Recording]) -> list[str]:
    """Writes recordings; returns the reasons of what was left out."""
    write = KINDS[version].write
    assert write is not None
    return [f"{each.what}: {each.why}" for each in write(iter(recordings), path)]


@VERSIONS
def test_columns_become_vectors_by_their_names(version: str, tmp_path: Path) -> None:
    names = ["observation.state.a", "observation.state.b", "action.a", "/arm/cmd/b", "force"]
    given = [make_recording(columns={name: np.arange(30.0) + i for i, name in enumerate(names)}, types={})]
    path = write_set(tmp_path, version, given)
    features = read_info(path)["features"]
    assert features["observation.state"]["names"] == ["a", "b"]
    assert features["action"]["names"] == ["a", "/arm/cmd/b"]
    assert (features["action"]["shape"], features["force"]["shape"]) == ([2], [1])
    assert_same_numbers(given, read_set(path)[0])
    assert check_lerobot(path) == ()


@VERSIONS
@pytest.mark.parametrize(
    "name", ["task_index", "timestamp", "frame_index", "index", "episode_index", "/a/b", "gapless.times_s", "action"]
)
def test_any_name_comes_back(name: str, version: str, tmp_path: Path) -> None:
    given = [make_recording(columns={name: np.arange(30.0) * 2, "a.b": np.ones(30)}, types={})]
    path = write_set(tmp_path, version, given)
    assert_same_numbers(given, read_set(path)[0])
    assert check_lerobot(path) == ()


@VERSIONS
def test_a_real_set_is_written_with_the_features_it_had(version: str, tmp_path: Path) -> None:
    folder = find_real_set("so101_v30")
    given = read_set(folder)[0]
    path = write_set(tmp_path, version, given)
    theirs = {key: each for key, each in read_info(folder)["features"].items() if each["dtype"] != "video"}
    assert read_info(path)["features"] == theirs
    assert_same_numbers(given, read_set(path)[0])
    assert check_lerobot(path) == ()


@VERSIONS
def test_times_that_float32_cannot_hold_come_back(version: str, tmp_path: Path) -> None:
    exact = (np.arange(30) / FPS).astype(np.float32).astype(float)
    given = [make_recording(0, times_s=exact), make_recording(1), make_recording(2, times_s=exact)]
    path = write_set(tmp_path, version, given)
    assert_same_numbers(given, read_set(path)[0])
    assert pq.read_schema(list_data(path)[0]).field("timestamp").type == "float"
    assert check_lerobot(path) == ()


@VERSIONS
def test_types_that_differ_between_episodes_lose_nothing(version: str, tmp_path: Path) -> None:
    given = [make_recording(number) for number in range(3)]
    touch = given[1].columns["touch"].copy()
    touch[4] = np.nan
    given[1] = replace(given[1], columns={**given[1].columns, "touch": touch})
    given[2] = replace(given[2], types={})
    path = write_set(tmp_path, version, given)
    assert_same_numbers(given, read_set(path)[0])
    assert {str(pq.read_schema(file).field("touch").type) for file in list_data(path)} == {"double"}
    assert check_lerobot(path) == ()


@VERSIONS
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"])
def test_every_type_is_written_as_it_is(dtype: str, version: str, tmp_path: Path) -> None:
    columns = {"x": np.arange(30.0) % 2, "action.a": np.arange(30.0) % 2, "action.b": np.ones(30)}
    given = [make_recording(columns=columns, types=dict.fromkeys(columns, dtype) if dtype != "float64" else {})]
    path = write_set(tmp_path, version, given)
    assert read_info(path)["features"]["x"]["dtype"] == read_info(path)["features"]["action"]["dtype"] == dtype
    assert_same_numbers(given, read_set(path)[0])
    assert check_lerobot(path) == ()


@VERSIONS
def test_a_type_that_does_not_hold_the_numbers_is_not_used(version: str, tmp_path: Path) -> None:
    given = [make_recording(columns={"x": np.linspace(0, 1, 30)}, types={"x": "float32"})]
    found = read_set(write_set(tmp_path, version, given))[0]
    np.testing.assert_array_equal(found[0].columns["x"], given[0].columns["x"])


@VERSIONS
def test_statistics_leave_out_empty_cells(version: str, tmp_path: Path) -> None:
    values = np.array([np.nan, 1.0, 2.0, 6.0])
    given = [make_recording(columns={"x": values, "never": np.full(4, np.nan)}, types={}, times_s=np.arange(4.0))]
    path = write_set(tmp_path, version, given)
    if version == "v2.1":
        stats = json.loads((path / "meta/episodes_stats.jsonl").read_text(encoding="utf-8"))["stats"]
    else:
        stats = json.loads((path / "meta/stats.json").read_text(encoding="utf-8"))
    assert (stats["x"]["min"], stats["x"]["max"], stats["x"]["mean"], stats["x"]["count"]) == ([1], [6], [3], [4])
    assert stats["x"]["std"] == pytest.approx([np.sqrt((4 + 1 + 9) / 3)])
    assert stats["never"]["mean"] == [0.0]
    assert_same_numbers(given, read_set(path)[0])
    assert check_lerobot(path) == ()


def test_episodes_table_has_the_columns_of_the_format(tmp_path: Path) -> None:
    given = [make_recording(number, num_rows=20 + number) for number in range(3)]
    rows = pq.read_table(write_set(tmp_path, "v3.0", given) / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    assert [(row["dataset_from_index"], row["dataset_to_index"]) for row in rows] == [(0, 20), (20, 41), (41, 63)]
    assert {(row["data/chunk_index"], row["data/file_index"]) for row in rows} == {(0, 0)}
    assert rows[1]["stats/action/min"] == [given[1].columns["action.a"].min()]
    theirs = pq.read_schema(find_real_set("so101_v30") / "meta/episodes/chunk-000/file-000.parquet")
    ours = {name.replace("stats/touch", "stats/action") for name in rows[0]} - {"gapless"}
    assert {name for name in theirs.names if not name.startswith(("videos/", "stats/"))} <= ours
    assert {n for n in theirs.names if n.startswith("stats/action/")} <= ours


def test_tasks_are_a_pandas_table_as_lerobot_writes_it(tmp_path: Path) -> None:
    path = write_set(tmp_path, "v3.0", [make_recording(conditions={"task": "pick the cube"})]) / "meta/tasks.parquet"
    ours, theirs = pq.read_table(path), pq.read_table(find_real_set("so101_v30") / "meta/tasks.parquet")
    assert ours.to_pylist() == [{"task_index": 0, "__index_level_0__": "pick the cube"}]
    assert ours.schema == theirs.schema
    said = [json.loads(table.schema.metadata[b"pandas"]) for table in (ours, theirs)]
    for each in said:
        del each["creator"], each["pandas_version"]
    assert said[0] == said[1]


def test_a_long_set_is_split_into_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapless.formats.lerobot.data_files.DATA_FILE_MB", 0.001)
    path = write_set(tmp_path, "v3.0")
    assert [file.name for file in list_data(path)] == ["file-000.parquet", "file-001.parquet", "file-002.parquet"]
    assert len(read_set(path)[0]) == 3
    assert check_lerobot(path) == ()


@VERSIONS
def test_what_does_not_fit_is_left_out_with_its_reason(version: str, tmp_path: Path) -> None:
    good = make_recording()
    jitter = np.arange(30) / FPS
    jitter[5] += 0.004
    others = [
        make_recording(1, times_s=jitter),
        make_recording(2, times_s=np.arange(30) / 50.0),
        make_recording(3, columns={"other": np.ones(30)}, types={}),
        make_recording(4, num_rows=0),
    ]
    reasons = write_what_fits(tmp_path / "set", version, [good, *others])
    assert [reason.split(":")[0] for reason in reasons] == ["run_1", "run_2", "run_3", "run_4"]
    assert all(word in reason for word, reason in zip(["regular", "50 Hz", "columns", "no rows"], reasons, strict=True))
    assert len(read_set(tmp_path / "set")[0]) == 1
    assert check_lerobot(tmp_path / "set") == ()


@VERSIONS
def test_nothing_to_write_is_refused(version: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no episode"):
        write_what_fits(tmp_path / "set", version, [])


@VERSIONS
def test_robots_that_differ_are_not_told_as_one(version: str, tmp_path: Path) -> None:
    given = [
        make_recording(0, origin=Origin(robot="a")),
        make_recording(1, origin=Origin(robot="b")),
        make_recording(2),
    ]
    path = write_set(tmp_path, version, given)
    assert read_info(path)["robot_type"] is None
    assert [each.origin.robot for each in read_set(path)[0]] == ["a", "b", None]


def test_rates() -> None:
    assert find_rate(np.arange(30) / 20.0, None, 0.0) == 20
    assert find_rate(np.arange(30) / 12.5, None, 0.0) == 12.5
    assert find_rate(np.arange(30) / 20.0, 30, 0.0) == 20  # times say other than details
    assert find_rate(np.zeros(1), 30, 0.0) == 30  # one row has any rate
    assert find_rate(np.zeros(1), None, 0.0) is None
    assert find_rate(np.array([0.0, 0.05, 0.2]), 20, 0.0) is None


def test_the_tolerance_is_the_formats() -> None:
    times_s = np.arange(30) / 20.0
    times_s[7] += 0.9e-4
    assert is_regular(times_s, 20)
    times_s[7] += 0.2e-4
    assert not is_regular(times_s, 20)
