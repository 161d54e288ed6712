from pathlib import Path

import numpy as np
import pytest

from gapless.diagnose.hypotheses.candidates import CandidateParameters, field_of
from gapless.diagnose.hypotheses.linear import LinearModel
from gapless.diagnose.hypotheses.problem import DiagnosisProblem, draw_fit_problem, prepare_problem
from gapless.diagnose.hypotheses.rehearsal import draw_fewer_windows, draw_gaps
from gapless.fit.data import read_project_data
from gapless.fit.problem import MAX_RESIDUAL
from unit.identify.realities import write_reality


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> DiagnosisProblem:
    folder: Path = write_reality(tmp_path_factory.mktemp("auto"), {}, num_logs=4)
    text = (folder / "gapless.yaml").read_text().split("parameters:")[0]
    (folder / "gapless.yaml").write_text(text + "parameters: auto\n")
    data = read_project_data(folder)
    candidates = CandidateParameters.from_logs(data)
    return prepare_problem(draw_fit_problem(data, candidates, np.random.default_rng(0)), candidates)


def test_auto_asks_about_more_than_identify_fits(problem: DiagnosisProblem) -> None:
    asked = {field_of(target) for target in problem.candidates.space.targets}
    assert {"gain", "limit", "damping", "frictionloss", "delay", "bias", "scale", "mass", "load"} <= asked
    assert problem.dimensions[-1] == "numerics"


def test_a_drawn_gap_moves_one_dimension_only(problem: DiagnosisProblem) -> None:
    rng, space = np.random.default_rng(1), problem.candidates.space
    for dimension in problem.dimensions[:-1]:
        for _ in range(10):
            row = problem.candidates.draw(dimension, rng)
            moved = {p.dimension for p, value in zip(space.parameters, row, strict=True) if value != p.nominal}
            assert moved == {dimension}
            assert np.all((space.low <= row) & (row <= space.high))


def test_a_limit_is_drawn_below_the_peak_effort_of_the_logs(problem: DiagnosisProblem) -> None:
    limited = np.stack(problem.candidates.limited_rows())[:, problem.candidates.is_limit]
    assert limited.min() < 1.0 * max(problem.candidates.peaks.values())
    residual = problem.with_measured(problem.written).residuals(problem.limited)
    assert np.abs(residual).max() > 3.0


def test_the_linear_model_finds_what_moved(problem: DiagnosisProblem) -> None:
    entry = problem.candidates.space.index("actuator/*/delay")
    zero = np.zeros(len(problem.typical))
    point = zero.copy()
    point[entry] = 0.3 * problem.typical[entry]
    predicted = problem.fit.predictor.predict(problem.windows, problem.rows(point[None]))[0]
    residual = problem.with_measured(predicted).residuals(zero[None])[0]
    entries = np.arange(len(zero))
    model = LinearModel(problem, entries, problem.slopes_as_written(), zero, residual)
    alone = {mechanism.targets: model.score(np.array(mechanism.entries)) for mechanism in problem.mechanisms}
    assert max(alone, key=lambda targets: alone[targets]) == ("actuator/*/delay",)
    assert model.fit(np.array([entry]))[entry] > 0.1 * problem.typical[entry]


def test_entries_of_one_vector_are_one_mechanism(problem: DiagnosisProblem) -> None:
    tilts = [mechanism for mechanism in problem.mechanisms if mechanism.targets[0].startswith("world/tilt")]
    assert [mechanism.targets for mechanism in tilts] == [("world/tilt/x", "world/tilt/y")]
    assert sorted(entry for mechanism in problem.mechanisms for entry in mechanism.entries) == list(
        range(len(problem.typical))
    )


def test_slopes_predict_what_a_small_move_does(problem: DiagnosisProblem) -> None:
    """Also those of more than `MAX_RESIDUAL` times the noise per unit, which were once cut off."""
    slopes, as_written = problem.slopes_as_written(), problem.with_measured(problem.written)
    assert np.abs(slopes).max() > 1.2 * MAX_RESIDUAL
    for entry in np.argsort(-np.abs(slopes).max(axis=(1, 2, 3)))[:3]:
        point = np.zeros(len(problem.typical))
        point[entry] = 0.2 * problem.typical[entry] * np.append(problem.candidates.side, 1.0)[entry]
        moved = as_written.residuals(point[None])[0]
        assert np.linalg.norm(moved - point[entry] * slopes[entry]) < 0.3 * np.linalg.norm(moved)


def test_rehearsed_gaps_take_turns_and_are_drawn_alike_from_one_seed(problem: DiagnosisProblem) -> None:
    small = draw_fewer_windows(problem, 8, np.random.default_rng(0))
    gaps, again = (draw_gaps(small, np.random.default_rng(3)) for _ in range(2))
    assert sorted({len(gap.causes) for gap in gaps}) == [0, 1, 2]
    assert all(len(set(gap.causes)) == len(gap.causes) for gap in gaps)
    assert len({cause for gap in gaps for cause in gap.causes}) >= 4
    for one, other in zip(gaps, again, strict=True):
        assert one.causes == other.causes
        np.testing.assert_array_equal(one.measured, other.measured)
