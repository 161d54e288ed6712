"""The least-squares problem: windows, weights, and residuals of many rows at once."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.fit.coupling import Coupling, find_pattern, group_independent, spread_changes
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows
from gapless.fit.start_errors import StartErrors, start_effects, start_errors_from
from gapless.signals.track import subtract_readings
from gapless.sim.targets.target import split_target

HUBER = 3.0  # weighted residuals beyond this grow linearly instead of quadratically
PRIOR_WEIGHT = 1.0  # one unit of residual for moving a parameter across its whole range: only breaks ties
PIECE_S = 0.3  # errors that far apart are taken to be independent [s]
START_ERROR_FACTOR = 10.0  # starts may be off by this many times what the smoother says; see `starts`
MAX_RESIDUAL = 1e3  # a diverged simulation counts as this much, not as infinity
COUPLING_WINDOWS = (3, 8)  # least and most on which it is measured what couples,
COUPLING_S = 6.0  # about so much in all [s]
COUPLING_STEPS = (0.03, 0.25)  # of parameters, as shares of their ranges: limits show in large ones only
Watch = Callable[[ParameterSpace, Array], None]


@dataclass(frozen=True)
class FitProblem:
    """Residuals of rows of free parameters, the others held at `base`."""

    predictor: Predictor  # predicts windows under rows of its whole space
    windows: Windows  # what is to be predicted
    free: tuple[int, ...]  # columns of the predictor's space that may move
    base: Array  # (num_parameters,) the row that the others keep
    sigma: Array  # (num_measurements,) weight of each column is 1 / sigma
    starts: StartErrors | None = None  # how errors of the start states are discounted; None before `with_starts_at`
    # called with the whole space and a whole row whenever a solver has moved on; None for nobody
    watch: Watch | None = None
    # which parameters show in which columns, so that slopes share predictions; None for all in all
    coupling: Coupling | None = None
    max_residual: float = MAX_RESIDUAL  # what errors count for at most, in units of sigma

    @property
    def space(self) -> ParameterSpace:
        """The free parameters."""
        return ParameterSpace(tuple(self.predictor.space.parameters[k] for k in self.free))

    @property
    def prior(self) -> Array:
        """Weight of each free parameter's distance from nominal, (num_free,), in residuals per unit.

        Every window counts as one reading: its residuals go wrong together where the model lacks something.
        """
        return PRIOR_WEIGHT + 0.5 * np.sqrt(max(1, len(self.windows))) / spreads(self.space)

    def rows(self, unit: Array) -> Array:
        """Returns whole rows for free parameters in [0, 1], (num_rows, num_free)."""
        rows = np.tile(self.base, (len(unit), 1))
        rows[:, list(self.free)] = Scaling.of(self.space).values(np.clip(unit, 0.0, 1.0))
        return rows

    def unit(self, row: Array) -> Array:
        """Returns the free parameters of a whole row in [0, 1]."""
        return np.clip(Scaling.of(self.space).unit(row[list(self.free)]), 0.0, 1.0)

    def report_row(self, unit: Array) -> None:
        """Tells whoever watches where a solver is: free parameters in [0, 1], (num_free,)."""
        if self.watch is not None:
            self.watch(self.predictor.space, self.rows(unit[None])[0])

    def errors(self, rows: Array) -> Array:
        """Returns prediction errors, (num_rows, num_windows, num_steps, num_measurements); NaN where unknown."""
        predicted = self.predictor.predict(self.windows, rows)
        return subtract_readings(self.predictor.blueprint.project, predicted, self.windows.measured[None])[:, :, 1:]

    def residuals(self, unit: Array) -> Array:
        """Returns robust weighted residuals, (num_rows, num_windows, num_per_window); unknown ones are 0."""
        return flatten_outliers(self.plain_residuals(unit))

    def plain_residuals(self, unit: Array) -> Array:
        """Returns weighted residuals before large ones are flattened, (num_rows, num_windows, num_per_window)."""
        return self.discount(self.weighted_errors(unit))

    def weigh(self, errors: Array) -> Array:
        """Returns `errors` as weighted residuals, those of the start states discounted, shaped as `plain_residuals`."""
        return self.discount(self._in_sigma(errors))

    def weighted_errors(self, unit: Array) -> Array:
        """Returns errors in units of sigma, (num_rows, num_windows, num_per_window); unknown ones are 0."""
        return self._in_sigma(self.errors(self.rows(unit)))

    def _in_sigma(self, errors: Array) -> Array:
        weighted = np.nan_to_num(np.clip(errors / self.sigma, -self.max_residual, self.max_residual), nan=0.0)
        return weighted.reshape(len(errors), len(self.windows), -1)

    def discount(self, weighted: Array) -> Array:
        """Returns weighted errors with those of the start states discounted, shaped as they are."""
        return weighted if self.starts is None else self.starts.discount(weighted)

    def weighted_changes(self, unit: Array, weighted: Array, steps: Array) -> Array:
        """Returns how weighted errors change with a step of each parameter, (num_free, num_windows, num_per_window).

        The steps begin at `unit`, with `weighted` errors. Parameters that show in different columns are moved in one
        prediction; see `coupling`.
        """
        num_columns = len(self.sigma)
        if self.coupling is None:
            return self.weighted_errors(unit + np.diag(steps)) - weighted
        pattern = self.coupling.parameters[list(self.free)]
        groups = group_independent(pattern)
        moved = np.tile(unit, (len(groups), 1))
        for number, group in enumerate(groups):
            moved[number, group] += steps[group]
        changes = (self.weighted_errors(moved) - weighted).reshape(len(groups), len(self.windows), -1, num_columns)
        return spread_changes(changes, groups, pattern).reshape(len(unit), len(self.windows), -1)

    def with_coupling(self, row: Array) -> "FitProblem":
        """Returns the problem with its coupling as it is at a row on a few of its windows.

        Costs two predictions per parameter of the whole space, and four per measured column, on those windows.
        """
        window_s = self.windows.num_steps / self.predictor.blueprint.project.rate_hz
        wanted = int(np.clip(round(COUPLING_S / window_s), *COUPLING_WINDOWS))
        index = np.linspace(0, len(self.windows) - 1, min(wanted, len(self.windows))).astype(np.intp)
        whole = replace(self.on_windows(self.windows.pick(index)), free=tuple(range(len(self.base))), coupling=None)
        unit, num_columns = whole.unit(row), len(self.sigma)
        here = whole.weighted_errors(unit[None])[0]
        effects = np.zeros((len(unit), num_columns))
        for size in COUPLING_STEPS:
            steps = np.where(unit + size <= 1.0, size, -size)
            changes = whole.weighted_changes(unit, here, steps).reshape(len(unit), -1, num_columns)
            effects = np.maximum(effects, np.sqrt(np.mean(changes**2, axis=1)) / size)
        starts = start_effects(self.predictor, whole.windows, row, self.sigma).reshape(2, num_columns, -1, num_columns)
        sizes = np.sqrt(np.nanmean(starts**2, axis=2)).max(axis=0)
        return replace(self, coupling=Coupling(find_pattern(effects), find_pattern(sizes)))

    def in_pieces(self, values: Array) -> Array:
        """Returns (num_windows, num_per_window, ...) as pieces of about `PIECE_S`, (num_pieces, num_per_piece, ...).

        What a model lacks makes errors that last; in longer windows they come and go.
        """
        steps, rate_hz = self.windows.num_steps, self.predictor.blueprint.project.rate_hz
        wanted = max(1, round(steps / (PIECE_S * rate_hz)))
        count = next(number for number in range(wanted, 0, -1) if steps % number == 0)
        return values.reshape(len(values) * count, values.shape[1] // count, *values.shape[2:])

    def error_inflation(self, residual: Array) -> float:
        """Returns how much more the sum of a piece's residuals varies than if they were independent, at least 1.

        Intervals widen by its root, since they count pieces, not readings. `residual` is (num_windows, num_per_window).
        """
        pieces = self.in_pieces(residual)
        pieces = pieces.reshape(len(pieces), -1, len(self.sigma))
        return max(1.0, float(np.sum(pieces.sum(axis=1) ** 2) / max(float(np.sum(pieces**2)), 1e-12)))

    def cost(self, row: Array) -> float:
        """Returns half the sum of squares of a whole row's residuals."""
        return 0.5 * float(np.sum(self.residuals(self.unit(row)[None]) ** 2))

    def noise_cost(self) -> Array:
        """Returns the cost of each window that noise in the readings alone would have, (num_windows,)."""
        known = np.isfinite(self.windows.measured[:, 1:])
        cost = 0.5 * np.sum(known * (self.windows.noise / self.sigma) ** 2, axis=(1, 2))
        if self.starts is None:
            return cost
        spent = np.sum(1.0 - self.starts.shrink**2, axis=1) / np.maximum(1, known.sum(axis=(1, 2)))
        return cost * np.maximum(0.0, 1.0 - spent)

    def with_free(self, columns: Iterable[int]) -> "FitProblem":
        """Returns the problem in which some further columns may move."""
        return replace(self, free=tuple(sorted({*self.free, *columns})))

    def on_windows(self, windows: Windows) -> "FitProblem":
        """Returns the problem on other windows."""
        return replace(self, windows=windows, starts=None)

    def keep_windows(self, index: NDArray[np.bool_]) -> "FitProblem":
        """Returns the problem on some of its windows, their start states discounted as before."""
        starts = None if self.starts is None else self.starts.pick(index)
        return replace(self, windows=self.windows.pick(np.flatnonzero(index)), starts=starts)

    def with_starts_at(self, row: Array) -> "FitProblem":
        """Returns the problem with errors of the start states discounted as they show under a row."""
        effect = start_effects(self.predictor, self.windows, row, self.sigma, self.coupling)
        return replace(self, starts=start_errors_from(self.windows, START_ERROR_FACTOR * effect))

    def to_noise(self, row: Array) -> float:
        """Returns the errors of a row in units of what noise in readings and in starts explains, about 1 for truth."""
        squares, count = self._beside_noise(row)
        return float(np.sqrt(squares.sum() / max(1, count.sum())))

    def columns_to_noise(self, row: Array) -> Array:
        """Returns `to_noise` of each column on its own, (num_measurements,)."""
        squares, count = self._beside_noise(row)
        return np.sqrt(squares / np.maximum(1, count))

    def _beside_noise(self, row: Array) -> tuple[Array, NDArray[np.intp]]:
        """Returns the sum of squares of each column, in units of noise and starts discounted, and their numbers."""
        noise, error = self.windows.noise, self.errors(row[None])
        starts = start_errors_from(self.windows, start_effects(self.predictor, self.windows, row, noise, self.coupling))
        left = replace(self, sigma=noise, starts=starts).weigh(error).reshape(error.shape)
        return np.sum(left**2, axis=(0, 1, 2)), np.isfinite(error).sum(axis=(0, 1, 2))

    def weighted_at(self, row: Array) -> "FitProblem":
        """Returns the problem with each column weighted by its noise, or by its present error where that is more.

        Errors of the start states are then discounted as they show under the row.
        """
        noise = self.windows.noise
        effect = start_effects(self.predictor, self.windows, row, noise, self.coupling)
        error = self.errors(row[None])
        weighted = np.nan_to_num(error / noise).reshape(1, len(self.windows), -1)
        left = start_errors_from(self.windows, effect).left_over(weighted)
        left = np.where(np.isfinite(error), left.reshape(error.shape), np.nan)
        sigma = np.maximum(noise, 1.4826 * np.nanmedian(np.abs(left), axis=(0, 1, 2)) * noise)
        return replace(
            self, sigma=sigma, starts=start_errors_from(self.windows, START_ERROR_FACTOR * effect * noise / sigma)
        )


