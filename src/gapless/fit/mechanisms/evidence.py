"""From scores of explanations to probabilities.

With white noise and perfect fits, a set that predicts unseen windows better by x nats is exp(x) times likelier. Real
fits end near the best, not at it, and real errors last. So scores are divided by a temperature, which grows with what
even the best set leaves unexplained. Before anything is known, every number makes a set less likely, and a dimension
with many mechanisms is as likely as one with few.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array
from gapless.fit.mechanisms.mechanism import Mechanism
from gapless.fit.mechanisms.search import NOISE_LOG, Explanation

MAX_PROBABILITY = 0.995  # some cases are like none that was ever tried


@dataclass(frozen=True)
class WeighingConfig:
    """What turns scores into probabilities, found on tuning cases of `benchmarks/diagnose.py`, `planted` too."""

    price: float = 20.0  # of each number: more than the search asks, since several may be chosen by chance [nats]
    temperature: float = 4.0  # by which scores are divided [nats]
    doubt: float = 2.0  # how much the temperature grows per unit of what is left unexplained [1]
    calm: float = 0.5  # what may be left unexplained before it does [1]
    prior_doubt: float = 0.25  # power of that growth by which numbers weigh less, too; 0: not at all, 1: as scores do
    unmodelled_from: float = 0.35  # `measure_lasting_errors` at which something unmodelled is as likely as not [1]
    unmodelled_width: float = 0.1  # over which that changes [1]


WEIGHING = WeighingConfig()


@dataclass(frozen=True)
class CauseProbabilities:
    """What signals say of each dimension and mechanism."""

    causes: dict[Dimension, float]  # dimension -> that it takes part
    mechanisms: dict[Mechanism, float]  # mechanism -> that it does, for those in some explanation
    no_gap: float  # that nothing does
    unmodelled: float  # that something takes part which no parameter expresses
    weights: Array  # (num_explanations,) probability of each explanation
    unexplained: float  # what the best one leaves: 0 for noise alone [1]


def measure_unexplained(explanation: Explanation) -> float:
    """Returns how far residuals are above noise: the mean logarithm of their squares, 0 for noise alone [1]."""
    return max(0.0, float(np.log(explanation.held_out).mean()) - NOISE_LOG)


def measure_lasting_errors(explanation: Explanation) -> float:
    """Returns what is left unexplained, counted by how much of it lasts from one reading to the next [1].

    Noise that is larger than stated does not last; an effect that the model lacks does.
    """
    left = explanation.residual
    lasting = float(np.sum(left[:, 1:] * left[:, :-1]) / max(float(np.sum(left**2)), 1e-12))
    return measure_unexplained(explanation) * max(0.0, lasting)


def find_best(explanations: Sequence[Explanation]) -> Explanation:
    """Returns the one that is worth most."""
    return max(explanations, key=measure_worth)


def measure_worth(explanation: Explanation) -> float:
    """Returns the score of an explanation less what its numbers cost [nats]."""
    return explanation.total - explanation.prior_cost - WEIGHING.price * explanation.price


def estimate_probabilities(
    explanations: Sequence[Explanation], mechanisms: Sequence[Mechanism], config: WeighingConfig = WEIGHING
) -> CauseProbabilities:
    """Returns what explanations say of the dimensions of some mechanisms, all that were asked about."""
    best = find_best(explanations)
    doubt = 1.0 + config.doubt * max(0.0, measure_unexplained(best) - config.calm)
    rivals = Counter(mechanism.dimension for mechanism in mechanisms)
    priors = np.array([_log_prior(one, rivals, config) for one in explanations])
    totals = np.array([one.total for one in explanations])
    scores = totals / (config.temperature * doubt) + priors / doubt**config.prior_doubt
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    best = explanations[int(np.argmax(weights))]
    dimensions: dict[Dimension, None] = dict.fromkeys(one.dimension for one in mechanisms)
    causes: dict[Dimension, float] = {
        d: bound_probability(float(weights[[d in one.dimensions for one in explanations]].sum())) for d in dimensions
    }
    chances: dict[Mechanism, float] = {}
    for one, weight in zip(explanations, weights, strict=True):
        for mechanism in one.mechanisms:
            chances[mechanism] = chances.get(mechanism, 0.0) + float(weight)
    above = measure_lasting_errors(best) - config.unmodelled_from
    unmodelled = float(expit(above / config.unmodelled_width))
    no_gap = float(weights[[not one.mechanisms for one in explanations]].sum()) * (1.0 - unmodelled)
    bounded = bound_probability(no_gap), bound_probability(unmodelled)
    return CauseProbabilities(causes, chances, *bounded, weights, measure_unexplained(best))


def _log_prior(explanation: Explanation, rivals: Mapping[str, int], config: WeighingConfig) -> float:
    """Returns how likely an explanation is before the logs are seen, up to a constant [nats].

    What is left makes it doubtful what scores say, but needless numbers little likelier: this has little of the doubt.
    """
    chosen = [float(np.log(rivals[mechanism.dimension])) for mechanism in explanation.mechanisms]
    return -config.price / config.temperature * explanation.price - explanation.prior_cost - sum(chosen)


def bound_probability(probability: float) -> float:
    """Returns a probability that is at most `MAX_PROBABILITY`, and at least 1 less that."""
    return float(np.clip(probability, 1.0 - MAX_PROBABILITY, MAX_PROBABILITY))
