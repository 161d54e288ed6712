import numpy as np
import pytest

from gapless.diagnose.shares import estimate_shares
from unit.fit.mechanisms.explanations import DIMENSIONS, explanations


def test_shares_of_causes_that_add_up() -> None:
    found = estimate_shares(explanations(200.0, 100.0, 300.0), DIMENSIONS, np.random.default_rng(0))
    assert found["actuator"].share == pytest.approx(2 / 3)
    assert found["latency"].share == pytest.approx(1 / 3)
    assert found["sensor"].share == pytest.approx(0.0)
    assert all(share.low <= share.share <= share.high for share in found.values())


def test_causes_that_stand_in_for_each_other_share_alike() -> None:
    found = estimate_shares(explanations(200.0, 200.0, 200.0), DIMENSIONS, np.random.default_rng(0))
    assert found["actuator"].share == pytest.approx(0.5)
    assert found["latency"].share == pytest.approx(0.5)
