import numpy as np
import pytest

from gapless.fit.data import read_project_data
from gapless.fit.problem import FitProblem, flatten_outliers
from gapless.fit.search.structure import build_problem
from gapless.fit.solution import Solution
from gapless.fit.solve import solve_least_squares
from gapless.identify.posterior.samples import NUM_SHAPES, SPREAD, Cases, Cloud
from unit.identify.realities import WHATEVER, write_reality

NUM_DRAWS = 4000


def test_far_from_bounds_the_cloud_is_normal() -> None:
    covariance = np.array([[1e-4, 0.9e-4], [0.9e-4, 1e-4]])
    draws = Cloud.about(np.array([0.5, 0.4]), covariance).sample(np.random.default_rng(0), NUM_DRAWS)
    # standard error of a variance of n normal draws: sqrt(2 / n) = 2 %
    np.testing.assert_allclose(np.cov(draws.T), SPREAD**2 * covariance, rtol=0.1)
    np.testing.assert_allclose(draws.mean(axis=0), [0.5, 0.4], atol=4 * SPREAD * 0.01 / NUM_DRAWS**0.5)


def test_at_a_bound_the_cloud_is_half_a_normal() -> None:
    draws = Cloud.about(np.array([0.0]), np.array([[1e-4]])).sample(np.random.default_rng(1), NUM_DRAWS)
    assert draws.min() >= 0.0
    # E|z| = sqrt(2 / pi), standard deviation of |z| = sqrt(1 - 2 / pi) = 0.60
    expected, error = SPREAD * 0.01 * np.sqrt(2 / np.pi), SPREAD * 0.01 * 0.60 / NUM_DRAWS**0.5
    assert draws.mean() == pytest.approx(expected, abs=4 * error)


def test_in_a_corner_every_draw_is_inside_and_follows_the_correlation() -> None:
    covariance = np.array([[1e-2, 0.99e-2], [0.99e-2, 1e-2]])
    draws = Cloud.about(np.array([0.0, 1.0]), covariance).sample(np.random.default_rng(2), NUM_DRAWS)
    assert np.all((draws >= 0.0) & (draws <= 1.0))
    # With both pressed against opposite bounds they can only move little: u - 0 and u - 1 go together otherwise.
    assert draws[:, 0].mean() < 0.1
    assert draws[:, 1].mean() > 0.9


def test_what_is_not_determined_spreads_over_its_range_only() -> None:
    cloud = Cloud.about(np.array([0.5]), np.array([[100.0]]))
    # precision 1 / 100 + 12: a standard deviation of 0.29, that of a uniform density
    assert abs(cloud.factor[0, 0]) == pytest.approx(SPREAD * (12.01) ** -0.5)


def test_the_log_density_is_that_of_the_normal() -> None:
    cloud = Cloud.about(np.array([0.5, 0.4]), np.diag([1e-4, 4e-4]))
    spread = SPREAD * (1 / (np.array([1e4, 2500.0]) + 12.0)) ** 0.5
    at = np.array([[0.5, 0.4], [0.51, 0.4], [0.5, 0.42]])
    np.testing.assert_allclose(
        cloud.log_density(at), [0, -0.5 * (0.01 / spread[0]) ** 2, -0.5 * (0.02 / spread[1]) ** 2]
    )


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> tuple[FitProblem, Solution]:
    truth = {"joint/hinge/damping": 0.12, "actuator/motor/gain": 0.8}
    folder = write_reality(tmp_path_factory.mktemp("cases"), truth, parameters=WHATEVER[:2])
    evidence = read_project_data(folder)
    problem = build_problem(evidence, evidence.space, [0, 1, 2], 0.3, np.random.default_rng(0))
    problem = problem.weighted_at(evidence.space.nominal)
    solution = solve_least_squares(problem, evidence.space.nominal)
    return problem.with_starts_at(solution.row), solution


@pytest.fixture(scope="module")
def cases(solved: tuple[FitProblem, Solution]) -> Cases:
    return Cases.of(*solved, np.random.default_rng(0))


def test_the_logs_tell_a_small_step_from_their_own_solution(cases: Cases) -> None:
    # The gradient is 0 at the minimum, but for the prior, for the solver's tolerance (1e-3 of the range) and for its
    # one-sided slopes: less than a standard deviation, of which the cloud's unit has SPREAD.
    assert np.all(np.abs(cases.observed()[:2]) < 1 / SPREAD)


def test_cases_without_noise_tell_their_parameters(cases: Cases) -> None:
    draws = cases.cloud.sample(np.random.default_rng(3), 200)
    silent = Cases(cases.problem, cases.cloud, 0 * cases.residual, cases.steps, cases.shapes)
    moved = flatten_outliers(cases.residual - cases.problem.plain_residuals(draws)).reshape(200, -1) @ cases.steps
    z = (draws - cases.cloud.centre) @ np.linalg.inv(cases.cloud.factor).T
    np.testing.assert_allclose(moved, z, atol=0.15)  # this problem is nearly linear within four standard deviations
    assert silent.observed() == pytest.approx(np.zeros(2 + NUM_SHAPES))


def test_the_noise_of_the_step_is_as_large_as_the_covariance_says(cases: Cases) -> None:
    centre = np.tile(cases.cloud.centre, (1, 1))
    told = cases.simulated(centre, np.random.default_rng(4), copies=2000)[:, 0, :2]
    # In units of the cloud, whose covariance is SPREAD^2 times that of the solution, the noise is 1 / SPREAD^2.
    # The solver's covariance differs by the prior only: 2000 draws tell variances to 3 %.
    np.testing.assert_allclose(np.cov(told.T) * SPREAD**2, np.eye(2), atol=0.15)


def test_copies_have_the_same_parameters_and_other_noise(cases: Cases) -> None:
    draws = cases.cloud.sample(np.random.default_rng(5), 3)
    told = cases.simulated(draws, np.random.default_rng(6), copies=2)
    assert told.shape == (2, 3, 2 + NUM_SHAPES)
    assert np.all(told[0] != told[1])
    once = cases.simulated(draws, np.random.default_rng(6))
    np.testing.assert_allclose(once[0], told[0], atol=1e-9)
