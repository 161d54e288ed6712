"""Explanations of failures weighed against each other: no gap, a gap in one condition, a gap everywhere.

A model of `regression` says which conditions matter. Each of them matters because of one dimension that its name speaks
for, or for another reason. Where none matters there is no gap, or a gap in a dimension that is everywhere alike. Phases
of the exposed runs tell dimensions of one condition apart.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from gapless.core.dimensions import DIMENSIONS, Dimension
from gapless.core.signal import Array
from gapless.diagnose.outcomes.regression import ModelPosterior

OTHER_WEIGHT = 0.05  # of reasons that are no gap, beside the weights of the vocabulary
EVERYWHERE_CHANCE = 0.01  # that a dimension takes part where no condition matters


def weigh_explanations(
    posterior: ModelPosterior | None,
    speaks_for: Sequence[Mapping[Dimension, float]],
    exposed_phases: Mapping[Dimension, Array],
    phase_log_odds: Mapping[Dimension, float],
) -> tuple[dict[Dimension, float], float]:
    """Returns the probability of each dimension, and of no gap, from outcomes alone.

    Args:
        posterior: Which conditions matter; None where none was varied.
        speaks_for: Of each factor, what its name speaks for.
        exposed_phases: Dimension -> (num_exposures,) log ratio from the phases of exposed runs [nat].
        phase_log_odds: Dimension -> log ratio from the phases of all failures [nat].
    """
    everywhere = np.array([EVERYWHERE_CHANCE * np.exp(phase_log_odds[d]) for d in DIMENSIONS])
    nothing = np.append(everywhere, 1 - EVERYWHERE_CHANCE * len(DIMENSIONS))
    if posterior is None:
        return _name_probabilities(nothing[:-1] / nothing.sum(), float(nothing[-1] / nothing.sum()))
    weights, found, no_gap = [nothing.sum()], [nothing[:-1] / nothing.sum()], [nothing[-1] / nothing.sum()]
    reasons = _weigh_reasons(posterior, speaks_for, exposed_phases)
    totals = reasons.sum(axis=1)
    shares = reasons / totals[:, None]
    for model in posterior.models[1:]:
        chosen = list(model)
        weights.append(totals[chosen].prod())
        found.append(1 - (1 - shares[chosen, :-1]).prod(axis=0))
        no_gap.append(shares[chosen, -1].prod())
    joint = np.array(weights) * posterior.weights
    joint /= joint.sum()
    return _name_probabilities(joint @ np.array(found), float(joint @ np.array(no_gap)))


def _weigh_reasons(
    posterior: ModelPosterior,
    speaks_for: Sequence[Mapping[Dimension, float]],
    exposed_phases: Mapping[Dimension, Array],
) -> Array:
    """Returns how much each dimension and, last, other reasons explain exposures, (num_exposures, num_reasons)."""
    reasons = np.zeros((len(posterior.exposures), len(DIMENSIONS) + 1))
    for k, exposure in enumerate(posterior.exposures):
        meaning = speaks_for[exposure.factor]
        total = sum(meaning.values()) + OTHER_WEIGHT
        for j, dimension in enumerate(DIMENSIONS):
            reasons[k, j] = meaning.get(dimension, 0.0) / total * np.exp(exposed_phases[dimension][k])
        reasons[k, -1] = OTHER_WEIGHT / total
    return reasons


def _name_probabilities(dimensions: Array, no_gap: float) -> tuple[dict[Dimension, float], float]:
    return {dimension: float(p) for dimension, p in zip(DIMENSIONS, dimensions, strict=True)}, no_gap
