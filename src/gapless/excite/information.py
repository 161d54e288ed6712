"""How much motions would identify: a quick measure to compare many; see `excite.prediction` for the one chosen."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gapless.core.parameters import ParameterSpace
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows
from gapless.fit.problem import PRIOR_WEIGHT, FitProblem
from gapless.fit.slopes import FINE_STEP
from gapless.fit.summary import MAX_IDENTIFIABLE_SD

SUFFICIENT_SD = 0.01  # standard deviations far below this share of the range are not worth more motion
MAX_REPEATS = 10.0  # what a motion of so many times the length does not identify either, no motion identifies
MIN_COMPONENT = 0.25  # a parameter takes part in a direction if its component is larger


def expected_information(predictor: Predictor, windows: Windows, row: Array, min_sigma: Array) -> Array:
    """Returns the information of some windows about a robot with the values assumed, (num_parameters, num_parameters).

    Slopes are taken of plain residuals, not of the robust ones: those flatten out within one step of a well
    excited parameter, differently for each, and what they flatten would pass for information about a direction
    that nothing shows.

    `row` has the values assumed, (num_parameters,), `min_sigma` the least error that predictions of each column have,
    noise aside, (num_measurements,).
    """
    sigma = np.maximum(windows.noise, min_sigma)
    problem = FitProblem(predictor, windows, tuple(range(len(row))), row, sigma).with_starts_at(row)
    slopes = _compute_slopes(problem, np.clip(problem.unit(row), 0.0, 1.0))
    return slopes @ slopes.T


def _compute_slopes(problem: FitProblem, unit: Array) -> Array:
    """Returns how fast each residual changes with each parameter, (num_parameters, num_residuals).

    Slopes are central. Where those to both sides disagree, contact is made or lost within the step: such a residual
    is as likely to be an outlier as to show anything, and counts less, down to nothing where only one side moves.
    """
    above, below = np.minimum(unit + FINE_STEP, 1.0), np.maximum(unit - FINE_STEP, 0.0)
    moved = [np.where(np.eye(len(unit), dtype=bool), side, unit) for side in (above, below)]
    units = np.concatenate([unit[None], *moved])
    values = np.nan_to_num(problem.errors(problem.rows(units)) / problem.sigma)
    values = values.reshape(len(units), len(problem.windows), -1)
    if problem.starts is not None:
        values = problem.starts.discount(values)
    values = values.reshape(len(units), -1)
    base, up, down = values[0], *np.split(values[1:], 2)
    central = (up - down) / (above - below)[:, None]
    room = np.minimum(above - unit, unit - below)[:, None]  # none at a bound: one side only, taken as it is
    bend = np.abs(up + down - 2 * base) / np.maximum(room, 1e-12) * (room > FINE_STEP / 2)
    return central * np.clip(2.0 - bend / np.maximum(np.abs(central), 1e-12), 0.0, 1.0)


def identification_cost(information: Array, wanted: Sequence[int]) -> float:
    """Returns how bad information is for some parameters: the mean logarithm of their standard deviations.

    Shares of each parameter's range, and `SUFFICIENT_SD` added: what is badly determined counts most.
    """
    deviation = np.sqrt(np.diag(_covariance(information))[list(wanted)])
    return float(np.mean(np.log(deviation + SUFFICIENT_SD)))


def rescale_information(information: Array, before: ParameterSpace, after: ParameterSpace, row: Array) -> Array:
    """Returns information about the same parameters when their bounds, and so their units, are others.

    With values v and units u before and u' after, du = (dv/du')/(dv/du) du'.
    """
    first, then = Scaling.of(before), Scaling.of(after)
    factor = then.slope(np.clip(then.unit(row), 0.0, 1.0)) / first.slope(np.clip(first.unit(row), 0.0, 1.0))
    return information * np.outer(factor, factor)


def find_inseparable(space: ParameterSpace, mean_information: Array) -> tuple[tuple[str, ...], ...]:
    """Returns groups of parameters that not even `MAX_REPEATS` times the mean motion separates.

    Each group is a direction that stays undetermined: the eigenvectors of the covariance whose standard deviation is
    at least `MAX_IDENTIFIABLE_SD` of the range. A group of one is a parameter that shows in nothing that is measured.
    """
    values, vectors = np.linalg.eigh(_covariance(MAX_REPEATS * mean_information))
    groups: list[tuple[str, ...]] = []
    for variance, vector in zip(values[::-1], vectors.T[::-1], strict=True):
        if np.sqrt(max(variance, 0.0)) < MAX_IDENTIFIABLE_SD:
            break
        groups.append(tuple(space.targets[k] for k in np.flatnonzero(np.abs(vector) > MIN_COMPONENT)))
    return tuple(dict.fromkeys(groups))


def find_unidentifiable(mean_information: Array) -> NDArray[np.bool_]:
    """Tells which parameters not even `MAX_REPEATS` times the mean motion identifies, (num_parameters,)."""
    return np.sqrt(np.diag(_covariance(MAX_REPEATS * mean_information))) >= MAX_IDENTIFIABLE_SD


def _covariance(information: Array) -> Array:
    return np.asarray(np.linalg.inv(information + PRIOR_WEIGHT**2 * np.eye(len(information))), dtype=np.float64)
