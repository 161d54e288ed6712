"""Columns that came from ROS messages, written as these messages again where nothing is lost by it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapless.core.recording import Recording
from gapless.core.signal import Array
from gapless.formats.ros.collecting import LATENCY
from gapless.formats.ros.decoding import MessageChannel, list_ros_fields, make_decoder
from gapless.formats.ros.flatten import NAME_FIELDS, MessageFlattener

_HEADER, _LAYOUT = "std_msgs/msg/Header", "std_msgs/msg/MultiArrayLayout"
_Fill = Callable[[int], Any]  # row -> value of a field


@dataclass(frozen=True)
class StandardTopic:
    """A topic whose columns are written as messages of the type that they came from."""

    topic: str
    type: str
    definition: str
    columns: frozenset[str]  # with the latency, which reading makes again
    rows: np.ndarray
    encode: Callable[[int], bytes]  # row -> message


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
    topics, frames = (recording.details.get(key) for key in ("topics", "frames"))
    if recording.details.get("time") != "receipt" or not isinstance(topics, dict):
        return []
    frames = frames if isinstance(frames, dict) else {}
    found = []
    for topic, kind in topics.items():
        if isinstance(kind, str) and kind in store.fielddefs:
            builder = _MessageBuilder(str(topic), recording, times_ns, store, str(frames.get(topic, "")))
            try:
                found.append(builder.build(kind, ros_version))
            except _NotHeldError:
                continue
    return found


class _NotHeldError(Exception):
    """A message type does not hold the columns of a topic."""


class _MessageBuilder:
    """Finds for each field of a message type the column that fills it."""

    def __init__(self, topic: str, recording: Recording, times_ns: np.ndarray, store: Any, frame: str) -> None:
        self._topic, self._times_ns, self._store, self._frame = topic, times_ns, store, frame
        self._latency_s = recording.columns.get(f"{topic}.{LATENCY}")
        own = {name: values for name, values in recording.columns.items() if name.startswith(f"{topic}.")}
        self._columns: dict[str, Array] = {k: v for k, v in own.items() if k != f"{topic}.{LATENCY}"}
        self._used: set[str] = set()
        known = [~np.isnan(values) for values in self._columns.values()]
        self._rows = np.flatnonzero(np.any(known, axis=0)) if known else np.empty(0, int)
        if not len(self._rows) or any(np.any(each) and not np.all(each[self._rows]) for each in known):
            self._rows = np.empty(0, int)

    def build(self, kind: str, ros_version: int) -> StandardTopic:
        """Returns how to write the topic; raises _NotHeldError where reading it would not give the same columns."""
        if not len(self._rows):
            raise _NotHeldError
        fill = self._fill_message(kind, self._topic)
        if self._used != self._columns.keys() | (
            {f"{self._topic}.{LATENCY}"} if self._latency_s is not None else set()
        ):
            raise _NotHeldError
        encode = self._store.serialize_ros1 if ros_version == 1 else self._store.serialize_cdr
        definition = self._store.generate_msgdef(kind, ros_version=ros_version)[0]
        found = StandardTopic(
            self._topic, kind, definition, frozenset(self._used), self._rows, lambda row: bytes(encode(fill(row), kind))
        )
        return self._check(found, ros_version)

    def _check(self, found: StandardTopic, ros_version: int) -> StandardTopic:
        """Returns the topic if its first message gives the columns when it is read."""
        encoding = ("ros1", "ros1msg") if ros_version == 1 else ("cdr", "ros2msg")
        decoder = make_decoder(MessageChannel(found.topic, found.type, *encoding, found.definition.encode()))
        row = int(self._rows[0])
        flat = MessageFlattener(decoder).flatten(found.topic, decoder.decode(found.encode(row)))
        wanted = {name: float(values[row]) for name, values in self._columns.items()}
        if flat.keys() != wanted.keys() or not np.array_equal(
            [flat[name] for name in wanted], list(wanted.values()), equal_nan=True
        ):
            raise _NotHeldError
        return found

    def _fill_message(self, kind: str, prefix: str) -> _Fill:
        """Returns what makes a message of a row."""
        if kind == _HEADER:
            return self._fill_header()
        if kind == _LAYOUT:
            return lambda row: self._store.types[_LAYOUT](dim=[], data_offset=0)
        names = self._find_names(kind, prefix)
        numbers = {field: (attribute, number) for attribute, field, number in list_ros_fields(self._store, kind)}
        fills: dict[str, _Fill] = {}
        for field, description in self._store.fielddefs[kind][1]:
            if field in numbers:
                attribute, number = numbers[field]
                fills[attribute] = self._fill_field(field, f"{prefix}.{field}", description, number, names)
        made = self._store.types[kind]
        return lambda row: made(**{attribute: fill(row) for attribute, fill in fills.items()})

    def _find_names(self, kind: str, prefix: str) -> list[str]:
        """Returns the names of elements of arrays in a message, in the order of columns."""
        fields = [field for field, _ in self._store.fielddefs[kind][1]]
        if not set(fields) & set(NAME_FIELDS):
            return []
        starts = [f"{prefix}.{field}." for field in fields]
        found = (name.removeprefix(start) for name in self._columns for start in starts if name.startswith(start))
        return list(dict.fromkeys(found))

    def _fill_field(self, field: str, column: str, description: Any, number: str | None, names: list[str]) -> _Fill:
        from rosbags.interfaces import Nodetype

        node, inner = description
        if node == Nodetype.NAME:
            return self._fill_message(inner, column)
        if node == Nodetype.BASE:
            return self._fill_number(column, number) if number else lambda row: ""
        (element, element_type), length = inner
        if element == Nodetype.BASE and element_type[0] != "string":
            zeros = length if node == Nodetype.ARRAY and "covariance" in field else None
            return self._fill_array(column, element_type[0], names, length if node == Nodetype.ARRAY else None, zeros)
        texts = names if field in NAME_FIELDS else []
        if node == Nodetype.ARRAY or any(each.startswith((f"{column}.", f"{column}[")) for each in self._columns):
            raise _NotHeldError
        return lambda row: texts

    def _fill_number(self, column: str, number: str) -> _Fill:
        values = self._take(column, number)
        return lambda row: values[row].item()

    def _fill_array(self, column: str, number: str, names: list[str], length: int | None, zeros: int | None) -> _Fill:
        dtype = {"char": "uint8", "byte": "uint8", "octet": "uint8"}.get(number, number)
        if zeros is not None:
            return lambda row: np.zeros(zeros, dtype)
        inside = [each for each in self._columns if each.startswith((f"{column}.", f"{column}["))]
        by_name, by_place = [f"{column}.{name}" for name in names], [f"{column}[{k}]" for k in range(len(inside))]
        if set(inside) not in (set(), set(by_name), set(by_place)) or length not in (None, len(inside)):
            raise _NotHeldError
        chosen = [] if not inside else by_name if set(inside) == set(by_name) else by_place
        values = [self._take(each, dtype) for each in chosen]
        return lambda row: np.array([each[row] for each in values], dtype)

    def _take(self, column: str, number: str) -> np.ndarray:
        """Returns a column in the type of its field; raises _NotHeldError where that changes a number."""
        if column not in self._columns:
            raise _NotHeldError
        self._used.add(column)
        values = self._columns[column]
        with np.errstate(all="ignore"):
            cast = values.astype(number)
        if not np.array_equal(cast[self._rows].astype(float), values[self._rows], equal_nan=True):
            raise _NotHeldError
        return cast

    def _fill_header(self) -> _Fill:
        """Returns what makes a header: its stamp is so much before receipt as the latency says."""
        stamps_ns = np.zeros(len(self._times_ns), np.int64)
        if self._latency_s is not None:
            latency_s = self._latency_s
            if not np.array_equal(np.flatnonzero(np.isfinite(latency_s)), self._rows):
                raise _NotHeldError
            at = self._times_ns[self._rows]
            stamps_ns[self._rows] = at - np.round(latency_s[self._rows] * 1e9).astype(np.int64)
            stamps = stamps_ns[self._rows]
            if (
                np.any((at - stamps) / 1e9 != latency_s[self._rows])
                or stamps.min() <= 0
                or stamps.max() >= 2**31 * 10**9
            ):
                raise _NotHeldError
            self._used.add(f"{self._topic}.{LATENCY}")
        time, header = self._store.types["builtin_interfaces/msg/Time"], self._store.types[_HEADER]
        counted = {"seq": 0} if any(field == "seq" for field, _ in self._store.fielddefs[_HEADER][1]) else {}

        def fill(row: int) -> Any:
            second, nanosecond = divmod(int(stamps_ns[row]), 10**9)
            return header(stamp=time(sec=second, nanosec=nanosecond), frame_id=self._frame, **counted)

        return fill
