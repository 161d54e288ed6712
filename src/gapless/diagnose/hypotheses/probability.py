"""From scores of sets of mechanisms to probabilities, and to each dimension's share of the gap.

With white noise and perfect fits, a set that predicts unseen windows better by x nats is exp(x) times likelier. Real
fits end near the best, not at it, and real errors last. So scores are divided by a temperature, which grows with what
even the best set leaves unexplained, and each number has a price.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import factorial
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array
from gapless.diagnose.hypotheses.search import SetFit, find_best

NOISE_LOG = float(np.log(2.0))  # mean logarithm of `mean_squares` where only noise is left
MAX_PROBABILITY = 0.995  # some cases are like none that was rehearsed
CALIBRATION_FACTORS = (1.0, 0.5, 0.7, 1.4, 2.0, 3.0, 5.0, 8.0)  # on the values found on other robots
PRIOR_CASES = 10.0  # rehearsed cases that the values found on other robots count for
NUM_BOOTSTRAPS = 300
MAX_SHARING = 4  # dimensions that share the gap; the others have no share


@dataclass(frozen=True)
class SignalCalibration:
    """What turns scores into probabilities. The defaults were found on the tuning cases of `benchmarks/diagnose.py`."""

    temperature: float = 2.0  # by which scores are divided [nats]
    price: float = 15.0  # of each number that a set frees [nats]
    doubt: float = 0.6  # how much the temperature grows per unit of what is left unexplained [1]
    unmodelled_from: float = 0.35  # `measure_lasting_errors` at which something unmodelled is as likely as not [1]
    unmodelled_width: float = 0.1  # over which that changes [1]
    num_cases: int = 0  # rehearsed cases of this model behind it; 0 for the values found on other robots


@dataclass(frozen=True)
class CauseProbabilities:
    """What signals say of each dimension."""

    causes: dict[Dimension, float]  # dimension -> that it takes part
    no_gap: float  # that nothing does
    unmodelled: float  # that something takes part which no parameter expresses
    weights: Array  # (num_fits,) probability of each set that was fitted
    unexplained: float  # what the best set leaves: 0 for noise alone [1]


class GapShare(NamedTuple):
    """A share of the gap with the ends of its interval [1]."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class RehearsedCase:
    """The fits of a simulated gap, and the dimensions that caused it."""

    fits: Sequence[SetFit]
    causes: Sequence[Dimension]


def measure_unexplained(fit: SetFit) -> float:
    """Returns how far residuals are above noise: the mean logarithm of their squares, 0 for noise alone [1]."""
    return max(0.0, float(np.log(fit.mean_squares).mean()) - NOISE_LOG)


def measure_lasting_errors(fit: SetFit) -> float:
    """Returns what is left unexplained, counted by how much of it lasts from one reading to the next [1].

    Noise that is larger than stated does not last; an effect that the model lacks does.
    """
    left = fit.residual
    lasting = float(np.sum(left[:, 1:] * left[:, :-1]) / max(float(np.sum(left**2)), 1e-12))
    return measure_unexplained(fit) * max(0.0, lasting)


def estimate_probabilities(
    fits: Sequence[SetFit], dimensions: Sequence[Dimension], calibration: SignalCalibration
) -> CauseProbabilities:
    """Returns what fitted sets of dimensions say of each dimension."""
    weights = _weigh_fits(fits, calibration)
    causes: dict[Dimension, float] = {
        d: bound_probability(float(weights[[d in fit.dimensions for fit in fits]].sum())) for d in dimensions
    }
    best = fits[int(np.argmax(weights))]
    above = measure_lasting_errors(best) - calibration.unmodelled_from
    unmodelled = float(expit(above / calibration.unmodelled_width))
    no_gap = float(weights[[not fit.mechanisms for fit in fits]].sum()) * (1.0 - unmodelled)
    return CauseProbabilities(
        causes, bound_probability(no_gap), bound_probability(unmodelled), weights, measure_unexplained(best)
    )


def _weigh_fits(fits: Sequence[SetFit], calibration: SignalCalibration) -> Array:
    """Returns the probability of each set, (num_fits,)."""
    temperature = calibration.temperature * (1.0 + calibration.doubt * measure_unexplained(find_best(fits)))
    scores = np.array([fit.total - calibration.price * fit.num_numbers for fit in fits]) / temperature
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def bound_probability(probability: float) -> float:
    """Returns a probability that is at most `MAX_PROBABILITY`, and at least 1 less that."""
    return float(np.clip(probability, 1.0 - MAX_PROBABILITY, MAX_PROBABILITY))


