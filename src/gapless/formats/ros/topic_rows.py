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


def _make_integers() -> "array[int]":
    return array("q")


@dataclass
class TopicRows:
    """What one topic (of `tf`, one frame; of trajectories, each point) said, in arrays that grow.

    Attributes:
        receipts_ns: When each row was recorded.
        stamps_ns: When its message was made, as it says itself; 0 where it does not.
        delays_ns: How long after that it counts: of points of a trajectory; else 0.
        columns: Column -> numbers of rows; shorter than the rows where the last ones have none.
    """

    receipts_ns: "array[int]" = field(default_factory=_make_integers)
    stamps_ns: "array[int]" = field(default_factory=_make_integers)
    delays_ns: "array[int]" = field(default_factory=_make_integers)
    columns: dict[str, "array[float]"] = field(default_factory=dict)
    is_plan: bool = False  # rows lie ahead of their messages, and later messages replace earlier ones

    def add(self, receipt_ns: int, stamp_ns: int, numbers: Mapping[str, float], delay_ns: int = 0) -> None:
        """Adds a row; raises OverflowError for times, and ValueError for more columns, than can be."""
        place = len(self.receipts_ns)
        for times, time in zip((self.receipts_ns, self.stamps_ns, self.delays_ns), (0, 0, 0), strict=True):
            times.append(time)
        try:
            self.receipts_ns[place], self.stamps_ns[place], self.delays_ns[place] = receipt_ns, stamp_ns, delay_ns
        except OverflowError:
            for times in (self.receipts_ns, self.stamps_ns, self.delays_ns):
                times.pop()
            raise
        for name, number in numbers.items():
            column = self.columns.get(name)
            if column is None:
                if len(self.columns) >= MAX_TOPIC_COLUMNS:
                    raise ValueError(f"it has more than {MAX_TOPIC_COLUMNS} columns")
                column = self.columns[name] = array("d")
            if len(column) < place:
                column.extend(repeat(nan, place - len(column)))
            column.append(number)

    @property
    def num_bytes(self) -> int:
        """Memory that the numbers take."""
        return 8 * (3 * len(self.receipts_ns) + sum(map(len, self.columns.values())))

    @property
    def has_stamps(self) -> bool:
        """Whether any message says when it was made."""
        return any(self.stamps_ns)

    def measure_latency_s(self) -> Array:
        """Returns receipt minus message time of each message (first row of it) [s]; NaN where it has no stamp."""
        receipts, stamps = np.array(self.receipts_ns, np.int64), np.array(self.stamps_ns, np.int64)
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
        receipts, stamps = np.array(self.receipts_ns, np.int64), np.array(self.stamps_ns, np.int64)
        use = (stamps != 0) & (at_stamps | (self.is_plan & (np.abs(receipts - stamps) <= MAX_LATENCY_NS)))
        begins = np.where(use, stamps, receipts)
        times = begins + np.array(self.delays_ns, np.int64)
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
            column.extend(repeat(nan, len(self.receipts_ns) - len(column)))
            found[name] = np.frombuffer(column, np.float64) if column else np.empty(0)
        return found
