"""The deviance of Allan variances from a sum of kinds of noise, and the sum that makes it least."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import nnls

from gapless.core.signal import Array, Flags
from gapless.signals.noise.allan.variance import TERMS, Allan, covariance, shapes

ROUNDS = 60  # of weights from the fit and a fit with those weights


@dataclass(frozen=True)
class Problem:
    """Allan variances, what they scatter by, and the shapes to explain them with.

    Attributes:
        basis: (num_sizes, num_terms) Allan variance of each unit term.
        seen: (num_sizes,) Allan variances.
        freedom: (num_sizes,) their degrees of freedom.
        ramp: (num_sizes,) Allan variance of the straight line.
        factors: (num_terms,) by how much correlated estimates raise the variance of each term.
        relative: (num_sizes, num_sizes) covariance of estimate / fitted.
    """

    basis: Array
    seen: Array
    freedom: Array
    ramp: Array
    factors: Array
    relative: Array

    def least(self, free: Flags, price: float = 0.0, offset: Array | float = 0.0) -> tuple[Array, float, bool]:
        """Returns the sizes of least deviance, that deviance, and whether the ramp lowers it by more than its price.

        Args:
            free: (num_terms,) which terms may be there.
            price: Deviance that the ramp must save.
            offset: (num_sizes,) Allan variance that is there anyhow.
        """
        without, with_ramp = self._least(free, offset), self._least(free, offset + self.ramp)
        ramps = with_ramp[1] < without[1] - price
        return *(with_ramp if ramps else without), ramps

    def _least(self, free: Flags, offset: Array | float) -> tuple[Array, float]:
        columns, sizes, best = self.basis[:, free], np.zeros(len(free)), np.inf
        fitted = np.maximum(self.seen, offset)
        for _ in range(ROUNDS):
            weight = np.sqrt(self.freedom) / fitted
            weighted = columns * weight[:, None]
            scale = np.linalg.norm(weighted, axis=0)
            solved = nnls(weighted / scale, (self.seen - offset) * weight)[0] / scale
            whole = np.maximum(columns @ solved + offset, 1e-6 * self.seen)
            cost = self._deviance(whole)
            if cost < best:
                sizes[free] = solved
            worse, best = cost > best, min(cost, best)
            if np.allclose(whole, fitted, rtol=1e-7, atol=0):
                break
            fitted = np.sqrt(fitted * whole) if worse else whole
        return sizes, best

    def scatter(self, value: Array) -> Array:
        """Returns the covariance of the sizes of terms, 0 for those that are 0.

        Where flicker or a random walk is seen, both count: which of them it is, is not known well.
        """
        wanders = np.isin(TERMS, ("flicker", "walk"))
        used = np.flatnonzero((value > 0) | (wanders & np.any(value[wanders] > 0)))
        columns, weights = self.basis[:, used] / (self.basis @ value)[:, None], self.freedom / 2
        pull = (weights[:, None] * columns) @ np.linalg.pinv(columns.T @ (weights[:, None] * columns), hermitian=True)
        made = np.zeros((len(value), len(value)))
        made[np.ix_(used, used)] = pull.T @ self.relative @ pull
        return made

    def _deviance(self, fitted: Array) -> float:
        ratio = self.seen / fitted
        return float(np.sum(self.freedom * (ratio - np.log(ratio) - 1)))


def problem_at(allan: Allan, value: Array) -> Problem:
    """Returns what is to be minimised, with degrees of freedom and correlations as if the terms had these sizes."""
    basis, scatter = shapes(allan.sizes), covariance(allan, value)
    fitted = basis @ value
    relative = scatter / np.outer(fitted, fitted)
    freedom = 2 / np.diag(relative)
    columns = basis / fitted[:, None]
    factors = [
        max(_factor(columns[:, [place, *others]], freedom / 2, relative) for others in _subsets(place))
        for place in range(len(TERMS))
    ]
    ramp = allan.slope**2 * allan.sizes**2 / 2
    return Problem(basis, allan.variance, freedom, ramp, np.maximum(1.0, factors), relative)


def _subsets(place: int) -> list[tuple[int, ...]]:
    others = [k for k in range(len(TERMS)) if k != place]
    return [chosen for count in range(len(TERMS)) for chosen in combinations(others, count)]


def _factor(columns: Array, weights: Array, relative: Array) -> float:
    """Returns the variance of the first of some terms over that which independent estimates would give."""
    inverse = np.linalg.pinv(columns.T @ (weights[:, None] * columns), hermitian=True)
    pull = (weights[:, None] * columns) @ inverse[:, 0]
    return float(pull @ relative @ pull / inverse[0, 0])
