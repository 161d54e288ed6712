"""Logs that hold the same recording under different names."""

from collections.abc import Sequence

import numpy as np

from gapless.core.results import Note
from gapless.core.signal import Array
from gapless.project.log.read import Log

MAX_SHARE_OF_TRAVEL = 1e-6  # by which equal columns differ; noise of any sensor is far more
MAX_SHARE_OF_SIZE = 2.0**-22  # what saving in single precision changes, times 2
MAX_TIME_DIFFERENCE_S = 1e-4  # by which equal stamps differ after a large offset was added and taken away
MIN_SHARE_KNOWN = 0.9  # of the values in one table that the other must have: rounding may make a value a corrupt one


def find_copies(logs: Sequence[Log]) -> dict[int, int]:
    """Returns index of a log -> index of the first earlier log that holds the same recording.

    The mapped columns over the time since the first stamp are compared, so another offset of the clock, another file
    format or other columns beside them make no difference. Logs in which nothing changes are no copies of each other.
    """
    # Time since the start, commands and measurements, (num_samples, num_columns) each.
    episodes = [log.episode for log in logs]
    tables = [np.column_stack([e.measurements.times_s, e.commands.values, e.measurements.values]) for e in episodes]
    means = [np.nan_to_num(table).mean(axis=0) for table in tables]
    allowed = [_rounding_errors(table) for table in tables]
    changing = [bool(np.ptp(np.nan_to_num(table[:, 1:]), axis=0).any()) for table in tables]
    copies: dict[int, int] = {}
    for k, table in enumerate(tables):
        for earlier in (e for e in range(k if changing[k] else 0) if e not in copies):
            alike = table.shape == tables[earlier].shape and _are_equal(means[k], means[earlier], 100 * allowed[k])
            if alike and _are_equal(table, tables[earlier], allowed[k]):
                copies[k] = earlier
                break
    return copies


def copy_notes(logs: Sequence[Log], copies: dict[int, int], *, left_out: bool) -> list[Note]:
    """Returns what to say of each copy: a warning where it was left out, else a fault."""
    pairs = [(logs[copy].path.name, logs[first].path.name) for copy, first in copies.items()]
    if left_out:
        return [Note("warning", a, f"it holds the same recording as {b} and is left out: delete one") for a, b in pairs]
    return [Note("fault", a, f"{b} and {a} hold the same recording: delete one") for a, b in pairs]


def _rounding_errors(table: Array) -> Array:
    """Returns by how much each column may differ in a copy, (num_columns,)."""
    known = np.nan_to_num(table)
    allowed = MAX_SHARE_OF_TRAVEL * np.ptp(known, axis=0) + MAX_SHARE_OF_SIZE * np.abs(known).max(axis=0)
    return np.concatenate([[MAX_TIME_DIFFERENCE_S], allowed[1:]])


def _are_equal(one: Array, other: Array, allowed: Array) -> bool:
    """Returns whether values that both have are equal but for rounding, and both have nearly all."""
    known = np.isfinite(one) & np.isfinite(other)
    either = np.isfinite(one) | np.isfinite(other)
    close = np.abs(one - other) <= allowed
    return bool(known.sum() >= MIN_SHARE_KNOWN * either.sum() and np.all(close | ~known))
