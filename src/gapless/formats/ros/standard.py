"""Columns that came from ROS messages, written as these messages again where nothing is lost by it."""

from functools import cache, partial
from math import isfinite, nan
from typing import Any

import numpy as np

from gapless.core.recording import Recording
from gapless.formats.ros.collecting import LATENCY
from gapless.formats.ros.decoding import MessageChannel, list_ros_fields, make_decoder
from gapless.formats.ros.flatten import MAX_ARRAY_LENGTH, NAME_FIELDS, MessageFlattener

_BASE, _NAME, _ARRAY = 1, 2, 3  # kinds of fields in a store of types
_HEADER = "std_msgs/msg/Header"


class StandardTopic:
    """A topic whose columns are written as messages of the type that they came from.

    Attributes:
        topic: Its name.
        type: Of its messages.
        definition: Of that type, as files keep it.
        columns: Those that its messages hold, with the latency, which reading makes again.
        rows: In which rows it has a message.
    """

    def __init__(
        self, topic: str, kind: str, recording: Recording, times_ns: np.ndarray, store: Any, ros_version: int
    ) -> None:
        """Makes one for the columns of a topic."""
        self.topic, self.type = topic, kind
        self._times_ns, self._store, self._ros_version = times_ns, store, ros_version
        self.definition: str = store.generate_msgdef(kind, ros_version=ros_version)[0]
        own = {name: values for name, values in recording.columns.items() if name.startswith(f"{topic}.")}
        self._values = {name: values.tolist() for name, values in own.items() if not np.all(np.isnan(values))}
        self.columns = frozenset(self._values)
        self._latency_s = self._values.pop(f"{topic}.{LATENCY}", [nan] * len(times_ns))
        known = [~np.isnan(own[name]) for name in self._values]
        self.rows = np.flatnonzero(np.any(known, axis=0)) if known else np.empty(0, int)
        frames = recording.details.get("frames")
        self._frame = str(frames.get(topic, "")) if isinstance(frames, dict) else ""
        self._list_fields = cache(self._list_fields)
        self._list_names, self._list_places = cache(self._list_names), cache(self._list_places)

    def encode(self, row: int) -> bytes:
        """Returns the message of a row."""
        encode = self._store.serialize_ros1 if self._ros_version == 1 else self._store.serialize_cdr
        return bytes(encode(self._make(self.type, self.topic, row), self.type))

    def is_exact(self) -> bool:
        """Returns whether every message, read again, gives the numbers and the latency of its row, and no others."""
        encoding = ("ros1", "ros1msg") if self._ros_version == 1 else ("cdr", "ros2msg")
        decoder = make_decoder(MessageChannel(self.topic, self.type, *encoding, self.definition.encode()))
        flattener = MessageFlattener(decoder)
        for row in self.rows.tolist():
            try:
                message = decoder.decode(self.encode(row))
            except Exception:  # numbers beyond the type of their field, arrays of other lengths
                return False
            numbers = {name: value for name, value in flattener.flatten(self.topic, message).items() if value == value}
            if numbers != {name: values[row] for name, values in self._values.items() if values[row] == values[row]}:
                return False
            stamp_ns = flattener.read_stamp(message)[0]
            latency_s = (int(self._times_ns[row]) - stamp_ns) / 1e9 if stamp_ns else nan
            if latency_s != self._latency_s[row] and (stamp_ns or isfinite(self._latency_s[row])):
                return False
        return set(np.flatnonzero(np.isfinite(self._latency_s)).tolist()) <= set(self.rows.tolist())

    def _make(self, kind: str, prefix: str, row: int) -> Any:
        """Returns a message, or one inside it, filled from the columns that begin with a prefix."""
        made = self._store.types[kind]
        if kind == _HEADER:
            latency_s = self._latency_s[row]
            stamp_ns = int(self._times_ns[row]) - round(latency_s * 1e9) if isfinite(latency_s) else 0
            time = self._store.types["builtin_interfaces/msg/Time"](sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
            counted = {"seq": 0} if self._ros_version == 1 else {}
            return made(stamp=time, frame_id=self._frame, **counted)
        fields = self._list_fields(kind)
        names = [name for name, columns in self._list_names(kind, prefix) if any(map(partial(self._has, row), columns))]
        return made(**{a: self._make_field(field, f"{prefix}.{field}", what, names, row) for a, field, what in fields})

    def _has(self, row: int, column: str) -> bool:
        return column in self._values and self._values[column][row] == self._values[column][row]

    def _list_fields(self, kind: str) -> list[tuple[str, str, Any]]:
        """Returns attribute, name and description of each field of a type."""
        descriptions = dict(self._store.fielddefs[kind][1])
        return [(attribute, field, descriptions[field]) for attribute, field, _ in list_ros_fields(self._store, kind)]

    def _list_names(self, kind: str, prefix: str) -> list[tuple[str, list[str]]]:
        """Returns the names of elements of arrays in a message, in the order of columns, with the columns of each."""
        fields = [field for _, field, _ in self._list_fields(kind)]
        starts = [f"{prefix}.{field}." for field in fields] if set(fields) & set(NAME_FIELDS) else []
        names = [name.removeprefix(start) for name in self._values for start in starts if name.startswith(start)]
        return [(name, [start + name for start in starts]) for name in dict.fromkeys(names)]

    def _list_places(self, column: str) -> list[str]:
        """Returns the columns of an array's elements without names."""
        return [name for k in range(MAX_ARRAY_LENGTH) if (name := f"{column}[{k}]") in self._values]

    def _make_field(self, field: str, column: str, description: Any, names: list[str], row: int) -> Any:
        node, inner = description
        if node == _NAME:
            return self._make(inner, column, row)
        if node == _BASE:
            number = self._values[column][row] if column in self._values else 0
            return "" if inner[0] == "string" else float(number) if inner[0].startswith("float") else int(number)
        (element, element_type), length = inner
        if element == _NAME or element_type[0] == "string":
            return names if field in NAME_FIELDS else []
        elements = [f"{column}.{name}" for name in names] or self._list_places(column)
        numbers = [self._values[each][row] for each in elements if self._has(row, each)]
        return _cast(numbers or [0] * (length if node == _ARRAY else 0), element_type[0])


def _cast(numbers: list[float], kind: str) -> np.ndarray:
    """Returns numbers in the type of their field; raises ValueError for those that it does not hold."""
    dtype = np.dtype({"char": "uint8", "byte": "uint8", "octet": "uint8"}.get(kind, kind))
    return np.array(numbers, dtype) if dtype.kind == "f" else np.array([int(number) for number in numbers], dtype)


def list_standard_topics(
    recording: Recording, times_ns: np.ndarray, store: Any, ros_version: int
) -> list[StandardTopic]:
    """Returns the topics that can be written as their own messages without loss.

    Args:
        recording: What is written; its details say which topics had which type.
        times_ns: (num_rows,) receipt times.
        store: Types of messages that are known.
        ros_version: 1 or 2.
    """
    topics = recording.details.get("topics")
    if recording.details.get("time") != "receipt" or not isinstance(topics, dict):
        return []
    known = [(str(topic), kind) for topic, kind in topics.items() if isinstance(kind, str) and kind in store.fielddefs]
    made = [StandardTopic(topic, kind, recording, times_ns, store, ros_version) for topic, kind in known]
    return [each for each in made if len(each.rows) and each.is_exact()]
