"""How one message becomes numbers with names: `/imu.angular_velocity.x`, `/joint_states.position.elbow`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gapless.formats.ros.decoding import TIME_FIELDS, MessageDecoder
from gapless.formats.source import MAX_EXACT_INTEGER

MAX_ARRAY_LENGTH = 64  # of arrays that become columns: longer ones are scans, images and the like
MAX_TOPIC_COLUMNS = 4096  # of one topic: names that change in each message would fill the memory
NAME_FIELDS = (
    "name",
    "names",
    "joint_names",
    "interface_names",
)  # whose texts name the elements of arrays beside them
_POINT_FIELDS = (
    "positions",
    "velocities",
    "accelerations",
    "effort",
)  # of a trajectory's point, named by what holds it
_SECONDS, _NANOSECONDS = ("sec", "secs", "seconds"), ("nanosec", "nsec", "nsecs", "nanos")
_TIMES = frozenset(("stamp", *_SECONDS))
_TIME_TYPES = ("std_msgs/msg/Header", "builtin_interfaces/msg/Time", "builtin_interfaces/msg/Duration")
_TEXT = "it holds text or bytes, not numbers"


class MessageFlattener:
    """Turns the messages of one channel into numbers with names, and remembers what it leaves out.

    Attributes:
        types: Column -> type of its numbers, where known.
        skipped: Field -> why it has no column.
        covariances: Fields that hold covariances; they are no signals.
    """

    def __init__(self, decoder: MessageDecoder) -> None:
        """Makes one for the messages of a decoder."""
        self._decoder = decoder
        self._columns: dict[tuple[str, ...], list[str]] = {}
        self.types: dict[str, str | None] = {}
        self.skipped: dict[str, str] = {}
        self.covariances: set[str] = set()

    def _list_fields(
        self, message: Any, prefix: str, found: dict[str, float] | None
    ) -> list[tuple[str, Any, str | None]]:
        """Returns name, value and type of fields; puts those that a plan reads in one go into `found` instead."""
        if isinstance(message, dict):
            return [(str(k), v, "bool" if isinstance(v, bool) else None) for k, v in message.items()]
        if self._decoder.list_fields:
            return list(self._decoder.list_fields(message))
        assert self._decoder.plan
        plan = self._decoder.plan(message)
        if found is not None and plan.paths:
            if (key := (prefix, *plan.paths[:1], plan.name)) not in self._columns:
                self._columns[key] = [f"{prefix}.{path}" for path in plan.paths]
                self.types |= zip(self._columns[key], plan.numbers, strict=True)
            found.update(zip(self._columns[key], map(float, plan.read(message)), strict=False))
        return [(name, getattr(message, attribute), number) for attribute, name, number in plan.others]

    def read_stamp(self, message: Any) -> tuple[int, str]:
        """Returns when a message says it was made, in ns (0 where it does not), and its coordinate frame."""
        for name, value, _ in self._list_fields(message, "", None):
            if name in TIME_FIELDS and _says_time(value):
                if name != "header":
                    return self.read_duration_ns(value), ""
                inner = {name: part for name, part, _ in self._list_fields(value, "", None)}
                frame = inner.get("frame_id", "")
                return self.read_duration_ns(inner.get("stamp")), frame if isinstance(frame, str) else ""
        return 0, ""

    def read_duration_ns(self, value: Any) -> int:
        """Returns seconds and nanoseconds of a time field in ns; 0 where it has none."""
        if hasattr(value, "nanosec"):  # of ROS
            return value.sec * 10**9 + value.nanosec
        if value is None or isinstance(value, int | float | str):
            return 0
        fields = {name: number for name, number, _ in self._list_fields(value, "", None)}
        seconds, rest = (next((fields[n] for n in names if n in fields), 0) for names in (_SECONDS, _NANOSECONDS))
        return int(seconds) * 10**9 + int(rest)

    def flatten(
        self, prefix: str, message: Any, names: Sequence[str] = (), leave: Sequence[str] = ()
    ) -> dict[str, float]:
        """Returns column -> number of one message.

        Args:
            prefix: What columns begin with: the topic.
            message: The message.
            names: Names of the elements of arrays in it, where something outside of the message says them.
            leave: Fields that are no columns.
        """
        found: dict[str, float] = {}
        self._flatten_message(prefix, message, names, found, (*TIME_FIELDS, *leave))
        return found

    def _flatten_message(
        self,
        prefix: str,
        message: Any,
        names: Sequence[str],
        found: dict[str, float],
        leave: Sequence[str] = ("header",),
    ) -> None:
        fields = self._list_fields(message, prefix, found)
        own = next((value for name, value, _ in fields if name in NAME_FIELDS and _are_names(value)), ())
        for name, value, number in fields:
            column = f"{prefix}.{name}" if prefix else name
            is_layout = getattr(value, "__msgtype__", "").endswith("MultiArrayLayout")  # says how to read, no signal
            if column in self.skipped or is_layout or (name in leave and _says_time(value)):
                continue
            if "covariance" in name:
                self.covariances.add(column)
            elif value is not own:
                is_array = isinstance(value, np.ndarray | list)
                here = own or (names if name in _POINT_FIELDS or not is_array else ())
                self._flatten_value(column, value, number, here, found)

    def _flatten_value(
        self, column: str, value: Any, number: str | None, names: Sequence[str], found: dict[str, float]
    ) -> None:
        if isinstance(value, int | float):
            self._add(column, value, number, found)
        elif isinstance(value, np.ndarray | list):
            self._flatten_array(column, value, names, found)
        elif isinstance(value, str | bytes):
            if value:
                self.skipped[column] = _TEXT
        elif value is not None:
            self._flatten_message(column, value, names, found)

    def _flatten_array(
        self, column: str, values: np.ndarray | list[Any], names: Sequence[str], found: dict[str, float]
    ) -> None:
        named = bool(names) and len(names) == len(values)
        if len(values) > MAX_ARRAY_LENGTH and not named:
            self.skipped[column] = f"it holds arrays of more than {MAX_ARRAY_LENGTH} elements"
            return
        if any(isinstance(value, str | bytes) for value in values[:1]):
            self.skipped[column] = _TEXT
            return
        key = (column, *names) if named else (column, str(len(values)), "")
        if key not in self._columns:
            if len(self._columns) > MAX_TOPIC_COLUMNS:
                self._columns.clear()
            places = [f".{name}" for name in names] if named else [f"[{k}]" for k in range(len(values))]
            self._columns[key] = [column + place for place in places]
        columns = self._columns[key]
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            if columns and columns[-1] not in self.types:
                self.types.update(dict.fromkeys(columns, values.dtype.name))
            found.update(zip(columns, values.tolist(), strict=True))
            return
        number = values.dtype.name if isinstance(values, np.ndarray) else None
        for inner, value in zip(columns, values.tolist() if isinstance(values, np.ndarray) else values, strict=True):
            self._flatten_value(inner, value, number, (), found)

    def _add(self, column: str, value: float, number: str | None, found: dict[str, float]) -> None:
        if column not in self.types:
            self.types[column] = number
        if isinstance(value, int) and abs(value) > MAX_EXACT_INTEGER:
            self.skipped[column] = "it holds whole numbers beyond 2**53"
        else:
            found[column] = float(value)


def _says_time(value: Any) -> bool:
    """Returns whether a field is a time, or a header with one: it is no signal."""
    if kind := getattr(value, "__msgtype__", ""):
        return kind in _TIME_TYPES
    fields = value if isinstance(value, dict) else getattr(getattr(value, "DESCRIPTOR", None), "fields_by_name", ())
    return not _TIMES.isdisjoint(fields)


def _are_names(value: Any) -> bool:
    return (
        isinstance(value, list) and all(isinstance(each, str) for each in value) and len(set(value)) == len(value) > 0
    )
