"""Columns that came from ROS messages, written as these messages again."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gapless.core.recording import Recording


@dataclass(frozen=True)
class StandardTopic:
    """A topic whose columns are written as messages of the type that they came from."""

    topic: str
    type: str
    definition: str
    columns: tuple[str, ...]
    implied: tuple[str, ...]  # columns that reading makes again: the latency
    rows: np.ndarray
    encode: Callable[..., bytes]  # row (and version of ROS) -> bytes


def list_standard_topics(recording: Recording, times_ns: np.ndarray) -> list[StandardTopic]:
    """Returns the topics that can be written as their own messages without loss."""
    return []
