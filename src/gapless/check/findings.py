"""What is found wrong in data: mistakes in how columns are mapped, and stretches of logs, which are left out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.core.signal import Flags
from gapless.signals.track import Track


@dataclass(frozen=True)
class Mistake:
    """A mistake in how columns are mapped, or in what they hold.

    Attributes:
        columns: The columns it is about, the likeliest first.
        text: What looks wrong, why, and what to do, as one sentence.
        prevents_fit: Whether nothing can be fitted until it is mended.
    """

    columns: tuple[str, ...]
    text: str
    prevents_fit: bool = False


@dataclass(frozen=True)
class Stretch:
    """Some rows of one log that are of no use.

    Attributes:
        track: Index of the log.
        first_row: Its first row.
        end_row: The row after its last.
        column: The column that shows it.
        text: What is wrong there, without where.
    """

    track: int
    first_row: int
    end_row: int
    column: str
    text: str


def without(tracks: Sequence[Track], stretches: Sequence[Stretch]) -> tuple[Track, ...]:
    """Returns tracks in which the rows of stretches are not usable."""
    masks = [track.usable.copy() for track in tracks]
    for stretch in stretches:
        masks[stretch.track][stretch.first_row : stretch.end_row] = False
    return tuple(replace(track, usable=mask) for track, mask in zip(tracks, masks, strict=True))


def runs(flags: Flags) -> list[tuple[int, int]]:
    """Returns where flags are set without a break: (first, end) of each run."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]
