"""How much of a motion predictions explain, as a share of what no model explains."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.core.signal import Array, Indices
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows
from gapless.project.records import Project
from gapless.signals.track import subtract_readings
from gapless.sim.blueprint import CompiledProject
from gapless.sim.targets import driven_joint, is_position_servo

CLEAR = 5.0  # a motion counts where it leaves the straight line by this many times its noise
MOST = 4.0  # shares above are as bad
LEAST = 0.005  # shares below are as good
_FEWEST_PER_COLUMN = 8  # windows
_IN_ALL = 24


@dataclass(frozen=True)
class Skill:
    """Errors of predictions beside those of a straight line from the start.

    Attributes:
        error: (num_rows, num_windows, num_measurements) root mean square; NaN where a window says nothing.
        line: (num_windows, num_measurements) the same of the straight line.
    """

    error: Array
    line: Array

    @property
    def counts(self) -> Indices:
        """How many windows say something about each column, (num_measurements,)."""
        return np.isfinite(self.line).sum(axis=0)

    @property
    def parts(self) -> Array:
        """What each window adds to the unexplained share of motion, (num_rows, num_windows, num_measurements) [1].

        e^2 / (l^2 + m^2) with m the median of l: violent windows do not drown the others, quiet ones count less.
        """
        scale = self.line**2 + _medians(self.line) ** 2
        whole = np.nansum(self.line**2 / scale, axis=0)
        return self.error**2 / scale / np.where(whole > 0, whole, np.nan)

    @property
    def shares(self) -> Array:
        """Unexplained share of motion, (num_rows, num_measurements) [1]: 0 is perfect, 1 as good as the line."""
        shares = np.sqrt(np.nansum(self.parts, axis=1))
        return np.where(self.counts > 0, np.clip(shares, LEAST, MOST), np.nan)

    @property
    def best_row(self) -> Indices:
        """Row that suits each column best, (num_measurements,)."""
        return np.argmin(np.nan_to_num(self.shares, nan=MOST), axis=0)

    @property
    def best(self) -> Array:
        """Unexplained share under the row that suits each column best, (num_measurements,); NaN if nothing speaks."""
        return self.shares[self.best_row, np.arange(self.line.shape[1])]

    @property
    def best_parts(self) -> Array:
        """What each window adds under those rows, (num_windows, num_measurements)."""
        return np.stack([self.parts[row, :, k] for k, row in enumerate(self.best_row)], axis=-1)

    def joined(self, other: "Skill") -> "Skill":
        """Returns the skill under the rows of both, on the same windows."""
        return Skill(np.concatenate([self.error, other.error]), self.line)


def measure_skill(predictor: Predictor, rows: Array, versions: Sequence[Windows]) -> list[Skill]:
    """Returns the skill of a model under rows of parameters on versions of the same windows, in one batched call."""
    blueprint = predictor.blueprint
    ready = [without_offsets(blueprint, windows) for windows in versions]
    names = ("commands", "history", "measured", "start", "slope", "track", "first_row")
    stacked = replace(ready[0], **{name: np.concatenate([getattr(w, name) for w in ready]) for name in names})
    predicted = predictor.predict(stacked, rows)
    parts = np.split(predicted, len(ready), axis=1)
    return [_skill(blueprint.project, windows, part) for windows, part in zip(ready, parts, strict=True)]


def lively(project: Project, windows: Windows, columns: Sequence[int]) -> Windows:
    """Returns some windows in which each of some columns leaves the straight line clearly, spread over the logs."""
    if not len(windows) or not columns:
        return windows.pick(np.zeros(0, np.intp))
    ratio = np.nan_to_num(_line_error(project, windows) / line_noise(project, windows))[:, list(columns)]
    chosen: set[int] = set()
    count = max(_FEWEST_PER_COLUMN, _IN_ALL // ratio.shape[1])
    for column in ratio.T:
        clear = np.flatnonzero(column > max(CLEAR, float(np.median(column))))
        spread = np.linspace(0, len(clear) - 1, count).astype(np.intp)
        chosen |= {int(k) for k in clear[np.unique(spread)]} if len(clear) else set()
    return windows.pick(np.array(sorted(chosen), dtype=np.intp))


def without_offsets(blueprint: CompiledProject, windows: Windows) -> Windows:
    """Returns windows whose commands to position servos are shifted to what the joints reach on average.

    A zero that differs between servo and encoder, or a constant load, is no mistake of the mapping.
    """
    project, model = blueprint.project, blueprint.model
    commands, history = windows.commands.copy(), windows.history.copy()
    for column, actuator in enumerate(blueprint.actuator_ids):
        joint = driven_joint(model, actuator)
        seen = [
            k
            for k, item in enumerate(project.measurements)
            if joint is not None and item.element == "joint" and item.quantity == "position"
            if item.name == model.joint(joint).name
        ]
        if not seen or not is_position_servo(model, actuator):
            continue
        reached = model.actuator_gear[actuator, 0] * windows.measured[:, :-1, seen[0]]
        offset = _median(commands[:, :, column] - reached)
        if np.isfinite(offset):
            commands[:, :, column] -= offset
            history[:, :, column] -= offset
    return replace(windows, commands=commands, history=history)


def _skill(project: Project, windows: Windows, predicted: Array) -> Skill:
    error = _rms(subtract_readings(project, predicted, windows.measured[None])[:, :, 1:])
    line = _line_error(project, windows)
    line = np.where(line > CLEAR * line_noise(project, windows), line, np.nan)
    return Skill(np.where(np.isfinite(line), np.fmin(error, MOST * line), np.nan), line)


def _line_error(project: Project, windows: Windows) -> Array:
    """Returns how far each column is from a straight line, (num_windows, num_measurements).

    The line goes through the start along its slope; for forces and sensors, which have no inertia, it is their mean.
    """
    times_s = np.arange(windows.num_steps + 1)[:, None] / project.rate_hz
    line = windows.start[:, None] + windows.slope[:, None] * times_s
    for k in _without_inertia(project):
        line[..., k] = np.nanmean(windows.measured[..., k]) if np.isfinite(windows.measured[..., k]).any() else 0.0
    return _rms(subtract_readings(project, line, windows.measured)[:, 1:])


def line_noise(project: Project, windows: Windows) -> Array:
    """Returns what noise alone does to that distance, (num_measurements,)."""
    mean_square_s2 = float(np.mean((np.arange(1, windows.num_steps + 1) / project.rate_hz) ** 2))
    noise = np.sqrt(windows.noise**2 + windows.start_sd**2 + mean_square_s2 * windows.slope_sd**2)
    algebraic = _without_inertia(project)
    noise[algebraic] = windows.noise[algebraic]
    return noise


def _without_inertia(project: Project) -> list[int]:
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


def _medians(values: Array) -> Array:
    return np.array([_median(column) for column in values.T])
