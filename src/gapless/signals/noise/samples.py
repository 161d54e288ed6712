"""Readings at even times: missing ones, single ones that cannot be noise, and the step in which they come."""

from dataclasses import dataclass

import numpy as np

from gapless.core.errors import InputError
from gapless.core.results import Note
from gapless.core.signal import Array, Flags

MIN_OUTLIER_DEVIATIONS = 8.0  # standard deviations from its neighbours; of normal samples 1 in 10^15 is further
MAX_JITTER = 0.25  # scatter of the intervals, as a share of their median, without a note
MAX_INTERVAL_S = 1.0  # without a note: is time in milliseconds?
NUM_FIRST_STAMPS = 32  # time stamps that the interval is fitted to first
MAX_TICKS_PER_READING = 10  # more is not a log with gaps
MAX_OFF_STEP = 0.05  # share of a step by which values may lie off multiples of it
MIN_REPEATS = 3.0  # readings per distinct value; fewer, and the values are as good as continuous


@dataclass(frozen=True)
class TimeGrid:
    """Readings at even times."""

    interval_s: float  # time between ticks [s]
    tick: Array  # (num_readings,) tick of each reading
    num_ticks: int  # ticks from the first reading to the last

    def place_values(self, values: Array) -> Array:
        """Returns a column at even times, (num_ticks,): the mean where readings share a tick, NaN where none is."""
        known = np.isfinite(values)
        ticks = self.tick[known].astype(np.intp)
        counts = np.bincount(ticks, minlength=self.num_ticks)
        sums = np.bincount(ticks, weights=values[known], minlength=self.num_ticks)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def find_time_grid(times_s: Array, where: str) -> tuple[TimeGrid, list[Note]]:
    """Returns the grid that time stamps lie on, and what is odd about them.

    The interval is fitted to the stamps: to the first of them with the median step, then to ever more of them, so that
    no stamp is counted to a wrong tick.

    Raises:
        InputError: If the stamps lie on no grid, such as one pause of hours between two bursts.
    """
    steps_s = np.diff(times_s)
    interval_s, tick = _count_ticks(times_s)
    num_ticks = int(tick[-1]) + 1
    if num_ticks > MAX_TICKS_PER_READING * len(times_s):
        raise InputError(f"the time stamps lie too far apart to be one recording: split it at its pauses: {where}")
    texts: list[str] = []
    missing = num_ticks - len(np.unique(tick))
    if missing:
        share = f"{100 * missing / num_ticks:.2g} %"
        texts.append(f"{missing} of {num_ticks} ticks are missing ({share}); they were left out")
    if interval_s >= MAX_INTERVAL_S:
        texts.append(f"one reading every {interval_s:.4g} s: is time_s in milliseconds? It must be in seconds")
    regular = steps_s[np.abs(steps_s / interval_s - 1) < 1]  # lost samples are no jitter
    jitter = float(np.std(regular) / interval_s) if len(regular) else 0.0
    if jitter > MAX_JITTER:
        texts.append(f"intervals scatter by {100 * jitter:.0f} % of their mean: readings count as if they were even")
    return TimeGrid(interval_s, tick, num_ticks), [Note("warning", f"{where}: time_s", text) for text in texts]


def _count_ticks(times_s: Array) -> tuple[float, Array]:
    """Returns the interval between time stamps [s], and the tick of each on that grid, from 0 on."""
    interval_s, begin_s, count = float(np.median(np.diff(times_s))), float(times_s[0]), NUM_FIRST_STAMPS
    while True:
        tick = np.round((times_s[:count] - begin_s) / interval_s)
        if tick[-1] > 0:
            interval_s, begin_s = (float(number) for number in np.polyfit(tick, times_s[:count], 1))
        if count >= len(times_s):
            return interval_s, np.maximum(0.0, tick - tick[0])
        count *= 2


def find_outliers(values: Array, quantum: float) -> Flags:
    """Returns single samples that lie far from the two before and the two after: lost packets, not noise."""
    around = np.stack([np.roll(values, shift) for shift in (-2, -1, 1, 2)])
    distance = np.abs(values - np.median(around, axis=0))  # NaN, and so not judged, beside a missing one
    known = distance[np.isfinite(distance)]
    spread = float(np.percentile(known, 68.27)) if len(known) else 0.0
    out = distance > MIN_OUTLIER_DEVIATIONS * max(spread, quantum / np.sqrt(12))
    out[:2] = out[-2:] = False
    return out & (spread > 0 or quantum > 0)


def fit_quantum(values: Array) -> tuple[float, float]:
    """Returns the step of the values and the error of that, (0, 0) where there is none to be seen.

    The step is the least distance of distinct values, if all others are whole multiples of it; it is then fitted to
    all values, so that rounding in the log does not matter. Values stored in single precision are 2^-23 of themselves
    apart by rounding alone: that is no step. None of the values may be NaN.
    """
    if len(values) < 2:
        return 0.0, 0.0
    resolution = 4 * float(np.abs(values).max()) * 2.0**-23
    distinct = np.unique(values)
    distinct = distinct[np.concatenate([[True], np.diff(distinct) > resolution])]
    if len(distinct) < 2 or len(values) < MIN_REPEATS * len(distinct):
        return 0.0, 0.0
    gaps = np.diff(distinct)
    step = float(np.median(gaps[gaps < 1.5 * gaps.min()]))
    for _ in range(3):  # a better step counts far multiples better
        multiples = np.round((distinct - distinct[0]) / step)
        line = np.polyfit(multiples, distinct, 1)
        step = float(line[0])
    off = np.abs(distinct - np.polyval(line, multiples))
    if off.max() > max(MAX_OFF_STEP * step, resolution):
        return 0.0, 0.0
    return step, float(resolution / max(1.0, multiples[-1]))
