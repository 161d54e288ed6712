from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gapless.core.signal import Array
from gapless.fit import slopes
from gapless.fit.data import read_project_data
from gapless.fit.problem import FitProblem
from gapless.fit.search.config import SEARCH
from gapless.fit.search.structure import build_problem
from gapless.fit.slopes import fine_slopes, judging_slopes
from gapless.fit.solution import Solution, widen_intervals
from gapless.fit.solve import descend, solve_least_squares
from gapless.fit.summary import describe_parameters
from gapless.fit.time_step import remove_time_step_error, with_finer_time_step
from unit.identify.realities import PENDULUM, WHATEVER, write_reality

TRUTH = {"joint/hinge/damping": 0.1, "actuator/motor/gain": 0.8, "actuator/*/delay": 0.03}
MASS = "{target: body/bob/mass, low: 0.25, high: 1.0}"


class Jumpy:
    """Residuals that grow by 3 with the first parameter and by 2 with the second, which also makes them jump."""

    predictor = SimpleNamespace(blueprint=None)

    def plain_residuals(self, units: Array) -> Array:
        """Returns (num_rows, 1, 200) residuals; any other second parameter has other jumps."""
        rows = []
        for first, second in units:
            jumps = np.random.default_rng(abs(hash(float(second)))).uniform(-0.02, 0.02, 200)
            rows.append(3.0 * first + 2.0 * second + jumps)
        return np.stack(rows)[:, None]


def test_what_fine_steps_make_of_jumps_is_no_slope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slopes, "is_smooth", lambda _: True)
    _, found = judging_slopes(Jumpy(), np.array([0.5, 0.5]))
    np.testing.assert_allclose(found[0, :, 0], 3.0, rtol=1e-6)  # from the finest steps, which agree
    # fine steps see jumps of 0.016 over twice 4e-5, a slope of 200; coarse ones of 0.1 see 2 and little else
    assert float(np.sqrt(np.mean(found[0, :, 1] ** 2))) == pytest.approx(2.0, rel=0.3)


def solved(folder: Path, num_free: int) -> tuple[FitProblem, Solution]:
    """Returns a project's problem with its first parameters free, and its solution."""
    evidence = read_project_data(folder)
    problem = build_problem(evidence, evidence.space, [0, 1, 2], 0.5, np.random.default_rng(0))
    problem = replace(problem, free=tuple(range(num_free))).weighted_at(evidence.space.nominal)
    return problem, solve_least_squares(problem, evidence.space.nominal, ((0.03, 6), *SEARCH.final))


def holds(problem: FitProblem, solution: Solution, target: str, truth: float) -> bool:
    """Tells whether the interval of a parameter holds its truth."""
    [found] = [p for p in describe_parameters(problem.space, solution) if p.target == target]
    return found.low <= truth <= found.high


def test_intervals_hold_the_truth_although_a_mass_that_was_not_fitted_is_wrong(tmp_path: Path) -> None:
    write_reality(tmp_path, {**TRUTH, "body/bob/mass": 0.6}, parameters=(*WHATEVER[:3], MASS))  # 0.5 in the model
    problem, solution = solved(tmp_path, 3)
    wider = widen_intervals(problem, solution, (3,), with_finer_time_step(problem.predictor), 1.0)
    # all forces but the fitted ones grow with the mass: gain and damping come out at 5/6 of the truth
    for target in ("actuator/motor/gain", "joint/hinge/damping"):
        assert not holds(problem, solution, target, TRUTH[target])
        assert holds(problem, wider, target, TRUTH[target])


def test_intervals_hold_the_truth_although_the_time_step_is_coarse(tmp_path: Path) -> None:
    write_reality(tmp_path, TRUTH, xml=PENDULUM.replace("0.005", "0.0005"), parameters=WHATEVER[:3])
    (tmp_path / "robot.xml").write_text(PENDULUM.replace("0.005", "0.02"))
    problem, solution = solved(tmp_path, 3)
    assert not holds(problem, solution, "joint/hinge/damping", 0.1)  # it makes up for what the coarse step adds
    fine = with_finer_time_step(problem.predictor)
    assert holds(problem, widen_intervals(problem, solution, (), fine, 1.0), "joint/hinge/damping", 0.1)


def test_what_a_coarse_time_step_does_is_not_blamed_on_parameters(tmp_path: Path) -> None:
    write_reality(tmp_path, TRUTH, xml=PENDULUM.replace("0.005", "0.0005"), parameters=WHATEVER[:3])
    (tmp_path / "robot.xml").write_text(PENDULUM.replace("0.005", "0.02"))
    problem, solution = solved(tmp_path, 3)
    problem = problem.weighted_at(solution.row)
    row = descend(problem, solution.row, SEARCH.final)
    found = remove_time_step_error(problem, row, fine_slopes(problem, row), may_cost=np.inf)
    errors = [abs(one[0] - 0.1) for one in (row, found.row)]
    assert errors[1] < 0.5 * errors[0]
    wider = widen_intervals(
        found.problem, solve_least_squares(found.problem, found.row, SEARCH.final), (), found.finer, found.left
    )
    assert holds(problem, wider, "joint/hinge/damping", 0.1)


def test_values_suit_the_time_step_where_others_would_predict_worse_with_it(tmp_path: Path) -> None:
    write_reality(tmp_path, TRUTH, xml=PENDULUM.replace("0.005", "0.0005"), parameters=WHATEVER[:3])
    (tmp_path / "robot.xml").write_text(PENDULUM.replace("0.005", "0.02"))
    problem, solution = solved(tmp_path, 3)
    found = remove_time_step_error(problem, solution.row, fine_slopes(problem, solution.row), may_cost=0.0)
    assert found.row is solution.row
    assert found.left == 1.0


def test_a_model_that_is_right_is_not_widened_much(tmp_path: Path) -> None:
    write_reality(tmp_path, TRUTH, xml=PENDULUM.replace("0.005", "0.0005"), parameters=WHATEVER[:3])
    problem, solution = solved(tmp_path, 3)
    np.testing.assert_array_less(
        widen_intervals(problem, solution, (), with_finer_time_step(problem.predictor), 1.0).half_width(),
        1.5 * solution.half_width(),
    )
