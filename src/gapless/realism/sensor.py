"""Readings that are not quite what is."""

import numpy as np

from gapless.core.signal import Array


def quantised(value: Array, step: Array) -> Array:
    """Returns values rounded to multiples of `step`; a step of 0 is ideal."""
    safe = np.where(step > 0, step, 1.0)
    return np.where(step > 0, np.round(value / safe) * safe, value)


def drifted(drift: Array, rate: Array, interval_s: float, rng: np.random.Generator) -> Array:
    """Returns a bias after one more interval of a random walk.

    Args:
        drift: (num_worlds, num_columns) bias so far, in the columns' units.
        rate: (num_columns,) standard deviation reached after one second [unit/sqrt(s)]; 0 is ideal.
        interval_s: Length of the interval [s].
        rng: Source of the steps.
    """
    return drift + rate * np.sqrt(interval_s) * rng.standard_normal(drift.shape)
