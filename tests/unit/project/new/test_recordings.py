"""`new` takes many logs and folders of them, and times as people write them."""

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gapless.core.errors import InputError, LogError, ProjectError
from gapless.core.recording import Recording
from gapless.formats.format import Format
from gapless.formats.lerobot import LEROBOT_V21, LEROBOT_V30
from gapless.project.load import load_project
from gapless.project.log.read import read_logs
from gapless.project.new.create import new_project
from unit.project.conftest import write_csv

from .robots import moving, write_arm

TIMES_S = np.arange(0, 4, 0.01)
EPOCH_NS = 1_714_560_000_123_456_789


def signals(place: int = 0) -> dict[str, object]:
    return {"q_shoulder": moving(place, TIMES_S), "q_elbow": moving(place + 1, TIMES_S)}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_arm(tmp_path / "arm.xml", ("shoulder", "elbow"), ())


def durations_s(folder: Path) -> list[float]:
    return [log.episode.duration_s for log in read_logs(load_project(folder))]


def test_many_logs_are_all_converted(model: Path, tmp_path: Path) -> None:
    logs = [write_csv(tmp_path / f"run{k}.csv", {"t_ms": 1000 * TIMES_S + 500 * k, **signals(k)}) for k in range(3)]
    made = new_project(model, logs, tmp_path / "made")
    assert durations_s(tmp_path / "made") == pytest.approx([3.99] * 3)
    assert load_project(tmp_path / "made").rate_hz == 100
    assert len(made.inputs) == 4
    assert [note.where for note in made.notes].count("t_ms") == 1


