"""What a check reports: a finding about columns, or rows of one log that cannot be used."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.core.signal import Flags
from gapless.signals.track import Track


@dataclass(frozen=True)
class Finding:
    """A fault in how columns are mapped, or in what they hold, in all logs.

    Attributes:
        columns: The columns that it is about, the likeliest first.
        text: What looks wrong, why, and what to change, as one sentence.
        prevents_fit: Whether nothing can be fitted until it is corrected.
    """

    columns: tuple[str, ...]
    text: str
    prevents_fit: bool = False


@dataclass(frozen=True)
class UnusableRows:
    """Rows of one log that say nothing about the model, from `first_row` to before `end_row`.

    Attributes:
        track: Index of the log.
        first_row: The first of them.
        end_row: The row after the last.
        column: The column that shows it.
        text: What is wrong there, without where.
    """

    track: int
    first_row: int
    end_row: int
    column: str
    text: str


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
