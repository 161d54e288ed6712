"""Bags made for tests: written with the libraries, not with gapless."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from mcap.writer import CompressionType, Writer
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_typestore

START_NS = 1_760_000_000_123_456_789
STORE = get_typestore(Stores.LATEST)
STORE1 = get_typestore(Stores.ROS1_NOETIC)

Said = tuple[str, str, int, Any]  # topic, type, receipt [ns], message


def make(kind: str, store: Any = STORE, **fields: Any) -> Any:
    return store.types[kind](**fields)


def make_header(stamp_ns: int, frame: str = "base", store: Any = STORE) -> Any:
    time = make("builtin_interfaces/msg/Time", store, sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
    counted = {"seq": 0} if store is STORE1 else {}
    return make("std_msgs/msg/Header", store, stamp=time, frame_id=frame, **counted)


def make_joints(stamp_ns: int, positions: dict[str, float], store: Any = STORE) -> Any:
    return make(
        "sensor_msgs/msg/JointState",
        store,
        header=make_header(stamp_ns, store=store),
        name=list(positions),
        position=np.array(list(positions.values())),
        velocity=np.array([2 * value for value in positions.values()]),
        effort=np.array([]),
    )


def make_vector(x: float, y: float, z: float, store: Any = STORE) -> Any:
    return make("geometry_msgs/msg/Vector3", store, x=x, y=y, z=z)


def make_quaternion(w: float = 1.0, store: Any = STORE) -> Any:
    return make("geometry_msgs/msg/Quaternion", store, x=0.0, y=0.0, z=0.0, w=w)


def make_imu(stamp_ns: int, x: float, store: Any = STORE) -> Any:
    return make(
        "sensor_msgs/msg/Imu",
        store,
        header=make_header(stamp_ns, "imu", store),
        orientation=make_quaternion(store=store),
        orientation_covariance=np.zeros(9),
        angular_velocity=make_vector(x, 0.5, -0.5, store),
        angular_velocity_covariance=np.zeros(9),
        linear_acceleration=make_vector(0.0, 0.0, 9.81, store),
        linear_acceleration_covariance=np.zeros(9),
    )


def make_arm(store: Any = STORE, duration_s: float = 1.0, latency_ns: int = 20_000_000) -> list[Said]:
    """Returns joints at 100 Hz, in an order that changes, and an IMU at 500 Hz, stamped 20 ms before receipt."""
    rng = np.random.default_rng(5)
    said: list[Said] = []
    for k in range(int(500 * duration_s)):
        time_ns = START_NS + k * 2_000_000
        said.append(("/imu", "sensor_msgs/msg/Imu", time_ns, make_imu(time_ns - latency_ns, np.sin(k / 50), store)))
        if k % 5 == 0:
            positions = {"shoulder": k / 100, "elbow": -k / 100, "wrist": 0.125}
            names = list(rng.permutation(list(positions)))
            joints = make_joints(time_ns - latency_ns, {str(name): positions[name] for name in names}, store)
            said.append(("/joint_states", "sensor_msgs/msg/JointState", time_ns, joints))
    return said


def write_ros2(path: Path, said: Iterable[Said], storage: StoragePlugin = StoragePlugin.SQLITE3) -> Path:
    write_with(Writer2(path, version=9, storage_plugin=storage), said)
    return path


def write_with(writer: Writer2, said: Iterable[Said]) -> None:
    with writer:
        _write(writer, said, STORE, STORE.serialize_cdr)


def write_ros1(path: Path, said: Iterable[Said], compression: Any = None) -> Path:
    writer = Writer1(path)
    if compression is not None:
        writer.set_compression(compression)
    with writer:
        _write(writer, said, STORE1, STORE1.serialize_ros1)
    return path


def _write(writer: Any, said: Iterable[Said], store: Any, encode: Callable[..., Any]) -> None:
    known: dict[str, Any] = {}
    for topic, kind, time_ns, message in said:
        if topic not in known:
            known[topic] = writer.add_connection(topic, kind, typestore=store)
        writer.write(known[topic], time_ns, encode(message, kind))


def write_cdr_mcap(
    path: Path, said: Iterable[Said], compression: CompressionType = CompressionType.ZSTD, **options: Any
) -> Path:
    channels = {}
    with path.open("wb") as file:
        writer = Writer(file, compression=compression, **options)
        writer.start(profile="ros2")
        for topic, kind, time_ns, message in said:
            if topic not in channels:
                definition, _ = STORE.generate_msgdef(kind, ros_version=2)
                schema = writer.register_schema(kind, "ros2msg", definition.encode())
                channels[topic] = writer.register_channel(topic, "cdr", schema)
            data = bytes(STORE.serialize_cdr(message, kind))
            writer.add_message(channels[topic], time_ns, data, time_ns)
        writer.finish()
    return path


def write_raw_mcap(
    path: Path, encoding: str, schema: tuple[str, str, bytes] | None, said: Iterable[tuple[str, int, bytes]]
) -> Path:
    """Writes messages of one encoding, given as topic, receipt [ns] and bytes."""
    channels = {}
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        number = writer.register_schema(*schema) if schema else 0
        for topic, time_ns, data in said:
            if topic not in channels:
                channels[topic] = writer.register_channel(topic, encoding, number)
            writer.add_message(channels[topic], time_ns, data, time_ns)
        writer.finish()
    return path
