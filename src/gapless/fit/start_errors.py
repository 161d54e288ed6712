"""Errors in the start state of a window: how they show in its residuals, and how they are discounted.

Each window starts at a measured state, which is wrong by noise. That error runs through the whole window and looks
like a parameter: a start velocity that lags looks like a delay. To first order the residuals of a window are
r = r0 + A e, with e ~ N(0, 1) the errors of its start in units of their standard deviation. Weighting them with
(1 + A A^T)^(-1/2) is the same as fitting e in every window along with the parameters.

Parameters are fitted with starts several times looser than the smoother says. Its estimate at the start of a window
rests on the readings after it too, which the window is to predict: held to it, they would be counted twice. And where
the acceleration jumps, at a step of the command or a reversal of friction, it is off by more than on average, always
towards a smoother motion. Both moved parameters by up to two standard errors, most of all a delay.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gapless.core.signal import Array
from gapless.fit.coupling import Coupling, group_independent, spread_changes
from gapless.fit.prediction.predict import Predictor, is_smooth
from gapless.fit.prediction.windows import Windows


@dataclass(frozen=True)
class StartErrors:
    """The directions in which start errors move the residuals of each window."""

    directions: Array  # (num_windows, num_residuals, num_directions) orthonormal columns U of A = U diag(d) V^T
    shrink: Array  # (num_windows, num_directions) 1 / sqrt(1 + d^2)

    @property
    def taken_out(self) -> Array:
        """Returns C with 1 - C C^T the covariance of discounted residuals of white noise, shaped as `directions`."""
        return self.directions * np.sqrt(1.0 - self.shrink**2)[:, None, :]

    def discount(self, residual: Array) -> Array:
        """Returns (1 + A A^T)^(-1/2) r for residuals (num_rows, num_windows, num_residuals)."""
        return self._scale_directions(residual, self.shrink)

    def left_over(self, residual: Array) -> Array:
        """Returns (1 + A A^T)^(-1) r: the residuals after the likeliest start errors are taken out."""
        return self._scale_directions(residual, self.shrink**2)

    def pick(self, index: NDArray[np.bool_]) -> "StartErrors":
        """Returns the starts of some of the windows."""
        return StartErrors(self.directions[index], self.shrink[index])

    def _scale_directions(self, residual: Array, factor: Array) -> Array:
        along = np.einsum("wmd,rwm->rwd", self.directions, residual)
        return residual + np.einsum("wmd,rwd->rwm", self.directions, along * (factor - 1.0))


def shift_starts(windows: Windows, value: Array, slope: Array) -> Windows:
    """Returns windows whose starts are moved by (..., num_measurements) values and slopes."""
    return replace(windows, start=windows.start + value, slope=windows.slope + slope)


def start_effects(
    predictor: Predictor, windows: Windows, row: Array, sigma: Array, coupling: Coupling | None = None
) -> Array:
    """Returns what one standard error of each start value and slope does to the readings, in units of sigma.

    (2 * num_measurements, num_windows, num_steps, num_measurements). By differences both ways where things may touch,
    else one way: costs 4 or 2 predictions per measured column, or per group of columns that do not couple.
    """
    num_windows, num_columns = len(windows), windows.measured.shape[2]
    pattern = np.ones((num_columns, num_columns), bool) if coupling is None else coupling.starts
    groups = group_independent(pattern)
    chosen = np.zeros((len(groups), num_columns))
    for number, group in enumerate(groups):
        chosen[number, group] = 1.0
    nothing = np.zeros_like(chosen)
    steps = np.stack(
        [np.concatenate([chosen * windows.start_sd, nothing]), np.concatenate([nothing, chosen * windows.slope_sd])]
    )
    one_way = is_smooth(predictor.blueprint)
    moves = np.concatenate([steps, np.zeros_like(steps[:, :1]) if one_way else -steps], axis=1)
    index = np.tile(np.arange(num_windows), moves.shape[1])
    shifted = shift_starts(windows.pick(index), *np.repeat(moves, num_windows, axis=1))
    shown = predictor.predict(shifted, row[None])[0, :, 1:].reshape(-1, num_windows, windows.num_steps, num_columns)
    count = steps.shape[1]
    changes = (shown[:count] - shown[count:]) / (1.0 if one_way else 2.0) / sigma
    return np.concatenate([spread_changes(half, groups, pattern) for half in np.split(changes, 2)])


def start_errors_from(windows: Windows, effect: Array) -> StartErrors:
    """Returns the start directions of windows from what start errors do to the readings; see `start_effects`."""
    known = np.isfinite(windows.measured[:, 1:])
    effect = np.where(known, effect, 0.0).reshape(len(effect), len(windows), -1)
    directions, sizes, _ = np.linalg.svd(np.moveaxis(effect, 0, -1), full_matrices=False)
    return StartErrors(directions, 1.0 / np.sqrt(1.0 + sizes**2))
