"""How residuals change with parameters, by finite differences that all go through one batched call."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gapless.core.signal import Array
from gapless.fit.prediction.predict import is_smooth
from gapless.fit.problem import FitProblem, flatten_outliers, robust_slope

# finite-difference steps as shares of the range; contact needs large ones
COARSE_STEP, MEDIUM_STEP, FINE_STEP = 0.1, 0.03, 0.01
FINEST_STEP = FINE_STEP / 250.0  # steps of the slopes that judge a solution, where nothing touches
MAX_SLOPE_RATIO = 1.5  # a slope that grows by more with finer steps is a jump, and tells nothing of its parameter
CHECKED_WINDOW = 4  # where nothing touches, every so many windows show whether slopes are jumps


def slopes_ahead(problem: FitProblem, unit: Array, weighted: Array, step: float) -> Array:
    """Returns how robust residuals change with `unit`, (num_windows, num_per_window, num_free), by steps to one side.

    Fine slopes are those of the prediction times that of the loss: a difference of flattened residuals bends with the
    noise in them, more for those that the step makes larger, and the solver would stop aside of the minimum, always
    on the side that the steps go to. Far from the minimum flattening keeps one bad window from ruling all slopes.
    `weighted` are the errors at `unit`, (num_windows, num_per_window); `step` is a share of the range.
    """
    steps = np.where(unit + step <= 1.0, step, -step)
    plain = problem.discount(weighted[None])[0]
    change = problem.discount(problem.weighted_changes(unit, weighted, steps))
    if step > FINE_STEP:
        change = flatten_outliers(plain + change) - flatten_outliers(plain)
    else:
        change *= robust_slope(plain)
    return np.moveaxis(change / steps[:, None, None], 0, -1)


def fine_slopes(problem: FitProblem, row: Array) -> Array:
    """Returns `slopes_ahead` at a whole row, by fine steps."""
    unit = problem.unit(row)
    return slopes_ahead(problem, unit, problem.weighted_errors(unit[None])[0], FINE_STEP)


def judging_slopes(problem: FitProblem, unit: Array, first: int = 0) -> tuple[Array, Array]:
    """Returns residuals, (num_windows, num_per_window), and how they change with `unit[first:]`, (..., num_columns).

    Slopes are taken on both sides: the curvature in one-sided ones would pass for information along directions
    that these windows do not determine, such as gain and mass together; and so would what is left of it, if steps
    were large. They are those of the plain residuals, for the same reason: flattened ones bend. Where friction or
    contact makes predictions jump, though, the slopes of fine steps are heights of jumps over small numbers, and would
    pass for knowledge without end: then the finest steps count with whose slopes coarser ones agree.
    """
    residual = problem.plain_residuals(unit[None])[0]
    smooth = is_smooth(problem.predictor.blueprint)
    finest, *coarser = (*((FINEST_STEP,) if smooth else ()), FINE_STEP, MEDIUM_STEP, COARSE_STEP)
    some = np.arange(len(residual)) % (CHECKED_WINDOW if smooth else 1) == 0
    asked = np.arange(first, len(unit))  # whose slopes no coarser ones have agreed with yet
    found = np.zeros((len(unit), *residual.shape))
    if not len(asked):
        return residual, np.moveaxis(found[first:], 0, -1)
    if smooth:  # steps so fine show no curvature
        ahead = np.where(unit + finest <= 1.0, finest, -finest)
        moved = problem.plain_residuals(unit + np.diag(ahead)[asked])
        found[asked] = (moved - residual) / ahead[asked, None, None]
    else:
        found[asked] = two_sided_slopes(problem.plain_residuals, unit, asked, finest)
    for step in coarser:
        checker = problem if some.all() else problem.keep_windows(some)
        checked = two_sided_slopes(checker.plain_residuals, unit, asked, step)
        sizes = [np.sqrt(np.sum(slopes**2, axis=(1, 2))) for slopes in (found[asked][:, some], checked)]
        jumps = sizes[0] > MAX_SLOPE_RATIO * sizes[1]
        asked = asked[jumps]
        if not len(asked):
            break
        found[asked] = checked[jumps] if some.all() else two_sided_slopes(problem.plain_residuals, unit, asked, step)
    return residual, np.moveaxis(found[first:], 0, -1)


def two_sided_slopes(residuals: Callable[[Array], Array], unit: Array, columns: NDArray[np.intp], step: float) -> Array:
    """Returns how residuals of rows change with some entries of `unit`, (num_columns, num_windows, num_per_window)."""
    above, below = np.minimum(unit + step, 1.0), np.maximum(unit - step, 0.0)
    moved = [np.where(np.eye(len(unit), dtype=bool), side, unit)[columns] for side in (above, below)]
    up, down = np.split(residuals(np.concatenate(moved)), 2)
    return (up - down) / (above - below)[columns, None, None]
