"""How much a recording would tell: `identify`'s own measure of it, taken before there is a recording."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.core.parameters import ParameterSpace
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows
from gapless.fit.problem import PRIOR_WEIGHT, FitProblem
from gapless.fit.slopes import FINE_STEP
from gapless.fit.solution import Solution
from gapless.fit.summary import MAX_IDENTIFIABLE_SD

GOOD_ENOUGH = 0.01  # standard deviations far below this share of the range are not worth more motion
LONGER = 10.0  # what a motion of so many times the length does not tell either, no motion tells
HEAVY = 0.25  # a parameter takes part in a direction if its component is larger


@dataclass(frozen=True)
class Judge:
    """Measures what windows of a recording tell about all parameters of a space.

    Attributes:
        predictor: Predicts windows under rows of the space.
        row: (num_parameters,) the values believed.
        sigma: (num_measurements,) least error that predictions of each column have, noise aside.
    """

    predictor: Predictor
    row: Array
    sigma: Array

    def solution(self, windows: Windows) -> Solution:
        """Returns what `identify` would say of a fit that ended at the believed values, all windows as expected.

        Slopes are taken of plain residuals, not of the robust ones: those flatten out within one step of a well
        excited parameter, differently for each, and what they flatten would pass for information about a direction
        that nothing shows.
        """
        every = tuple(range(len(self.row)))
        sigma = np.maximum(windows.noise, self.sigma)
        problem = FitProblem(self.predictor, windows, every, self.row, sigma).at(self.row)
        unit = np.clip(problem.unit(self.row), 0.0, 1.0)
        slopes = _slopes(problem, unit)
        information = slopes @ slopes.T
        return Solution(self.row, unit, expected_covariance(information, len(windows)), information, 0.0)


def _slopes(problem: FitProblem, unit: Array) -> Array:
    """Returns how fast each residual changes with each parameter, (num_parameters, num_residuals).

    Slopes are central. Where those to both sides disagree, contact is made or lost within the step: such a residual
    is as likely to be an outlier as to tell anything, and counts less, down to nothing where only one side moves.
    """
    above, below = np.minimum(unit + FINE_STEP, 1.0), np.maximum(unit - FINE_STEP, 0.0)
    moved = [np.where(np.eye(len(unit), dtype=bool), side, unit) for side in (above, below)]
    values = _residuals(problem, np.concatenate([unit[None], *moved]))
    base, up, down = values[0], *np.split(values[1:], 2)
    central = (up - down) / (above - below)[:, None]
    room = np.minimum(above - unit, unit - below)[:, None]  # none at a bound: one side only, taken as it is
    bend = np.abs(up + down - 2 * base) / np.maximum(room, 1e-12) * (room > FINE_STEP / 2)
    return central * np.clip(2.0 - bend / np.maximum(np.abs(central), 1e-12), 0.0, 1.0)


def _residuals(problem: FitProblem, unit: Array) -> Array:
    """Returns weighted residuals with errors of the starts discounted, (num_rows, num_residuals)."""
    weighted = problem.errors(problem.rows(unit)) / problem.sigma
    weighted = np.nan_to_num(weighted).reshape(len(unit), len(problem.windows), -1)
    discounted = weighted if problem.starts is None else problem.starts.discount(weighted)
    return discounted.reshape(len(unit), -1)


def expected_covariance(information: Array, num_windows: int) -> Array:
    """Returns about the covariance that `identify` would report on average, (num_parameters, num_parameters).

    `identify` reports H^-1 (G + p^2) H^-1 with H = information + p^2 and G the spread of the windows' gradients,
    whose mean is the information, and widens it where windows are few: here by w / (w - k) for w windows and k
    parameters, which is near enough if all windows say about as much.
    """
    count = len(information)
    prior = PRIOR_WEIGHT**2 * np.eye(count)
    spread = information * num_windows / max(1, num_windows - count) + prior
    inverse = np.linalg.inv(information + prior)
    return inverse @ spread @ inverse


def cost(covariance: Array, wanted: Sequence[int]) -> float:
    """Returns how bad a covariance is for some parameters: the mean logarithm of their standard deviations.

    Shares of each parameter's range, and `GOOD_ENOUGH` added: what is badly determined counts most.
    """
    deviation = np.sqrt(np.diag(covariance)[list(wanted)])
    return float(np.mean(np.log(deviation + GOOD_ENOUGH)))


def rescaled(information: Array, before: ParameterSpace, after: ParameterSpace, row: Array) -> Array:
    """Returns information about the same parameters when their bounds, and so their units, are others.

    With values v and units u before and u' after, du = (dv/du')/(dv/du) du'.
    """
    first, then = Scaling.of(before), Scaling.of(after)
    factor = then.slope(np.clip(then.unit(row), 0.0, 1.0)) / first.slope(np.clip(first.unit(row), 0.0, 1.0))
    return information * np.outer(factor, factor)


def inseparable(space: ParameterSpace, pooled: Array) -> tuple[tuple[str, ...], ...]:
    """Returns groups of parameters that not even `LONGER` times the mean motion tells apart.

    Each group is a direction that stays loose: the eigenvectors of the covariance whose standard deviation is at
    least `MAX_IDENTIFIABLE_SD` of the range. A group of one is a parameter that shows in nothing that is measured.

    Args:
        space: The parameters.
        pooled: (num_parameters, num_parameters) mean information of many motions.
    """
    covariance = np.linalg.inv(LONGER * pooled + PRIOR_WEIGHT**2 * np.eye(len(pooled)))
    values, vectors = np.linalg.eigh(covariance)
    groups: list[tuple[str, ...]] = []
    for variance, vector in zip(values[::-1], vectors.T[::-1], strict=True):
        if np.sqrt(max(variance, 0.0)) < MAX_IDENTIFIABLE_SD:
            break
        heavy = tuple(space.targets[k] for k in np.flatnonzero(np.abs(vector) > HEAVY))
        groups.append(heavy)
    return tuple(dict.fromkeys(groups))


def loose(pooled: Array) -> NDArray[np.bool_]:
    """Tells which parameters not even `LONGER` times the mean motion determines, (num_parameters,)."""
    covariance = np.linalg.inv(LONGER * pooled + PRIOR_WEIGHT**2 * np.eye(len(pooled)))
    return np.sqrt(np.diag(covariance)) >= MAX_IDENTIFIABLE_SD
