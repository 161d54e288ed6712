"""What a check reports: a finding about columns, or rows of one log that cannot be used."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.core.signal import Flags
from gapless.signals.track import Track


@dataclass(frozen=True)
class Finding:
    """A fault in how columns are mapped, or in what they hold, in all logs."""

    columns: tuple[str, ...]  # the columns that it is about, the likeliest first
    text: str  # what looks wrong, why, and what to change, as one sentence
    prevents_fit: bool = False  # whether nothing can be fitted until it is corrected


@dataclass(frozen=True)
class UnusableRows:
    """Rows of one log that say nothing about the model, from `first_row` to before `end_row`."""

    track: int  # index of the log
    first_row: int  # the first of them
    end_row: int  # the row after the last
    column: str  # the column that shows it
    text: str  # what is wrong there, without where


def mark_unusable(tracks: Sequence[Track], stretches: Sequence[UnusableRows]) -> tuple[Track, ...]:
    """Returns tracks in which the rows of these stretches are not usable."""
    masks = [track.usable.copy() for track in tracks]
    for stretch in stretches:
        masks[stretch.track][stretch.first_row : stretch.end_row] = False
    return tuple(replace(track, usable=mask) for track, mask in zip(tracks, masks, strict=True))


def find_runs(flags: Flags) -> list[tuple[int, int]]:
    """Returns where flags are set without a break: (first, end) of each run."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]
