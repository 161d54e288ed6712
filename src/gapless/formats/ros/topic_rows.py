"""The numbers of one topic, message by message, and the times at which they count."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import repeat
from math import nan

import numpy as np

from gapless.core.signal import Array
from gapless.formats.ros.flatten import MAX_TOPIC_COLUMNS

MAX_LATENCY_NS = 3600 * 10**9  # beyond, stamps come from another clock, such as a simulation's


@dataclass
class TopicRows:
    """What one topic (of `tf`, one frame; of trajectories, each point) said, in arrays that grow.

    Attributes:
        times_ns: Of each row three: when it was recorded; when its message was made, as it says itself, or 0; and how
            long after that it counts, which is 0 but for points of a trajectory.
        columns: Column -> numbers of rows; shorter than the rows where the last ones have none.
        is_plan: Whether rows lie ahead of their messages, and later messages replace earlier ones.
    """

    times_ns: "array[int]" = field(default_factory=lambda: array("q"))
    columns: dict[str, "array[float]"] = field(default_factory=dict)
    is_plan: bool = False

    def add(self, receipt_ns: int, stamp_ns: int, numbers: Mapping[str, float], delay_ns: int = 0) -> None:
        """Adds a row; raises OverflowError for times, and ValueError for more columns, than can be."""
        place = len(self.times_ns) // 3
        self.times_ns += array("q", (receipt_ns, stamp_ns, delay_ns))
        for name, number in numbers.items():
            column = self.columns.get(name)
            if column is None:
                if len(self.columns) >= MAX_TOPIC_COLUMNS:
                    raise ValueError(f"it has more than {MAX_TOPIC_COLUMNS} columns: split the topic")
                column = self.columns[name] = array("d")
            if len(column) < place:
                column.extend(repeat(nan, place - len(column)))
            column.append(number)

    @property
    def num_bytes(self) -> int:
        """Memory that the numbers take."""
        return 8 * (len(self.times_ns) + sum(map(len, self.columns.values())))

    def _split_times(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns receipts, stamps and delays of rows [ns]."""
        times = np.array(self.times_ns, np.int64).reshape(-1, 3)
        return times[:, 0], times[:, 1], times[:, 2]

    @property
    def has_stamps(self) -> bool:
        """Whether any message says when it was made."""
        return any(self.times_ns[1::3])

    def measure_latency_s(self) -> Array:
        """Returns receipt minus message time of each message (first row of it) [s]; NaN where it has no stamp."""
        receipts, stamps, _ = self._split_times()
        latency = np.where(stamps != 0, (receipts - stamps) / 1e9, np.nan)
        if self.is_plan and len(receipts):  # points of one message are neighbours with the same receipt
            latency[1:][(receipts[1:] == receipts[:-1]) & (stamps[1:] == stamps[:-1])] = np.nan
        return latency

    def place_rows(self, at_stamps: bool) -> tuple[np.ndarray, np.ndarray]:
        """Returns the times of rows [ns], sorted, and which rows these are.

        Args:
            at_stamps: Whether rows count at the time of their message. A trajectory's points always do, where its clock
                is the recorder's: its stamp says when it begins. A trajectory replaces what earlier ones planned for
                the time after its begin.
        """
        receipts, stamps, delays = self._split_times()
        use = (stamps != 0) & (at_stamps | (self.is_plan & (np.abs(receipts - stamps) <= MAX_LATENCY_NS)))
        begins = np.where(use, stamps, receipts)
        times = begins + delays
        kept = np.arange(len(times))
        if self.is_plan and len(times):
            message = np.concatenate([[0], np.cumsum((np.diff(receipts) != 0) | (np.diff(stamps) != 0))])
            first = np.concatenate([begins[np.flatnonzero(np.diff(message, prepend=-1))][1:], [np.iinfo(np.int64).max]])
            kept = np.flatnonzero(times < np.minimum.accumulate(first[::-1])[::-1][message])
        order = kept[np.argsort(times[kept], kind="stable")]
        return times[order], order

    def take_columns(self) -> dict[str, Array]:
        """Returns column -> numbers of all rows, and forgets them."""
        found: dict[str, Array] = {}
        for name in list(self.columns):
            column = self.columns.pop(name)
            column.extend(repeat(nan, len(self.times_ns) // 3 - len(column)))
            found[name] = np.frombuffer(column, np.float64) if column else np.empty(0)
        return found
