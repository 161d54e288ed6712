"""How recordings are written as MCAP files, ROS 1 bags and ROS 2 bags: a folder, with one per recording."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gapless.core.recording import DESCRIPTION_KEY, Recording, Skipped, describe_recording
from gapless.core.signal import Array
from gapless.formats.ros.collecting import DESCRIPTION_TOPIC, TIME_COLUMN
from gapless.formats.ros.standard import StandardTopic, list_standard_topics
from gapless.formats.source import log_error

MAX_ROS1_NS = 2**32 * 10**9  # ROS 1 counts seconds since 1970 in 32 bits
MAX_NS = 2**63 - 1
_ARRAY = "std_msgs/msg/Float64MultiArray"


@dataclass(frozen=True)
class ColumnGroup:
    """Columns that are known in the same rows, written to one topic of gapless' own."""

    topic: str
    columns: tuple[str, ...]
    rows: np.ndarray


@dataclass(frozen=True)
class MessagePlan:
    """What is written of a recording: topics, the time of each row, and the description."""

    times_ns: np.ndarray
    values: dict[str, Array]
    standard: list[StandardTopic]
    groups: list[ColumnGroup]
    said: dict[str, Any]

    def list_rows(self) -> Iterator[tuple[int, StandardTopic | ColumnGroup]]:
        """Yields row and topic of each message, in the order of time."""
        topics = [*self.standard, *self.groups]
        rows = np.concatenate([np.empty(0, int), *(each.rows for each in topics)])
        numbers = np.repeat(np.arange(len(topics)), [len(each.rows) for each in topics])
        for place in np.lexsort((numbers, rows)):
            yield int(rows[place]), topics[numbers[place]]


def plan_messages(recording: Recording, path: Path, ros_version: int = 2) -> MessagePlan:
    """Returns what to write of a recording so that all of it comes back."""
    store, limit_ns = _load_types(ros_version), MAX_ROS1_NS if ros_version == 1 else MAX_NS
    offsets_ns = np.round(recording.times_s * 1e9).astype(np.int64)
    times_ns = offsets_ns + (recording.start_ns or 0)
    count = np.arange(len(times_ns))
    times_ns = np.maximum.accumulate(times_ns - count) + count  # one message per row, also within a nanosecond
    if len(times_ns) and not 0 <= times_ns[0] <= times_ns[-1] < limit_ns:
        raise log_error(f"{recording.name} has times that it cannot hold: choose another format", path)
    values = dict(recording.columns)
    standard = list_standard_topics(recording, times_ns, store, ros_version)
    taken = {column for each in standard for column in each.columns}
    known = np.zeros(len(times_ns), bool)
    for each in standard:
        known[each.rows] = True
    by_presence: dict[bytes, list[str]] = {}
    for column in [name for name in recording.columns if name not in taken]:
        present = ~np.isnan(recording.columns[column])
        known |= present
        by_presence.setdefault(np.packbits(present).tobytes(), []).append(column)
    exact = np.array_equal((times_ns - times_ns[:1]) / 1e9, recording.times_s) and bool(np.all(known))
    if not exact:
        values[TIME_COLUMN] = recording.times_s
        by_presence.setdefault(np.packbits(np.ones(len(times_ns), bool)).tobytes(), []).append(TIME_COLUMN)
    groups = [
        ColumnGroup(f"/gapless/columns_{k}", tuple(columns), np.flatnonzero(~np.isnan(values[columns[0]])))
        for k, columns in enumerate(by_presence.values())
    ]
    said = describe_recording(recording) | {"topics": {group.topic: list(group.columns) for group in groups}}
    return MessagePlan(times_ns, values, standard, groups, said)


@cache
def _load_types(ros_version: int) -> Any:
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS1_NOETIC if ros_version == 1 else Stores.LATEST)


def choose_names(recordings: Iterable[Recording]) -> Iterator[tuple[Recording, str]]:
    """Yields recordings with names that are safe for files, and differ."""
    taken: set[str] = set()
    for recording in recordings:
        safe = re.sub(r"[^\w.-]+", "_", recording.name, flags=re.ASCII).strip(".")[:100] or "recording"
        name = next(n for n in (safe, *(f"{safe}_{k}" for k in range(1, len(taken) + 2))) if n.lower() not in taken)
        taken.add(name.lower())
        yield recording, name


def _skip_videos(recording: Recording) -> Iterator[Skipped]:
    if recording.videos:
        cameras = ", ".join(video.camera for video in recording.videos)
        yield Skipped(f"{recording.name}: videos", f"videos of {cameras} are not written to this format")


