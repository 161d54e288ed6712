"""Zeros that differ from log to log become biases of each run; zeros that do not, stay one bias."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.core.signal import Array
from gapless.fit.data import ProjectData, read_project_data
from gapless.fit.per_run import summarize_runs
from gapless.fit.run_biases import free_biases_of_runs, measure_run_bias_saving
from gapless.fit.search.structure import StructureResult, build_problem
from gapless.fit.search.terms import Structure
from gapless.fit.solve import descend, solve_least_squares
from gapless.signals.track import Track
from unit.identify.realities import write_reality

LISTED = (
    "{target: joint/hinge/damping, low: 0, high: 0.3}",
    "{target: measurement/q/bias, low: -0.2, high: 0.2}",
)
ZEROS_RAD = np.array([0.08, -0.06, 0.05, -0.07, 0.02, -0.03])


def fitted_once(folder: Path, zeros: Array) -> tuple[ProjectData, StructureResult]:
    """Returns logs of a pendulum whose angle is read with another zero in each, and a fit with one bias for all."""
    data = read_project_data(write_reality(folder, {"joint/hinge/damping": 0.12}, parameters=LISTED, num_logs=6))
    data = replace(data, tracks=tuple(_shift(track, zero) for track, zero in zip(data.tracks, zeros, strict=True)))
    problem = build_problem(data, data.whole, range(6), 0.3, np.random.default_rng(0))
    row = descend(problem.weighted_at(problem.base), problem.base, ((0.03, 4),))
    return data, StructureResult(problem, Structure(problem.free, row, ()), 0.3, ())


def _shift(track: Track, zero: float) -> Track:
    moved = np.array([zero, 0.0])  # angle, then rate
    return replace(track, measured=track.measured + moved, smooth=track.smooth + moved)


def test_runs_with_other_zeros_get_biases_of_their_own(tmp_path: Path) -> None:
    data, found = fitted_once(tmp_path, ZEROS_RAD)
    assert measure_run_bias_saving(found.problem, found.structure.row, [1]) > 0.5
    wide, found = free_biases_of_runs(data, found, range(6))
    biases = [p for p in wide.space.parameters if p.target == "measurement/q/bias"]
    assert [p.run for p in biases] == list(range(6))
    problem = replace(found.problem, free=found.structure.free)
    solution = solve_least_squares(problem.weighted_at(found.structure.row), found.structure.row)
    summary = summarize_runs(problem, solution)
    own = summary.own["measurement/q/bias"]
    assert [own[run] for run in range(6)] == pytest.approx(ZEROS_RAD, abs=0.01)
    # their mean, -0.002, is far within what six zeros scatter by: the next run's is as written
    values = dict(zip(wide.whole.shared.targets, summary.solution.row, strict=True))
    assert values["measurement/q/bias"] == 0.0
    assert values["joint/hinge/damping"] == pytest.approx(0.12, rel=0.05)


def test_runs_with_one_zero_keep_one_bias(tmp_path: Path) -> None:
    data, found = fitted_once(tmp_path, np.full(6, 0.05))
    assert measure_run_bias_saving(found.problem, found.structure.row, [1]) < 0.05
    assert free_biases_of_runs(data, found, range(6)) == (data, found)


def test_two_runs_are_too_few_to_compare(tmp_path: Path) -> None:
    data, found = fitted_once(tmp_path, ZEROS_RAD)
    assert free_biases_of_runs(data, found, [0, 1])[0] is data
