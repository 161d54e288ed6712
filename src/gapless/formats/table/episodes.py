"""Files of several episodes: which rows belong to which."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gapless.core.signal import Array
from gapless.core.words import split_words
from gapless.formats.source import log_error

_EPISODE_NAMES = (["episode"], ["episode", "index"], ["episode", "id"])


def find_episodes(columns: Mapping[str, Array], path: Path) -> list[tuple[str, slice]]:
    """Returns the rows of each episode, and what to add to the file's name for it; empty where there is one only.

    Episodes are numbered by a column such as `episode_index`; raises LogError where their rows are mixed.
    """
    numbers = next((v for c, v in columns.items() if split_words(c) in _EPISODE_NAMES), None)
    if numbers is None or not np.isfinite(numbers).all() or len(np.unique(numbers)) == 1:
        return []
    starts = np.flatnonzero(np.diff(numbers, prepend=np.nan) != 0)
    if len(starts) != len(np.unique(numbers)):
        raise log_error("rows of several episodes are mixed: sort them by episode, then by time", path)
    ends = [*starts[1:], len(numbers)]
    return [(f"_episode_{int(numbers[a]):06d}", slice(int(a), int(b))) for a, b in zip(starts, ends, strict=True)]
