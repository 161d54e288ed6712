"""How much of a motion predictions explain, as written and with all that the model may have wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gapless.check.findings import joint_columns, list_drives, list_measured_servos
from gapless.core.parameters import ParameterSpace
from gapless.core.scaling import Scaling
from gapless.core.signal import Array, Indices
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows
from gapless.project.records import Project
from gapless.signals.track import Track, spread_indices, subtract_readings
from gapless.sim.auto import moving_joints, parameters_of
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


def measure_skill(predictor: Predictor, rows: Array, versions: Sequence[Windows]) -> list[PredictionSkill]:
    """Returns the skill of a model under rows of parameters on versions of the same windows, in one batched call."""
    blueprint = predictor.blueprint
    ready = [remove_command_offsets(blueprint, windows) for windows in versions]
    names = ("commands", "history", "measured", "start", "slope", "track", "first_row")
    joined = {name: np.concatenate([getattr(w, name) for w in ready]) for name in names}
    stacked = replace(ready[0], **joined, ahead=None)  # columns of a version may be exchanged or scaled
    parts = np.split(predictor.predict(stacked, rows), len(ready), axis=1)
    found: list[PredictionSkill] = []
    for windows, predicted in zip(ready, parts, strict=True):
        error = _rms(subtract_readings(blueprint.project, predicted, windows.measured[None])[:, :, 1:])
        line = _line_error(blueprint.project, windows)
        line = np.where(line > MIN_MOTION_TO_NOISE * line_noise(blueprint.project, windows), line, np.nan)
        bounded = np.where(np.isfinite(line), np.fmin(error, MAX_SHARE * line), np.nan)
        found.append(PredictionSkill(bounded, line))
    return found


def find_moving_windows(project: Project, windows: Windows, columns: Sequence[int]) -> Indices:
    """Returns some windows in which each of some columns leaves the straight line clearly, spread over the logs."""
    if not len(windows) or not columns:
        return np.zeros(0, np.intp)
    ratio = np.nan_to_num(_line_error(project, windows) / line_noise(project, windows))[:, list(columns)]
    chosen: set[int] = set()
    count = max(MIN_WINDOWS_PER_COLUMN, MIN_WINDOWS // ratio.shape[1])
    for column in ratio.T:
        clear = np.flatnonzero(column > max(MIN_MOTION_TO_NOISE, float(np.median(column))))
        chosen |= {int(k) for k in clear[spread_indices(len(clear), count)]}
    return np.array(sorted(chosen), dtype=np.intp)


def remove_command_offsets(blueprint: CompiledProject, windows: Windows) -> Windows:
    """Returns windows whose commands to position servos are shifted to what the joints reach on average.

    A zero that differs between servo and encoder, or a constant load, is no fault of the mapping.
    """
    commands, history = windows.commands.copy(), windows.history.copy()
    for drive in list_measured_servos(blueprint):
        reached = drive.gear * windows.measured[:, :-1, drive.reading]
        offset = _median(commands[:, :, drive.command] - reached)
        if np.isfinite(offset):
            commands[:, :, drive.command] -= offset
            history[:, :, drive.command] -= offset
    return replace(windows, commands=commands, history=history)


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
    algebraic = ("actuator", "sensor")
    items = enumerate(project.measurements)
    return [k for k, item in items if item.element in algebraic or item.quantity == "effort"]


def _rms(error: Array) -> Array:
    """Returns root mean squares over the steps (second but last axis); NaN where nothing is known."""
    return np.sqrt(np.ma.masked_invalid(error**2).mean(axis=-2).filled(np.nan))


def _median(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")


GAINS = (0.3, 1.0, 3.0)  # factors on the strength of all actuators
DELAYS_S = (0.0, 0.04, 0.08, 0.12)
GAIN_OFF = 1e-3  # gain of a drive that does as good as nothing
HEAVY_DAMPING_SHARE = 0.3  # of the largest damping that efforts and speeds allow
NUM_ROUNDS, NUM_ROWS, NUM_ELITE = 3, 24, 5  # of the search; the next round is drawn around the elite


@dataclass(frozen=True)
class ModelTolerance:
    """The parameters that the model may have wrong."""

    space: ParameterSpace  # shared delay and strength of each actuator, damping and friction of each joint
    shows_in: tuple[tuple[int, ...], ...]  # per parameter, the measured columns of its joint; empty for all

    def grid(self, delays_s: Sequence[float] = DELAYS_S) -> Array:
        """Returns rows for all `GAINS` and delays, with damping as written and heavy; the last has the drives off."""
        heavy = self.space.nominal
        damping = self._columns("/damping")
        heavy[damping] = np.maximum(HEAVY_DAMPING_SHARE * self.space.high, heavy)[damping]
        pairs = [(gain, delay_s) for gain in GAINS for delay_s in delays_s]
        rows = [self.set_drives(row, *pair) for row in (self.space.nominal, heavy) for pair in pairs]
        return np.stack([*rows, self.set_drives(self.space.nominal, GAIN_OFF, 0.0)])

    def set_drives(self, row: Array, gain: float, delay_s: float) -> Array:
        """Returns a row with another gain of all actuators and another delay."""
        row = row.copy()
        row[self._columns("/gain")], row[self._columns("/delay")] = gain, delay_s
        return row

    def delays_s(self, rows: Array) -> Array:
        """Returns the delay of each row, (num_rows,) [s]; 0 where nothing is commanded."""
        return rows[:, self._columns("/delay")].sum(axis=-1)

    def _columns(self, ending: str) -> list[int]:
        return [k for k, parameter in enumerate(self.space.parameters) if parameter.target.endswith(ending)]


def make_tolerance(blueprint: CompiledProject, tracks: Sequence[Track]) -> ModelTolerance:
    """Returns what the model of a project may have wrong."""
    project = blueprint.project
    joints = {f"actuator/{project.commands[d.command].actuator}/gain": d.joint for d in list_drives(blueprint)}
    for name in moving_joints(project, blueprint.model):
        joints |= {f"joint/{name}/damping": name, f"joint/{name}/frictionloss": name}
    joints |= {"actuator/*/delay": ""} if project.commands else {}
    space = ParameterSpace(parameters_of(blueprint, tracks, list(joints)))
    return ModelTolerance(space, tuple(joint_columns(project, name) for name in joints.values()))


def search_best_skill(
    predictor: Predictor, tolerance: ModelTolerance, windows: Windows, rows: Array
) -> PredictionSkill:
    """Returns the skill under some rows and under others, drawn to suit the windows better.

    The cross-entropy method (Rubinstein, 1999), with one twist: each parameter of a joint follows the rows that suit
    that joint's own columns. So all joints are searched at once, each in the few parameters that matter to it.
    """
    rng, scaling = np.random.default_rng(0), Scaling.of(tolerance.space)
    skill = measure_skill(predictor, rows, [windows])[0]
    unit = rng.uniform(size=(2 * NUM_ROWS, len(tolerance.space)))
    for _ in range(NUM_ROUNDS if len(tolerance.space) else 0):
        drawn = measure_skill(predictor, scaling.values(unit), [windows])[0]
        skill = PredictionSkill(np.concatenate([skill.error, drawn.error]), skill.line_error)
        cost = np.log(np.nan_to_num(drawn.shares, nan=MAX_SHARE))
        best_of, unit = unit, np.empty((NUM_ROWS, unit.shape[1]))
        for k, columns in enumerate(tolerance.shows_in):
            order = np.argsort(cost[:, list(columns)].mean(axis=1) if columns else cost.mean(axis=1))
            best = best_of[order[:NUM_ELITE], k]
            unit[:, k] = np.clip(rng.normal(best.mean(), best.std() + 0.01, NUM_ROWS), 0.0, 1.0)
    return skill
