"""The last solve goes on to the project's horizon, where that predicts better."""

from pathlib import Path

import numpy as np
import pytest

from gapless.fit.data import read_project_data
from gapless.fit.horizon import HorizonFit, choose_length, compare_at_horizon, horizon_lengths, solve_up_to_horizon
from gapless.fit.prediction.windows import cut_windows
from gapless.fit.search.structure import build_problem
from unit.identify.realities import write_reality

LISTED = ("{target: joint/hinge/damping, low: 0, high: 0.3}",)
TRUE = 0.15  # where the model has 0.05


@pytest.mark.parametrize(
    ("window_s", "horizon_s", "lengths"),
    [
        (0.3, 1.0, (0.6, 1.0)),
        (0.1, 1.0, (0.2, 0.4, 1.0)),  # 0.8 would be hardly shorter than the horizon
        (0.3, 0.3, ()),
        (2.4, 1.0, (1.0,)),  # longer than asked for: fewer windows, and errors that do not matter
    ],
)
def test_windows_grow_up_to_the_horizon(window_s: float, horizon_s: float, lengths: tuple[float, ...]) -> None:
    assert horizon_lengths(window_s, horizon_s) == pytest.approx(lengths)


def test_a_longer_window_must_save_something(tmp_path: Path) -> None:
    data = read_project_data(write_reality(tmp_path, {"joint/hinge/damping": TRUE}, parameters=LISTED))
    problem = build_problem(data, data.whole, [0], 0.3, np.random.default_rng(0))
    fits = [HorizonFit(problem, problem.base, 0.3), HorizonFit(problem, problem.base, 1.0, 0.995)]
    assert choose_length(fits) is fits[0]
    assert choose_length([*fits, HorizonFit(problem, problem.base, 0.6, 0.9)]).window_s == 0.6


def test_the_truth_has_less_error_at_the_horizon_and_a_solve_finds_it(tmp_path: Path) -> None:
    data = read_project_data(write_reality(tmp_path, {"joint/hinge/damping": TRUE}, parameters=LISTED, num_logs=8))
    fitted, held = data.split(())
    problem = build_problem(data, data.whole, fitted, 0.3, np.random.default_rng(0))
    windows = cut_windows(data.project, data.tracks, 1.0)
    rows = np.array([[0.05], [TRUE], [0.05]])
    shares = compare_at_horizon(problem, windows, rows)
    assert shares[[0, 2]] == pytest.approx(1.0)
    assert shares[1] < 0.5
    first = HorizonFit(problem, np.array([0.1]), 0.3)
    fits = solve_up_to_horizon(first, data, fitted, held, np.random.default_rng(0))
    assert [fit.window_s for fit in fits] == pytest.approx([0.3, 0.6, 1.0])
    assert fits[-1].row == pytest.approx([TRUE], rel=0.05)
    assert choose_length(fits).window_s > 0.3


def test_without_windows_of_the_horizon_all_are_alike(tmp_path: Path) -> None:
    data = read_project_data(write_reality(tmp_path, {"joint/hinge/damping": TRUE}, parameters=LISTED))
    problem = build_problem(data, data.whole, [0], 0.3, np.random.default_rng(0))
    none = problem.windows.pick(np.zeros(0, dtype=np.intp))
    assert compare_at_horizon(problem, none, np.array([[0.05], [TRUE]])) == pytest.approx([1.0, 1.0])
