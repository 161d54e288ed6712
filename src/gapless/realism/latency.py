"""Commands that arrive late."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.core.signal import Array


@dataclass(frozen=True)
class DelayPlan:
    """How each substep of a control interval mixes two held commands; made once per set of delays.

    Attributes:
        index: (num_worlds, num_substeps, num_commands) column of the older command in the history.
        weight: (num_worlds, num_substeps, num_commands) share of the older command [1].
    """

    index: NDArray[np.intp]
    weight: Array


def history_length(max_delay_s: float, interval_s: float) -> int:
    """Returns how many held commands must be kept, the current one included."""
    return int(np.ceil(max_delay_s / interval_s - 1e-9)) + 2


def plan_delay(delay_s: Array, interval_s: float, num_substeps: int, length: int) -> DelayPlan:
    """Returns how delayed commands are read from a history of held commands.

    The command is held over each control interval. Substep s sees the mean of the held signal over
    [s h - d, (s + 1) h - d], h = interval / num_substeps: exact for any delay d, and continuous in d,
    so that a delay can be fitted like any other number.

    Args:
        delay_s: (num_worlds, num_commands) delays [s], at least 0.
        interval_s: Length of a control interval [s].
        num_substeps: Physics steps in a control interval.
        length: Number of held commands in the history, the current one last.
    """
    begin = np.arange(num_substeps)[None, :, None] / num_substeps - delay_s[:, None, :] / interval_s
    older = np.floor(begin + 1e-9)
    weight = np.clip((older + 1 - begin) * num_substeps, 0.0, 1.0)
    index = np.clip(length - 1 + older.astype(np.intp), 0, length - 1)
    return DelayPlan(index, weight)


def delayed(history: Array, plan: DelayPlan) -> Array:
    """Returns the commands of each substep, (num_worlds, num_substeps, num_commands).

    Args:
        history: (num_worlds, length, num_commands) held commands, the current one last.
        plan: From `plan_delay`.
    """
    newer = np.minimum(plan.index + 1, history.shape[1] - 1)
    older_values = np.take_along_axis(history, plan.index, axis=1)
    newer_values = np.take_along_axis(history, newer, axis=1)
    return newer_values + plan.weight * (older_values - newer_values)
