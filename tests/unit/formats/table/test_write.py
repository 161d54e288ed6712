"""Recordings written as tables: every bit, hard names, and what a table does not hold."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gapless.core.recording import Origin, Recording, Skipped, Video
from gapless.formats.registry import choose_format, read_source

HARD = [0.1, -0.0, 5e-324, 1.7976931348623157e308, np.pi * 1e-300, np.inf, -np.inf, np.nan, float(np.float32(0.1))]


def write(kind: str, recordings: list[Recording], folder: Path) -> list[Skipped]:
    """Writes recordings and returns what was skipped."""
    save = choose_format(kind, to_write=True).write
    assert save is not None
    return list(save(iter(recordings), folder))


def read(path: Path) -> list[Recording]:
    """Returns recordings; nothing of them may be skipped."""
    found = list(read_source(path))
    assert all(isinstance(each, Recording) for each in found), found
    return [each for each in found if isinstance(each, Recording)]


def make(name: str, columns: dict[str, np.ndarray], **about: object) -> Recording:
    """Returns a recording at 10 Hz."""
    num_rows = len(next(iter(columns.values())))
    return Recording(name, np.arange(num_rows) / 10, columns, **about)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_every_bit_comes_back(tmp_path: Path, kind: str) -> None:
    zeros = np.array([0.0, -0.0] * 4 + [0.0])
    columns = {"hard": np.array(HARD), "zeros": zeros, "gaps": np.where(zeros == 0, np.nan, 0.0), "n": zeros + 3.0}
    types = {"gaps": "int64", "n": "uint8", "zeros": "int32"}
    assert write(kind, [make("run", columns, types=types)], tmp_path / "set") == []
    (run,) = read(tmp_path / "set")
    assert run.types == types
    for name, values in columns.items():
        same = run.columns[name].view(np.int64) == values.view(np.int64)
        assert (same | np.isnan(values) & np.isnan(run.columns[name])).all(), name


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_hard_names_of_columns_and_episodes(tmp_path: Path, kind: str) -> None:
    names = ["/joint_states.position.hip", 'a, "b"', "file", "episode_index", "größe", "timestamp"]
    columns = {name: np.arange(5.0) + k for k, name in enumerate(names)}
    recordings = [make(name, columns) for name in ("a/b", "a_b", "..", "A_b")]
    assert write(kind, recordings, tmp_path / "set") == []
    runs = read(tmp_path / "set")
    assert sorted(run.name for run in runs) == ["A_b_3", "a_b", "a_b_2", "episode"]
    for run in runs:
        assert list(run.columns) == names
        np.testing.assert_array_equal(run.columns["file"], np.arange(5.0) + 2)


def test_a_table_says_what_it_does_not_hold(tmp_path: Path) -> None:
    columns = {"q": np.arange(3.0), "time_s": np.arange(3.0), "": np.arange(3.0), "a\nb": np.arange(3.0)}
    video = Video("front", tmp_path / "front.mp4")
    skipped = write("csv", [make("run", columns, videos=(video,))], tmp_path / "set")
    whats = ["run: video front", "run: column 'time_s'", "run: column ''", "run: column 'a\\nb'"]
    assert [each.what for each in skipped] == whats
    assert list(read(tmp_path / "set")[0].columns) == ["q"]


def test_people_may_correct_the_top_level_of_a_sidecar(tmp_path: Path) -> None:
    given = make("run", {"q": np.arange(3.0)}, source="sim", origin=Origin(robot="arm", site="lab"))
    write("parquet", [given], tmp_path / "set")
    path = tmp_path / "set" / "run.json"
    said = json.loads(path.read_text())
    assert (said["source"], said["robot"]) == ("sim", "arm")
    path.write_text(json.dumps({**said, "source": "twin", "site": "hall"}))
    (run,) = read(tmp_path / "set")
    assert (run.source, run.origin) == ("twin", Origin(robot="arm", site="hall"))
    path.unlink()
    assert read(tmp_path / "set")[0].origin == given.origin  # a Parquet says it by itself
    path.write_text('{"outcome": "success"}')
    (run,) = read(tmp_path / "set")
    assert (run.outcome, run.source, run.origin) == ("success", "sim", given.origin)


def test_types_are_true_in_parquet(tmp_path: Path) -> None:
    columns = {"touch": np.array([0.0, 1, 1]), "n": np.arange(3.0), "q": np.arange(3.0)}
    write("parquet", [make("run", columns, types={"touch": "bool", "n": "int64", "q": "float32"})], tmp_path / "set")
    schema = pq.read_schema(tmp_path / "set" / "run.parquet")
    assert [str(field.type) for field in schema] == ["double", "bool", "int64", "float"]
