"""Commands that arrive late."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.core.signal import Array


@dataclass(frozen=True)
class DelayPlan:
    """How each substep of a control interval mixes two held commands; made once per set of delays.

    Attributes:
        index: (num_worlds, num_commands) place of the older command in the history; the newer comes next.
        weight: (num_worlds, num_substeps, num_commands) share of the older command [1].
    """

    index: NDArray[np.intp]
    weight: Array


class Past:
    """The last rows of a signal, the newest last, without moving them: each is kept twice in a ring."""

    def __init__(self, num_worlds: int, length: int, num_columns: int) -> None:
        """Makes a past of zeros."""
        self._rows = np.zeros((num_worlds, 2 * length, num_columns))
        self._length = length
        self._first = 0

    @property
    def rows(self) -> Array:
        """A view of what was, (num_worlds, length, num_columns), the newest last; valid until `push`."""
        return self._rows[:, self._first : self._first + self._length]

    @property
    def last(self) -> Array:
        """A view of the newest row, (num_worlds, num_columns); valid until `push`."""
        return self._rows[:, self._first + self._length - 1]

    def push(self, row: Array) -> None:
        """Adds (num_worlds, num_columns) as the newest row and forgets the oldest."""
        self._rows[:, self._first] = row
        self._rows[:, self._first + self._length] = row
        self._first = (self._first + 1) % self._length

    def fill(self, ids: NDArray[np.intp], rows: Array) -> None:
        """Sets the whole past of some worlds, (num_ids, length or 1, num_columns)."""
        places = (self._first + np.arange(self._length)) % self._length
        self._rows[np.ix_(ids, places)] = rows
        self._rows[np.ix_(ids, places + self._length)] = rows


def history_length(max_delay_s: float, interval_s: float) -> int:
    """Returns how many held commands must be kept, the current one included."""
    return int(np.ceil(max_delay_s / interval_s - 1e-9)) + 2


def plan_delay(delay_s: Array, interval_s: float, num_substeps: int, length: int) -> DelayPlan:
    """Returns how delayed commands are read from a history of held commands.

    The command is held over each control interval. Substep s sees the mean of the held signal over
    [s h - d, (s + 1) h - d], h = interval / num_substeps: exact for any delay d, and continuous in d,
    so that a delay can be fitted like any other number. A late interval overlaps just two held commands.

    Args:
        delay_s: (num_worlds, num_commands) delays [s], at least 0.
        interval_s: Length of a control interval [s].
        num_substeps: Physics steps in a control interval.
        length: Number of held commands in the history, the current one last.
    """
    begin = -delay_s / interval_s
    older = np.floor(begin + 1e-9)
    substeps = np.arange(num_substeps)[None, :, None]
    weight = np.clip((older + 1 - begin)[:, None, :] * num_substeps - substeps, 0.0, 1.0)
    index = np.clip(length - 1 + older.astype(np.intp), 0, length - 1)
    return DelayPlan(index, weight)


def delayed(history: Array, plan: DelayPlan) -> Array:
    """Returns the commands of each substep, (num_worlds, num_substeps, num_commands).

    Args:
        history: (num_worlds, length, num_commands) held commands, the current one last.
        plan: From `plan_delay`.
    """
    worlds = np.arange(len(history))[:, None]
    commands = np.arange(history.shape[2])
    older = history[worlds, plan.index, commands][:, None]
    newer = history[worlds, np.minimum(plan.index + 1, history.shape[1] - 1), commands][:, None]
    out = plan.weight * (older - newer)
    out += newer
    return out


def settled(past: Array, keep: Array, delay_s: Array, interval_s: float, num_substeps: int) -> Array:
    """Returns where lags stand after a past of held commands that reach them late, (num_worlds, num_commands).

    Before the past the oldest command was held forever. A delay and a lag may change places: the lag runs over the
    past by whole intervals, y' = u + keep^num_substeps (y - u), and is then read as long ago as the delay says,
    between substeps along a line, as `plan_delay` mixes commands.

    Args:
        past: (num_worlds, num_past, num_commands) held commands, the newest last.
        keep: (num_worlds, num_commands) share that a lag leaves after a physics step.
        delay_s: (num_worlds, num_commands) delays [s].
        interval_s: Length of a control interval [s].
        num_substeps: Physics steps in a control interval.
    """
    after = past.copy()
    whole = keep**num_substeps
    for k in range(1, past.shape[1]):
        after[:, k] = past[:, k] + whole * (after[:, k - 1] - past[:, k])
    late = delay_s / interval_s * num_substeps  # in substeps
    newer = np.floor(late + 1e-9).astype(np.intp)
    share = np.clip(late - newer, 0.0, 1.0)
    rows, columns = np.arange(len(past))[:, None], np.arange(past.shape[2])

    def ago(count: NDArray[np.intp]) -> Array:
        """Returns where the lags stood some substeps ago."""
        index = past.shape[1] - 1 - count // num_substeps
        here, before = np.clip(index, 0, None), np.clip(index - 1, 0, None)
        part = keep ** (num_substeps - count % num_substeps)
        command = past[rows, here, columns]
        return command + part * (after[rows, before, columns] - command)

    return ago(newer) + share * (ago(newer + 1) - ago(newer))
