"""Episodes brought to the control rate, with smoothed values, slopes and noise; excerpts of long ones."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator

from gapless.core.episode import Episode
from gapless.core.signal import Array, Flags, Indices, TimeSeries
from gapless.project.records import Project
from gapless.signals.smoother import Smoothed, find_quantum, smooth, smooth_between_impacts

MAX_GAP = 2.5  # intervals without a sample that are bridged; longer ones stay missing
MIN_RATE_RATIO_TO_AVERAGE = 1.05  # logs this much faster than the control rate: the tolerance of `time_notes`

STRETCH_S = 15.0
NUM_STRETCHES = 20  # 5 minutes in all: each axis of an arm moves some dozens of times in them


@dataclass(frozen=True)
class Track:
    """An episode at the control rate; row k is time k / rate."""

    name: str  # the episode's name
    commands: Array  # (num_rows, num_commands) in model units, held to the next row; of faster logs, the mean over it
    measured: Array  # (num_rows, num_measurements) in model units; NaN where missing
    smooth: Array  # (num_rows, num_measurements) smoothed, gaps bridged
    slope: Array  # (num_rows, num_measurements) its time derivative [unit/s]
    noise: Array  # (num_measurements,) standard deviation of the readings, stated by the project or estimated
    value_sd: Array  # (num_measurements,) standard error of `smooth`
    slope_sd: Array  # (num_measurements,) standard error of `slope` [unit/s]
    known: Flags  # (num_rows,) every reading is present, or between present ones in a column slower than the rate
    calm: Flags  # (num_rows,) False near impacts of a measured body, where slopes are uncertain
    usable: Flags  # (num_rows,) False in rows that say nothing about the model, such as before a drive was switched on


def make_track(project: Project, episode: Episode) -> Track:
    """Returns an episode brought to the project's control rate."""
    rate_hz, readings = project.rate_hz, episode.measurements
    times_s = np.arange(int(episode.duration_s * rate_hz + 1e-6) + 1) / rate_hz + readings.times_s[0]
    columns = range(len(readings.names))
    is_angle = [item.quantity == "yaw" for item in project.measurements]
    measured = np.stack([_interpolate(readings, k, times_s, is_angle[k], rate_hz) for k in columns], axis=1)
    for columns_of_one in quaternion_columns(project):  # flipped so that consecutive rows do not change sign
        block = measured[:, columns_of_one]
        flips = np.where(np.sum(block[1:] * block[:-1], axis=1) < 0, -1.0, 1.0)
        measured[1:, columns_of_one] *= np.cumprod(flips)[:, None]
    smoothed, calm = _smooth_columns(project, episode, measured)
    return Track(
        name=episode.name,
        commands=_resample_commands(episode.commands, times_s, rate_hz),
        measured=measured,
        smooth=np.stack([one.value for one in smoothed], axis=1),
        slope=np.stack([one.slope for one in smoothed], axis=1),
        noise=np.array([one.noise for one in smoothed]),
        value_sd=np.array([one.value_sd for one in smoothed]),
        slope_sd=np.array([one.slope_sd for one in smoothed]),
        known=np.all([_is_present(measured[:, k]) for k in columns], axis=0),
        calm=calm,
        usable=np.ones(len(measured), dtype=np.bool_),
    )


def _smooth_columns(project: Project, episode: Episode, measured: Array) -> tuple[list[Smoothed], Flags]:
    """Returns all columns smoothed, those of each free body together, and which rows are calm."""
    noise = [item.noise for item in project.measurements]
    quantum = [find_quantum(values) for values in episode.measurements.values.T]
    smoothed: dict[int, Smoothed] = {}
    calm = np.ones(len(measured), dtype=np.bool_)
    for group in _group_free_bodies(project, measured):
        block = np.stack([_bridge_gaps(measured[:, k]) for k in group], axis=1)
        settings = [noise[k] for k in group], [quantum[k] for k in group]
        found, quiet = smooth_between_impacts(block, project.rate_hz, *settings)
        smoothed |= zip(group, found, strict=True)
        calm &= quiet
    for k in range(len(noise)):
        if k not in smoothed:
            smoothed[k] = _smooth_column(measured[:, k], project.rate_hz, noise[k], quantum[k])
    return [smoothed[k] for k in range(len(noise))], calm


