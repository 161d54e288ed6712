"""How much of a motion predictions explain."""

from pathlib import Path

import numpy as np
import pytest

from gapless.check.skill import PredictionSkill, find_moving_windows, make_tolerance, measure_skill
from gapless.fit.data import ProjectData, read_project_data
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import cut_windows
from unit.identify.realities import CART, write_reality

PLACE = {"x": "{joint: rail, quantity: position, noise: 0.0001}"}


@pytest.fixture
def evidence(tmp_path: Path) -> ProjectData:
    return read_project_data(write_reality(tmp_path, {}, xml=CART, measurements=PLACE, parameters=None, noise=(1e-4,)))


def test_a_free_cart_is_explained_by_its_commands_alone(evidence: ProjectData) -> None:
    # x'' = gain u / m: with gain g instead of 1 the error is |g - 1| of what the straight line misses.
    tolerance = make_tolerance(evidence.blueprint, evidence.tracks)
    windows = cut_windows(evidence.project, evidence.tracks, 0.3)
    windows = windows.pick(find_moving_windows(evidence.project, windows, [0]))
    rows = np.stack([tolerance.set_drives(tolerance.space.nominal, gain, 0.0) for gain in (1.0, 0.001, 0.3, 3.0)])
    shares = measure_skill(Predictor(evidence.blueprint, tolerance.space), rows, [windows])[0].shares
    assert (shares[0] < 0.15).all()
    np.testing.assert_allclose(shares[1:], [[1.0], [0.7], [2.0]], rtol=0.05)


def test_shares_are_root_mean_squares_with_quiet_windows_counting_less() -> None:
    # Lines 1, 2, 2: m = 2, scales 5, 8, 8. Errors 0, 1, 1: (1/8 + 1/8) / (1/5 + 4/8 + 4/8) = 0.2083 of the square.
    skill = PredictionSkill(np.array([[[0.0], [1.0], [1.0]]]), np.array([[1.0], [2.0], [2.0]]))
    np.testing.assert_allclose(skill.shares, [[np.sqrt(0.25 / 1.2)]])
    assert skill.counts == [3]


def test_a_column_that_never_moves_has_no_share() -> None:
    skill = PredictionSkill(np.full((2, 3, 1), np.nan), np.full((3, 1), np.nan))
    assert np.isnan(skill.best_shares).all()
    assert skill.counts == [0]


def test_no_window_is_picked_where_nothing_moves(evidence: ProjectData) -> None:
    windows = cut_windows(evidence.project, evidence.tracks, 0.3)
    still = windows.pick(np.zeros(0, np.intp))
    assert len(find_moving_windows(evidence.project, still, [0])) == 0
