import json
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
    """Returns what an arm says, with messages of several types."""
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


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.name)
def test_all_that_a_robot_says_comes_back(kind: Format, tmp_path: Path) -> None:
    given, _ = read_one(bags.write_ros2(tmp_path / "run", make_everything()))
    changed = {name: values.copy() for name, values in given.columns.items()}
    changed["/cmd.data[0]"] += 1e-12  # no float32
    changed["/joint_states.position.elbow"][0] = np.nan  # one joint is silent once
    changed["/hand/pose.pose.position.x"][0] = np.inf
    for number, each in enumerate((given, replace(given, columns=changed))):
        assert write(kind, [each], tmp_path / f"out{number}") == []
        check_same(each, read_one(tmp_path / f"out{number}")[0])


def test_other_tools_find_the_names_of_columns(tmp_path: Path) -> None:
    given = Recording("run", np.array([0.0, 0.5]), {"/arm.q": np.array([1.0, 2.0]), "/arm.v": np.array([3.0, 4.0])})
    for kind in FORMATS:
        write(kind, [given], tmp_path / kind.name)
    with (tmp_path / "mcap" / "run.mcap").open("rb") as file:
        messages = [json.loads(message.data) for _, _, message in make_reader(file).iter_messages()]
    assert messages == [{"/arm.q": 1.0, "/arm.v": 3.0}, {"/arm.q": 2.0, "/arm.v": 4.0}]
    with Reader1(tmp_path / "rosbag1" / "run.bag") as reader1, Reader2(tmp_path / "rosbag2" / "run") as reader2:
        for reader, read in ((reader1, bags.STORE1.deserialize_ros1), (reader2, bags.STORE.deserialize_cdr)):
            wanted = [each for each in reader.connections if each.topic == "/gapless/columns_0"]
            arrays = [read(data, connection.msgtype) for connection, _, data in reader.messages(wanted)]
            assert [each.data.tolist() for each in arrays] == [[1.0, 3.0], [2.0, 4.0]]
            assert arrays[0].layout.dim[0].label == "/arm.q,/arm.v"


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.name)
def test_rows_at_message_time_come_back(kind: Format, tmp_path: Path) -> None:
    given, _ = read_one(bags.write_ros2(tmp_path / "run", make_everything()), "message")
    write(kind, [given], tmp_path / "out")
    check_same(given, read_one(tmp_path / "out")[0])


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
    assert [each.name for each in found] == ["r_n", "r_n_2", "run", "rûn"]
    check_same(given, found[2])
    assert sum(len(each.times_s) for each in found) == 3 * 53


def test_what_cannot_be_held_is_said(tmp_path: Path) -> None:
    seen = Recording("run", np.array([0.0]), {"a": np.array([1.0])}, videos=(Video("front", tmp_path / "a.mp4"),))
    assert write(FORMATS[0], [seen], tmp_path / "out") == [Skipped("run: video front", "this format holds no images")]
    late = replace(seen, start_ns=2**32 * 10**9)
    with pytest.raises(LogError, match="choose another format"):
        write(FORMATS[2], [late], tmp_path / "late")
