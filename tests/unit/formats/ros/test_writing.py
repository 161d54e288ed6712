from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from rosbags.rosbag1 import Reader as Reader1
from rosbags.rosbag2 import Reader as Reader2

from gapless.core.errors import LogError
from gapless.core.recording import Recording, Skipped, Video, describe_recording
from gapless.formats.format import Format
from gapless.formats.registry import choose_format, read_source
from unit.formats.ros import bags
from unit.formats.ros.bags import START_NS, make, make_header
from unit.formats.ros.test_reading import read_one

FORMATS = [choose_format(name) for name in ("mcap", "rosbag2", "rosbag1")]


def write(kind: Format, recordings: list[Recording], path: Path) -> list[Skipped]:
    assert kind.write is not None
    return list(kind.write(recordings, path))


def check_same(given: Recording, found: Recording) -> None:
    np.testing.assert_array_equal(given.times_s, found.times_s)
    assert found.columns.keys() == given.columns.keys()
    for name, values in given.columns.items():
        np.testing.assert_array_equal(values, found.columns[name], err_msg=name)
    assert describe_recording(found) == describe_recording(given)


def make_everything() -> list[bags.Said]:
    """Returns what an arm says, with types that can and that cannot be written as messages again."""
    said = bags.make_arm(duration_s=0.2)
    for k in range(3):
        time_ns = START_NS + k * 7_000_001
        gripper = bags.make_joints(time_ns - 5, {"gripper": k / 3})  # another node, on the same topic
        said.append(("/joint_states", "sensor_msgs/msg/JointState", time_ns + 9, gripper))
        layout = make("std_msgs/msg/MultiArrayLayout", dim=[], data_offset=0)
        array = make("std_msgs/msg/Float32MultiArray", layout=layout, data=np.array([0.1, k], np.float32))
        said.append(("/cmd", "std_msgs/msg/Float32MultiArray", time_ns, array))
        pose = make(
            "geometry_msgs/msg/Pose",
            position=make("geometry_msgs/msg/Point", x=k / 7, y=0.0, z=-0.0),
            orientation=bags.make_quaternion(),
        )
        stamped = make("geometry_msgs/msg/PoseStamped", header=make_header(time_ns - 3, "map"), pose=pose)
        said.append(("/hand/pose", "geometry_msgs/msg/PoseStamped", time_ns, stamped))
        poses = make("geometry_msgs/msg/PoseArray", header=make_header(time_ns - 1), poses=[pose, pose])
        said.append(("/objects", "geometry_msgs/msg/PoseArray", time_ns, poses))
    return said


def list_types(kind: Format, folder: Path) -> dict[str, str]:
    """Returns topic -> type of a bag by its own library."""
    if kind.name == "mcap":
        with (folder / "run.mcap").open("rb") as file:
            summary = make_reader(file).get_summary()
        assert summary is not None
        schemas = {number: each.name for number, each in summary.schemas.items()}
        return {each.topic: schemas[each.schema_id] for each in summary.channels.values()}
    with Reader1(folder / "run.bag") if kind.name == "rosbag1" else Reader2(folder / "run") as reader:
        return {each.topic: each.msgtype for each in reader.connections}


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.name)
def test_messages_become_the_same_messages(kind: Format, tmp_path: Path) -> None:
    given, _ = read_one(bags.write_ros2(tmp_path / "run", make_everything()))
    assert write(kind, [given], tmp_path / "out") == []
    types = list_types(kind, tmp_path / "out")
    assert {topic: types[topic] for topic in ("/joint_states", "/imu", "/cmd", "/hand/pose")} == {
        "/joint_states": "sensor_msgs/msg/JointState",
        "/imu": "sensor_msgs/msg/Imu",
        "/cmd": "std_msgs/msg/Float32MultiArray",
        "/hand/pose": "geometry_msgs/msg/PoseStamped",
    }
    assert "/objects" not in types  # a list of poses goes to a topic of gapless' own
    found, _ = read_one(tmp_path / "out")
    check_same(given, found)


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.name)
def test_numbers_that_a_message_cannot_hold_come_back_all_the_same(kind: Format, tmp_path: Path) -> None:
    given, _ = read_one(bags.write_ros2(tmp_path / "run", make_everything()))
    changed = {name: values.copy() for name, values in given.columns.items()}
    changed["/cmd.data[0]"] += 1e-12  # no float32
    changed["/joint_states.position.elbow"][0] = np.nan  # one joint is silent once
    changed["/hand/pose.pose.position.x"][0] = np.inf
    altered = replace(given, columns=changed)
    write(kind, [altered], tmp_path / "out")
    types = list_types(kind, tmp_path / "out")
    assert "/cmd" not in types
    assert "/joint_states" not in types
    check_same(altered, read_one(tmp_path / "out")[0])


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.name)
def test_rows_at_message_time_come_back(kind: Format, tmp_path: Path) -> None:
    given, _ = read_one(bags.write_ros2(tmp_path / "run", make_everything()), "message")
    write(kind, [given], tmp_path / "out")
    check_same(given, read_one(tmp_path / "out")[0])


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.name)
def test_what_was_written_at_receipt_is_read_at_message_time(kind: Format, tmp_path: Path) -> None:
    path = bags.write_ros2(tmp_path / "run", bags.make_arm(duration_s=0.1))
    write(kind, [read_one(path)[0]], tmp_path / "out")
    check_same(read_one(path, "message")[0], read_one(tmp_path / "out", "message")[0])


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.name)
def test_any_times_and_values_come_back(kind: Format, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    times_s = np.concatenate([[0.0, 1e-12, 2e-10], np.sort(rng.uniform(1, 1000, 50))])  # two rows within a nanosecond
    values = rng.normal(size=53) * 10.0 ** rng.integers(-300, 300, 53)
    sparse = np.where(rng.random(53) < 0.5, values, np.nan)
    columns = {
        "a b.c": values,
        "sparse": sparse,
        "inf": np.where(values > 0, np.inf, -np.inf),
        "silent": np.full(53, np.nan),
    }
    given = Recording("run", times_s, columns)
    empty = Recording("rûn", np.empty(0), {})
    write(kind, [given, empty, replace(given, name="r/n"), replace(given, name="r?n")], tmp_path / "out")
    found = [each for each in read_source(tmp_path / "out") if isinstance(each, Recording)]
    assert [each.name for each in found] == ["r_n", "r_n_1", "r_n_2", "run"]
    check_same(given, found[-1])
    assert sum(len(each.times_s) for each in found) == 3 * 53


def test_what_cannot_be_held_is_said(tmp_path: Path) -> None:
    seen = Recording("run", np.array([0.0]), {"a": np.array([1.0])}, videos=(Video("front", tmp_path / "a.mp4"),))
    assert write(FORMATS[0], [seen], tmp_path / "out") == [
        Skipped("run: videos", "videos of front are not written to this format")
    ]
    late = replace(seen, start_ns=2**32 * 10**9)
    with pytest.raises(LogError, match="choose another format"):
        write(FORMATS[2], [late], tmp_path / "late")
