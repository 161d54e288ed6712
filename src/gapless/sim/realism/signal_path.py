"""Delay, lag and backlash of commands: used by the simulation, and by the layers of the same names."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.core.signal import Array


@dataclass(frozen=True)
class DelayPlan:
    """How each substep of a control interval mixes two held commands; made once per set of delays."""

    # (num_worlds, num_commands) place of the older command in the history; the newer comes next
    index: NDArray[np.intp]
    weight: Array  # (num_worlds, num_substeps, num_commands) share of the older command [1]


def history_length(max_delay_s: float, interval_s: float) -> int:
    """Returns how many held commands must be stored, the current one included."""
    return int(np.ceil(max_delay_s / interval_s - 1e-9)) + 2


def plan_delay(delay_s: Array, interval_s: float, num_substeps: int, length: int) -> DelayPlan:
    """Returns how delayed commands are read from a history of held commands.

    The command is held over each control interval. Substep s sees the mean of the held signal over
    [s h - d, (s + 1) h - d], h = interval / num_substeps: exact for any delay d, and continuous in d,
    so that a delay can be fitted like any other number. A late interval overlaps just two held commands.

    `delay_s` are (num_worlds, num_commands), at least 0; `length` is the number of held commands, the current one last.
    """
    begin = -delay_s / interval_s
    older = np.floor(begin + 1e-9)
    substeps = np.arange(num_substeps)[None, :, None]
    weight = np.clip((older + 1 - begin)[:, None, :] * num_substeps - substeps, 0.0, 1.0)
    index = np.clip(length - 1 + older.astype(np.intp), 0, length - 1)
    return DelayPlan(index, weight)


def apply_delay(held: Array, plan: DelayPlan, num_intervals: int = 1) -> Array:
    """Returns what arrives in each substep, (num_worlds, num_intervals * num_substeps, num_commands).

    Args:
        held: (num_worlds, length - 1 + num_intervals, num_commands) held commands: the last `num_intervals` are those
            of the intervals, the others came before.
        plan: How commands are delayed, made for this length.
        num_intervals: How many intervals.
    """
    last = held.shape[1] - num_intervals  # of the first interval
    ahead = np.arange(num_intervals)[:, None]
    older = np.take_along_axis(held, plan.index[:, None] + ahead, axis=1)[:, :, None]
    newer = np.take_along_axis(held, np.minimum(plan.index + 1, last)[:, None] + ahead, axis=1)[:, :, None]
    out = plan.weight[:, None] * (older - newer)
    out += newer
    return out.reshape(len(held), -1, held.shape[2])


def lag_remainder(lag_s: Array, step_s: float) -> Array:
    """Returns the share of the way to the command that a first-order lag leaves after one physics step.

    lag / (lag + step): the discrete lag whose mean delay is exactly `lag_s`, for any step. Its slope at no lag is
    not 0, so that a lag can be fitted from none like any other number, and for lags far above the step it is
    exp(-step / (lag + step / 2)): the engine's force is that of the end of a step, half a step early on average.
    """
    return lag_s / (lag_s + step_s)


def engine_time_constant(lag_s: float, step_s: float) -> float:
    """Returns the time constant t of the engine's exact filter for a lag: exp(-step / t) = `lag_remainder` [s]."""
    return float(step_s / np.log1p(step_s / lag_s))


def apply_lag(command: Array, before: Array, remainder: Array) -> Array:
    """Returns commands after a first-order lag: y' = u + remainder (y - u), one physics step after another.

    `command` is (num_worlds, num_substeps, num_commands); `before`, the last output, and `remainder`, of
    `lag_remainder`, are (num_worlds, num_commands). The last row returned is the output now; remainder 0 is ideal.
    """
    out = np.empty_like(command)
    for k in range(command.shape[1]):
        before = command[:, k] + remainder * (before - command[:, k])
        out[:, k] = before
    return out


def settle_lag(past: Array, remainder: Array, delay_s: Array, interval_s: float, num_substeps: int) -> Array:
    """Returns the output of lags after a past of held commands that reach them late, (num_worlds, num_commands).

    Before the past the oldest command was held forever. A delay and a lag may change places: the lag runs over the
    past by whole intervals, y' = u + remainder^num_substeps (y - u), and is then read as long ago as the delay says,
    between substeps along a line, as `plan_delay` mixes commands.

    `past` is (num_worlds, num_past, num_commands), the newest last; `remainder`, the share that a lag leaves after a
    physics step, and `delay_s` are (num_worlds, num_commands).
    """
    after = past.copy()
    whole = remainder**num_substeps
    for k in range(1, past.shape[1]):
        after[:, k] = past[:, k] + whole * (after[:, k - 1] - past[:, k])
    late = delay_s / interval_s * num_substeps  # in substeps
    newer = np.floor(late + 1e-9).astype(np.intp)
    share = np.clip(late - newer, 0.0, 1.0)
    rows, columns = np.arange(len(past))[:, None], np.arange(past.shape[2])

    def output_ago(count: NDArray[np.intp]) -> Array:
        """Returns the output of the lags some substeps ago."""
        index = past.shape[1] - 1 - count // num_substeps
        here, before = np.clip(index, 0, None), np.clip(index - 1, 0, None)
        part = remainder ** (num_substeps - count % num_substeps)
        command = past[rows, here, columns]
        return command + part * (after[rows, before, columns] - command)

    return output_ago(newer) + share * (output_ago(newer + 1) - output_ago(newer))


def apply_backlash(position: Array, command: Array, width: Array) -> Array:
    """Returns the position behind a gear with play after the gear moves to `command`, (num_worlds, num_commands).

    Play operator: the output stays unless the input pushes it, y' = clip(y, u - w/2, u + w/2); width 0 is ideal.
    """
    return np.clip(position, command - width / 2, command + width / 2)