def write_mcap(recordings: Iterable[Recording], path: Path) -> Iterator[Skipped]:
    """Writes a folder with one MCAP file per recording; JSON where columns are no ROS messages."""
    path.mkdir(parents=True)
    for recording, name in choose_names(recordings):
        yield from _skip_videos(recording)
        _write_mcap_file(plan_messages(recording, path), path / f"{name}.mcap")


def _write_mcap_file(plan: MessagePlan, path: Path) -> None:
    from mcap.writer import Writer

    with path.open("xb") as file:
        writer = Writer(file, enable_data_crcs=True)
        writer.start(library="gapless")
        writer.add_metadata(DESCRIPTION_KEY, {DESCRIPTION_KEY: json.dumps(plan.said)})
        channels: dict[str, int] = {}
        for each in plan.standard:
            schema = writer.register_schema(each.type, "ros2msg", each.definition.encode())
            channels[each.topic] = writer.register_channel(each.topic, "cdr", schema)
        for each in plan.groups:
            schema = writer.register_schema(each.topic.strip("/"), "jsonschema", _describe_json(each.columns))
            channels[each.topic] = writer.register_channel(each.topic, "json", schema)
        for row, topic in plan.list_rows():
            time_ns = int(plan.times_ns[row])
            data = topic.encode(row) if isinstance(topic, StandardTopic) else _encode_json(topic, row, plan.values)
            writer.add_message(channels[topic.topic], time_ns, data, time_ns)
        writer.finish()


def _describe_json(columns: tuple[str, ...]) -> bytes:
    return json.dumps({"type": "object", "properties": {name: {"type": "number"} for name in columns}}).encode()


def _encode_json(group: ColumnGroup, row: int, values: dict[str, Array]) -> bytes:
    numbers = {name: float(values[name][row]) for name in group.columns}
    return json.dumps({k: v if np.isfinite(v) else str(v) for k, v in numbers.items()}).encode()


def write_rosbag2(recordings: Iterable[Recording], path: Path) -> Iterator[Skipped]:
    """Writes a folder with one ROS 2 bag (SQLite) per recording."""
    from rosbags.rosbag2 import Writer

    path.mkdir(parents=True)
    for recording, name in choose_names(recordings):
        yield from _skip_videos(recording)
        plan = plan_messages(recording, path)
        with Writer(path / name, version=9) as writer:
            writer.set_custom_data(DESCRIPTION_KEY, json.dumps(plan.said))
            _write_bag(plan, writer, 2)


def write_rosbag1(recordings: Iterable[Recording], path: Path) -> Iterator[Skipped]:
    """Writes a folder with one ROS 1 bag per recording."""
    from rosbags.rosbag1 import Writer

    path.mkdir(parents=True)
    for recording, name in choose_names(recordings):
        yield from _skip_videos(recording)
        with Writer(path / f"{name}.bag") as writer:
            _write_bag(plan_messages(recording, path, 1), writer, 1)


def _write_bag(plan: MessagePlan, writer: Any, ros_version: int) -> None:
    store = _load_types(ros_version)
    encode: Callable[..., Any] = store.serialize_ros1 if ros_version == 1 else store.serialize_cdr
    types = store.types
    if ros_version == 1:
        said = writer.add_connection(DESCRIPTION_TOPIC, "std_msgs/msg/String", typestore=store)
        text = types["std_msgs/msg/String"](data=json.dumps(plan.said))
        start_ns = int(plan.times_ns[0]) if len(plan.times_ns) else 0
        writer.write(said, start_ns, encode(text, "std_msgs/msg/String"))
    connections = {
        each.topic: writer.add_connection(each.topic, getattr(each, "type", _ARRAY), typestore=store)
        for each in (*plan.standard, *plan.groups)
    }
    layouts = {group.topic: _make_layout(group.columns, types) for group in plan.groups}
    for row, topic in plan.list_rows():
        if isinstance(topic, StandardTopic):
            data = topic.encode(row)
        else:
            numbers = np.array([plan.values[name][row] for name in topic.columns])
            data = encode(types[_ARRAY](layout=layouts[topic.topic], data=numbers), _ARRAY)
        writer.write(connections[topic.topic], int(plan.times_ns[row]), data)


def _make_layout(columns: tuple[str, ...], types: Any) -> Any:
    """Returns the layout of an array whose elements are columns, named for those who read it with other tools."""
    size = len(columns)
    dimension = types["std_msgs/msg/MultiArrayDimension"](label=",".join(columns), size=size, stride=size)
    return types["std_msgs/msg/MultiArrayLayout"](dim=[dimension], data_offset=0)
