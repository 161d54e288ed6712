"""Ranges by Bayesian optimisation on real success: try, learn what reality says, try where more may be gained.

After BayRn (Muratore and others: Data-efficient domain randomization with Bayesian optimization, RA-L 2021): a Gaussian
process over the numbers that describe the ranges is fitted to the real success of policies trained in them, and says
which to try next, by expected improvement; in the end the best posterior mean is taken.

Differences: the paper optimises mean and variance of a few chosen parameters, here ranges found by another method are
moved as groups: per dimension of the gap, how far from the model's value to the fitted one (0 to 1.5), and one factor
on all widths (0.5 to 3), so that a dozen parameters need few tries; the noise of each observation is that of a success
rate of so many trials.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from gapless.core.dimensions import Dimension
from gapless.core.distribution import Distribution, Range
from gapless.core.parameters import Parameter
from gapless.core.signal import Array

FURTHEST = 1.5  # of the way from the model's value to the fitted one
NARROWEST, WIDEST = 0.5, 3.0  # factor on widths
LENGTHS = (0.2, 0.4, 0.8)  # length scales that are tried, in [0, 1]
NUM_CANDIDATES = 2000


@dataclass(frozen=True)
class Move:
    """What is searched over: one number in [0, 1] per dimension, and one for the widths."""

    ranges: Distribution
    dimensions: tuple[Dimension, ...]

    @classmethod
    def of(cls, ranges: Distribution) -> "Move":
        """Returns the search about some ranges."""
        columns = [ranges.space.index(item.target) for item in ranges.ranges]
        return cls(ranges, tuple(dict.fromkeys(ranges.space.parameters[k].dimension for k in columns)))

    @property
    def still(self) -> Array:
        """The numbers that leave the ranges as they are, (num_dimensions + 1,)."""
        return np.append(
            np.full(len(self.dimensions), 1 / FURTHEST), np.log(1 / NARROWEST) / np.log(WIDEST / NARROWEST)
        )

    def at(self, numbers: Array) -> Distribution:
        """Returns the ranges at some numbers in [0, 1], (num_dimensions + 1,)."""
        factor = NARROWEST * (WIDEST / NARROWEST) ** float(numbers[-1])
        way = dict(zip(self.dimensions, FURTHEST * numbers[:-1], strict=True))
        space = self.ranges.space
        moved = tuple(
            _moved(item, space.parameters[space.index(item.target)], way, factor) for item in self.ranges.ranges
        )
        return replace(self.ranges, ranges=moved)


def _moved(item: Range, parameter: Parameter, way: dict[Dimension, float], factor: float) -> Range:
    nominal, share = parameter.nominal, float(way[parameter.dimension])
    by_factor = item.kind in ("log-normal", "log-uniform") and nominal > 0
    bend, back = (np.log, np.exp) if by_factor else (lambda v: v, lambda v: v)
    middle = bend(item.mean) if item.bell else (bend(item.low) + bend(item.high)) / 2
    centre = bend(nominal) + share * (middle - bend(nominal))
    ends = [centre + factor * (bend(end) - middle) for end in (item.low, item.high)]
    least = 0.0 if item.low >= 0 else -np.inf  # what cannot be negative stays so
    low, high = (max(float(back(end)), least) for end in ends)
    mean = min(max(float(back(centre)), low), high) if item.bell else (low + high) / 2
    return replace(item, low=low, high=high, mean=mean, std=factor * item.std)


def suggest(tried: Array, success: Array, num_trials: int, rng: np.random.Generator) -> Array:
    """Returns the numbers to try next, (num_numbers,): those of greatest expected improvement.

    Args:
        tried: (num_tried, num_numbers) what was tried.
        success: (num_tried,) share of real trials that succeeded.
        num_trials: Trials behind each share.
        rng: Source of the candidates.
    """
    candidates = rng.random((NUM_CANDIDATES, tried.shape[1]))
    mean, std = _predicted(tried, success, num_trials, candidates)
    best = float(_predicted(tried, success, num_trials, tried)[0].max())
    gain = (mean - best) / std
    return candidates[int(np.argmax(std * (gain * norm.cdf(gain) + norm.pdf(gain))))]


def best_of(tried: Array, success: Array, num_trials: int) -> int:
    """Returns which of those tried has the best posterior mean: a lucky share of few trials is no reason alone."""
    return int(np.argmax(_predicted(tried, success, num_trials, tried)[0]))


def _predicted(tried: Array, success: Array, num_trials: int, at: Array) -> tuple[Array, Array]:
    """Returns mean and standard deviation of a Gaussian process at some points, each (num_points,).

    Matern 5/2; of a few length scales the one under which the observations are most likely.
    """
    rate = (success * num_trials + 1) / (num_trials + 2)  # Laplace: 0 of 20 is not certain
    noise = rate * (1 - rate) / num_trials
    centre, scale = float(success.mean()), max(float(success.var()), 0.04)
    found: tuple[float, Array, Array] | None = None
    for length in LENGTHS:
        root = np.linalg.cholesky(scale * _matern(tried, tried, length) + np.diag(noise))
        whitened = np.linalg.solve(root, success - centre)
        likelihood = float(-0.5 * whitened @ whitened - np.log(np.diag(root)).sum())
        if found is None or likelihood > found[0]:
            cross = np.linalg.solve(root, scale * _matern(tried, at, length))
            variance = scale - np.sum(cross**2, axis=0)
            found = likelihood, centre + cross.T @ whitened, np.sqrt(np.maximum(variance, 1e-9))
    assert found is not None
    return found[1], found[2]


def _matern(one: Array, other: Array, length: float) -> Array:
    distance = np.sqrt(5) * np.linalg.norm(one[:, None] - other[None], axis=-1) / length
    return (1 + distance + distance**2 / 3) * np.exp(-distance)
