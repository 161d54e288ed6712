"""Where noise does not explain what is left, intervals hold what other runs, windows and terms give."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.fit.data import read_project_data
from gapless.fit.misfit import hold_without_lag, resample_runs, widen_by_misfit
from gapless.fit.problem import PRIOR_WEIGHT, FitProblem
from gapless.fit.search.structure import build_problem
from gapless.fit.slopes import fine_slopes
from gapless.fit.solution import Solution
from gapless.fit.solve import descend, solve_least_squares
from unit.identify.realities import write_reality

LISTED = ("{target: joint/hinge/damping, low: 0, high: 0.3}", "{target: actuator/motor/gain, low: 0.3, high: 2}")
SWAPPED = (
    *LISTED,
    "{target: actuator/*/delay, low: 0, high: 0.1}",
    "{target: actuator/*/lag, low: 0, high: 0.1}",
)


@pytest.fixture
def solved(tmp_path: Path) -> tuple[FitProblem, Solution]:
    """Returns the fit of a pendulum whose damping differs from the model's."""
    data = read_project_data(write_reality(tmp_path, {"joint/hinge/damping": 0.12}, parameters=LISTED))
    problem = build_problem(data, data.whole, range(4), 0.3, np.random.default_rng(0))
    problem = problem.weighted_at(problem.base)
    row = descend(problem, problem.base, ((0.03, 4), (0.01, 2)))
    problem = problem.with_starts_at(row)
    return problem, solve_least_squares(problem, row, ((0.01, 2),))


def test_fits_on_other_windows_widen_intervals_by_how_far_they_are(solved: tuple[FitProblem, Solution]) -> None:
    problem, solution = solved
    far = solution.row + np.array([0.06, 0.0])  # 0.2 of the damping's range of 0.3; the scaling may bend it
    wide = widen_by_misfit(problem, solution, solution.row, [far])
    move = problem.unit(far)[0] - solution.unit[0]
    before = max(solution.covariance[0, 0], resample_runs(problem, solution)[0, 0])
    assert wide.covariance[0, 0] == pytest.approx(before + move**2 - 4 * solution.covariance[0, 0], rel=1e-6)
    assert wide.covariance[1, 1] == pytest.approx(
        max(solution.covariance[1, 1], resample_runs(problem, solution)[1, 1])
    )
    assert np.all(np.linalg.eigvalsh(wide.covariance) > 0)


def test_fits_that_differ_by_chance_widen_nothing(solved: tuple[FitProblem, Solution]) -> None:
    problem, solution = solved
    near = problem.rows((solution.unit + np.sqrt(np.diag(solution.covariance)))[None])[0]
    alone, with_it = (widen_by_misfit(problem, solution, solution.row, rows) for rows in ([], [near]))
    assert with_it.covariance == pytest.approx(alone.covariance)


def test_resampled_runs_are_one_step_of_each_run(solved: tuple[FitProblem, Solution]) -> None:
    # one parameter, residuals so small that none is flattened: moves are sum(j r) / (sum(j^2) + prior^2) of each run
    problem, solution = solved
    one = replace(problem, free=(0,), sigma=1e3 * problem.sigma, starts=None)
    residual = one.plain_residuals(solution.unit[:1][None])[0]
    slopes = np.ones((*residual.shape, 1))
    thin = replace(solution, unit=solution.unit[:1], covariance=np.eye(1), slopes=slopes)
    runs = problem.windows.track
    moves = [residual[runs == run].sum() / (residual.size + PRIOR_WEIGHT**2) for run in np.unique(runs)]
    expected = np.sum(np.square(moves)) * len(moves) / (len(moves) - 1)
    assert resample_runs(one, thin)[0, 0] == pytest.approx(expected, rel=1e-3)
    assert resample_runs(one, replace(thin, slopes=None))[0, 0] == 0.0


def test_a_lag_is_given_back_to_the_delay(tmp_path: Path) -> None:
    truth = {"actuator/*/delay": 0.04, "joint/hinge/damping": 0.12}
    data = read_project_data(write_reality(tmp_path, truth, parameters=SWAPPED))
    problem = build_problem(data, data.whole, range(4), 0.3, np.random.default_rng(0))
    row = np.array([0.12, 1.0, 0.02, 0.02])
    problem = problem.weighted_at(row)
    found = hold_without_lag(problem, row, fine_slopes(problem, row))
    assert found is not None
    assert found[3] == 0.0
    assert found[2] == pytest.approx(0.04, abs=0.003)
    assert problem.cost(found) < problem.cost(row)
    still = replace(problem, free=(0, 1, 2))
    assert hold_without_lag(still, row, fine_slopes(still, row)) is None
