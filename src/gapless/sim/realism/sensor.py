"""Readings that are not quite what is."""

import numpy as np

from gapless.core.signal import Array


def quantised(value: Array, step: Array) -> Array:
    """Returns values rounded to multiples of `step`; a step of 0 is ideal."""
    safe = np.where(step > 0, step, 1.0)
    return np.where(step > 0, np.round(value / safe) * safe, value)
