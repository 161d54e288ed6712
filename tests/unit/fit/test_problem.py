import numpy as np
import pytest

from gapless.fit.data import ProjectData, read_project_data
from gapless.fit.problem import HUBER, FitProblem, flatten_outliers
from gapless.fit.search.structure import build_problem
from gapless.fit.solve import descend, solve_least_squares
from unit.identify.realities import WHATEVER, write_reality

TRUTH = {"joint/hinge/damping": 0.12, "actuator/motor/gain": 0.8, "actuator/*/delay": 0.03}


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> ProjectData:
    folder = tmp_path_factory.mktemp("pendulum")
    write_reality(folder, TRUTH, parameters=WHATEVER[:3], noise=(0.0, 0.0))
    text = (folder / "gapless.yaml").read_text()
    exact = text.replace("noise: 0.001", "noise: 1.0e-9").replace("noise: 0.01", "noise: 1.0e-8")
    (folder / "gapless.yaml").write_text(exact)  # so that nothing is smoothed away
    return read_project_data(folder)


@pytest.fixture(scope="module")
def problem(evidence: ProjectData) -> FitProblem:
    whole = build_problem(evidence, evidence.space, [0, 1, 2], 0.3, np.random.default_rng(0))
    return whole.weighted_at(evidence.space.nominal)


def test_small_residuals_stay_as_they_are() -> None:
    # r'^2 = 2 H^2 (sqrt(1 + (r/H)^2) - 1) = r^2 - r^4 / 4H^2 + ...
    small = np.array([-0.01, 0.0, 0.003])
    np.testing.assert_allclose(flatten_outliers(small), small, atol=1e-7)


def test_large_residuals_cost_in_proportion_to_their_size() -> None:
    # r'^2 -> 2 H |r|: ten times the residual is ten times the cost, not a hundred times
    far = flatten_outliers(np.array([1e5, 1e6])) ** 2
    np.testing.assert_allclose(far, 2 * HUBER * np.array([1e5, 1e6]), rtol=1e-3)


def test_the_robust_residual_is_odd_and_increasing() -> None:
    residual = np.linspace(-50, 50, 1001)
    np.testing.assert_allclose(flatten_outliers(-residual), -flatten_outliers(residual))
    assert np.all(np.diff(flatten_outliers(residual)) > 0)


def test_unit_and_rows_are_inverse(problem: FitProblem) -> None:
    units = np.array([[0.0, 0.5, 1.0], [0.2, 0.3, 0.4]])
    rows = problem.rows(units)
    np.testing.assert_allclose([problem.unit(row) for row in rows], units, atol=1e-12)
    # damping and delay at their bounds; gain 0.3..2 in the middle: its bounds are not far apart, so steps are amounts
    np.testing.assert_allclose(rows[0], [0.0, 1.15, 0.1])


def test_rows_stay_within_bounds(problem: FitProblem) -> None:
    # a delay of 0..0.1 s, soft = 0.1 / 100: halfway is soft * (sqrt(1 + 0.1 / soft) - 1) = 0.001 * (sqrt(101) - 1)
    np.testing.assert_allclose(problem.rows(np.array([[-1.0, 2.0, 0.5]])), [[0.0, 2.0, 0.001 * (101**0.5 - 1)]])


def test_what_is_not_free_keeps_its_base(problem: FitProblem) -> None:
    only_gain = FitProblem(problem.predictor, problem.windows, (1,), np.array([0.11, 1.0, 0.02]), problem.sigma)
    np.testing.assert_allclose(only_gain.rows(np.array([[0.0]])), [[0.11, 0.3, 0.02]])


def test_the_truth_leaves_no_residual(problem: FitProblem) -> None:
    truth = np.array(list(TRUTH.values()))
    assert np.abs(problem.errors(truth[None])).max() < 1e-8


def test_solve_recovers_damping_gain_and_delay(evidence: ProjectData, problem: FitProblem) -> None:
    first = solve_least_squares(problem, evidence.space.nominal)
    again = solve_least_squares(problem.weighted_at(first.row), first.row, ((0.01, 10), (0.001, 10)))
    np.testing.assert_allclose(again.row, list(TRUTH.values()), rtol=1e-3)


def test_solve_reports_progress_up_to_the_end(evidence: ProjectData, problem: FitProblem) -> None:
    shares: list[float] = []
    descend(problem, evidence.space.nominal, ((0.03, 2),), shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
