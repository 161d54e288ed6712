"""Episodes brought to the control rate, with smoothed values, slopes and noise."""

from dataclasses import dataclass

import numpy as np
from scipy.signal import savgol_filter

from gapless.core.episode import Episode
from gapless.core.signal import Array, TimeSeries
from gapless.project.records import Project

MAX_GAP = 2.5  # intervals without a sample that are bridged; longer ones stay missing
SMOOTHERS = (3, 5, 7, 9, 13, 17, 25)  # samples in a local parabola; 3 passes through every sample


@dataclass(frozen=True)
class Track:
    """An episode at the control rate; row k is time k / rate.

    Attributes:
        name: The episode's name.
        commands: (num_rows, num_commands) held from each row to the next, in model units.
        measured: (num_rows, num_measurements) in model units; NaN where missing.
        smooth: (num_rows, num_measurements) smoothed, gaps bridged.
        slope: (num_rows, num_measurements) its time derivative [unit/s].
        noise: (num_measurements,) standard deviation of the readings, stated by the project or estimated.
    """

    name: str
    commands: Array
    measured: Array
    smooth: Array
    slope: Array
    noise: Array


def make_track(project: Project, episode: Episode) -> Track:
    """Returns an episode brought to the project's control rate."""
    rate_hz = project.rate_hz
    times_s = np.arange(int(episode.duration_s * rate_hz + 1e-6) + 1) / rate_hz
    first_s = episode.measurements.times_s[0]
    commands = _held(episode.commands, times_s + first_s, 0.25 / rate_hz)
    measured = np.stack(
        [
            _interpolated(
                episode.measurements, k, times_s + first_s, project.measurements[k].quantity == "yaw", rate_hz
            )
            for k in range(len(episode.measurements.names))
        ],
        axis=1,
    )
    _align_quaternions(project, measured)
    smooth, slope, noise = np.empty_like(measured), np.empty_like(measured), np.empty(measured.shape[1])
    for k, item in enumerate(project.measurements):
        filled = _bridged(measured[:, k])
        noise[k] = item.noise if item.noise is not None else estimate_noise(filled)
        smooth[:, k], slope[:, k] = _smoothed(filled, noise[k], rate_hz)
    return Track(episode.name, commands, measured, smooth, slope, noise)


def estimate_noise(values: Array) -> float:
    """Returns the standard deviation of white noise on a smooth signal, from its third differences.

    A third difference of white noise has variance 20 sigma^2 (1 + 9 + 9 + 1); the median keeps jumps out.
    """
    if len(values) < 8:
        return float(np.std(values)) * 1e-3 + 1e-12
    third = np.diff(values, n=3)
    typical = float(np.median(np.abs(third))) / 0.6745 / np.sqrt(20.0)
    return max(typical, 1e-6 * float(np.ptp(values)), 1e-12)


def _held(series: TimeSeries, times_s: Array, tolerance_s: float) -> Array:
    if not series.names:
        return np.zeros((len(times_s), 0))
    index = np.searchsorted(series.times_s, times_s + tolerance_s, side="right") - 1
    held = series.values[np.clip(index, 0, len(series.times_s) - 1)]
    return np.stack([_bridged(held[:, k], hold=True) for k in range(held.shape[1])], axis=1)


def _interpolated(series: TimeSeries, column: int, times_s: Array, is_angle: bool, rate_hz: float) -> Array:
    values = series.values[:, column]
    known = np.isfinite(values)
    if known.sum() < 2:
        return np.full(len(times_s), np.nan)
    stamps, values = series.times_s[known], values[known]
    if is_angle:
        values = np.unwrap(values)
    out = np.interp(times_s, stamps, values)
    after = np.clip(np.searchsorted(stamps, times_s), 1, len(stamps) - 1)
    wide = stamps[after] - stamps[after - 1] > MAX_GAP / rate_hz
    away_s = np.minimum(np.abs(times_s - stamps[after - 1]), np.abs(stamps[after] - times_s))
    out[wide & (away_s > 1e-6 / rate_hz)] = np.nan  # a sample at the edge of a gap is no part of it
    return out


def _bridged(values: Array, hold: bool = False) -> Array:
    known = np.flatnonzero(np.isfinite(values))
    if len(known) == len(values):
        return values
    if not len(known):
        return np.zeros_like(values)
    rows = np.arange(len(values))
    if hold:
        return values[known[np.clip(np.searchsorted(known, rows, side="right") - 1, 0, None)]]
    return np.interp(rows, known, values[known])


def _smoothed(values: Array, noise: float, rate_hz: float) -> tuple[Array, Array]:
    """Returns value and slope by local parabolas, the widest that leave no more than noise behind."""
    if len(values) < 3:
        return values.copy(), np.zeros_like(values)
    smooth, width = values, 3
    for candidate in SMOOTHERS[1:]:
        if candidate > len(values):
            break
        trial = savgol_filter(values, candidate, 2)
        if np.sqrt(np.mean((trial - values) ** 2)) > 1.1 * noise:
            break
        smooth, width = trial, candidate
    return smooth.copy(), savgol_filter(values, width, 2, deriv=1, delta=1 / rate_hz)


def _align_quaternions(project: Project, measured: Array) -> None:
    """Flips quaternions so that consecutive rows do not change sign."""
    for columns in quaternion_columns(project):
        block = measured[:, columns]
        flips = np.where(np.sum(block[1:] * block[:-1], axis=1) < 0, -1.0, 1.0)
        measured[1:, columns] *= np.cumprod(flips)[:, None]


def quaternion_columns(project: Project) -> list[list[int]]:
    """Returns the columns of each body whose whole quaternion is measured, in the order w x y z."""
    found: dict[str, dict[str, int]] = {}
    for k, item in enumerate(project.measurements):
        if item.element == "body" and item.quantity in ("qw", "qx", "qy", "qz"):
            found.setdefault(item.name, {})[item.quantity] = k
    return [[c[q] for q in ("qw", "qx", "qy", "qz")] for c in found.values() if len(c) == 4]


def difference(project: Project, predicted: Array, measured: Array) -> Array:
    """Returns predicted - measured, (..., num_measurements); angles, quaternions by their nearest image."""
    predicted = predicted.copy()
    for columns in quaternion_columns(project):
        dot = np.nansum(predicted[..., columns] * measured[..., columns], axis=-1, keepdims=True)
        predicted[..., columns] *= np.where(dot < 0, -1.0, 1.0)
    error = predicted - measured
    for k, item in enumerate(project.measurements):
        if item.quantity == "yaw":
            error[..., k] = (error[..., k] + np.pi) % (2 * np.pi) - np.pi
    return error