def _group_free_bodies(project: Project, measured: Array) -> list[list[int]]:
    """Returns the columns of each body that is measured and that nothing drives, without those slower than the rate.

    What is thrown or dropped moves smoothly between impacts; what is pushed does not.
    """
    found: dict[str, list[int]] = {}
    for k, item in enumerate(project.measurements if not project.commands else ()):
        known = np.flatnonzero(np.isfinite(measured[:, k]))
        if item.element == "body" and len(known) > 1 and np.median(np.diff(known)) <= MAX_GAP:
            found.setdefault(item.name, []).append(k)
    return list(found.values())


def _resample_commands(series: TimeSeries, times_s: Array, rate_hz: float) -> Array:
    """Returns the commands of each control interval, (num_rows, num_commands).

    A log that is no faster than the control rate gives the command in force. Of a faster one, that would be the first
    of several, held too long: on average it comes (interval of the control - interval of the log) / 2 too late, and a
    fitted delay would be too short by as much. The mean over the interval has the same integral as what was sent.
    """
    if not series.names:
        return np.zeros((len(times_s), 0))
    values = np.stack([_bridge_gaps(series.values[:, k], hold=True) for k in range(len(series.names))], axis=1)
    if np.median(np.diff(series.times_s)) * rate_hz * MIN_RATE_RATIO_TO_AVERAGE < 1.0:
        return _average_held(series.times_s, values, times_s, 1.0 / rate_hz)
    return values[_index_in_force(series.times_s, times_s + 0.25 / rate_hz)]


def _average_held(stamps_s: Array, values: Array, times_s: Array, interval_s: float) -> Array:
    """Returns the means over [t, t + interval] of values that are held from each stamp to the next."""
    ends_s = np.append(times_s, times_s[-1] + interval_s)
    inside = (stamps_s > ends_s[0]) & (stamps_s < ends_s[-1])
    edges_s = np.union1d(ends_s, stamps_s[inside])
    pieces = values[_index_in_force(stamps_s, edges_s[:-1])]
    starts = np.searchsorted(edges_s, times_s)
    first = pieces[starts]
    away = pieces - np.repeat(first, np.diff(np.append(starts, len(pieces))), axis=0)  # exactly 0 where nothing changes
    return first + np.add.reduceat(away * np.diff(edges_s)[:, None], starts, axis=0) / interval_s


def _index_in_force(stamps_s: Array, times_s: Array) -> Indices:
    """Returns which sample is the newest at each time; before the first, the first."""
    return np.clip(np.searchsorted(stamps_s, times_s, side="right") - 1, 0, None)


def _interpolate(series: TimeSeries, column: int, times_s: Array, is_angle: bool, rate_hz: float) -> Array:
    values = series.values[:, column]
    known = np.isfinite(values)
    if known.sum() < 2:
        return np.full(len(times_s), np.nan)
    stamps, values = series.times_s[known], values[known]
    if is_angle:
        values = np.unwrap(values)
    if np.median(np.diff(stamps)) > MAX_GAP / rate_hz:
        out = np.full(len(times_s), np.nan)  # slower than the rate: its samples at the nearest rows, NaN between
        rows = np.unique(np.round((stamps - times_s[0]) * rate_hz).astype(np.intp))
        rows = rows[(rows >= 0) & (rows < len(times_s))]
        out[rows] = PchipInterpolator(stamps, values, extrapolate=True)(times_s[rows])
        return out
    out = np.interp(times_s, stamps, values)
    after = np.clip(np.searchsorted(stamps, times_s), 1, len(stamps) - 1)
    wide = stamps[after] - stamps[after - 1] > MAX_GAP / rate_hz
    away_s = np.minimum(np.abs(times_s - stamps[after - 1]), np.abs(stamps[after] - times_s))
    out[wide & (away_s > 1e-6 / rate_hz)] = np.nan  # a sample at the edge of a gap is no part of it
    return out


