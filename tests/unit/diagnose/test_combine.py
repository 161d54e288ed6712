import numpy as np
import pytest

from gapless.core.dimensions import Dimension
from gapless.diagnose.combine import combine_evidence
from gapless.diagnose.outcomes.records import OutcomeEvidence


def outcomes(log_odds: dict[Dimension, float]) -> OutcomeEvidence:
    return OutcomeEvidence((), (), log_odds, ("9 of 12 failed",), ())


def test_outcomes_alone_shift_a_rare_prior() -> None:
    verdict = combine_evidence(None, outcomes({"visual": 5.0, "contact": 0.0, "human": -1.0}), {})
    assert [cause.dimension for cause in verdict.causes] == ["visual", "contact", "human"]
    assert verdict.likely == ("visual",)
    assert verdict.causes[1].probability == pytest.approx(0.06)
    assert verdict.no_gap < 0.15


def test_two_kinds_of_evidence_add_up() -> None:
    one = combine_evidence(None, outcomes({"visual": 2.0}), {}).causes[0].probability
    two = combine_evidence(None, outcomes({"visual": 2.0}), {"visual": 2.0}).causes[0].probability
    odds = np.log(two / (1 - two)) - np.log(one / (1 - one))
    assert odds == pytest.approx(2.0)
