"""Some stretches of long tracks, where a look at every row would take minutes and show nothing more."""

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from gapless.core.signal import Indices
from gapless.signals.track import Track

STRETCH_S = 15.0
NUM_STRETCHES = 20  # 5 minutes in all: each axis of an arm moves some dozens of times in them


def spread_indices(count: int, most: int) -> Indices:
    """Returns at most `most` of the indices 0 to count - 1, spread evenly; all of them where they are fewer."""
    return np.unique(np.linspace(0, count - 1, most).astype(np.intp)) if count else np.zeros(0, np.intp)


def take_excerpts(tracks: Sequence[Track], rate_hz: float) -> Sequence[Track]:
    """Returns tracks as they are, or, where they are longer in all, stretches of them that are spread evenly."""
    length = round(STRETCH_S * rate_hz)
    places = [(track, first) for track in tracks for first in range(0, len(track.measured), length)]
    if len(places) <= NUM_STRETCHES + len(tracks):
        return tracks
    chosen = (places[k] for k in spread_indices(len(places), NUM_STRETCHES))
    return [_take_rows(track, first, length) for track, first in chosen]


def _take_rows(track: Track, first: int, count: int) -> Track:
    first = max(0, min(first, len(track.measured) - count))  # the last stretch is as long as the others
    values = {field.name: getattr(track, field.name) for field in fields(track) if field.name != "name"}
    by_row = {name: v[first : first + count] for name, v in values.items() if v.ndim == 2 or v.dtype == np.bool_}
    return replace(track, **by_row)
