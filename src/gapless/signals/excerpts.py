"""Some stretches of long tracks, where a look at every row would take minutes and show nothing more."""

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from gapless.signals.track import Track

STRETCH_S = 15.0
NUM_STRETCHES = 20  # 5 minutes in all: each axis of an arm moves some dozens of times in them


def take_excerpts(tracks: Sequence[Track], rate_hz: float) -> Sequence[Track]:
    """Returns tracks as they are, or, where they are longer in all, stretches of them that are spread evenly."""
    length = round(STRETCH_S * rate_hz)
    places = [(track, first) for track in tracks for first in range(0, len(track.measured), length)]
    if len(places) <= NUM_STRETCHES + len(tracks):
        return tracks
    chosen = np.unique(np.linspace(0, len(places) - 1, NUM_STRETCHES).astype(int))
    return [_take_rows(track, first, first + length) for track, first in (places[k] for k in chosen)]


def _take_rows(track: Track, first: int, end: int) -> Track:
    num_rows = len(track.measured)
    first = max(0, min(first, num_rows - (end - first)))  # the last stretch is as long as the others
    values = {field.name: getattr(track, field.name) for field in fields(track) if field.name != "name"}
    by_row = {name: value[first:end] for name, value in values.items() if value.ndim == 2 or value.dtype == np.bool_}
    return replace(track, **by_row)
