"""Tables as recordings: time, episodes, text, sidecars, and files that mean harm."""

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gapless.core.errors import LogError
from gapless.core.recording import Recording, Skipped
from gapless.formats import source
from gapless.formats.format import ReadOptions
from gapless.formats.registry import find_format, read_source
from unit.project.conftest import write_csv

TIMES_S = [0.0, 0.5, 1.0]


def read(path: Path, known: Sequence[str] = ()) -> tuple[list[Recording], dict[str, str]]:
    """Returns recordings, and what was skipped with the reasons."""
    found = list(read_source(path, ReadOptions(known=known)))
    skipped = {each.what: each.why for each in found if isinstance(each, Skipped)}
    return [each for each in found if isinstance(each, Recording)], skipped


@pytest.mark.parametrize(
    ("columns", "start_ns"),
    [
        ({"time_ms": [7.0, 507.0, 1007.0]}, None),
        ({"t": [100_000, 100_500, 101_000]}, None),  # steps of 500 look like ms
        ({"timestamp": [1760000000.25, 1760000000.75, 1760000001.25]}, 1760000000_250000000),
        ({"stamp_ns": [1760000000_000000123 + k * 500_000_000 for k in range(3)]}, 1760000000_000000123),
        ({"header.stamp.sec": [1760000000] * 2 + [1760000001], "header.stamp.nanosec": [7, 500000007, 7]},
         1760000000_000000007),
        ({"date": ["2025-10-09T08:53:20.5", "2025-10-09T08:53:21", "2025-10-09T08:53:21.5"]}, 1760000000_500000000),
    ],
)  # fmt: skip
def test_times_as_people_write_them(tmp_path: Path, columns: dict, start_ns: int | None) -> None:
    path = write_csv(tmp_path / "run.csv", {**columns, "q": [1, 2, 3]})
    (run,), skipped = read(path)
    assert skipped == {}
    np.testing.assert_allclose(run.times_s, TIMES_S, atol=1e-6)  # the float stamps of 2025 have steps of 2e-7 s
    assert run.start_ns == start_ns
    assert list(run.columns) == ["q"]
    assert run.types == {"q": "int64"}
    assert "guessed: the time" in run.details["time"]


def test_seconds_from_any_zero_need_no_guess(tmp_path: Path) -> None:
    (run,), _ = read(write_csv(tmp_path / "run.csv", {"time_s": [5.0, 5.5, 6.0], "q": [1.5, "", 2.5]}))
    assert list(run.times_s) == TIMES_S
    assert run.details == {}
    assert run.source is None
    np.testing.assert_array_equal(run.columns["q"], [1.5, np.nan, 2.5])


def test_rows_without_or_with_repeated_time_are_left_out_and_said(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "run.csv", {"time_s": [0, 0.5, 0.5, "", 0.2, 1.0], "q": [1, 2, 3, 4, 5, 6]})
    (run,), skipped = read(path)
    assert list(run.times_s) == TIMES_S
    assert list(run.columns["q"]) == [1, 2, 6]
    assert skipped == {"run: 3 of 6 rows": "their time is missing, repeated or goes backwards"}


def test_a_column_that_numbers_episodes_makes_several(tmp_path: Path) -> None:
    columns = {"timestamp": [0.0, 0.1, 0.0, 0.1, 0.2], "episode_index": [3, 3, 4, 4, 4], "q": [1, 2, 3, 4, 5]}
    path = write_csv(tmp_path / "set.csv", columns)
    runs, _ = read(path)
    assert [run.name for run in runs] == ["set_episode_000003", "set_episode_000004"]
    assert list(runs[1].columns["q"]) == [3, 4, 5]
    assert list(runs[1].times_s) == [0.0, 0.1, 0.2]
    assert [run.name for run in read(path, ["set_episode_000003"])[0]] == ["set_episode_000004"]
    mixed = write_csv(tmp_path / "mixed.csv", {**columns, "episode_index": [3, 4, 3, 4, 4]})
    with pytest.raises(LogError, match="mixed: sort them by episode"):
        read(mixed)


def test_text_that_never_changes_is_a_detail(tmp_path: Path) -> None:
    columns = {"time_s": TIMES_S, "task": ["push"] * 3, "phase": list("abb"), "q": [1.0, 2.0, 3.0]}
    (run,), skipped = read(write_csv(tmp_path / "run.csv", columns))
    assert run.details == {"task": "push"}
    assert list(run.columns) == ["q"]
    assert skipped == {"run.csv: phase": "it holds text that changes, not numbers"}


def test_whole_numbers_that_float64_cannot_hold_are_skipped(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"time_s": TIMES_S, "id": [2**53 + 1, 2, 3], "q": pa.array([1, None, 3], pa.int32())}),
        tmp_path / "run.parquet",
    )
    (run,), skipped = read(tmp_path / "run.parquet")
    assert "whole numbers beyond 2**53" in skipped["run.parquet: id"]
    np.testing.assert_array_equal(run.columns["q"], [1, np.nan, 3])
    assert run.types == {"q": "int32"}


def test_lists_and_arrays_are_a_column_per_element(tmp_path: Path) -> None:
    images = np.zeros((3, 4, 4, 3), np.uint8)
    np.savez(tmp_path / "run.npz", time_s=TIMES_S, q=np.arange(6, dtype=np.float32).reshape(3, 2), images=images)
    (run,), skipped = read(tmp_path / "run.npz")
    assert list(run.columns) == ["q_0", "q_1"]
    assert run.types == {"q_0": "float32", "q_1": "float32"}
    assert list(skipped) == ["run.npz: images"]


