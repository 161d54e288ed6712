"""Brings readings to even times, with NaN where one is missing, and leaves single samples out that cannot be noise."""

from dataclasses import dataclass

import numpy as np

from gapless.core.errors import InputError
from gapless.core.results import Note
from gapless.core.signal import Array, Flags

STICKS_OUT = 8.0  # standard deviations from its neighbours; of normal samples 1 in 10^15 does
UNEVEN = 0.25  # scatter of the intervals, as a share of their median, from which it is worth a note
RARE_S = 1.0  # sensors that are read less often than this are rare; time in milliseconds is not
FIRST = 32  # time stamps that the interval is fitted to first
MOST_PLACES = 10  # times as many places as readings: more is not a log with gaps


@dataclass(frozen=True)
class Grid:
    """Readings at even times.

    Attributes:
        interval_s: Time between places [s].
        place: (num_readings,) place of each reading.
        num_places: Places from the first reading to the last.
    """

    interval_s: float
    place: Array
    num_places: int

    def spread(self, values: Array) -> Array:
        """Returns a column at even times, (num_places,): the mean where readings share a place, NaN where none is."""
        known = np.isfinite(values)
        places = self.place[known].astype(np.intp)
        counts = np.bincount(places, minlength=self.num_places)
        sums = np.bincount(places, weights=values[known], minlength=self.num_places)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def even_grid(times_s: Array, where: str) -> tuple[Grid, list[Note]]:
    """Returns the grid that time stamps lie on, and what is odd about them.

    The interval is fitted to the stamps: to the first of them with the median step, then to ever more of them, so that
    no stamp is counted to a wrong place.

    Raises:
        InputError: If the stamps lie on no grid, such as one pause of hours between two bursts.
    """
    steps_s = np.diff(times_s)
    interval_s, place = _places(times_s)
    num_places = int(place[-1]) + 1
    if num_places > MOST_PLACES * len(times_s):
        raise InputError(f"the time stamps lie too far apart to be one recording: split it at its pauses: {where}")
    notes: list[Note] = []
    missing = num_places - len(np.unique(place))
    if missing:
        text = f"{missing} of {num_places} ticks are missing ({100 * missing / num_places:.2g} %); they were left out"
        notes.append(Note("warning", f"{where}: time_s", text))
    if interval_s >= RARE_S:
        text = f"one reading every {interval_s:.4g} s: is time_s in milliseconds? It must be in seconds"
        notes.append(Note("warning", f"{where}: time_s", text))
    regular = steps_s[np.abs(steps_s / interval_s - 1) < 1]  # lost samples are no jitter
    jitter = float(np.std(regular) / interval_s) if len(regular) else 0.0
    if jitter > UNEVEN:
        text = f"intervals scatter by {100 * jitter:.0f} % of their mean: readings count as if they were even"
        notes.append(Note("warning", f"{where}: time_s", text))
    return Grid(interval_s, place, num_places), notes


def _places(times_s: Array) -> tuple[float, Array]:
    """Returns the interval between time stamps [s], and the place of each on that grid, from 0 on."""
    interval_s, begin_s, count = float(np.median(np.diff(times_s))), float(times_s[0]), FIRST
    while True:
        place = np.round((times_s[:count] - begin_s) / interval_s)
        if place[-1] > 0:
            interval_s, begin_s = (float(number) for number in np.polyfit(place, times_s[:count], 1))
        if count >= len(times_s):
            return interval_s, np.maximum(0.0, place - place[0])
        count *= 2


def sticking_out(values: Array, quantum: float) -> Flags:
    """Returns single samples that lie far from the two before and the two after: lost packets, not noise.

    Args:
        values: (num_samples,) NaN where one is missing.
        quantum: Step of the values; 0 for none.
    """
    around = np.stack([np.roll(values, shift) for shift in (-2, -1, 1, 2)])
    away = values - np.median(around, axis=0)  # NaN, and so not judged, beside a missing one
    known = np.abs(away[np.isfinite(away)])
    spread = float(np.percentile(known, 68.27)) if len(known) else 0.0
    out = np.abs(away) > STICKS_OUT * max(spread, quantum / np.sqrt(12))
    out[:2] = out[-2:] = False
    return out & (spread > 0 or quantum > 0)
