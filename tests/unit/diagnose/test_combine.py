import numpy as np
import pytest

from gapless.core.dimensions import Dimension
from gapless.diagnose.combine import combine_evidence
from gapless.diagnose.outcomes.records import OutcomeEvidence


def outcomes(probabilities: dict[Dimension, float], no_gap: float) -> OutcomeEvidence:
    return OutcomeEvidence((), (), {}, ("9 of 12 failed",), (), probabilities, no_gap)


def test_outcomes_alone_are_taken_as_they_are() -> None:
    verdict = combine_evidence(None, outcomes({"contact": 0.02, "visual": 0.78}, 0.2), {})
    assert [cause.dimension for cause in verdict.causes] == ["visual", "contact"]
    assert verdict.likely == ("visual",)
    assert [cause.probability for cause in verdict.causes] == [0.78, 0.02]
    assert verdict.no_gap == 0.2


def test_simulated_failures_weigh_the_explanations_of_outcomes() -> None:
    verdict = combine_evidence(None, outcomes({"visual": 0.2, "contact": 0.2}, 0.6), {"visual": np.log(6.0)})
    # 0.2 * 6 = 1.2 beside 0.2 and 0.6: of 2.0 in all
    assert [cause.probability for cause in verdict.causes] == pytest.approx([0.6, 0.1])
    assert verdict.no_gap == pytest.approx(0.3)
