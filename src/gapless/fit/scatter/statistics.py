"""How what a prediction leaves looks: its size, its jumps, its tails, its gaps, and how it differs from log to log."""

import numpy as np

from gapless.core.signal import Array, Flags

MIN_OUTLIER = 6.0  # times the median size: what only outliers reach
NUM_STATISTICS = 9  # per column
LAG_STEPS = 10  # between readings that are compared


def statistics_of(left: Array, reading: Array, tiny: Array) -> Array:
    """Returns statistics of runs, (num_runs, num_measurements * NUM_STATISTICS).

    Sizes enter by their logarithm and shares by four times the arcsine of their root, so that each scatters about
    evenly, and what is small for one is small for the other: 0.03 is 3 % of a size, and of a share of a quarter.

    Args:
        left: (num_runs, num_logs, num_steps, num_measurements) reading less prediction; NaN where unknown.
        reading: What was read, of the same shape.
        tiny: (num_measurements,) sizes that are none: readings that differ by less are one reading, repeated.
    """
    with np.errstate(invalid="ignore"):
        step, moved = np.diff(left, axis=2), np.diff(reading, axis=2)
        later = left[:, :, LAG_STEPS:] - left[:, :, :-LAG_STEPS] if left.shape[2] > LAG_STEPS else left
        size, jump = np.abs(left), np.abs(step)
        typical = np.nanmedian(size, axis=(1, 2), keepdims=True)
        still = np.abs(moved) < tiny
        per_log = np.sqrt(np.nanmean(left**2, axis=2))
        parts = [
            _log(np.sqrt(np.nanmean(left**2, axis=(1, 2))), tiny),
            _log(np.sqrt(np.nanmean(step**2, axis=(1, 2))), tiny),
            _log(np.sqrt(np.nanmean(later**2, axis=(1, 2))), tiny),
            _log(np.nanquantile(jump, 0.99, axis=(1, 2)), tiny),
            _log(np.sqrt(np.mean(np.nanmean(left, axis=2) ** 2, axis=1)), tiny),
            _share(_mean_where(size > MIN_OUTLIER * typical + tiny, left)),
            _share(_mean_where(still, moved)),
            _share(_mean_where(still[:, :, 1:] & ~still[:, :, :-1], moved[:, :, 1:])),  # gaps, however long
            np.std(_log(per_log, tiny), axis=1),
        ]
    return np.concatenate(parts, axis=1)


def _log(values: Array, tiny: Array) -> Array:
    return np.log(values + tiny)


def _share(values: Array) -> Array:
    return 4 * np.arcsin(np.sqrt(values))


def _mean_where(true: Flags, known: Array) -> Array:
    """Returns the share of known samples where something is true, (num_runs, num_measurements)."""
    count = np.isfinite(known).sum(axis=(1, 2))
    return true.sum(axis=(1, 2)) / np.maximum(count, 1)
