from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.fit.data import read_project_data
from gapless.fit.problem import FitProblem
from gapless.fit.search import flat_directions
from gapless.fit.search.config import SEARCH
from gapless.fit.search.flat_directions import try_play, widen_by_force_scale, with_lag, with_play
from gapless.fit.search.structure import build_problem, search_starts
from gapless.fit.search.terms import Structure
from gapless.fit.slopes import fine_slopes
from gapless.fit.solution import Solution
from gapless.fit.solve import descend, solve_least_squares
from unit.identify.realities import write_reality

# A servo pushes a cart that rubs: it rests anywhere within friction / stiffness of its command.
SERVO = """<mujoco><option timestep="0.005" integrator="implicitfast"/><worldbody><body name="cart">
<joint name="rail" type="slide" axis="1 0 0" damping="1"/>
<geom name="cart" type="box" size=".1 .1 .1" mass="0.5" contype="0" conaffinity="0"/>
</body></worldbody>
<actuator><position name="motor" joint="rail" kp="100" kv="6" ctrlrange="-1 1"/></actuator></mujoco>"""
PLACE = {"x": "{joint: rail, quantity: position, noise: 0.0003}"}
FITTED = (
    "{target: joint/rail/frictionloss, low: 0, high: 5}",
    "{target: actuator/motor/kp, low: 10, high: 500}",
    "{target: actuator/*/delay, low: 0, high: 0.1}",
    "{target: joint/rail/backlash, low: 0, high: 0.02}",
    "{target: actuator/*/lag, low: 0, high: 0.1}",
)
TRUTH = {"joint/rail/frictionloss": 0.3, "actuator/motor/kp": 80.0, "actuator/*/delay": 0.03}
PLAY, LAG = (3,), (4,)


def make_servo(folder: Path, play_m: float) -> FitProblem:
    """Returns the problem of a servo whose play, and whose lag, are not among what is fitted."""
    truth = {**TRUTH, "joint/rail/backlash": play_m}
    noise, size = (0.0003,), 0.02
    write_reality(folder, truth, xml=SERVO, measurements=PLACE, parameters=FITTED, noise=noise, size=size, num_logs=6)
    evidence = read_project_data(folder)
    problem = build_problem(evidence, evidence.space, range(6), 0.6, np.random.default_rng(0))
    return replace(problem, free=(0, 1, 2))


def solved(problem: FitProblem) -> tuple[FitProblem, Solution]:
    """Returns a problem with the weights that its solution gives it, and that solution."""
    row = descend(problem.weighted_at(problem.base), problem.base, ((0.1, 6),))
    problem = problem.weighted_at(row)
    return problem, solve_least_squares(problem, row, SEARCH.final)


def test_play_takes_the_place_of_friction(tmp_path: Path) -> None:
    problem = make_servo(tmp_path, 0.0)
    row = with_play(problem, np.array([0.4, 80.0, 0.03, 0.0, 0.0]), PLAY, 0.5)
    assert row[:2] == pytest.approx([0.2, 80.0])
    assert row[3] == pytest.approx(2 * 0.2 / 80.0)  # that much friction held it within 0.2 / 80 either way


def test_a_lag_takes_the_place_of_a_delay(tmp_path: Path) -> None:
    row = with_lag(make_servo(tmp_path, 0.0), np.array([0.4, 80.0, 0.03, 0.0, 0.0]), LAG, 0.5)
    assert row[[2, 4]] == pytest.approx([0.015, 0.015])


@pytest.mark.parametrize("play_m", [0.0, 0.004])
def test_play_is_found_where_it_is_and_only_there(tmp_path: Path, play_m: float) -> None:
    problem, before = solved(make_servo(tmp_path, play_m))
    found = try_play(problem, Structure(problem.free, before.row, ()), [PLAY, LAG])
    assert [term.kept for term in found.tried] == [play_m > 0]
    if play_m:
        wide = replace(problem, free=found.free)
        end = solve_least_squares(wide.weighted_at(found.row), found.row, SEARCH.final)
        assert end.row[3] == pytest.approx(play_m, rel=0.1)
        truth = wide.unit(np.array([0.3, 80.0, 0.03, play_m, 0.0]))
        assert np.all(np.abs(end.unit - truth) < end.half_width())


def test_starts_of_a_search_lie_apart(tmp_path: Path) -> None:
    problem = make_servo(tmp_path, 0.0)
    problem = problem.weighted_at(problem.base)
    rows = search_starts(problem, np.random.default_rng(0), num_found=3)
    units = np.stack([problem.unit(row) for row in rows])
    assert len(rows) == 3
    assert min(np.abs(units[a] - units[b]).max() for a, b in ((0, 1), (0, 2), (1, 2))) > 0.25
    costs = [problem.cost(row) for row in rows]
    assert costs[0] == min(costs)


def test_intervals_hold_where_other_starts_end_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, found = solved(make_servo(tmp_path, 0.0))
    slopes = fine_slopes(problem, found.row)
    assert widen_by_force_scale(
        problem, found.row, slopes, SEARCH.final
    ).half_width() / found.half_width() == pytest.approx(1.0, abs=0.3)
    sure = replace(found, covariance=found.covariance * 1e-8, information=found.information * 1e8)
    monkeypatch.setattr(flat_directions, "summarize_solution", lambda *_: sure)  # slopes that promise far too much
    assert (widen_by_force_scale(problem, found.row, slopes, SEARCH.final).half_width() / sure.half_width()).max() > 10


def test_a_better_end_of_another_start_is_the_solution(tmp_path: Path) -> None:
    problem, best = solved(make_servo(tmp_path, 0.0))
    start = best.row * [1.5, 1.5, 1, 1, 1]
    again = widen_by_force_scale(problem, start, fine_slopes(problem, start), SEARCH.final)
    assert again.row == pytest.approx(best.row, rel=0.02, abs=1e-4)
    assert again.row[1] == pytest.approx(80.0, rel=0.05)
