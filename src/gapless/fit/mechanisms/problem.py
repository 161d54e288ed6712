"""The fit problem of a diagnosis: windows of the logs, and residuals under errors of any dimension.

A point has one entry per candidate parameter, its distance from the model as written in the [0, 1] of `FitProblem`, and
last one for `numerics`: 1 means predictions with a much finer time step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array, Flags, Indices
from gapless.fit.data import ProjectData
from gapless.fit.mechanisms.candidates import CandidateParameters
from gapless.fit.mechanisms.mechanism import Mechanism, is_vector_entry, list_mechanisms
from gapless.fit.prediction.predict import Predictor, without_idle_contacts
from gapless.fit.prediction.windows import Windows, cut_windows, draw_windows, shortest_window_s
from gapless.fit.problem import FitProblem
from gapless.fit.time_step import with_finer_time_step
from gapless.signals.track import subtract_readings

MAX_WINDOWS = 40
SLOPE_STEP = 0.4  # of finite differences, as a share of the typical error
MAX_RESIDUAL = 1e5  # in units of noise: where sensors are precise, a model that is far off has errors of thousands
MAX_UNSEEN = 0.1  # root mean square effect of a typical error in any window that counts as nothing, in units of noise
SHOWN_STEP = 4.0  # root mean square effect of the time step from which it is looked into, in units of noise
MAX_STEP_ENTRY = 1.3  # largest entry of `numerics`: a step that is eight times finer is not yet the limit


@dataclass(frozen=True)
class MechanismProblem:
    """Windows of some logs, and what points make of them."""

    fit: FitProblem  # the windows, their predictor, and how errors of their start states are discounted
    candidates: CandidateParameters  # the parameters
    written: Array  # (num_windows, num_steps + 1, num_measurements) predictions of the model as written
    fine: Predictor  # predicts with a far finer time step
    step_effect: Array  # (num_windows, num_steps, num_measurements) by how much that moves predictions
    half: Indices  # (num_windows,) 0 or 1: what is fitted on one half of the windows is judged on the other
    unseen: frozenset[int] = frozenset()  # entries of vectors that show nowhere: they cost their mechanism no price

    @property
    def windows(self) -> Windows:
        """What is to be predicted."""
        return self.fit.windows

    @cached_property
    def written_unit(self) -> Array:
        """The model as written, (num_parameters,) in [0, 1]."""
        return self.fit.unit(self.fit.base)

    @cached_property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What may be wrong on its own; a finer time step is last."""
        return list_mechanisms(self.candidates.space, self.unseen)

    @cached_property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions that these logs are asked about."""
        return tuple(dict.fromkeys(mechanism.dimension for mechanism in self.mechanisms))

    @cached_property
    def typical(self) -> Array:
        """How far each entry of a point is typically off, (num_entries,)."""
        return np.append(self.candidates.typical, 1.0)

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Smallest and largest value of each entry of a point."""
        return np.append(-self.written_unit, 0.0), np.append(1.0 - self.written_unit, MAX_STEP_ENTRY)

    @cached_property
    def side(self) -> Array:
        """1 or -1: the side to which each entry can move further, (num_entries,)."""
        return np.append(self.candidates.side, 1.0)

    @property
    def shows_step(self) -> bool:
        """Whether a finer time step moves the readings of some column by more than noise does."""
        in_noise = np.sqrt(np.mean((self.step_effect / self.windows.noise) ** 2, axis=(0, 1)))
        return bool(in_noise.max() > SHOWN_STEP)

    @cached_property
    def num_known(self) -> Array:
        """Readings of each window and column, at least 1, (num_windows, num_measurements)."""
        return np.maximum(np.isfinite(self.windows.measured[:, 1:]).sum(axis=1), 1).astype(float)

    def rows(self, points: Array) -> Array:
        """Returns the parameters of (num_points, num_entries) points."""
        shift = points[:, :-1]
        return np.where(shift == 0.0, self.fit.base, self.fit.rows(shift + self.written_unit))

    def point_of(self, row: Array, numerics: float = 0.0) -> Array:
        """Returns the point of a whole row."""
        return np.append(self.fit.unit(row) - self.written_unit, numerics)

    def point_near(self, values: Mapping[str, float]) -> Array:
        """Returns the point of some parameters' values, within bounds; all others are as written."""
        row = [values.get(p.target, p.nominal) for p in self.candidates.space.parameters]
        return np.clip(self.point_of(np.array(row)), *self.bounds)

    def residuals(self, points: Array) -> Array:
        """Returns predicted - measured in units of noise, errors of the start states discounted.

        (num_points, num_windows, num_steps, num_measurements); what is unknown is 0.
        """
        error = self.fit.errors(self.rows(points)) + points[:, -1, None, None, None] * self.step_effect
        return self.fit.weigh(error).reshape(error.shape)

    def with_step_effect_at(self, point: Array) -> "MechanismProblem":
        """Returns the problem with what a finer time step does at a point: elsewhere it may do something else."""
        effect = find_step_effect(self.fit, self.fine, self.rows(point[None])[0])
        return replace(self, step_effect=effect)

    def with_starts_at(self, point: Array) -> "MechanismProblem":
        """Returns the problem with errors of start states discounted as they show at a point.

        Stiff drives forget where a window began, soft ones do not: far from a point the discount is wrong.
        """
        return replace(self, fit=self.fit.with_starts_at(self.rows(point[None])[0]))

    def with_effects_at(self, point: Array) -> "MechanismProblem":
        """Returns the problem with both as they are at a point."""
        return self.with_starts_at(point).with_step_effect_at(point)

    def mean_squares(self, residual: Array) -> Array:
        """Returns 1 + the mean square of (..., num_windows, num_steps, num_measurements) residuals over steps."""
        return np.einsum("...tm,...tm->...m", residual, residual) / self.num_known + 1.0

    def slopes(self, point: Array, residual: Array, moved: Array, entries: Indices) -> Array:
        """Returns how residuals change with some entries, from those at a point and those at its `moved_points`."""
        width = (self.moved_points(point, entries) - point)[np.arange(len(entries)), entries]
        return _divide_by_width(moved - residual, width)

    def moved_points(self, point: Array, entries: Indices) -> Array:
        """Returns one point for each of some entries, in which that entry is moved within bounds."""
        is_limit = np.append(self.candidates.is_limit, False)
        share = np.where(is_limit & (point == 0.0), 1.0, SLOPE_STEP)
        steps = self.side * share * self.typical
        low, high = self.bounds
        moved = np.clip(point + np.diag(steps), low, high)
        back = np.clip(point - np.diag(steps), low, high)
        return np.where(np.abs(moved - point) < 0.1 * np.abs(steps), back, moved)[entries]

    def slopes_as_written(self, entries: Indices | None = None) -> Array:
        """Returns how residuals change with entries at the model as written, by steps to both sides with room.

        (num_entries, num_windows, num_steps, num_measurements); of all entries unless some are named.
        """
        entries = np.arange(len(self.typical)) if entries is None else entries
        ahead = self.moved_points(np.zeros(len(self.typical)), entries)
        behind = np.clip(-ahead, *self.bounds)
        residual = self.with_measured(self.written).residuals(np.concatenate([ahead, behind]))
        width = (ahead - behind)[np.arange(len(entries)), entries]
        return _divide_by_width(residual[: len(entries)] - residual[len(entries) :], width)

    def with_measured(self, measured: Array) -> "MechanismProblem":
        """Returns the problem with other readings in place of those that are known, shaped as `windows.measured`."""
        measured = np.where(np.isfinite(self.windows.measured), measured, np.nan)
        return replace(self, fit=replace(self.fit, windows=replace(self.windows, measured=measured)))

    def keep_windows(self, chosen: Flags) -> "MechanismProblem":
        """Returns the problem on some of its windows."""
        return replace(
            self,
            fit=self.fit.keep_windows(chosen),
            written=self.written[chosen],
            step_effect=self.step_effect[chosen],
            half=self.half[chosen],
        )


