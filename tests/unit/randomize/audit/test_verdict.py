"""What single ranges cost, on parabolas whose minima are known."""

from dataclasses import replace

import numpy as np
import pytest

from gapless.core.signal import Array
from gapless.fit.data import read_project_data
from gapless.fit.problem import PRIOR_WEIGHT
from gapless.fit.search.structure import build_problem
from gapless.fit.solution import Solution
from gapless.randomize.audit.predictions import BestFit, TrainingBox, minimize_quadratic
from gapless.randomize.audit.verdict import chance_growth, single_growths
from unit.identify.realities import write_reality

LINEAR = ("{target: measurement/q/bias, low: -1, high: 1}", "{target: measurement/v/bias, low: -1, high: 1}")


@pytest.fixture(scope="module")
def best(tmp_path_factory: pytest.TempPathFactory) -> BestFit:
    """A solution in the middle of two parameters that a solver steps in by amounts, with a cost of 50."""
    folder = write_reality(tmp_path_factory.mktemp("judged"), {}, parameters=LINEAR, num_logs=1, duration_s=1.0)
    evidence = read_project_data(folder)
    problem = build_problem(evidence, evidence.whole, [0], 0.3, np.random.default_rng(0))
    unit = np.array([0.5, 0.5])
    return BestFit(problem, Solution(problem.rows(unit[None])[0], unit, np.eye(2), np.eye(2), 50.0), 0.3)


def box(low: list[float], high: list[float]) -> TrainingBox:
    return TrainingBox(np.array(low), np.array(high), np.ones(2, dtype=bool), np.zeros((1, 2)))


def curved(best: BestFit, curvature: Array) -> BestFit:
    return replace(best, solution=replace(best.solution, information=curvature - PRIOR_WEIGHT**2 * np.eye(2)))


def test_a_range_costs_the_square_of_its_distance(best: BestFit) -> None:
    # The first range ends 0.2 below the best value: 0.1 of the bounds. 400 * 0.1^2 = 4, of 2 * 50: 0.04. The second
    # holds its best value.
    found = single_growths(curved(best, np.diag([400.0, 900.0])), box([-0.9, -0.5], [-0.2, 0.5]))
    assert found == pytest.approx([0.04, 0.0])


def test_what_another_parameter_makes_up_for_costs_little(best: BestFit) -> None:
    # C = [[400, 399], [399, 400]]: (C^-1)_11 = 400 / (400^2 - 399^2) = 400 / 799, so 0.1^2 * 799 / 400 / 100 = 0.0002
    found = single_growths(curved(best, np.array([[400.0, 399.0], [399.0, 400.0]])), box([-0.9, -1], [-0.2, 1]))
    assert found[0] == pytest.approx(0.01 * 799 / 400 / 100)


def test_the_least_within_bounds_moves_the_others_along() -> None:
    # x^2 + y^2 + 2 * 0.9 x y about (0, 0) with x = 1: y = -0.9
    curvature = np.array([[1.0, 0.9], [0.9, 1.0]])
    found = minimize_quadratic(curvature, np.zeros(2), np.array([1.0, -5.0]), np.array([2.0, 5.0]))
    assert found == pytest.approx([1.0, -0.9], abs=1e-6)


def test_chance_counts_where_errors_last() -> None:
    # 3 * 6 / 36 = 0.5 of what is unexplained: nothing at r = 1, 3/4 of it at r = 2
    assert chance_growth(6, 36, 1.0) == 0.0
    assert chance_growth(6, 36, 2.0) == pytest.approx(0.375)
