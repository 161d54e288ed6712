"""One verdict from three kinds of evidence: signals, outcomes, and what a policy does in simulation.

Probabilities are combined as odds. Where signals were fitted they speak for themselves; outcomes and counterfactuals
see the same runs from further away, so their log odds count for less beside signals than alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import expit, logit

from gapless.core.dimensions import Dimension
from gapless.core.results import Cause
from gapless.diagnose.hypotheses.belief import bounded
from gapless.diagnose.hypotheses.read import TraceEvidence
from gapless.diagnose.hypotheses.shares import Share
from gapless.diagnose.outcomes.records import OutcomeEvidence

RARE = 0.06  # that a dimension takes part, before anything is known of it
BESIDE = 0.5  # weight of the log odds of others where signals were fitted
AMBIGUOUS = (0.1, 0.9)  # probabilities between which a dimension is undecided
MOST_GROUPS = 3  # of what cannot be told apart


@dataclass(frozen=True)
class Verdict:
    """What all evidence says together.

    Attributes:
        causes: Most probable first.
        no_gap: That nothing takes part.
        unmodelled: That something takes part which no parameter expresses.
        ambiguous: Groups of dimensions of which one takes part, and these logs cannot tell which.
    """

    causes: tuple[Cause, ...]
    no_gap: float
    unmodelled: float
    ambiguous: tuple[tuple[Dimension, ...], ...]

    @property
    def likely(self) -> tuple[Dimension, ...]:
        """The dimensions that more probably take part than not."""
        return tuple(cause.dimension for cause in self.causes if cause.probability > 0.5)


def judge(
    traces: TraceEvidence | None, outcomes: OutcomeEvidence | None, counterfactual: Mapping[Dimension, float] | None
) -> Verdict:
    """Returns the verdict of whatever evidence there is; at least one kind.

    Args:
        traces: What signals say; None where there are too few.
        outcomes: What outcomes, phases and conditions say; None where they are not known.
        counterfactual: Dimension -> log likelihood ratio from simulated failures [nats].
    """
    heard = {**(outcomes.log_odds if outcomes else {})}
    for dimension, ratio in (counterfactual or {}).items():
        heard[dimension] = heard.get(dimension, 0.0) + ratio
    own = traces.belief.probability if traces else {}
    probability = {d: _shifted(p, BESIDE * heard.get(d, 0.0)) for d, p in own.items()}
    probability |= {d: _shifted(RARE, odds) for d, odds in heard.items() if d not in own}
    no_gap = (traces.belief.no_gap if traces else 1.0) * float(
        np.prod([1.0 - p for d, p in probability.items() if d not in own])
    )
    shares = traces.shares if traces else {}
    causes = [_cause(d, p, shares.get(d)) for d, p in probability.items()]
    causes.sort(key=lambda cause: (-cause.probability, -cause.share))
    return Verdict(
        tuple(causes),
        bounded(no_gap),
        traces.belief.unmodelled if traces else RARE,
        _ambiguous(traces, probability) + _confounded(outcomes, probability),
    )


def _cause(dimension: Dimension, probability: float, share: Share | None) -> Cause:
    if share is None:
        return Cause(dimension, probability, 0.0, 0.0, 0.0)
    return Cause(dimension, probability, share.value, share.low, share.high)


def _shifted(probability: float, log_odds: float) -> float:
    return bounded(float(expit(logit(probability) + log_odds)))


def _ambiguous(
    traces: TraceEvidence | None, probability: Mapping[Dimension, float]
) -> tuple[tuple[Dimension, ...], ...]:
    """Returns pairs of undecided dimensions that stand in for each other: likely sets hold one or the other."""
    if traces is None:
        return ()
    low, high = AMBIGUOUS
    weight = {frozenset(t.subset): w for t, w in zip(traces.trials, traces.belief.weights, strict=True)}
    open_ones = [d for d in traces.belief.probability if low < probability[d] < high]
    found: list[tuple[float, tuple[Dimension, ...]]] = []
    for one, other in combinations(open_ones, 2):
        swapped = {held: (held - {one}) | {other} for held in weight if one in held and other not in held}
        both = sum(min(weight[held], weight.get(instead, 0.0)) for held, instead in swapped.items())
        if both > low:
            found.append((-both, (one, other)))
    return tuple(pair for _, pair in sorted(found)[:MOST_GROUPS])


def _confounded(
    outcomes: OutcomeEvidence | None, probability: Mapping[Dimension, float]
) -> tuple[tuple[Dimension, ...], ...]:
    """Returns groups of dimensions that conditions which changed together speak for."""
    if outcomes is None:
        return ()
    groups: list[tuple[Dimension, ...]] = []
    for factor in outcomes.factors:
        if factor.confounded_with and factor.probability > 0.3:
            spoken = [d for d in factor.speaks_for if AMBIGUOUS[0] < probability.get(d, 0.0) < AMBIGUOUS[1]]
            if len(spoken) > 1:
                groups.append(tuple(spoken))
    return tuple(dict.fromkeys(groups))