def _divide_by_width(change: Array, width: Array) -> Array:
    """Returns slopes; 0 of an entry that its bounds hold where it is."""
    return change / np.where(width == 0.0, np.inf, width)[:, None, None, None]


def draw_fit_problem(
    data: ProjectData,
    candidates: CandidateParameters,
    episodes: Sequence[int],
    rng: np.random.Generator,
    length: tuple[float, int] | None = None,
) -> FitProblem:
    """Returns the problem of fitting all candidates to windows of some episodes.

    `length` is that of windows [s] and how many there are at most; the shortest, and `MAX_WINDOWS`, unless it is given.
    """
    window_s, most = length or (shortest_window_s(data.project), MAX_WINDOWS)
    windows = cut_windows(data.project, [data.tracks[k] for k in episodes], window_s)
    windows = replace(windows, track=np.array(list(episodes), dtype=np.intp)[windows.track])
    windows = draw_windows(windows, rng, most)
    predictor = Predictor(without_idle_contacts(data.blueprint, data.tracks), candidates.space)
    return FitProblem(predictor, windows, tuple(range(len(candidates.space))), candidates.space.nominal, windows.noise)


def prepare_problem(
    fit: FitProblem, candidates: CandidateParameters, unseen: frozenset[int] | None = None
) -> MechanismProblem:
    """Returns a fit problem with what all fits of a diagnosis share; `unseen` is measured unless it is known."""
    fine = with_finer_time_step(fit.predictor)
    written, effect = fit.predictor.predict(fit.windows, fit.base[None])[0], find_step_effect(fit, fine, fit.base)
    half = _split_windows(fit.windows, candidates)
    fit = replace(fit.with_starts_at(fit.base), max_residual=MAX_RESIDUAL)
    problem = MechanismProblem(fit, candidates, written, fine, effect, half)
    return replace(problem, unseen=_find_unseen(problem) if unseen is None else unseen)


