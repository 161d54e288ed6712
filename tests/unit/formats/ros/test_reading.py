import json
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from mcap.writer import CompressionType, IndexType
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from gapless.core.errors import LogError
from gapless.core.recording import Recording, Skipped
from gapless.formats import source
from gapless.formats.format import ReadOptions
from gapless.formats.registry import find_format, read_source
from gapless.formats.ros import bags as bag_reading
from unit.formats.ros import bags
from unit.formats.ros.bags import START_NS, make, make_header


def read_one(path: Path, time: str = "receipt") -> tuple[Recording, list[Skipped]]:
    found = list(read_source(path, ReadOptions(time=time)))
    recordings = [each for each in found if isinstance(each, Recording)]
    assert len(recordings) == 1
    return recordings[0], [each for each in found if isinstance(each, Skipped)]


WRITERS = {
    "mcap": lambda folder, said: bags.write_cdr_mcap(folder / "run.mcap", said),
    "rosbag2": lambda folder, said: bags.write_ros2(folder / "run", said),
    "rosbag2 in mcap": lambda folder, said: bags.write_ros2(folder / "run", said, StoragePlugin.MCAP),
    "rosbag1": lambda folder, said: bags.write_ros1(folder / "run.bag", said),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_joints_in_any_order_and_late_stamps(kind: str, tmp_path: Path) -> None:
    store = bags.STORE1 if kind == "rosbag1" else bags.STORE
    path = WRITERS[kind](tmp_path, bags.make_arm(store))
    assert find_format(path).name == kind.split()[0]
    found, skipped = read_one(path)
    assert found.name == "run"
    assert found.start_ns == START_NS
    assert len(found.times_s) == 500
    steps = np.arange(0, 500, 5)  # the rows in which joints spoke
    for joint, expected in (("shoulder", steps / 100), ("elbow", -steps / 100), ("wrist", np.full(100, 0.125))):
        values = found.columns[f"/joint_states.position.{joint}"]
        np.testing.assert_array_equal(values[steps], expected)
        assert np.count_nonzero(~np.isnan(values)) == 100
    np.testing.assert_array_equal(found.columns["/imu.angular_velocity.x"], np.sin(np.arange(500) / 50))
    latency = found.details["transport_latency_s"]
    assert latency == {
        "/imu": {"median": 0.02, "low": 0.02, "high": 0.02, "num_messages": 500},
        "/joint_states": {"median": 0.02, "low": 0.02, "high": 0.02, "num_messages": 100},
    }
    np.testing.assert_array_equal(found.columns["/joint_states.transport_latency_s"][steps], np.full(100, 0.02))
    assert not any("covariance" in name or "effort" in name for name in found.columns)
    assert [each.what for each in skipped] == ["run: covariances"]


def test_rows_at_message_time_begin_earlier(tmp_path: Path) -> None:
    said = bags.make_arm()
    said += [("/pressure", "std_msgs/msg/Float64", START_NS + 1, make("std_msgs/msg/Float64", data=3.0))]
    found, _ = read_one(bags.write_ros2(tmp_path / "run", said), "message")
    assert found.start_ns == START_NS - 20_000_000
    times_ns = found.start_ns + np.round(found.times_s * 1e9).astype(np.int64)
    assert times_ns[np.isfinite(found.columns["/pressure.data"])] == [START_NS + 1]  # without a stamp: receipt


def test_times_come_back_to_the_nanosecond(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    times_ns = START_NS + np.cumsum(rng.integers(1, 10**10, size=3000))
    said = [("/a", "std_msgs/msg/Int32", int(t), make("std_msgs/msg/Int32", data=k)) for k, t in enumerate(times_ns)]
    shuffled = [said[k] for k in rng.permutation(len(said))]  # recorded out of order
    found, _ = read_one(bags.write_cdr_mcap(tmp_path / "a.mcap", shuffled))
    assert found.start_ns is not None
    np.testing.assert_array_equal(found.start_ns + np.round(found.times_s * 1e9).astype(np.int64), times_ns)
    np.testing.assert_array_equal(found.columns["/a.data"], np.arange(3000))
    assert found.types["/a.data"] == "int32"


def test_of_messages_at_one_time_the_last_counts_and_others_are_counted(tmp_path: Path) -> None:
    joints = "sensor_msgs/msg/JointState"
    said = [
        ("/joint_states", joints, START_NS, bags.make_joints(0, {"arm": 1.0})),
        ("/joint_states", joints, START_NS, bags.make_joints(0, {"gripper": 5.0})),  # another node's: nothing is lost
        ("/joint_states", joints, START_NS, bags.make_joints(0, {"arm": 2.0})),
    ]
    found, skipped = read_one(bags.write_ros2(tmp_path / "run", said))
    assert found.columns["/joint_states.position.arm"] == [2.0]
    assert found.columns["/joint_states.position.gripper"] == [5.0]
    assert [each.why[:10] for each in skipped] == ["1 messages"]
    assert "transport_latency_s" not in found.details  # stamps that are zero are none


def test_transforms_have_a_column_per_frame(tmp_path: Path) -> None:
    def transform(stamp_ns: int, child: str, x: float) -> object:
        moved = make(
            "geometry_msgs/msg/Transform", translation=bags.make_vector(x, 0.0, 0.0), rotation=bags.make_quaternion()
        )
        header = make_header(stamp_ns, "world")
        return make("geometry_msgs/msg/TransformStamped", header=header, child_frame_id=child, transform=moved)

    both = [transform(START_NS - 5_000_000, "hand", 0.25), transform(START_NS - 1_000_000, "mug", 0.75)]
    said = [("/tf", "tf2_msgs/msg/TFMessage", START_NS, make("tf2_msgs/msg/TFMessage", transforms=both))]
    found, skipped = read_one(bags.write_cdr_mcap(tmp_path / "a.mcap", said), "message")
    assert skipped == []
    np.testing.assert_array_equal(found.columns["/tf.hand.translation.x"], [0.25, np.nan])
    np.testing.assert_array_equal(found.columns["/tf.mug.translation.x"], [np.nan, 0.75])
    np.testing.assert_allclose(found.times_s, [0.0, 0.004], rtol=0, atol=1e-15)
    assert found.details["transport_latency_s"]["/tf.hand"]["median"] == 0.005
    assert found.details["frames"] == {"/tf.hand": "world", "/tf.mug": "world"}


def trajectory(stamp_ns: int, positions: list[list[float]]) -> object:
    points = []
    for k, row in enumerate(positions):
        delay = make("builtin_interfaces/msg/Duration", sec=k, nanosec=500_000_000)
        none = np.array([])
        points.append(
            make(
                "trajectory_msgs/msg/JointTrajectoryPoint",
                positions=np.array(row),
                velocities=none,
                accelerations=none,
                effort=none,
                time_from_start=delay,
            )
        )
    header = make_header(stamp_ns)
    return make("trajectory_msgs/msg/JointTrajectory", header=header, joint_names=["elbow", "wrist"], points=points)


def test_points_of_a_trajectory_are_rows_until_a_later_one_replaces_them(tmp_path: Path) -> None:
    kind = "trajectory_msgs/msg/JointTrajectory"
    second = 10**9
    said = [
        ("/plan", kind, START_NS, trajectory(START_NS + second, [[0.1, 1.0], [0.2, 2.0], [0.3, 3.0]])),
        ("/plan", kind, START_NS + second, trajectory(START_NS + 3 * second, [[0.9, 9.0]])),
    ]
    found, _ = read_one(bags.write_ros2(tmp_path / "run", said))
    # first: at 1.5, 2.5, 3.5 s; second begins at 3 s, so that 3.5 s is its own
    assert found.start_ns == START_NS + 1_500_000_000
    np.testing.assert_array_equal(found.times_s, [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(found.columns["/plan.positions.elbow"], [0.1, 0.2, 0.9])
    np.testing.assert_array_equal(found.columns["/plan.positions.wrist"], [1.0, 2.0, 9.0])
    assert found.details["transport_latency_s"]["/plan"]["num_messages"] == 2


def test_arrays_and_text(tmp_path: Path) -> None:
    def said_array(values: list[float]) -> object:
        layout = make("std_msgs/msg/MultiArrayLayout", dim=[], data_offset=0)
        return make("std_msgs/msg/Float64MultiArray", layout=layout, data=np.array(values))

    said = [
        ("/cmd", "std_msgs/msg/Float64MultiArray", START_NS, said_array([1.0, -2.5])),
        ("/long", "std_msgs/msg/Float64MultiArray", START_NS, said_array([0.0] * 65)),
        ("/on", "std_msgs/msg/Bool", START_NS, make("std_msgs/msg/Bool", data=True)),
        ("/word", "std_msgs/msg/String", START_NS, make("std_msgs/msg/String", data="hello")),
        ("/big", "std_msgs/msg/Int64", START_NS, make("std_msgs/msg/Int64", data=2**53 + 1)),
    ]
    found, skipped = read_one(bags.write_ros2(tmp_path / "run", said))
    assert {name: values[0] for name, values in found.columns.items()} == {
        "/cmd.data[0]": 1.0,
        "/cmd.data[1]": -2.5,
        "/on.data": 1.0,
    }
    assert found.types == {"/on.data": "bool"}
    whys = {each.what: each.why for each in skipped}
    assert whys.keys() == {"run: /long.data", "run: /word.data", "run: /big.data"}
    assert "64" in whys["run: /long.data"]


def test_names_reach_points_inside_a_message_but_no_other_arrays(tmp_path: Path) -> None:
    text = """string[] joint_names
my_msgs/Point[] points
my_msgs/Point desired
int64[<=200] ticks
================================================================================
MSG: my_msgs/Point
float32[] positions
float64[2] tool
"""
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(text, "my_msgs/msg/State"))
    point = store.types["my_msgs/msg/Point"](positions=np.array([0.5, 2.0], np.float32), tool=np.array([7.0, 8.0]))

    def encode(num_ticks: int) -> bytes:
        ticks = np.arange(num_ticks)
        state = store.types["my_msgs/msg/State"](joint_names=["a", "b"], points=[], desired=point, ticks=ticks)
        return bytes(store.serialize_ros1(state, "my_msgs/msg/State"))

    said = [("/state", START_NS, encode(3)), ("/state", START_NS + 1, encode(65))]
    schema = ("my_msgs/State", "ros1msg", text.encode())
    found, skipped = read_one(bags.write_raw_mcap(tmp_path / "a.mcap", "ros1", schema, said))
    assert {name: values[0] for name, values in found.columns.items()} == {
        "/state.desired.positions.a": 0.5,
        "/state.desired.positions.b": 2.0,
        "/state.desired.tool[0]": 7.0,
        "/state.desired.tool[1]": 8.0,
    }
    assert found.types == {"/state.desired.positions.a": "float32", "/state.desired.positions.b": "float32"}
    assert [each.what for each in skipped] == ["a: /state.ticks"]  # too long once: not half a column


def test_images_are_not_decoded(tmp_path: Path) -> None:
    schema = ("sensor_msgs/msg/Image", "ros2msg", b"this is no definition")
    path = bags.write_raw_mcap(tmp_path / "a.mcap", "cdr", schema, [("/camera", START_NS, b"\0" * 100)])
    found = list(read_source(path))
    assert [type(each) for each in found] == [Skipped, Skipped]
    assert found[0] == Skipped(
        "a: /camera", "messages of type sensor_msgs/msg/Image are no columns of numbers: use other topics"
    )


def test_json_messages(tmp_path: Path) -> None:
    message = {
        "header": {"stamp": {"sec": START_NS // 10**9, "nanosec": START_NS % 10**9}, "frame_id": "map"},
        "joint_names": ["a", "b"],
        "torque": [1.5, 2],
        "ok": False,
        "inner": {"list": [{"x": 1}, {"x": 2}]},
        "note": "warm",
        "timestamp": {"ticks": 7},  # not a time that is known: numbers like others
    }
    said = [
        ("/state", START_NS + 7_000_000, json.dumps(message).encode()),
        ("/state", START_NS + 8_000_000, b"{broken"),
    ]
    found, skipped = read_one(bags.write_raw_mcap(tmp_path / "a.mcap", "json", None, said))
    assert {name: values.tolist() for name, values in found.columns.items()} == {
        "/state.torque.a": [1.5],
        "/state.torque.b": [2.0],
        "/state.ok": [0.0],
        "/state.inner.list[0].x": [1.0],
        "/state.inner.list[1].x": [2.0],
        "/state.timestamp.ticks": [7.0],
        "/state.transport_latency_s": [0.007],
    }
    assert {each.what for each in skipped} == {"a: /state", "a: /state.note"}
    assert "1 messages are not readable" in next(each.why for each in skipped if each.what == "a: /state")


def make_protobuf() -> tuple[type, bytes]:
    """Returns the class of a message, and the set of descriptors that a file keeps of it."""
    field = descriptor_pb2.FieldDescriptorProto
    inner = descriptor_pb2.FileDescriptorProto(name="inner.proto", package="arm", syntax="proto3")
    vector = inner.message_type.add(name="Vector")
    for number, name in enumerate("xy", 1):
        vector.field.add(name=name, number=number, type=field.TYPE_FLOAT, label=field.LABEL_OPTIONAL)
    outer = descriptor_pb2.FileDescriptorProto(name="outer.proto", package="arm", syntax="proto3")
    outer.dependency.append("inner.proto")
    state = outer.message_type.add(name="State")
    optional = {"label": field.LABEL_OPTIONAL}
    state.field.add(name="force", number=1, type=field.TYPE_MESSAGE, type_name=".arm.Vector", **optional)
    state.field.add(name="count", number=2, type=field.TYPE_SINT64, **optional)
    state.field.add(name="angles", number=3, type=field.TYPE_DOUBLE, label=field.LABEL_REPEATED)
    state.field.add(name="joint_names", number=4, type=field.TYPE_STRING, label=field.LABEL_REPEATED)
    state.field.add(name="on", number=5, type=field.TYPE_BOOL, **optional)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(inner)
    pool.Add(outer)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("arm.State"))
    # the file that needs the other comes first: readers must not trust the order
    return made, descriptor_pb2.FileDescriptorSet(file=[outer, inner]).SerializeToString()


def test_protobuf_messages(tmp_path: Path) -> None:
    made, descriptors = make_protobuf()
    first = made(force={"x": 0.1, "y": 2.0}, count=-3, angles=[1.0, 2.0], joint_names=["a", "b"], on=True)
    second = made(angles=[5.0, 4.0], joint_names=["b", "a"])
    said = [("/arm", START_NS, first.SerializeToString()), ("/arm", START_NS + 10, second.SerializeToString())]
    schema = ("arm.State", "protobuf", descriptors)
    found, skipped = read_one(bags.write_raw_mcap(tmp_path / "a.mcap", "protobuf", schema, said))
    assert skipped == []
    np.testing.assert_array_equal(found.columns["/arm.force.x"], [np.float32(0.1), np.nan])
    np.testing.assert_array_equal(found.columns["/arm.count"], [-3, 0])
    np.testing.assert_array_equal(found.columns["/arm.angles.a"], [1.0, 4.0])
    np.testing.assert_array_equal(found.columns["/arm.angles.b"], [2.0, 5.0])
    assert found.types == {
        "/arm.force.x": "float32",
        "/arm.force.y": "float32",
        "/arm.count": "int64",
        "/arm.on": "bool",
    }


@pytest.mark.parametrize("compression", CompressionType, ids=lambda each: each.name)
def test_mcap_compressed_or_without_index(compression: CompressionType, tmp_path: Path) -> None:
    said = bags.make_arm(duration_s=0.1)
    path = bags.write_cdr_mcap(tmp_path / "a.mcap", said, compression, index_types=IndexType.NONE, chunk_size=2000)
    assert len(read_one(path)[0].times_s) == 50


@pytest.mark.parametrize("compression", Writer1.CompressionFormat, ids=lambda each: each.name)
def test_compressed_ros1(compression: Writer1.CompressionFormat, tmp_path: Path) -> None:
    said = bags.make_arm(bags.STORE1, duration_s=0.1)
    assert len(read_one(bags.write_ros1(tmp_path / "a.bag", said, compression))[0].times_s) == 50


def test_what_is_readable_of_a_cut_mcap_comes_in(tmp_path: Path) -> None:
    path = bags.write_cdr_mcap(tmp_path / "a.mcap", bags.make_arm(), chunk_size=2000)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    found, skipped = read_one(path)
    assert 50 < len(found.times_s) < 450
    assert "a: the rest of a.mcap" in {each.what for each in skipped}


def test_a_damaged_chunk_leaves_the_others(tmp_path: Path) -> None:
    said = bags.make_arm()
    path = bags.write_cdr_mcap(tmp_path / "a.mcap", said, CompressionType.NONE, chunk_size=20_000)
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    found, skipped = read_one(path)
    assert 350 < len(found.times_s) < 500
    assert any("chunk" in each.what and "crc" in each.why for each in skipped)


def test_channels_are_known_though_the_chunk_that_says_them_is_damaged(tmp_path: Path) -> None:
    path = bags.write_cdr_mcap(tmp_path / "a.mcap", bags.make_arm(), CompressionType.NONE, chunk_size=20_000)
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    found, _ = read_one(path)
    assert 350 < len(found.times_s) < 500
    assert "/joint_states.position.elbow" in found.columns


def test_the_database_of_a_bag_without_metadata(tmp_path: Path) -> None:
    path = bags.write_ros2(tmp_path / "run", bags.make_arm(duration_s=0.1)) / "run.db3"
    (path.parent / "metadata.yaml").unlink()
    assert len(read_one(path)[0].times_s) == 50


def test_bags_packed_as_a_whole_and_message_by_message(tmp_path: Path) -> None:
    for mode in (CompressionMode.FILE, CompressionMode.MESSAGE):
        path = tmp_path / mode.name.lower()
        writer = Writer2(path, version=9)
        writer.set_compression(mode, CompressionFormat.ZSTD)
        bags.write_with(writer, bags.make_arm(duration_s=0.1))
        assert len(read_one(path)[0].times_s) == 50


def test_a_bag_that_fills_the_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer2(tmp_path / "run", version=9)
    writer.set_compression(CompressionMode.FILE, CompressionFormat.ZSTD)
    bags.write_with(writer, bags.make_arm(duration_s=0.1))
    monkeypatch.setattr(bag_reading, "MAX_DISK_SHARE", 1e-12)
    with pytest.raises(LogError, match=r"it holds more than .* record it again"):
        list(read_source(tmp_path / "run"))


def test_a_recording_larger_than_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bags.write_ros2(tmp_path / "run", bags.make_arm(duration_s=0.1))
    monkeypatch.setattr(source, "read_free_memory", lambda: 1000.0)
    with pytest.raises(LogError, match="split the file"):
        list(read_source(path))


def test_unknown_encodings_and_missing_schemas_are_named(tmp_path: Path) -> None:
    strange = bags.write_raw_mcap(tmp_path / "a.mcap", "cbor", None, [("/x", START_NS, b"1")])
    assert next(iter(read_source(strange))) == Skipped(
        "a: /x", "its encoding 'cbor' without a schema is not known: record cdr, ros1, json or protobuf"
    )
    schema = ("my_msgs/msg/Own", "ros2msg", b"")
    missing = bags.write_raw_mcap(tmp_path / "b.mcap", "cdr", schema, [("/x", START_NS, b"1")])
    assert next(iter(read_source(missing))) == Skipped(
        "b: /x", "the definition of my_msgs/msg/Own is not in the file: record it with the definitions of messages"
    )


def test_a_bag_that_names_other_files_is_refused(tmp_path: Path) -> None:
    path = bags.write_ros2(tmp_path / "run", bags.make_arm(duration_s=0.1))
    text = (path / "metadata.yaml").read_text()
    (path / "metadata.yaml").write_text(text.replace("run.db3", "../run.db3"))
    with pytest.raises(LogError, match=r"outside of its folder, '\.\./run\.db3': correct"):
        list(read_source(path))


def test_one_damaged_file_of_a_folder_leaves_the_others(tmp_path: Path) -> None:
    bags.write_cdr_mcap(tmp_path / "a.mcap", bags.make_arm(duration_s=0.1))
    (tmp_path / "b.mcap").write_bytes(b"nothing")
    found = list(read_source(tmp_path))
    assert [each.name for each in found if isinstance(each, Recording)] == ["a"]
    assert [each.what for each in found if isinstance(each, Skipped)] == ["a: covariances", "b.mcap"]
    with pytest.raises(LogError, match="record or save it again"):
        list(read_source(tmp_path / "b.mcap"))


def test_a_folder_of_several_formats_is_refused(tmp_path: Path) -> None:
    bags.write_cdr_mcap(tmp_path / "a.mcap", bags.make_arm(duration_s=0.1))
    bags.write_ros1(tmp_path / "b.bag", bags.make_arm(bags.STORE1, duration_s=0.1))
    with pytest.raises(LogError, match=r"a folder of \.bag and \.mcap files: give each format a folder of its own"):
        list(read_source(tmp_path))


def test_a_bag_without_messages_says_so(tmp_path: Path) -> None:
    for path in (bags.write_cdr_mcap(tmp_path / "a.mcap", []), bags.write_ros2(tmp_path / "run", [])):
        assert [each.what.split(": ")[1] for each in read_source(path) if isinstance(each, Skipped)] == ["messages"]


def test_another_clock_is_not_mixed_in(tmp_path: Path) -> None:
    said = [("/imu", "sensor_msgs/msg/Imu", START_NS + k, bags.make_imu(10**9 + k, 0.5)) for k in range(3)]
    said += [("/pressure", "std_msgs/msg/Float64", START_NS, make("std_msgs/msg/Float64", data=3.0))]
    path = bags.write_ros2(tmp_path / "run", said)
    found, skipped = read_one(path, "message")
    assert found.start_ns == 10**9
    assert "run: /pressure" in {each.what for each in skipped}
    assert "/pressure.data" in read_one(path)[0].columns
