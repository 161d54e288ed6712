"""The step in which a sensor's readings come, found from the readings."""

import numpy as np

from gapless.core.signal import Array

OFF_GRID = 0.05  # of a step: how far values may lie from multiples of it
FEWEST_REPEATS = 3.0  # readings per distinct value: fewer, and the values are as good as continuous


def quantum_of(values: Array) -> tuple[float, float]:
    """Returns the step of the values and the error of that, (0, 0) where there is none to be seen.

    The step is the least distance of distinct values, if all others are whole multiples of it; it is then fitted to
    all values, so that rounding in the log does not matter. Values stored in single precision are 2^-23 of themselves
    apart by rounding alone: that is no step.

    Args:
        values: (num_samples,) without NaN.
    """
    if len(values) < 2:
        return 0.0, 0.0
    resolution = 4 * float(np.abs(values).max()) * 2.0**-23
    distinct = np.unique(values)
    distinct = distinct[np.concatenate([[True], np.diff(distinct) > resolution])]
    if len(distinct) < 2 or len(values) < FEWEST_REPEATS * len(distinct):
        return 0.0, 0.0
    gaps = np.diff(distinct)
    step = float(np.median(gaps[gaps < 1.5 * gaps.min()]))
    for _ in range(3):  # a better step counts far multiples better
        multiples = np.round((distinct - distinct[0]) / step)
        step = float(np.polyfit(multiples, distinct, 1)[0])
    away = np.abs(distinct - np.polyval(np.polyfit(multiples, distinct, 1), multiples))
    if away.max() > max(OFF_GRID * step, resolution):
        return 0.0, 0.0
    return step, float(resolution / max(1.0, multiples[-1]))
