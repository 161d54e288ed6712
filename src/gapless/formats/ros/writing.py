"""How recordings are written as MCAP files, ROS 1 bags and ROS 2 bags: a folder, with one per recording.

Columns go to topics of gapless' own, one for those that are known in the same rows: objects of JSON in MCAP, and
`Float64MultiArray` with the names of columns in its layout in bags.
"""

import heapq
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from gapless.core.recording import DESCRIPTION_KEY, Recording, Skipped, describe_recording
from gapless.core.signal import Array
from gapless.formats.arrays import skip_videos
from gapless.formats.ros.collecting import DESCRIPTION_TOPIC, TIME_COLUMN
from gapless.formats.source import choose_file_name, log_error

MAX_ROS1_NS = 2**32 * 10**9  # ROS 1 counts seconds since 1970 in 32 bits
MAX_NS = 2**63 - 1
_ARRAY, _TEXT = "std_msgs/msg/Float64MultiArray", "std_msgs/msg/String"


@dataclass(frozen=True)
class ColumnGroup:
    """Columns that are known in the same rows, written to one topic."""

    topic: str
    columns: tuple[str, ...]
    rows: np.ndarray
    values: Array  # (num_rows of the recording, num_columns)


@dataclass(frozen=True)
class MessagePlan:
    """What is written of a recording: topics, the time of each row, and the description as JSON."""

    times_ns: np.ndarray
    groups: list[ColumnGroup]
    said: str

    def list_messages(self) -> Iterator[tuple[ColumnGroup, int, Array]]:
        """Yields topic, time and numbers of each message, in the order of time."""
        for row, k in heapq.merge(*(zip(group.rows, repeat(k)) for k, group in enumerate(self.groups))):
            yield self.groups[k], int(self.times_ns[row]), self.groups[k].values[row]


def plan_messages(recording: Recording, path: Path, limit_ns: int = MAX_NS) -> MessagePlan:
    """Returns what to write of a recording so that all of it comes back."""
    times_ns = np.round(recording.times_s * 1e9).astype(np.int64) + (recording.start_ns or 0)
    count = np.arange(len(times_ns))
    times_ns = np.maximum.accumulate(times_ns - count) + count  # one message per row, also within a nanosecond
    if len(times_ns) and not 0 <= times_ns[0] <= times_ns[-1] < limit_ns:
        raise log_error(f"{recording.name} has times that it cannot hold: choose another format", path)
    columns, is_known = dict(recording.columns), np.zeros(len(times_ns), bool)
    for values in columns.values():
        is_known |= ~np.isnan(values)
    if not is_known.all() or not np.array_equal((times_ns - times_ns[:1]) / 1e9, recording.times_s):
        columns[TIME_COLUMN] = recording.times_s
    alike: dict[bytes, list[str]] = {}
    for column, values in columns.items():
        alike.setdefault(np.isnan(values).tobytes(), []).append(column)
    groups: list[ColumnGroup] = []
    for k, names in enumerate(alike.values()):
        rows = np.flatnonzero(~np.isnan(columns[names[0]]))
        groups.append(ColumnGroup(f"/gapless/columns_{k}", (*names,), rows, np.stack([columns[n] for n in names], 1)))
    said = describe_recording(recording) | {"topics": {group.topic: list(group.columns) for group in groups}}
    return MessagePlan(times_ns, groups, json.dumps(said))


def _write(
    write_one: Callable[[Recording, Path], None], suffix: str, recordings: Iterable[Recording], folder: Path
) -> Iterator[Skipped]:
    folder.mkdir(parents=True)
    taken: set[str] = set()
    for recording in recordings:
        yield from skip_videos(recording)
        write_one(recording, folder / f"{choose_file_name(recording.name, taken)}{suffix}")


def _write_mcap_file(recording: Recording, path: Path) -> None:
    from mcap.writer import Writer

    plan = plan_messages(recording, path)
    with path.open("xb") as file:
        writer = Writer(file, enable_data_crcs=True)
        writer.start(library="gapless")
        writer.add_metadata(DESCRIPTION_KEY, {DESCRIPTION_KEY: plan.said})
        channels: dict[str, int] = {}
        for group in plan.groups:
            about = {"type": "object", "properties": {name: {"type": "number"} for name in group.columns}}
            schema = writer.register_schema(group.topic.strip("/"), "jsonschema", json.dumps(about).encode())
            channels[group.topic] = writer.register_channel(group.topic, "json", schema)
        for group, time_ns, numbers in plan.list_messages():
            finite = (number if np.isfinite(number) else str(number) for number in numbers.tolist())
            data = json.dumps(dict(zip(group.columns, finite, strict=True))).encode()
            writer.add_message(channels[group.topic], time_ns, data, time_ns)
        writer.finish()


def _write_rosbag1_file(recording: Recording, path: Path) -> None:
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores

    plan, store = plan_messages(recording, path, MAX_ROS1_NS), _load_types(Stores.ROS1_NOETIC)
    with Writer(path) as writer:
        said = writer.add_connection(DESCRIPTION_TOPIC, _TEXT, typestore=store)
        text = store.serialize_ros1(store.types[_TEXT](data=plan.said), _TEXT)
        writer.write(said, int(plan.times_ns[0]) if len(plan.times_ns) else 0, text)
        _write_arrays(plan, writer, store, store.serialize_ros1)


def _write_rosbag2_folder(recording: Recording, path: Path) -> None:
    from rosbags.rosbag2 import Writer
    from rosbags.typesys import Stores

    plan, store = plan_messages(recording, path), _load_types(Stores.LATEST)
    with Writer(path, version=9) as writer:
        writer.set_custom_data(DESCRIPTION_KEY, plan.said)
        _write_arrays(plan, writer, store, store.serialize_cdr)


@cache
def _load_types(kind: Any) -> Any:
    from rosbags.typesys import get_typestore

    return get_typestore(kind)


def _write_arrays(plan: MessagePlan, writer: Any, store: Any, encode: Callable[..., Any]) -> None:
    """Writes messages whose layout names the columns, for those who read it with other tools."""
    make_layout = store.types["std_msgs/msg/MultiArrayLayout"]
    make_dimension = store.types["std_msgs/msg/MultiArrayDimension"]
    connections: dict[str, Any] = {}
    layouts: dict[str, Any] = {}
    for group in plan.groups:
        size = len(group.columns)
        connections[group.topic] = writer.add_connection(group.topic, _ARRAY, typestore=store)
        dimension = make_dimension(label=",".join(group.columns), size=size, stride=size)
        layouts[group.topic] = make_layout(dim=[dimension], data_offset=0)
    for group, time_ns, numbers in plan.list_messages():
        message = store.types[_ARRAY](layout=layouts[group.topic], data=numbers)
        writer.write(connections[group.topic], time_ns, encode(message, _ARRAY))


write_mcap = partial(_write, _write_mcap_file, ".mcap")
write_rosbag1 = partial(_write, _write_rosbag1_file, ".bag")
write_rosbag2 = partial(_write, _write_rosbag2_folder, "")
