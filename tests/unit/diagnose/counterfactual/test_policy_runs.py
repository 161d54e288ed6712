import numpy as np
import pytest

from gapless.diagnose.counterfactual.policy_runs import rank_repairs
from unit.diagnose.lift import SPACE, make_simulate, row_of


def test_the_repair_that_recovers_success_comes_first(tmp_path_factory: pytest.TempPathFactory) -> None:
    # Delay alone makes every run fail; the bias, though it moved, makes none fail. The gain was not moved.
    simulate = make_simulate(tmp_path_factory.mktemp("lift"))
    fitted = row_of({"actuator/*/delay": 0.07, "measurement/q/bias": 0.05})
    found = rank_repairs(simulate, fitted, SPACE, np.random.default_rng(0), 48)
    assert [one.dimension for one in found] == ["latency", "sensor"]
    assert found[0].before == found[1].before
    assert found[0].before.high < 0.1
    assert found[0].success.low > 0.8
    assert found[1].success.high < found[1].before.high + 0.2
    assert found == rank_repairs(simulate, fitted, SPACE, np.random.default_rng(0), 48)
