"""What remains of windows after a fit, and what forces and parameters would change of it."""

from dataclasses import dataclass, replace

import numpy as np

from gapless.core.signal import Array, Indices
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows
from gapless.fit.problem import FitProblem
from gapless.fit.remainder.motion import Motion, count_pieces, follow_motion, force_responses
from gapless.fit.remainder.shapes import Place
from gapless.fit.slopes import FINE_STEP
from gapless.signals.smoother import smooth
from gapless.signals.track import spread_indices
from gapless.sim.auto import moving_joints
from gapless.sim.targets.drive import free_joint_of

WINDOW_S = 0.3  # length of the windows that are explained [s], about
MAX_WINDOWS, GROUP_WINDOWS = 120, 4  # that are explained at most; those that follow each other at least
NUM_FOLDS = 5
FOLD_WINDOWS = 2  # windows that follow each other and are held out together
WAVES_PER_S = 20.0  # of residuals that are kept, besides the first four
MAX_WINDOW_WEIGHT = 3.0  # times the median error: worse windows count as that much


@dataclass(frozen=True)
class Remainder:
    """Windows, what is left of them, and what forces and parameters would change."""

    windows: Windows  # of about `WINDOW_S`
    motion: Motion  # of the robot in them
    places: tuple[Place, ...]  # where forces may be lacking
    residual: Array  # (num_windows, num_per_window) in units of noise, starts discounted, in slow waves over a window
    slopes: Array  # (num_windows, num_per_window, num_free) of the fitted parameters
    prior: Array  # (num_free,) weight of each parameter's distance from the fit
    responses: dict[int, Array]  # degree of freedom -> (num_windows, num_pieces, num_per_window) of forces
    fold: Indices  # (num_windows,) which windows are held out together
    noise: float  # sum of squares that noise alone would leave
    weight: Array  # (num_windows,) by which all of a window's values are multiplied: less than 1 for far worse ones

    def keep_windows(self, index: Indices) -> "Remainder":
        """Returns what remains of some of the windows; `noise` is that of all."""
        responses = {dof: each[index] for dof, each in self.responses.items()}
        parts = {name: getattr(self, name)[index] for name in ("residual", "slopes", "fold", "weight")}
        windows = self.windows.pick(index)
        return replace(self, windows=windows, motion=self.motion.keep_windows(index), responses=responses, **parts)


def list_places(predictor: Predictor) -> tuple[Place, ...]:
    """Returns the joints and free bodies that are measured, or driven."""
    project, model = predictor.blueprint.project, predictor.blueprint.model
    found: list[Place] = []
    for name in moving_joints(project, model):
        joint = model.joint(name)
        where = (int(joint.dofadr[0]),), (int(joint.qposadr[0]),)
        found.append(Place("joint", name, *where, int(model.jnt_bodyid[joint.id])))
    for name in dict.fromkeys(item.name for item in project.measurements if item.element == "body"):
        number = model.body(name).id
        joint = free_joint_of(model, number)
        if joint is not None:
            dof, address = int(model.jnt_dofadr[joint]), int(model.jnt_qposadr[joint])
            found.append(Place("body", name, (dof, dof + 1, dof + 5), (address, address + 1), number))
    return tuple(found)


