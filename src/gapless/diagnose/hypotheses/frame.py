"""What every look at some logs shares: windows, the model as written, and its start states.

A point is a row of displacements from the model as written: one per parameter, in the unit steps of the solver, and
last one for `numerics`, which is 1 where the engine runs with a much finer time step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gapless.core.dimensions import Dimension
from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array
from gapless.diagnose.hypotheses.suspects import Severities, field_of
from gapless.fit.data import ProjectData
from gapless.fit.prediction.idle_contacts import without_idle_contacts
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows, cut_windows
from gapless.fit.problem import MAX_RESIDUAL
from gapless.fit.search.structure import draw_windows
from gapless.fit.start_errors import StartErrors, estimate_start_errors
from gapless.signals.track import subtract_readings
from gapless.sim.blueprint import with_finer_step

WINDOW_S = 0.3
MAX_WINDOWS = 40
FINER = 8  # how much finer the time step is that tells `numerics`
LOOSE = 3.0  # starts may be off by this many times what the smoother says


@dataclass(frozen=True)
class Frame:
    """Windows of some logs, and what the model as written makes of them. What follows from its fields is kept.

    Attributes:
        evidence: The logs.
        severities: The parameters, and how far they may be off.
        predictor: Predicts windows under rows of the parameters.
        windows: What is to be predicted.
        starts: How errors of the start states show.
        written: (num_windows, num_steps + 1, num_measurements) predictions of the model as written.
        fine: The same with a finer time step.
        fold: (num_windows,) 0 or 1: what is fitted on one half of the episodes is judged on the other.
    """

    evidence: ProjectData
    severities: Severities
    predictor: Predictor
    windows: Windows
    starts: StartErrors
    written: Array
    fine: Array
    fold: NDArray[np.intp]

    @property
    def space(self) -> ParameterSpace:
        """The parameters of a point but its last."""
        return self.severities.space

    @cached_property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions that these logs are asked about; `numerics` is last."""
        return (*(d for d in self.space.dimensions if d != "numerics"), "numerics")

    @cached_property
    def columns(self) -> dict[Dimension, NDArray[np.intp]]:
        """Dimension -> entries of a point that belong to it."""
        owners = [*(parameter.dimension for parameter in self.space.parameters), "numerics"]
        return {d: np.flatnonzero([owner == d for owner in owners]) for d in self.dimensions}

    def entries(self, subset: Sequence[Dimension]) -> NDArray[np.intp]:
        """Returns the entries of a point that belong to some dimensions, in their order."""
        return np.concatenate([np.zeros(0, np.intp), *(self.columns[d] for d in subset)])

    def places(self, entries: NDArray[np.intp]) -> list[NDArray[np.bool_]]:
        """Returns, for each thing that some entries are values of, its entries: one, or one for each run."""
        owners = np.array([*self.space.targets, "numerics"])
        return [owners == owner for owner in dict.fromkeys(owners[entries].tolist())]

    @cached_property
    def typical(self) -> Array:
        """How far each entry of a point is typically off, (num_entries,)."""
        return np.append(self.severities.typical, 1.0)

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Least and largest value of each entry of a point."""
        nominal = self.severities.nominal
        return np.append(-nominal, 0.0), np.append(1.0 - nominal, 1.3)

    @cached_property
    def bites(self) -> NDArray[np.bool_]:
        """Tells which entries have no slope where they are as written: limits, (num_entries,)."""
        return np.array([*(field_of(target) == "limit" for target in self.space.targets), False])

    @cached_property
    def saturated(self) -> Array:
        """Points in which one actuator is limited below its peak effort in the logs, (num_points, num_entries)."""
        rows = self.severities.saturated()
        return np.stack([self.point(row) for row in rows]) if rows else np.zeros((0, len(self.space) + 1))

    @cached_property
    def known(self) -> Array:
        """Readings of each window and column, at least 1, (num_windows, num_measurements)."""
        return np.maximum(np.isfinite(self.windows.measured[:, 1:]).sum(axis=1), 1).astype(float)

    @cached_property
    def shift(self) -> Array:
        """By how much a finer time step moves the predictions of the model as written, shaped as they are."""
        return subtract_readings(self.evidence.project, self.fine, self.written)

    def rows(self, points: Array) -> Array:
        """Returns the parameters of (num_points, num_entries) points."""
        moved = self.severities.scaling.values(np.clip(points[:, :-1] + self.severities.nominal, 0.0, 1.0))
        return np.where(points[:, :-1] == 0.0, self.space.nominal, moved)

    def point(self, row: Array, numerics: float = 0.0) -> Array:
        """Returns the point of a whole row."""
        return np.append(self.severities.scaling.unit(row) - self.severities.nominal, numerics)

    def near(self, values: Mapping[str, float]) -> Array:
        """Returns the point of some parameters' values, within bounds; all others are as written."""
        row = [values.get(p.target, p.nominal) for p in self.space.parameters]
        return np.clip(self.point(np.array(row)), *self.bounds)

    def predict(self, points: Array) -> Array:
        """Returns predicted readings, (num_points, num_windows, num_steps + 1, num_measurements)."""
        return self.predict_parts([(points, np.arange(len(self.windows)))])[0]

    def predict_parts(self, asked: Sequence[tuple[Array, NDArray[np.intp]]]) -> list[Array]:
        """Returns predictions of several questions in one call: points, and the windows that each is asked about.

        Each answer is (num_points, num_windows, num_steps + 1, num_measurements).
        """
        rows = self.rows(np.concatenate([points for points, _ in asked]))
        firsts = np.cumsum([0, *(len(points) for points, _ in asked)])
        pairs = [
            np.stack(np.meshgrid(first + np.arange(len(points)), here, indexing="ij"), axis=-1).reshape(-1, 2)
            for first, (points, here) in zip(firsts, asked, strict=False)
        ]
        shown = self.predictor.predict_pairs(self.windows, rows, np.concatenate(pairs))
        parts = np.split(shown, np.cumsum([len(pair) for pair in pairs])[:-1])
        return [
            part.reshape(len(points), len(here), *part.shape[1:]) + points[:, -1, None, None, None] * self.shift[here]
            for part, (points, here) in zip(parts, asked, strict=True)
        ]

    def residuals(self, predicted: Array, measured: Array) -> Array:
        """Returns measured - predicted in units of noise, errors of the start states discounted.

        (num_points, num_windows, num_steps, num_measurements); what is unknown is 0.
        """
        error = -subtract_readings(self.evidence.project, predicted, np.broadcast_to(measured, predicted.shape))[
            :, :, 1:
        ]
        return self.discounted(error / self.windows.noise)

    def discounted(self, weighted: Array) -> Array:
        """Returns residuals in units of noise with the errors of the start states discounted."""
        plain = np.nan_to_num(np.clip(weighted, -MAX_RESIDUAL, MAX_RESIDUAL), nan=0.0)
        flat = plain.reshape(len(plain), len(self.windows), -1)
        return self.starts.discount(flat).reshape(plain.shape)


