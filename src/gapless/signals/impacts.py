"""Values and slopes of things that collide: smooth between impacts, not across them.

An impact changes velocities within a few samples. Smoothed like the rest it would be smeared over the rows around it,
whose slopes would then be wrong by far more than their standard errors; and to leave room for impacts all other rows
would be smoothed too little. So third differences are not normal here but heavy-tailed (multivariate t, all columns of
a body together, since an impact shows in all of them): each gets a weight that is small where the jerk is large, found
by iterating (expectation maximisation, Lange, Little and Taylor, 1989).
"""

from collections.abc import Sequence

import numpy as np

from gapless.core.signal import Array, Flags
from gapless.signals.smoother import Smoothed, smooth

DEGREES_OF_FREEDOM = 1.0  # of the t distribution: impacts are rare and large
NUM_ROUNDS = 6
MAX_IMPACT_WEIGHT = 0.2  # a jerk whose weight is less is an impact
MIN_SLOPE_TO_ERROR = 5.0  # of a row that moves
MIN_CALM_SHARE = 0.5  # of the moving rows; below, what is sudden is not impacts but the motion itself
CALM_MARGIN_ROWS = 3  # between an impact and a calm row


def smooth_between_impacts(
    values: Array, rate_hz: float, noises: Sequence[float | None], quanta: Sequence[float]
) -> tuple[list[Smoothed], Flags]:
    """Returns the columns of one body without their noise, and which rows are calm: no impact is near.

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
    found, weight = plain, np.ones(count - 3)
    for _ in range(NUM_ROUNDS):
        jerk = np.stack([np.diff(one.value, n=3) / one.jerk_sd for one in found], axis=1)
        weight = (DEGREES_OF_FREEDOM + num_columns) / (DEGREES_OF_FREEDOM + np.sum(jerk**2, axis=1))
        found = [smooth(values[:, k], rate_hz, noises[k], quanta[k], weight) for k in columns]
    near = np.zeros(count, dtype=np.bool_)  # rows that a sudden third difference touches, and their neighbours
    for offset in range(-CALM_MARGIN_ROWS, 4 + CALM_MARGIN_ROWS):
        near[np.clip(np.flatnonzero(weight < MAX_IMPACT_WEIGHT) + offset, 0, count - 1)] = True
    moving = np.any([np.abs(one.slope) > MIN_SLOPE_TO_ERROR * one.slope_sd for one in found], axis=0)
    rare = not moving.any() or np.mean(~near[moving]) > MIN_CALM_SHARE
    return (found, ~near) if rare else (plain, always)
