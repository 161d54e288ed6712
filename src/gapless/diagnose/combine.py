"""One diagnosis from three kinds of evidence: signals, outcomes, and what a policy does in simulation.

Probabilities are combined as odds. Outcomes and simulated failures come from the same runs as the signals, so their log
odds count for less where signals were judged. Without signals, explanations of the outcomes exclude each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import expit, logit

from gapless.core.dimensions import Dimension
from gapless.core.results import Cause
from gapless.diagnose.outcomes.records import OutcomeEvidence
from gapless.fit.mechanisms.evidence import bound_probability
from gapless.fit.mechanisms.explain import SignalEvidence

PRIOR_PROBABILITY = 0.06  # that a dimension takes part, before anything is known of it
WEIGHT_BESIDE_SIGNALS = 0.5  # of the log odds of outcomes and simulated failures, where signals were judged
UNDECIDED = (0.1, 0.9)  # probabilities between which a dimension is undecided
MIN_CONFOUNDED = 0.3  # probability that a condition matters, from which its dimensions are called ambiguous
MAX_AMBIGUOUS = 3  # pairs that are named
Group = tuple[Dimension, ...]


@dataclass(frozen=True)
class Diagnosis:
    """What all evidence says together."""

    causes: tuple[Cause, ...]  # most probable first
    no_gap: float  # that nothing takes part
    unmodelled: float  # that something takes part which no parameter expresses
    ambiguous: tuple[Group, ...]  # groups of dimensions of which one takes part, and these logs do not show which

    @property
    def likely(self) -> Group:
        """The dimensions that more probably take part than not."""
        return tuple(cause.dimension for cause in self.causes if cause.probability > 0.5)


def combine_evidence(
    signals: SignalEvidence | None, outcomes: OutcomeEvidence | None, counterfactual: Mapping[Dimension, float]
) -> Diagnosis:
    """Returns the diagnosis from whatever evidence there is; at least one kind.

    Args:
        signals: None where there are too few.
        outcomes: What outcomes, phases and conditions say; None where they are not known.
        counterfactual: Dimension -> log likelihood ratio from simulated failures [nats].
    """
    if signals is None and outcomes is not None:
        probability, no_gap = _weigh_ratios(outcomes, counterfactual)
    else:
        probability, no_gap = _shift_signals(signals, outcomes, counterfactual)
    causes = [Cause(d, p, 0.0, 0.0, 0.0) for d, p in probability.items()]
    causes.sort(key=lambda cause: -cause.probability)
    ambiguous = _exchangeable_pairs(signals, probability) if signals else ()
    return Diagnosis(
        tuple(causes),
        bound_probability(no_gap),
        signals.probabilities.unmodelled if signals else PRIOR_PROBABILITY,
        ambiguous + _confounded_groups(outcomes, probability),
    )


def _weigh_ratios(
    outcomes: OutcomeEvidence, counterfactual: Mapping[Dimension, float]
) -> tuple[dict[Dimension, float], float]:
    """Returns probabilities of dimensions and of no gap without signals.

    Explanations of the outcomes are each weighed by the likelihood ratio of simulated failures.
    """
    before = outcomes.probabilities
    weighed: dict[Dimension, float] = {d: p * float(np.exp(counterfactual.get(d, 0.0))) for d, p in before.items()}
    growth = sum(weighed.values()) / sum(before.values())
    total = outcomes.no_gap + (1.0 - outcomes.no_gap) * growth
    found: dict[Dimension, float] = {d: bound_probability(p / total) for d, p in weighed.items()}
    return found, outcomes.no_gap / total


def _shift_signals(
    signals: SignalEvidence | None, outcomes: OutcomeEvidence | None, counterfactual: Mapping[Dimension, float]
) -> tuple[dict[Dimension, float], float]:
    """Returns probabilities of dimensions and of no gap: those of signals, shifted by what else is known."""
    log_odds = dict(outcomes.log_odds) if outcomes else {}
    for dimension, ratio in counterfactual.items():
        log_odds[dimension] = log_odds.get(dimension, 0.0) + ratio
    own = signals.probabilities.causes if signals else {}
    no_gap = signals.probabilities.no_gap if signals else 1.0
    probability: dict[Dimension, float] = {}
    for dimension, before in own.items():
        probability[dimension] = _shift(before, WEIGHT_BESIDE_SIGNALS * log_odds.get(dimension, 0.0))
    for dimension, odds in log_odds.items():
        if dimension not in own:
            probability[dimension] = _shift(PRIOR_PROBABILITY, odds)
            no_gap *= 1.0 - probability[dimension]
    return probability, no_gap


def _shift(probability: float, log_odds: float) -> float:
    return bound_probability(float(expit(logit(probability) + log_odds)))


def _exchangeable_pairs(signals: SignalEvidence, probability: Mapping[Dimension, float]) -> tuple[Group, ...]:
    """Returns pairs of undecided dimensions that replace each other: likely sets hold one or the other."""
    low, high = UNDECIDED
    weight: dict[frozenset[str], float] = {}
    for one, chance in zip(signals.explanations, signals.probabilities.weights, strict=True):
        held = frozenset[str](one.dimensions)
        weight[held] = weight.get(held, 0.0) + float(chance)
    undecided: list[Dimension] = [d for d in signals.probabilities.causes if low < probability[d] < high]
    found: list[tuple[float, Group]] = []
    for one, other in combinations(undecided, 2):
        swapped = {held: held - {one} | {other} for held in weight if one in held and other not in held}
        both = sum(min(weight[held], weight.get(instead, 0.0)) for held, instead in swapped.items())
        if both > low:
            found.append((-both, (one, other)))
    return tuple(pair for _, pair in sorted(found)[:MAX_AMBIGUOUS])


def _confounded_groups(outcomes: OutcomeEvidence | None, probability: Mapping[Dimension, float]) -> tuple[Group, ...]:
    """Returns groups of undecided dimensions that conditions which changed together speak for."""
    low, high = UNDECIDED
    groups: dict[Group, None] = {}
    for factor in outcomes.factors if outcomes else ():
        if factor.confounded_with and factor.probability > MIN_CONFOUNDED:
            group: Group = tuple(d for d in factor.speaks_for if low < probability.get(d, 0.0) < high)
            if len(group) > 1:
                groups[group] = None
    return tuple(groups)
