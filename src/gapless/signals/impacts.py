"""Values and slopes of things that collide: smooth between impacts, not across them.

An impact changes velocities within a few samples. Smoothed like the rest it would be smeared over the rows around it,
whose slopes would then be wrong by far more than they claim; and to leave room for impacts all other rows would be
smoothed too little. So third differences are not normal here but heavy-tailed (multivariate t, all columns of a thing
together, since an impact shows in all of them): each gets a weight that is small where the jerk is large, found by
iterating (expectation maximisation, Lange, Little and Taylor, 1989).
"""

from collections.abc import Sequence

import numpy as np

from gapless.core.signal import Array, Flags
from gapless.signals.smoother import Smoothed, smooth

FREEDOM = 1.0  # of the t distribution: impacts are rare and large
ROUNDS = 6
SUDDEN = 0.2  # a jerk whose weight is less is an impact
MOVES = 5.0  # times the standard error of a slope are a motion
RARE = 0.5  # share of the moving rows that is calm; below, what is sudden is not impacts but the motion itself
CLEAR = 3  # rows between an impact and a calm row


def smooth_between_impacts(
    values: Array, rate_hz: float, noises: Sequence[float | None], quanta: Sequence[float]
) -> tuple[list[Smoothed], Flags]:
    """Returns the columns of one thing without their noise, and which rows are calm: no impact is near.

    Args:
        values: (num_rows, num_columns) readings at a fixed rate, none missing.
        rate_hz: Their rate.
        noises: Standard deviation of each column; None estimates it.
        quanta: Step of each column's readings; 0 for none.
    """
    count, num_columns = values.shape
    columns = range(num_columns)
    plain = [smooth(values[:, k], rate_hz, noises[k], quanta[k]) for k in columns]
    always = np.ones(count, dtype=np.bool_)
    if count < 8:
        return plain, always
    found = plain
    weight = np.ones(count - 3)
    for _ in range(ROUNDS):
        jerk = np.stack([np.diff(one.value, n=3) / one.jerk_sd for one in found], axis=1)
        weight = (FREEDOM + num_columns) / (FREEDOM + np.sum(jerk**2, axis=1))
        found = [smooth(values[:, k], rate_hz, noises[k], quanta[k], weight) for k in columns]
    calm = _calm(weight < SUDDEN, count)
    moving = np.any([np.abs(one.slope) > MOVES * one.slope_sd for one in found], axis=0)
    rare = not moving.any() or np.mean(calm[moving]) > RARE
    return (found, calm) if rare else (plain, always)


def _calm(sudden: Flags, count: int) -> Flags:
    """Returns the rows that no sudden third difference touches, nor do their neighbours."""
    near = np.zeros(count, dtype=np.bool_)
    for offset in range(-CLEAR, 4 + CLEAR):
        near[np.clip(np.flatnonzero(sudden) + offset, 0, count - 1)] = True
    return ~near