def test_a_folder_is_all_its_logs(model: Path, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", ".hidden.csv"):
        write_csv(tmp_path / "bag" / name, {"t_ms": 1000 * TIMES_S, **signals()})
    (tmp_path / "bag" / "a.json").write_text('{"outcome": "failure"}')
    (tmp_path / "bag" / "readme.txt").write_text("hello")
    np.savez(tmp_path / "bag" / "c.npz", t_ms=1000 * TIMES_S, **signals())
    new_project(model, tmp_path / "bag", tmp_path / "made")
    read = read_logs(load_project(tmp_path / "made"))
    assert [log.path.name for log in read] == ["a.csv", "b.csv", "c.parquet"]
    assert read[0].episode.outcome == "failure"


def test_logs_of_one_name_in_several_folders_keep_apart(model: Path, tmp_path: Path) -> None:
    logs = [write_csv(tmp_path / name / "log.csv", {"time_s": TIMES_S, **signals()}) for name in ("mon", "tue")]
    new_project(model, logs, tmp_path / "made")
    assert sorted(path.name for path in (tmp_path / "made" / "logs").iterdir()) == ["mon_log.csv", "tue_log.csv"]
    with pytest.raises(LogError, match="given twice"):
        new_project(model, [logs[0], logs[0]], tmp_path / "twice")


def test_one_bad_log_is_named_and_nothing_is_made(model: Path, tmp_path: Path) -> None:
    good = write_csv(tmp_path / "good.csv", {"t_ms": 1000 * TIMES_S, **signals()})
    other = write_csv(tmp_path / "other.csv", {"clock_us": 1e6 * TIMES_S, **signals()})
    with pytest.raises(LogError, match=r"no column t_ms.*clock_us.*other\.csv"):
        new_project(model, [good, other], tmp_path / "made")
    backwards = write_csv(tmp_path / "back.csv", {"t_ms": 1000 * np.r_[TIMES_S[:200], TIMES_S[:200]], **signals()})
    with pytest.raises(LogError, match=r"goes backwards.*back\.csv"):
        new_project(model, [good, backwards], tmp_path / "made")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    with pytest.raises(LogError, match=r"cut\.parquet"):
        new_project(model, [good, tmp_path / "cut.parquet"], tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_nothing_is_left_half_made_where_a_file_is_in_the_way(model: Path, tmp_path: Path) -> None:
    logs = [write_csv(tmp_path / f"run{k}.csv", {"t_ms": 1000 * TIMES_S, **signals()}) for k in range(2)]
    (tmp_path / "made" / "logs").mkdir(parents=True)
    (tmp_path / "made" / "logs" / "run1.csv").write_text("mine")
    with pytest.raises(ProjectError, match=r"not overwritten.*run1\.csv"):
        new_project(model, logs, tmp_path / "made")
    assert [path.name for path in (tmp_path / "made").rglob("*") if path.is_file()] == ["run1.csv"]


def test_a_sibling_that_lacks_a_mapped_column_is_said(model: Path, tmp_path: Path) -> None:
    first = write_csv(tmp_path / "a.csv", {"time_s": TIMES_S, **signals()})
    second = write_csv(tmp_path / "b.csv", {"time_s": TIMES_S, "q_shoulder": moving(0, TIMES_S)})
    made = new_project(model, [first, second], tmp_path / "made")
    (said,) = [note for note in made.notes if note.where == "b.csv"]
    assert said.level == "warning"
    assert "q_elbow" in said.text


def iso(times_s: np.ndarray, zone: str = "") -> list[str]:
    start = datetime(2024, 5, 1, 12, tzinfo=UTC)
    return [(start + timedelta(seconds=float(t))).replace(tzinfo=None).isoformat() + zone for t in times_s]


WRITTEN: dict[str, dict[str, object]] = {
    "__time": {"__time": TIMES_S + 1.7e9},
    "timestamp": {"timestamp": TIMES_S},
    "epoch ns": {"timestamp": [EPOCH_NS + 10_000_000 * k for k in range(len(TIMES_S))]},
    "us": {"stamp_us": [1e6 * t for t in TIMES_S]},
    "iso": {"time": iso(TIMES_S)},
    "iso with zone": {"Timestamp": iso(TIMES_S, "Z")},
    "stamp": {
        "header.stamp.sec": [1_700_000_000 + int(k // 100) for k in range(len(TIMES_S))],
        "header.stamp.nanosec": [10_000_000 * (k % 100) for k in range(len(TIMES_S))],
    },
    "stamp of a topic": {
        "/joint_states.header.stamp.secs": [1_700_000_000 + int(k // 100) for k in range(len(TIMES_S))],
        "/joint_states.header.stamp.nsecs": [10_000_000 * (k % 100) for k in range(len(TIMES_S))],
    },
    "rostopic echo": {"%time": [EPOCH_NS + 10_000_000 * k for k in range(len(TIMES_S))]},
}


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
@pytest.mark.parametrize("written", WRITTEN)
def test_times_as_people_write_them(model: Path, tmp_path: Path, written: str, ending: str) -> None:
    columns = {**signals(), **WRITTEN[written]}
    log = tmp_path / f"run.{ending}"
    if ending == "csv":
        write_csv(log, columns)
    elif ending == "parquet":
        pq.write_table(pa.table(columns), log)
    else:
        np.savez(log, **{name: np.asarray(values) for name, values in columns.items()})
    made = new_project(model, log, tmp_path / "made")
    (read,) = read_logs(load_project(tmp_path / "made"))
    np.testing.assert_allclose(read.episode.measurements.times_s, TIMES_S, atol=3e-7)
    assert load_project(tmp_path / "made").rate_hz == 100
    assert any(note.where == next(iter(WRITTEN[written])) and "the time" in note.text for note in made.notes)


def test_epoch_nanoseconds_are_exact(model: Path, tmp_path: Path) -> None:
    stamps = [EPOCH_NS + 1_000_001 * k for k in range(len(TIMES_S))]  # as float64 they are 256 ns apart at least
    log = write_csv(tmp_path / "run.csv", {"timestamp": stamps, **signals()})
    new_project(model, log, tmp_path / "made")
    (read,) = read_logs(load_project(tmp_path / "made"))
    np.testing.assert_allclose(read.episode.measurements.times_s, 1.000001e-3 * np.arange(len(stamps)), atol=1e-12)


def test_first_rows_without_a_time_do_not_matter(model: Path, tmp_path: Path) -> None:
    times = np.r_[np.nan, np.nan, TIMES_S[2:] + 1.7e9]
    np.savez(tmp_path / "run.npz", **{"__time": times, **signals()})
    new_project(model, tmp_path / "run.npz", tmp_path / "made")
    assert durations_s(tmp_path / "made") == pytest.approx([3.97])


def test_dates_and_numbers_in_one_column_of_two_logs_are_refused(model: Path, tmp_path: Path) -> None:
    first = write_csv(tmp_path / "a.csv", {"time": TIMES_S, **signals()})
    second = write_csv(tmp_path / "b.csv", {"time": iso(TIMES_S), **signals()})
    with pytest.raises(LogError, match=r"holds dates, and numbers in the first log.*b\.csv"):
        new_project(model, [first, second], tmp_path / "made")


def test_timestamps_of_parquet(model: Path, tmp_path: Path) -> None:
    stamps = pa.array([EPOCH_NS + 10_000_000 * k for k in range(len(TIMES_S))], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table({"recorded_time": stamps, **signals()}), tmp_path / "run.parquet")
    new_project(model, tmp_path / "run.parquet", tmp_path / "made")
    assert durations_s(tmp_path / "made") == pytest.approx([3.99])


def test_rows_of_several_topics_do_not_raise_the_rate(model: Path, tmp_path: Path) -> None:
    times_s = np.arange(0, 4, 0.005)  # states at even rows, commands at odd ones, as PlotJuggler exports them
    even = np.arange(len(times_s)) % 2 == 0
    columns = {name: np.where(even, moving(k, times_s), np.nan) for k, name in enumerate(("q_shoulder", "q_elbow"))}
    log = write_csv(tmp_path / "run.csv", {"__time": times_s, **columns})
    new_project(model, log, tmp_path / "made")
    assert load_project(tmp_path / "made").rate_hz == 100


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("run.mcap", "not readable as MCAP.*record or save it again"),
        ("run.bag", "not readable as ROS 1 bag.*record or save it again"),
        ("run_0.db3", "not readable as ROS 2 bag.*record or save it again"),
        ("run.mat", "numpy.savez"),
        ("run.txt", "save it as CSV with commas"),
        ("run.zip", "unpack it"),
        ("run.abc", "no format that is known, give one of LeRobot"),
    ],
)
def test_files_that_cannot_be_read_say_what_to_do(model: Path, tmp_path: Path, name: str, advice: str) -> None:
    (tmp_path / name).write_bytes(b"data")
    with pytest.raises(LogError, match=advice) as caught:
        new_project(model, tmp_path / name, tmp_path / "made")
    assert "\n" not in str(caught.value)


def test_folders_that_cannot_be_read_say_what_to_do(model: Path, tmp_path: Path) -> None:
    bag = tmp_path / "bag"
    bag.mkdir()
    (bag / "metadata.yaml").write_text("rosbag2_bagfile_information:")
    with pytest.raises(LogError, match="metadata of a ROS 2 bag"):
        new_project(model, bag, tmp_path / "made")
    (tmp_path / "empty").mkdir()
    with pytest.raises(LogError, match="no format that is known, in this folder there are: "):
        new_project(model, tmp_path / "empty", tmp_path / "made")


def test_a_log_in_place_of_the_folder_is_noticed(model: Path, tmp_path: Path) -> None:
    log = write_csv(tmp_path / "a.csv", {"time_s": TIMES_S, **signals()})
    for last in (log, tmp_path / "b.csv"):
        with pytest.raises(InputError, match="last"):
            new_project(model, log, last)
    with pytest.raises(InputError, match="no log"):
        new_project(model, [], tmp_path / "made")


def write_lerobot(folder: Path, files: dict[str, list[int]], names: object) -> None:
    """Writes a LeRobot data set: per file, the episodes in it."""
    (folder / "meta").mkdir(parents=True)
    features = {key: {"dtype": "float32", "shape": [2], "names": names} for key in ("observation.state", "action")}
    (folder / "meta" / "info.json").write_text(json.dumps({"codebase_version": "v2.1", "features": features}))
    for file, episodes in files.items():
        state = np.column_stack([moving(0, TIMES_S), moving(1, TIMES_S)]).astype(np.float32)
        count = len(TIMES_S)
        rows = [row for _ in episodes for row in state.tolist()]
        table = {
            "observation.state": pa.array(rows, pa.list_(pa.float32(), 2)),
            "action": pa.array(rows, pa.list_(pa.float32())),
            "timestamp": pa.array(np.tile(TIMES_S, len(episodes)).astype(np.float32)),
            "frame_index": pa.array(np.tile(np.arange(count), len(episodes))),
            "episode_index": pa.array(np.repeat(episodes, count)),
        }
        path = folder / "data" / "chunk-000" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(table), path)


@pytest.mark.parametrize("kind", [LEROBOT_V21, LEROBOT_V30], ids=lambda kind: kind.name)
def test_lerobot_data_sets(kind: Format, tmp_path: Path) -> None:
    model = write_arm(tmp_path / "arm.xml", ("shoulder", "elbow"))
    names = [f"{key}.{joint}.pos" for key in ("observation.state", "action") for joint in ("shoulder", "elbow")]
    columns = {name: moving(k % 2, TIMES_S) for k, name in enumerate(names)}
    given = [Recording(f"run{k}", TIMES_S, columns, outcome="success", conditions={"task": "go"}) for k in range(2)]
    assert kind.write is not None
    assert list(kind.write(iter(given), tmp_path / "set")) == []
    new_project(model, tmp_path / "set", tmp_path / "made")
    project = load_project(tmp_path / "made")
    assert [command.actuator for command in project.commands] == ["shoulder", "elbow"]
    assert [item.name for item in project.measurements] == ["shoulder", "elbow"]
    assert project.measurement_names == ("observation.state.shoulder.pos", "observation.state.elbow.pos")
    logs = read_logs(project)
    assert len(logs) == 2
    np.testing.assert_array_equal(logs[0].episode.measurements.values[:, 1], moving(1, TIMES_S))
    assert logs[0].episode.outcome == "success"
    assert logs[0].episode.conditions == {"task": "go"}


def test_many_episodes_in_one_file_become_a_log_each(tmp_path: Path) -> None:
    model = write_arm(tmp_path / "arm.xml", ("shoulder", "elbow"))
    write_lerobot(tmp_path / "set", {"file-000.parquet": [0, 1, 2]}, ["shoulder.pos", "elbow.pos"])
    new_project(model, tmp_path / "set" / "data" / "chunk-000" / "file-000.parquet", tmp_path / "made")
    assert durations_s(tmp_path / "made") == pytest.approx([3.99] * 3, abs=1e-5)


def test_a_log_that_keeps_its_lists_is_mapped_and_read(tmp_path: Path) -> None:
    model = write_arm(tmp_path / "arm.xml", ("shoulder", "elbow"))
    times_s = np.arange(0, 4, 0.01)
    states = np.column_stack([moving(0, times_s), moving(1, times_s)])
    table = {"time_s": times_s, "observation": pa.array(states.tolist()), "action": pa.array(states.tolist())}
    pq.write_table(pa.table(table), tmp_path / "run.parquet")
    new_project(model, tmp_path / "run.parquet", tmp_path / "made")
    project = load_project(tmp_path / "made")
    assert project.measurement_names == ("observation_0", "observation_1")
    assert project.command_names == ("action_0", "action_1")
    (log,) = read_logs(project)
    np.testing.assert_allclose(log.episode.measurements.values, states)


def test_converting_a_csv_keeps_every_digit_and_word(model: Path, tmp_path: Path) -> None:
    rows = 300
    times_ms = 10 * np.arange(rows)
    columns = {
        "t_ms": times_ms,
        "q_shoulder": ["0"] * (rows - 1) + ["0.123456789012345678"],
        "stamp_of_camera_ns": [EPOCH_NS + k for k in range(rows)],
        "remark": ["a, b"] * (rows - 1) + ['say "c"'],
    }
    log = write_csv(tmp_path / "run.csv", columns)
    log.write_bytes(b"\xef\xbb\xbf" + log.read_bytes())
    new_project(model, log, tmp_path / "made")
    (read,) = read_logs(load_project(tmp_path / "made"))
    assert read.episode.measurements.values[-1, 0] == pytest.approx(0.123456789012345678)
    with (tmp_path / "made" / "logs" / "run.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert list(written[0]) == ["time_s", "q_shoulder", "stamp_of_camera_ns", "remark"]
    assert written[-1]["stamp_of_camera_ns"] == str(EPOCH_NS + rows - 1)
    assert [written[0]["remark"], written[-1]["remark"]] == ["a, b", 'say "c"']
