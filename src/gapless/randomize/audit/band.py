"""The band of predictions that training sees, and how much of reality lies in it."""

from dataclasses import dataclass

import numpy as np

from gapless.core.interval import normal_quantile
from gapless.core.signal import Array
from gapless.fit.problem import FitProblem
from gapless.fit.start_errors import shift_starts
from gapless.signals.track import subtract_readings

LEVEL = 0.9
MOST_WINDOWS = 16


@dataclass(frozen=True)
class Band:
    """A band of predictions, per column.

    Attributes:
        coverage: (num_measurements,) share of the readings within it; NaN where nothing was read.
        to_noise: (num_measurements,) half its width over that of a band of noise alone.
    """

    coverage: Array
    to_noise: Array


def band_of(problem: FitProblem, rows: Array, rng: np.random.Generator) -> Band:
    """Returns the `LEVEL` band of predictions with rows, each with noise in its readings and in where it starts.

    Args:
        problem: The windows.
        rows: (num_rows, num_parameters).
        rng: Draws noise.
    """
    windows = problem.windows
    if len(windows) > MOST_WINDOWS:
        windows = windows.pick(np.linspace(0, len(windows) - 1, MOST_WINDOWS).round().astype(np.intp))
    num_rows, num_windows = len(rows), len(windows)
    many = windows.pick(np.tile(np.arange(num_windows), num_rows))
    value, slope = (sd * rng.standard_normal((len(many), len(sd))) for sd in (windows.start_sd, windows.slope_sd))
    pairs = np.stack([np.repeat(np.arange(num_rows), num_windows), np.arange(len(many))], axis=1)
    shown = problem.predictor.predict_pairs(shift_starts(many, value, slope), rows, pairs)[:, 1:]
    shown = shown.reshape(num_rows, num_windows, *shown.shape[1:])
    project = problem.predictor.blueprint.project
    off = subtract_readings(
        project, shown, windows.measured[None, :, 1:]
    )  # about the reading, so that angles do not wrap
    off = off + windows.noise * rng.standard_normal(off.shape)
    low, high = np.quantile(off, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    known = np.isfinite(low)
    count = np.maximum(known.sum(axis=(0, 1)), 1)
    inside = ((low <= 0) & (high >= 0) & known).sum(axis=(0, 1)) / count
    width = np.nansum(np.where(known, high - low, 0.0), axis=(0, 1)) / count / 2
    return Band(
        np.where(known.any(axis=(0, 1)), inside, np.nan), width / (normal_quantile((1 + LEVEL) / 2) * windows.noise)
    )
