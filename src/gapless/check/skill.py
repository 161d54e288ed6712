"""How much of a motion predictions explain: their error as a share of that of a straight line."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gapless.check.columns import list_drives
from gapless.core.signal import Array, Indices
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows
from gapless.project.records import Project
from gapless.signals.excerpts import spread_indices
from gapless.signals.track import subtract_readings
from gapless.sim.blueprint import CompiledProject

MIN_MOTION_TO_NOISE = 5.0  # a window counts for a column that leaves the straight line by this many times its noise
MAX_SHARE, MIN_SHARE = 4.0, 0.005  # unexplained shares beyond are as bad, or as good
MIN_WINDOWS_PER_COLUMN, MIN_WINDOWS = 8, 24  # that are picked to predict


@dataclass(frozen=True)
class PredictionSkill:
    """Errors of predictions beside those of a straight line from the start."""

    error: Array  # (num_rows, num_windows, num_measurements) root mean square; NaN where a column hardly moves
    line_error: Array  # (num_windows, num_measurements) the same of the straight line

    @cached_property
    def counts(self) -> Indices:
        """In how many windows each column moves, (num_measurements,)."""
        return np.isfinite(self.line_error).sum(axis=0)

    @cached_property
    def window_shares(self) -> Array:
        """What each window adds to the unexplained share of motion, (num_rows, num_windows, num_measurements) [1].

        e^2 / (l^2 + m^2) with m the median of l: violent windows do not hide the others, quiet ones count less.
        """
        scale = self.line_error**2 + np.array([_median(column) for column in self.line_error.T]) ** 2
        whole = np.nansum(self.line_error**2 / scale, axis=0)
        return self.error**2 / scale / np.where(whole > 0, whole, np.nan)

    @cached_property
    def shares(self) -> Array:
        """Unexplained share of motion, (num_rows, num_measurements) [1]: 0 is perfect, 1 as good as the line."""
        shares = np.sqrt(np.nansum(self.window_shares, axis=1))
        return np.where(self.counts > 0, np.clip(shares, MIN_SHARE, MAX_SHARE), np.nan)

    @cached_property
    def best_row(self) -> Indices:
        """Row that suits each column best, (num_measurements,)."""
        return np.argmin(np.nan_to_num(self.shares, nan=MAX_SHARE), axis=0)

    @cached_property
    def best_shares(self) -> Array:
        """Unexplained share under the row that suits each column best, (num_measurements,); NaN where none moves."""
        return self.shares[self.best_row, np.arange(self.line_error.shape[1])]

    @cached_property
    def best_window_shares(self) -> Array:
        """What each window adds under those rows, (num_windows, num_measurements)."""
        return np.stack([self.window_shares[row, :, k] for k, row in enumerate(self.best_row)], axis=-1)

    def append_rows(self, other: "PredictionSkill") -> "PredictionSkill":
        """Returns the skill under the rows of both, on the same windows."""
        return PredictionSkill(np.concatenate([self.error, other.error]), self.line_error)


def measure_skill(predictor: Predictor, rows: Array, versions: Sequence[Windows]) -> list[PredictionSkill]:
    """Returns the skill of a model under rows of parameters on versions of the same windows, in one batched call."""
    blueprint = predictor.blueprint
    ready = [remove_command_offsets(blueprint, windows) for windows in versions]
    names = ("commands", "history", "measured", "start", "slope", "track", "first_row")
    stacked = replace(ready[0], **{name: np.concatenate([getattr(w, name) for w in ready]) for name in names})
    parts = np.split(predictor.predict(stacked, rows), len(ready), axis=1)
    return [_compare_with_line(blueprint.project, windows, part) for windows, part in zip(ready, parts, strict=True)]


def pick_moving_windows(project: Project, windows: Windows, columns: Sequence[int]) -> Windows:
    """Returns some windows in which each of some columns leaves the straight line clearly, spread over the logs."""
    if not len(windows) or not columns:
        return windows.pick(np.zeros(0, np.intp))
    ratio = np.nan_to_num(_line_error(project, windows) / line_noise(project, windows))[:, list(columns)]
    chosen: set[int] = set()
    count = max(MIN_WINDOWS_PER_COLUMN, MIN_WINDOWS // ratio.shape[1])
    for column in ratio.T:
        clear = np.flatnonzero(column > max(MIN_MOTION_TO_NOISE, float(np.median(column))))
        chosen |= {int(k) for k in clear[spread_indices(len(clear), count)]}
    return windows.pick(np.array(sorted(chosen), dtype=np.intp))


def remove_command_offsets(blueprint: CompiledProject, windows: Windows) -> Windows:
    """Returns windows whose commands to position servos are shifted to what the joints reach on average.

    A zero that differs between servo and encoder, or a constant load, is no fault of the mapping.
    """
    commands, history = windows.commands.copy(), windows.history.copy()
    for drive in list_drives(blueprint):
        if drive.is_servo and drive.positions:
            reached = drive.gear * windows.measured[:, :-1, drive.positions[0]]
            offset = _median(commands[:, :, drive.command] - reached)
            if np.isfinite(offset):
                commands[:, :, drive.command] -= offset
                history[:, :, drive.command] -= offset
    return replace(windows, commands=commands, history=history)


def _compare_with_line(project: Project, windows: Windows, predicted: Array) -> PredictionSkill:
    error = _rms(subtract_readings(project, predicted, windows.measured[None])[:, :, 1:])
    line = _line_error(project, windows)
    line = np.where(line > MIN_MOTION_TO_NOISE * line_noise(project, windows), line, np.nan)
    return PredictionSkill(np.where(np.isfinite(line), np.fmin(error, MAX_SHARE * line), np.nan), line)


def _line_error(project: Project, windows: Windows) -> Array:
    """Returns how far each column is from a straight line, (num_windows, num_measurements).

    The line goes through the start along its slope; for forces and sensors, which have no inertia, it is their mean.
    """
    times_s = np.arange(windows.num_steps + 1)[:, None] / project.rate_hz
    line = windows.start[:, None] + windows.slope[:, None] * times_s
    for k in _columns_without_inertia(project):
        line[..., k] = np.nanmean(windows.measured[..., k]) if np.isfinite(windows.measured[..., k]).any() else 0.0
    return _rms(subtract_readings(project, line, windows.measured)[:, 1:])


def line_noise(project: Project, windows: Windows) -> Array:
    """Returns what noise alone adds to the distance from the straight line, (num_measurements,)."""
    mean_square_s2 = float(np.mean((np.arange(1, windows.num_steps + 1) / project.rate_hz) ** 2))
    noise = np.sqrt(windows.noise**2 + windows.start_sd**2 + mean_square_s2 * windows.slope_sd**2)
    algebraic = _columns_without_inertia(project)
    noise[algebraic] = windows.noise[algebraic]
    return noise


def _columns_without_inertia(project: Project) -> list[int]:
    return [
        k
        for k, item in enumerate(project.measurements)
        if item.element in ("actuator", "sensor") or item.quantity == "effort"
    ]


def _rms(error: Array) -> Array:
    """Returns root mean squares over the steps (second but last axis); NaN where nothing is known."""
    known = np.isfinite(error)
    count = known.sum(axis=-2)
    squares = np.where(known, error, 0.0) ** 2
    return np.where(count > 0, np.sqrt(squares.sum(axis=-2) / np.maximum(count, 1)), np.nan)


def _median(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")
