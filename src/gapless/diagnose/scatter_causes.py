"""Causes that act by chance in a diagnosis: they take part, instead of ending as *unmodelled*."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gapless.core.results import Cause, CauseMechanism, DiagnoseResult, Probability, ScatterCause
from gapless.fit.mechanisms.evidence import bound_probability
from gapless.fit.mechanisms.explain import UNDECIDED
from gapless.fit.scatter.causes import LIKELY

MIN_NAMED = 0.1  # probability from which a cause is listed


def add_scatter_causes(result: DiagnoseResult, found: Sequence[ScatterCause]) -> DiagnoseResult:
    """Returns a diagnosis in which causes that act by chance take part, instead of being called unmodelled."""
    likely = [cause for cause in found if cause.probability > MIN_NAMED]
    without = float(np.prod([1.0 - cause.probability for cause in likely]))
    listed = {cause.dimension: cause for cause in result.causes}
    for cause in likely:
        known = listed.get(cause.dimension, Cause(cause.dimension, 0.0, 0.0, 0.0, 0.0))
        ends = cause.value.value, cause.value.low, cause.value.high
        named = CauseMechanism(cause.target, *ends, "", cause.probability, 0.0)
        chance = 1.0 - (1.0 - known.probability) * (1.0 - cause.probability)
        if max(known.probability, cause.probability) < LIKELY:  # `identify` reports neither
            chance = min(chance, LIKELY - UNDECIDED)
        mechanisms = tuple(sorted((*known.mechanisms, named), key=lambda one: -one.probability))
        listed[cause.dimension] = replace(known, probability=bound_probability(chance), mechanisms=mechanisms)
    return replace(
        result,
        causes=tuple(sorted(listed.values(), key=lambda cause: (-cause.probability, -cause.share))),
        no_gap=Probability(bound_probability(result.no_gap.probability * without)),
        unmodelled=Probability(bound_probability(result.unmodelled.probability * without)),
        evidence=(*result.evidence, *(cause.sentence for cause in likely if cause.probability > LIKELY)),
    )