def shorten_windows(problem: FitProblem) -> Windows:
    """Returns windows of about `WINDOW_S` that cover those of a problem: forces add up to first order in short ones.

    Starts within a window are smoothed from its readings. At most `MAX_WINDOWS`, in groups that follow each other.
    """
    windows, project = problem.windows, problem.predictor.blueprint.project
    count = max(1, round(windows.num_steps / (WINDOW_S * project.rate_hz)))
    num_steps, num_past = windows.num_steps // count, windows.history.shape[1]
    if count > 1:
        value, slope = _smooth_readings(windows, project.rate_hz)
        past = np.concatenate([windows.history, windows.commands], axis=1)
        parts: list[Windows] = []
        for first in range(0, num_steps * count, num_steps):
            part = replace(
                windows,
                commands=windows.commands[:, first : first + num_steps],
                history=past[:, first : first + num_past],
                measured=windows.measured[:, first : first + num_steps + 1],
                first_row=windows.first_row + first,
                **({"start": value[:, first], "slope": slope[:, first]} if first else {}),
            )
            known = np.isfinite(part.measured[:, [0, -1]]).all(axis=(1, 2))
            parts.append(part.pick(np.flatnonzero(known)))
        names = ("commands", "history", "measured", "start", "slope", "track", "first_row")
        joined = {n: np.concatenate([getattr(part, n) for part in parts]) for n in names}
        windows = replace(parts[0], **joined, ahead=None)  # starts within a window have nothing smoothed ahead
    order = np.lexsort((windows.first_row, windows.track))
    if len(order) > MAX_WINDOWS:
        firsts = spread_indices(len(order) // GROUP_WINDOWS, MAX_WINDOWS // GROUP_WINDOWS) * GROUP_WINDOWS
        order = order[(firsts[:, None] + np.arange(GROUP_WINDOWS)).ravel()]
    return windows.pick(order)


def _smooth_readings(windows: Windows, rate_hz: float) -> tuple[Array, Array]:
    """Returns the readings of windows without their noise, gaps bridged, and their slopes [unit/s]."""
    value, slope = np.zeros_like(windows.measured), np.zeros_like(windows.measured)
    num_windows, num_rows, num_columns = windows.measured.shape
    rows = np.arange(num_rows, dtype=np.float64)
    for window, column in np.ndindex(num_windows, num_columns):
        readings = windows.measured[window, :, column]
        known = np.isfinite(readings)
        if known.any():
            found = smooth(np.interp(rows, rows[known], readings[known]), rate_hz, float(windows.noise[column]))
            value[window, :, column], slope[window, :, column] = found.value, found.slope
    return value, slope


def gather_remainder(problem: FitProblem, row: Array) -> Remainder:
    """Returns what remains of windows under a row, and what forces at each place would change."""
    predictor, windows = problem.predictor, shorten_windows(problem)
    problem = replace(problem.on_windows(windows), sigma=windows.noise, coupling=None).with_starts_at(row)
    places = list_places(predictor)
    dofs = sorted({dof for place in places for dof in place.dofs})
    num_pieces = count_pieces(windows, predictor.blueprint.project.rate_hz, len(dofs))
    motion = follow_motion(predictor, windows, row, num_pieces)
    unit = problem.unit(row)
    weighted = problem.weighted_errors(unit[None])[0]
    steps = np.where(unit + FINE_STEP <= 1.0, FINE_STEP, -FINE_STEP)
    changes = problem.weighted_changes(unit, weighted, steps) if len(unit) else np.zeros((0, *weighted.shape))
    known = np.isfinite(windows.measured[:, None, 1:])
    pushed = np.where(known, force_responses(predictor, windows, row, motion, dofs) / problem.sigma, 0.0)
    compress = _Compressor(problem)
    residual = compress(weighted[None])[0]
    responses = compress(np.moveaxis(pushed, 2, 1).reshape(len(dofs) * num_pieces, *weighted.shape))
    responses = np.moveaxis(responses.reshape(len(dofs), num_pieces, *residual.shape), 1, 2)
    weight = _weigh_windows(residual)[:, None]
    order = np.lexsort((windows.first_row, windows.track))
    fold = np.empty(len(windows), np.intp)
    fold[order] = np.arange(len(windows)) // FOLD_WINDOWS % NUM_FOLDS
    return Remainder(
        windows=windows,
        motion=motion,
        places=places,
        residual=residual * weight,
        slopes=np.moveaxis(compress(changes), 0, -1) * weight[..., None] / steps,
        prior=problem.prior,
        responses={dof: each * weight[:, None] for dof, each in zip(dofs, responses, strict=True)},
        fold=fold,
        noise=float(np.sum(compress.noise() * weight[:, 0] ** 2)),
        weight=weight[:, 0],
    )


class _Compressor:
    """Discounts errors of the start states, and keeps the slow waves of what is left: forces show in no others."""

    def __init__(self, problem: FitProblem) -> None:
        num_steps, rate_hz = problem.windows.num_steps, problem.predictor.blueprint.project.rate_hz
        count = min(num_steps, 4 + round(WAVES_PER_S * num_steps / rate_hz))
        phase = np.pi * (np.arange(num_steps) + 0.5) / num_steps
        waves = np.cos(phase[:, None] * np.arange(count))
        self._waves, self._problem = waves / np.linalg.norm(waves, axis=0), problem

    def __call__(self, weighted: Array) -> Array:
        """Returns weighted errors, (any, num_windows, num_steps * num_measurements), as (any, num_windows, fewer)."""
        num, num_windows, num_columns = *weighted.shape[:2], len(self._problem.sigma)
        left = self._problem.discount(weighted).reshape(num, num_windows, len(self._waves), num_columns)
        slow = np.moveaxis(np.tensordot(left, self._waves, axes=(2, 0)), 2, 3)
        return slow.reshape(num, num_windows, self._waves.shape[1] * num_columns)

    def noise(self) -> Array:
        """Returns the sum of squares that noise alone would leave of each window, (num_windows,)."""
        windows, num_columns = self._problem.windows, len(self._problem.sigma)
        each = np.einsum("tc,mn->cmtn", self._waves, np.eye(num_columns))
        each = np.repeat(each.reshape(-1, 1, self._waves.shape[0] * num_columns), len(windows), axis=1)
        known = np.isfinite(windows.measured[:, 1:]).reshape(len(windows), -1)
        return np.sum(self._problem.discount(each) ** 2 * known, axis=(0, 2))


def _weigh_windows(residual: Array) -> Array:
    """Returns the weight of each window: 1, and less for those that are far worse than most."""
    size = np.sqrt(np.mean(residual**2, axis=1))
    return np.minimum(1.0, MAX_WINDOW_WEIGHT * float(np.median(size)) / np.maximum(size, 1e-12))