def calibrate_probabilities(
    cases: Sequence[RehearsedCase], dimensions: Sequence[Dimension], known: SignalCalibration
) -> SignalCalibration:
    """Returns the calibration under which rehearsed cases are likeliest; `known` counts as `PRIOR_CASES` cases."""

    def cost(factors: tuple[float, ...]) -> float:
        tried = SignalCalibration(known.temperature * factors[0], known.price * factors[1], known.doubt * factors[2])
        prior = 0.5 * PRIOR_CASES * float(np.sum(np.log(factors) ** 2))
        return prior + sum(_negative_log_likelihood(case, dimensions, tried) for case in cases)

    few = CALIBRATION_FACTORS[:-2]
    factors = min(product(CALIBRATION_FACTORS, few, few), key=cost)  # the cost has plateaus: slopes do not help
    usual = [measure_lasting_errors(find_best(case.fits)) for case in cases]
    above_usual = float(np.quantile(usual, 0.9)) + known.unmodelled_width if usual else 0.0
    return SignalCalibration(
        known.temperature * factors[0],
        known.price * factors[1],
        known.doubt * factors[2],
        max(known.unmodelled_from, above_usual),
        known.unmodelled_width,
        len(cases),
    )


def _negative_log_likelihood(
    case: RehearsedCase, dimensions: Sequence[Dimension], calibration: SignalCalibration
) -> float:
    """Returns how unlikely a case's causes are under a calibration [nats]."""
    holds = np.array([[d in fit.dimensions for d in dimensions] for fit in case.fits], dtype=float)
    chance = np.clip(_weigh_fits(case.fits, calibration) @ holds, 1.0 - MAX_PROBABILITY, MAX_PROBABILITY)
    takes_part = np.array([d in case.causes for d in dimensions])
    return -float(np.sum(np.log(np.where(takes_part, chance, 1.0 - chance))))


def estimate_shares(
    fits: Sequence[SetFit], ranked: Sequence[Dimension], rng: np.random.Generator, level: float = 0.95
) -> dict[Dimension, GapShare]:
    """Returns each dimension's share of what all together explain: what it adds to every set of the others, on average.

    That is Shapley's value. A set that was not fitted scores like the best fitted set within it. Intervals are of a
    bootstrap over windows. `ranked` has the dimensions, most probable first.
    """
    sharing = tuple(ranked[:MAX_SHARING])
    scores = np.stack([fit.window_scores for fit in fits])
    drawn = rng.integers(0, scores.shape[1], (NUM_BOOTSTRAPS, scores.shape[1]))
    totals = np.stack([scores.sum(axis=1), *(scores[:, index].sum(axis=1) for index in drawn)])
    values = _shapley_shares(totals, [frozenset(fit.dimensions) for fit in fits], sharing)
    lows, highs = np.quantile(values[1:], [(1.0 - level) / 2, (1.0 + level) / 2], axis=0)
    return {
        d: GapShare(float(value), float(min(value, low)), float(max(value, high)))
        for d, value, low, high in zip(sharing, values[0], lows, highs, strict=True)
    }


def _shapley_shares(totals: Array, sets: Sequence[frozenset[Dimension]], sharing: Sequence[Dimension]) -> Array:
    """Returns (num_draws, num_sharing) shares, which sum to 1 or to 0, from (num_draws, num_sets) scores."""

    def worth(chosen: tuple[Dimension, ...]) -> Array:
        return totals[:, [held <= set(chosen) for held in sets]].max(axis=1)

    number, found = len(sharing), np.zeros((len(totals), len(sharing)))
    for k, dimension in enumerate(sharing):
        others: list[Dimension] = [other for other in sharing if other != dimension]
        for size in range(number):
            weight = factorial(size) * factorial(number - size - 1) / factorial(number)
            for chosen in combinations(others, size):
                found[:, k] += weight * (worth((*chosen, dimension)) - worth(chosen))
    return found / np.maximum(found.sum(axis=1, keepdims=True), 1e-9)
