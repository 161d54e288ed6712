"""How the messages of one bag or file become one recording."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from gapless.core.recording import Recording, Skipped, apply_description
from gapless.core.signal import Array
from gapless.formats.arrays import as_object
from gapless.formats.ros.decoding import MessageChannel, make_decoder
from gapless.formats.ros.flatten import MessageFlattener
from gapless.formats.ros.topic_rows import MAX_LATENCY_NS, TopicRows
from gapless.formats.source import log_error, require_memory, shorten_error

LATENCY = "transport_latency_s"
DESCRIPTION_TOPIC = "/gapless/description"  # of formats without a field of their own for it
TIME_COLUMN = "gapless.time_s"  # exact times of rows, where messages' whole nanoseconds do not hold them
_CHECK_EVERY = 2**16  # messages, between looks at the memory
_COPIES = 2.5  # of all numbers at once in memory, at most: as added, as a recording's columns, and on the way


class MessageCollector:
    """Gathers the messages of one recording, whatever they are stored in.

    Attributes:
        said: The description that the file keeps of a recording that gapless wrote.
        skipped: What is left out -> why.
    """

    def __init__(self, name: str, path: Any, time: str) -> None:
        """Makes one for a recording of a name; `time` is `receipt` or `message`."""
        self._name, self._path, self._time = name, path, time
        self._flatteners: dict[MessageChannel, MessageFlattener] = {}
        self._rejected: set[MessageChannel] = set()
        self._rows: dict[str, TopicRows] = {}
        self._types: dict[str, str] = {}
        self._frames: dict[str, str] = {}
        self._failures: dict[str, tuple[int, str]] = {}
        self._num_messages = 0
        self._own_columns: dict[str, list[str]] = {}  # topic that gapless wrote for columns without one -> columns
        self.said: dict[str, Any] = {}
        self.skipped: dict[str, str] = {}

    def read_description(self, text: str) -> None:
        """Takes the description of a recording that gapless wrote."""
        self.said = as_object(json.loads(text))
        topics = as_object(self.said.get("topics")).items()
        self._own_columns = {topic: list(map(str, each)) for topic, each in topics if isinstance(each, list)}

    def accept(self, channel: MessageChannel) -> bool:
        """Returns whether the messages of a channel become columns; remembers why where they do not."""
        if channel not in self._flatteners and channel not in self._rejected:
            try:
                self._flatteners[channel] = MessageFlattener(make_decoder(channel))
            except Exception as error:  # a schema is other people's bytes
                self.skipped[channel.topic] = shorten_error(error)
                self._rejected.add(channel)
        return channel in self._flatteners

    def add(self, channel: MessageChannel, receipt_ns: int, data: bytes, publish_ns: int = 0) -> None:
        """Adds a message; one that cannot be read is counted."""
        if not self.accept(channel):
            return
        self._num_messages += 1
        if self._num_messages % _CHECK_EVERY == 0:
            require_memory(_COPIES * sum(rows.num_bytes for rows in self._rows.values()), self._path)
        try:
            self._add(channel, self._flatteners[channel], receipt_ns, data, publish_ns)
        except Exception as error:  # a damaged message raises anything
            count, why = self._failures.get(channel.topic, (0, shorten_error(error)))
            self._failures[channel.topic] = (count + 1, why)

    def _add(
        self, channel: MessageChannel, flat: MessageFlattener, receipt_ns: int, data: bytes, publish_ns: int
    ) -> None:
        message = flat.decode(data)
        topic, kind = channel.topic, channel.type.rpartition("/")[2] if channel.encoding in ("cdr", "ros1") else ""
        if topic == DESCRIPTION_TOPIC:
            self.read_description(message.data)
            return
        if columns := self._own_columns.get(topic):
            self._take_rows(topic).add(receipt_ns, 0, _read_own(columns, message))
            return
        if kind == "TFMessage":
            for each in message.transforms:
                stream = f"{topic}.{each.child_frame_id}"
                self._types[topic] = channel.type
                stamp_ns, self._frames[stream] = flat.read_stamp(each)
                self._take_rows(stream).add(receipt_ns, stamp_ns, flat.flatten(stream, each.transform))
            return
        stamp_ns, frame = flat.read_stamp(message)
        stamp_ns = stamp_ns or (publish_ns if publish_ns != receipt_ns else 0)
        self._types[topic] = channel.type
        if frame:
            self._frames[topic] = frame
        rows = self._take_rows(topic)
        if kind == "JointTrajectory":
            rows.is_plan = True
            for point in message.points:
                numbers = flat.flatten(topic, point, message.joint_names)
                rows.add(receipt_ns, stamp_ns, numbers, flat.read_duration_ns(point.time_from_start))
        else:
            rows.add(receipt_ns, stamp_ns, flat.flatten(topic, message))

    def _take_rows(self, stream: str) -> TopicRows:
        return self._rows.setdefault(stream, TopicRows())

    def finish(self) -> Iterator[Recording | Skipped]:
        """Yields the recording, if there are numbers in it, and what was left out of it."""
        self._gather_skipped()
        placed = {stream: rows.place_rows(self._time == "message") for stream, rows in self._rows.items()}
        placed = {stream: found for stream, found in placed.items() if len(found[0])}
        if placed or (self.said and not self.skipped):
            yield self._make_recording(placed)
        else:
            self.skipped.setdefault("messages", "there are none made of numbers: choose another file")
        for what, why in self.skipped.items():
            yield Skipped(f"{self._name}: {what}", why)

    def _gather_skipped(self) -> None:
        for flat in self._flatteners.values():
            self.skipped |= {re.sub(r"\[\d+\]", "[]", field): why for field, why in flat.skipped.items()}
        for topic, (count, why) in self._failures.items():
            self.skipped[topic] = f"{count} messages are not readable ({why})"
        if covariances := sorted(set().union(*(flat.covariances for flat in self._flatteners.values()))):
            self.skipped["covariances"] = f"they are no signals: {', '.join(covariances)}"[:400]
        clocks = [r for r in self._rows.values() if r.has_stamps and not _is_one_clock(r)]
        if self._time == "message" and clocks:
            for stream in [stream for stream, rows in self._rows.items() if not rows.has_stamps]:
                del self._rows[stream]
                why = "it has no stamps, and those of others are of another clock: read by receipt time"
                self.skipped[stream] = why

    def _make_recording(self, placed: dict[str, tuple[np.ndarray, np.ndarray]]) -> Recording:
        times_ns = np.unique(np.concatenate([t for t, _ in placed.values()])) if placed else np.empty(0, np.int64)
        num_columns = sum(len(self._rows[stream].columns) + 1 for stream in placed)
        require_memory(8.0 * len(times_ns) * num_columns * _COPIES, self._path)
        columns: dict[str, Array] = {}
        latencies: dict[str, dict[str, float]] = {}
        for stream, (row_times_ns, order) in placed.items():
            rows, at = self._rows.pop(stream), np.searchsorted(times_ns, row_times_ns)
            latency_s = rows.measure_latency_s()
            said = rows.take_columns()
            if np.any(known := np.isfinite(latency_s)):
                said[f"{stream}.{LATENCY}"] = latency_s
                latencies[stream] = _summarise_latency(latency_s[known])
            self._place_columns(stream, {name: v[order] for name, v in said.items()}, at, len(times_ns), columns)
        for column in chain.from_iterable(self._own_columns.values()):
            columns.setdefault(column, np.full(len(times_ns), np.nan))  # columns without any number have no messages
        start_ns = int(times_ns[0]) if len(times_ns) else None
        times_s = self._make_times(times_ns, columns)
        types = {k: kind for flat in self._flatteners.values() for k, kind in flat.types.items() if kind != "float64"}
        details = {"time": self._time, "topics": self._types, "frames": self._frames, LATENCY: latencies}
        found = Recording(
            name=self._name,
            times_s=times_s,
            columns=columns,
            types={name: kind for name, kind in types.items() if kind and name in columns},
            start_ns=start_ns,
            details={key: value for key, value in details.items() if value},
        )
        return apply_description(replace(found, details={}, start_ns=None), self.said) if self.said else found

    def _place_columns(
        self, stream: str, said: dict[str, Array], at: np.ndarray, num_rows: int, columns: dict[str, Array]
    ) -> None:
        """Puts the columns of a stream at their rows; of several messages at one time, the last counts."""
        num_repeated = 0
        for name, values in said.items():
            if name in columns:
                self.skipped[name] = "two topics give it: rename one"
                continue
            if re.sub(r"\[\d+\]", "[]", name) in self.skipped or re.sub(r"\[\d+\]$", "", name) in self.skipped:
                continue  # it changed on the way: an array grew too long, a number too large
            known = ~np.isnan(values)
            full = np.full(num_rows, np.nan)
            full[at[known]] = values[known]  # of repeated places, numpy keeps the last
            columns[name] = full
            num_repeated = max(num_repeated, int(np.count_nonzero(known)) - int(np.count_nonzero(~np.isnan(full))))
        if num_repeated:
            self.skipped[f"{stream} (repeated)"] = f"{num_repeated} messages have the time of a later one, which counts"

    def _make_times(self, times_ns: np.ndarray, columns: dict[str, Array]) -> Array:
        if not len(times_ns):
            return np.empty(0)
        exact = columns.pop(TIME_COLUMN, None) if self.said else None
        if exact is not None and exact[0] == 0 and np.all(np.diff(exact) > 0):
            return exact
        times_s = (times_ns - times_ns[0]) / 1e9
        if np.any(np.diff(times_s) <= 0) or np.any(np.round(times_s * 1e9).astype(np.int64) + times_ns[0] != times_ns):
            days = (times_ns[-1] - times_ns[0]) / 86400e9
            raise log_error(
                f"its messages span {days:.0f} days: correct the clocks, or read by receipt time", self._path
            )
        return times_s


def _read_own(columns: list[str], message: Any) -> dict[str, float]:
    """Returns column -> number of a message that gapless wrote: a JSON object, or an array."""
    if isinstance(message, dict):
        return {str(name): float(number) for name, number in message.items()}  # `inf` is text in JSON
    return dict(zip(columns, message.data.tolist(), strict=True))


def _is_one_clock(rows: TopicRows) -> bool:
    latency_s = rows.measure_latency_s()
    return bool(abs(np.nanmedian(latency_s)) * 1e9 <= MAX_LATENCY_NS)


def _summarise_latency(latency_s: Array) -> dict[str, float]:
    low, median, high = np.percentile(latency_s, [5, 50, 95]).tolist()
    return {"median": median, "low": low, "high": high, "num_messages": len(latency_s)}
