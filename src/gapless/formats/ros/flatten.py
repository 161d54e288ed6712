"""How one message becomes numbers with names: `/imu.angular_velocity.x`, `/joint_states.position.elbow`."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gapless.formats.ros.decoding import Field, MessageDecoder, list_entries
from gapless.formats.source import MAX_EXACT_INTEGER

MAX_ARRAY_LENGTH = 64  # of arrays that become columns: longer ones are scans, images and the like
MAX_TOPIC_COLUMNS = 4096  # of one topic: names that change in each message would fill the memory
_NAME_FIELDS = ("name", "names", "joint_names", "interface_names")  # name the elements of arrays beside them
_POINT_FIELDS = ("positions", "velocities", "accelerations", "effort")  # of a point of a trajectory, named outside
_STAMP_FIELDS = ("header", "stamp", "timestamp")  # say when a message was made
_TIME_FIELDS = (*_STAMP_FIELDS, "time_from_start")  # are no columns
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
        self.decode = decoder.decode
        self._decoder = decoder
        self.types: dict[str, str | None] = {}
        self.skipped: dict[str, str] = {}
        self.covariances: set[str] = set()

    def _list_fields(self, message: Any) -> Iterable[Field]:
        return list_entries(message) if isinstance(message, dict) else self._decoder.list_fields(message)

    def read_stamp(self, message: Any) -> tuple[int, str]:
        """Returns when a message says it was made, in ns (0 where it does not), and its coordinate frame."""
        for name, value, _ in self._list_fields(message):
            if name in _STAMP_FIELDS and _says_time(value):
                if name != "header":
                    return self.read_duration_ns(value), ""
                inner = {name: part for name, part, _ in self._list_fields(value)}
                frame = inner.get("frame_id", "")
                return self.read_duration_ns(inner.get("stamp")), frame if isinstance(frame, str) else ""
        return 0, ""

    def read_duration_ns(self, value: Any) -> int:
        """Returns seconds and nanoseconds of a time field in ns; 0 where it has none."""
        if hasattr(value, "nanosec"):  # of ROS
            return value.sec * 10**9 + value.nanosec
        if value is None or isinstance(value, int | float | str):
            return 0
        fields = {name: number for name, number, _ in self._list_fields(value)}
        seconds, rest = (next((fields[n] for n in names if n in fields), 0) for names in (_SECONDS, _NANOSECONDS))
        return int(seconds) * 10**9 + int(rest)

    def flatten(self, prefix: str, message: Any, names: Sequence[str] = ()) -> dict[str, float]:
        """Returns column -> number of one message.

        Args:
            prefix: What columns begin with: the topic.
            message: The message.
            names: Names of the elements of arrays in it, where something outside of the message says them.
        """
        found: dict[str, float] = {}
        self._flatten_message(prefix, message, names, found)
        return found

    def _flatten_message(self, prefix: str, message: Any, names: Sequence[str], found: dict[str, float]) -> None:
        fields = list(self._list_fields(message))
        own = next((value for name, value, _ in fields if name in _NAME_FIELDS and _are_names(value)), ())
        for name, value, number in fields:
            column = f"{prefix}.{name}"
            if isinstance(value, int | float):  # as most are: what follows takes longer
                self._add(column, value, number, found)
                continue
            is_layout = getattr(value, "__msgtype__", "").endswith("MultiArrayLayout")  # says how to read, no signal
            if value is own or is_layout or column in self.skipped or (name in _TIME_FIELDS and _says_time(value)):
                continue
            if "covariance" in name:
                self.covariances.add(column)
            else:
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
        places = [f".{name}" for name in names] if named else [f"[{k}]" for k in range(len(values))]
        columns = [column + place for place in places]
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