def make_frame(evidence: ProjectData, severities: Severities, rng: np.random.Generator) -> Frame:
    """Returns the frame of some logs and what is suspected in them, on at most `MAX_WINDOWS` windows."""
    windows = draw_windows(cut_windows(evidence.project, evidence.tracks, WINDOW_S), rng, MAX_WINDOWS)
    blueprint = without_idle_contacts(evidence.blueprint, evidence.tracks)
    predictor = Predictor(blueprint, severities.space)
    nominal = severities.space.nominal
    return Frame(
        evidence,
        severities,
        predictor,
        windows,
        estimate_start_errors(predictor, windows, nominal, windows.noise, LOOSE),
        predictor.predict(windows, nominal[None])[0],
        Predictor(with_finer_step(blueprint, FINER), severities.space).predict(windows, nominal[None])[0],
        _folds(windows, own=any(p.run is not None for p in severities.space.parameters)),
    )


def _folds(windows: Windows, own: bool) -> NDArray[np.intp]:
    """Returns the half of each window: by episodes, or by time within a single one.

    Where runs have values of their `own`, every other window of each: those values say nothing of other runs.
    """
    episodes = np.unique(windows.track)
    if own:
        firsts = np.searchsorted(windows.track, windows.track)
        return (np.arange(len(windows)) - firsts) % 2
    if len(episodes) > 1:
        return np.searchsorted(episodes, windows.track) % 2
    return (np.arange(len(windows)) >= len(windows) / 2).astype(np.intp)


def part_of(frame: Frame, here: NDArray[np.intp]) -> Frame:
    """Returns a frame with some of its windows."""
    return replace(
        frame,
        windows=frame.windows.pick(here),
        starts=StartErrors(frame.starts.directions[here], frame.starts.shrink[here]),
        written=frame.written[here],
        fine=frame.fine[here],
        fold=frame.fold[here],
    )