def flatten_outliers(residual: Array) -> Array:
    """Returns r' with r'^2 / 2 = pseudo-Huber loss of r: quadratic near 0, linear far away."""
    ratio = residual / HUBER
    return np.sign(residual) * HUBER * np.sqrt(2 * (np.sqrt(1 + ratio**2) - 1))


def robust_slope(residual: Array) -> Array:
    """Returns the slope of `flatten_outliers`: with s = sqrt(1 + (r / HUBER)^2), it is sqrt((s + 1) / 2) / s."""
    root = np.sqrt(1.0 + (residual / HUBER) ** 2)
    return np.sqrt((root + 1.0) / 2.0) / root


def robust_pull(residual: Array) -> Array:
    """Returns the loss's slope, r / s: how much a residual pulls, at most `HUBER`."""
    return residual / np.sqrt(1.0 + (residual / HUBER) ** 2)


def robust_bend(residual: Array) -> Array:
    """Returns the loss's second derivative, 1 / s^3: how much a residual tells about where the minimum is."""
    return (1.0 + (residual / HUBER) ** 2) ** -1.5


_SPREADS = {**dict.fromkeys(("mass", "inertia", "spread", "length", "tilt", "load"), 0.1), "com": 0.05, "bias": 0.15}
_SPRING = 0.1  # of joints; how stiff a contact is nobody knows


def spreads(space: ParameterSpace) -> Array:
    """Returns how far a careful builder's values are off, as shares of their ranges: about one standard deviation."""
    return np.array([_typical_error(parameter) for parameter in space.parameters])


def _typical_error(parameter: Parameter) -> float:
    field = split_target(parameter.target).field
    if parameter.target.startswith("joint/") and field == "stiffness":
        return _SPRING
    return next((size for word, size in _SPREADS.items() if f"/{word}" in f"/{field}"), 0.5)