def _smooth_column(values: Array, rate_hz: float, noise: float | None, quantum: float) -> Smoothed:
    """Returns a column smoothed at its own rate, at all rows."""
    known = np.flatnonzero(np.isfinite(values))
    every = int(np.median(np.diff(known))) if len(known) > 1 else 1
    if every <= MAX_GAP:
        return smooth(_bridge_gaps(values), rate_hz, noise, quantum)
    own = np.arange(known[0], known[-1] + 1, every)
    found = smooth(np.interp(own, known, values[known]), rate_hz / every, noise, quantum)
    curve = CubicHermiteSpline(own / rate_hz, found.value, found.slope)
    times_s = np.clip(np.arange(len(values)), own[0], own[-1]) / rate_hz
    return replace(found, value=curve(times_s), slope=curve(times_s, 1))


def _is_present(values: Array) -> Flags:
    """Tells at which rows a column is present, or lies between samples that are no further apart than usual."""
    known = np.flatnonzero(np.isfinite(values))
    if len(known) < 2 or np.median(np.diff(known)) <= MAX_GAP:
        return np.isfinite(values)
    after = np.clip(np.searchsorted(known, np.arange(len(values))), 1, len(known) - 1)
    near = known[after] - known[after - 1] <= MAX_GAP * np.median(np.diff(known))
    return near & (np.arange(len(values)) >= known[0]) & (np.arange(len(values)) <= known[-1])


def _bridge_gaps(values: Array, hold: bool = False) -> Array:
    known = np.flatnonzero(np.isfinite(values))
    if len(known) == len(values):
        return values
    if not len(known):
        return np.zeros_like(values)
    rows = np.arange(len(values))
    if hold:
        return values[known[np.clip(np.searchsorted(known, rows, side="right") - 1, 0, None)]]
    return np.interp(rows, known, values[known])


def quaternion_columns(project: Project) -> list[list[int]]:
    """Returns the columns of each body's quaternion that are mapped, in the order w x y z; others count as 0."""
    parts = ("qw", "qx", "qy", "qz")
    places = {(m.name, m.quantity): k for k, m in enumerate(project.measurements) if m.element == "body"}
    bodies = dict.fromkeys(name for name, quantity in places if quantity in parts)
    return [[places[name, part] for part in parts if (name, part) in places] for name in bodies]


def subtract_readings(project: Project, predicted: Array, measured: Array) -> Array:
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


def spread_indices(count: int, most: int) -> Indices:
    """Returns at most `most` of the indices 0 to count - 1, spread evenly; all of them where they are fewer."""
    return np.unique(np.linspace(0, count - 1, most).astype(np.intp)) if count else np.zeros(0, np.intp)


def take_excerpts(tracks: Sequence[Track], rate_hz: float) -> Sequence[Track]:
    """Returns tracks as they are, or, where they are longer in all, stretches of them that are spread evenly.

    A look at every row of long tracks would take minutes and show nothing more.
    """
    length = round(STRETCH_S * rate_hz)
    places = [(track, first) for track in tracks for first in range(0, len(track.measured), length)]
    if len(places) <= NUM_STRETCHES + len(tracks):
        return tracks
    excerpts: list[Track] = []
    for track, first in (places[k] for k in spread_indices(len(places), NUM_STRETCHES)):
        first = max(0, min(first, len(track.measured) - length))  # the last stretch is as long as the others
        values = {field.name: getattr(track, field.name) for field in fields(track) if field.name != "name"}
        by_row = {name: v[first : first + length] for name, v in values.items() if v.ndim == 2 or v.dtype == np.bool_}
        excerpts.append(replace(track, **by_row))
    return excerpts