def _find_unseen(problem: MechanismProblem) -> frozenset[int]:
    """Returns the entries of vectors whose typical errors show nowhere, such as a cart's tilt about its own rail."""
    targets = problem.candidates.space.targets
    entries = np.array([k for k, target in enumerate(targets) if is_vector_entry(target)], dtype=np.intp)
    if not len(entries):
        return frozenset()
    shown = problem.slopes_as_written(entries) * problem.typical[entries, None, None, None]
    return frozenset(entries[np.sqrt(np.mean(shown**2, axis=(2, 3))).max(axis=1) < MAX_UNSEEN].tolist())


def find_step_effect(fit: FitProblem, fine: Predictor, row: Array) -> Array:
    """Returns by how much a finer time step moves predictions of a row, (num_windows, num_steps, num_measurements)."""
    coarse, shown = (predictor.predict(fit.windows, row[None])[0] for predictor in (fit.predictor, fine))
    return np.nan_to_num(subtract_readings(fit.predictor.blueprint.project, shown, coarse)[:, 1:])


def _split_windows(windows: Windows, candidates: CandidateParameters) -> Indices:
    """Returns the half of each window: by episodes, or by time within a single one.

    With per-run parameters it is every other window of each run: their values do not hold in other runs.
    """
    episodes = np.unique(windows.track)
    if any(p.run is not None for p in candidates.space.parameters):
        firsts = np.searchsorted(windows.track, windows.track)
        return (np.arange(len(windows)) - firsts) % 2
    if len(episodes) > 1:
        return np.searchsorted(episodes, windows.track) % 2
    return (np.arange(len(windows)) >= len(windows) / 2).astype(np.intp)