def test_a_folder_is_its_files_by_name_and_one_that_is_damaged_leaves_the_rest(tmp_path: Path) -> None:
    for name in ("b", "a", "c", ".hidden"):
        write_csv(tmp_path / f"{name}.csv", {"time_s": TIMES_S, "q": [1, 2, 3]})
    (tmp_path / "b.csv").write_text("time_s,q\n0,1\n1\n")
    runs, skipped = read(tmp_path)
    assert [run.name for run in runs] == ["a", "c"]
    assert list(skipped) == ["b.csv"]
    assert "row 2 has 1 of 2 fields" in skipped["b.csv"]
    assert [run.name for run in read(tmp_path, ["a"])[0]] == ["c"]
    np.savez(tmp_path / "d.npz", time_s=TIMES_S)
    with pytest.raises(LogError, match=r"\.csv and \.npz files: give each format a folder"):
        read(tmp_path)


def test_links_that_lead_out_are_refused(tmp_path: Path) -> None:
    write_csv(tmp_path / "secret.csv", {"time_s": TIMES_S, "q": [1, 2, 3]})
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "run.csv").symlink_to(tmp_path / "secret.csv")
    with pytest.raises(LogError, match=r"outside of its folder, 'run\.csv'"):
        read(tmp_path / "set")
    (tmp_path / "set" / "run.csv").unlink()
    write_csv(tmp_path / "set" / "run.csv", {"time_s": TIMES_S, "q": [1, 2, 3]})
    (tmp_path / "secret.json").write_text("{}")
    (tmp_path / "set" / "run.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(LogError, match=r"outside of its folder, 'run\.json'"):
        read(tmp_path / "set" / "run.csv")


def test_a_sidecar_says_what_people_know(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "run.csv", {"time_s": TIMES_S, "q": [1, 2, 3]})
    said = {"source": "real", "outcome": "failure", "failed_in": "lift", "conditions": {"light": "dim", "mass_kg": 2}}
    said |= {"operator": "ana", "participants": ["p1", "p2"], "parameters": {"joint/elbow/damping": 0.5}, "batch": 7}
    (tmp_path / "run.json").write_text(json.dumps(said))
    (run,), skipped = read(path)
    assert skipped == {}
    assert (run.source, run.outcome, run.failed_in) == ("real", "failure", "lift")
    assert run.conditions == {"light": "dim", "mass_kg": "2"}
    assert (run.origin.operator, run.origin.participants) == ("ana", ("p1", "p2"))
    assert run.origin.parameters == {"joint/elbow/damping": 0.5}
    assert run.details == {"batch": 7}


@pytest.mark.parametrize("said", [{"robot": 5}, {"participants": "ana"}, {"parameters": {"a": "b"}}, {"source": "x"}])
def test_a_sidecar_of_wrong_types_is_refused_in_one_line(tmp_path: Path, said: dict) -> None:
    path = write_csv(tmp_path / "run.csv", {"time_s": TIMES_S, "q": [1, 2, 3]})
    (tmp_path / "run.json").write_text(json.dumps(said))
    with pytest.raises(LogError, match=f"{next(iter(said))} is .*: write ") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_objects_are_never_unpickled_and_leave_the_rest(tmp_path: Path) -> None:
    np.savez(tmp_path / "run.npz", time_s=TIMES_S, q=[1.0, 2, 3], evil=np.array([{}, {}, {}], dtype=object))
    (run,), skipped = read(tmp_path / "run.npz")
    assert list(run.columns) == ["q"]
    assert "never unpickled" in skipped["run.npz: evil"]


def write_member(path: Path, member: str, header: dict, num_bytes: int) -> Path:
    """Writes an npz whose one more member has a header, and as many zeros."""
    np.savez(path, time_s=TIMES_S, q=[1.0, 2, 3])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open(member, "w") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for _ in range(num_bytes // 2**20):
            file.write(bytes(2**20))
    return path


def test_zip_bombs_and_members_that_lead_out_are_refused(tmp_path: Path) -> None:
    many = {"descr": "<f8", "fortran_order": False, "shape": (2**25,)}
    with pytest.raises(LogError, match="as a zip bomb does: save it"):
        read(write_member(tmp_path / "bomb.npz", "x.npy", many, 2**28))
    with pytest.raises(LogError, match="leads out of the file"):
        read(write_member(tmp_path / "out.npz", "../x.npy", {**many, "shape": (2**17,)}, 2**20))
    (run,), skipped = read(write_member(tmp_path / "liar.npz", "x.npy", {**many, "shape": (2**40,)}, 2**20))
    assert list(run.columns) == ["q"]
    assert "claims more numbers than there are" in skipped["liar.npz: x"]


@pytest.mark.parametrize("name", ["csv", "parquet", "npz"])
def test_too_little_memory_is_said_before_reading(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"time_s": np.arange(100.0), "q": np.arange(100.0)}
    path = tmp_path / f"run.{name}"
    if name == "npz":
        np.savez(path, **columns)
    elif name == "parquet":
        pq.write_table(pa.table(columns), path)
    else:
        write_csv(path, {key: list(values) for key, values in columns.items()})
    assert find_format(path).name == name
    monkeypatch.setattr(source, "read_free_memory", lambda: 100.0)
    with pytest.raises(LogError, match="split the file, or use a machine with more"):
        read(path)


def test_a_rollout_has_one_action_fewer_than_states(tmp_path: Path) -> None:
    np.savez(tmp_path / "rollout.npz", time_s=np.arange(4.0), states=np.ones((4, 2)), actions=np.ones((3, 1)))
    found = list(read_source(tmp_path / "rollout.npz"))
    (recording,) = (each for each in found if isinstance(each, Recording))
    np.testing.assert_array_equal(recording.columns["actions_0"], [1, 1, 1, np.nan])
    assert [each.why for each in found if isinstance(each, Skipped)] == [
        "its last row has no value: rollouts have one action fewer than states"
    ]
