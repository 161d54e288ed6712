from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.fit.data import read_project_data
from gapless.fit.mechanisms.candidates import CandidateParameters, field_of
from gapless.fit.mechanisms.evidence import find_best
from gapless.fit.mechanisms.linear import LinearModel
from gapless.fit.mechanisms.problem import MechanismProblem, draw_fit_problem, prepare_problem
from gapless.fit.mechanisms.search import MechanismSearch
from gapless.fit.mechanisms.stored import load_explanations, save_explanations
from gapless.fit.problem import MAX_RESIDUAL
from unit.identify.realities import write_reality


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> MechanismProblem:
    folder: Path = write_reality(tmp_path_factory.mktemp("auto"), {}, num_logs=4)
    text = (folder / "gapless.yaml").read_text().split("parameters:")[0]
    (folder / "gapless.yaml").write_text(text + "parameters: auto\n")
    data = read_project_data(folder)
    candidates = CandidateParameters.from_logs(data)
    return prepare_problem(draw_fit_problem(data, candidates, range(4), np.random.default_rng(0)), candidates)


def test_auto_asks_about_more_than_identify_fits(problem: MechanismProblem) -> None:
    asked = {field_of(target) for target in problem.candidates.space.targets}
    assert {"gain", "limit", "damping", "frictionloss", "delay", "bias", "scale", "mass", "load"} <= asked
    assert problem.dimensions[-1] == "numerics"


def test_a_drawn_gap_moves_one_dimension_only(problem: MechanismProblem) -> None:
    rng, space = np.random.default_rng(1), problem.candidates.space
    for dimension in problem.dimensions[:-1]:
        for _ in range(10):
            row = problem.candidates.draw(dimension, rng)
            moved = {p.dimension for p, value in zip(space.parameters, row, strict=True) if value != p.nominal}
            assert moved == {dimension}
            assert np.all((space.low <= row) & (row <= space.high))


def plant(problem: MechanismProblem, **moved: float) -> MechanismProblem:
    """Returns the problem with readings as if some targets were off by shares of their typical errors."""
    point = np.zeros(len(problem.typical))
    for target, share in moved.items():
        entry = problem.candidates.space.index(target)
        point[entry] = share * problem.typical[entry] * problem.side[entry]
    rng = np.random.default_rng(5)
    predicted = problem.fit.predictor.predict(problem.windows, problem.rows(point[None]))[0]
    return problem.with_measured(predicted + problem.windows.noise * rng.standard_normal(predicted.shape))


def test_the_linear_model_selects_what_moved(problem: MechanismProblem) -> None:
    gap = plant(problem, **{"actuator/motor/gain": 0.3})
    zero = np.zeros(len(problem.typical))
    linear = LinearModel(gap, zero, gap.residuals(zero[None])[0], gap.slopes_as_written(), range(len(gap.mechanisms)))
    chosen = linear.select((), range(len(gap.mechanisms)), 10.0, 1)
    assert [gap.mechanisms[k].targets for k in chosen] == [("actuator/motor/gain",)]
    entry = gap.candidates.space.index("actuator/motor/gain")
    assert linear.fit(chosen)[entry] == pytest.approx(0.3 * (problem.typical * problem.side)[entry], rel=0.3)


@pytest.mark.parametrize(
    "planted",
    [
        {},
        {"actuator/motor/gain": 0.6},
        {"measurement/q/bias": 0.6, "actuator/*/delay": 0.8},
        {"joint/hinge/frictionloss": 0.4, "body/bob/mass": 0.6},
        {"joint/hinge/frictionloss": 0.4, "body/bob/mass": 0.6, "measurement/q/bias": 0.6, "actuator/*/delay": 0.8},
    ],
)
def test_the_search_finds_what_was_planted_and_nothing_else(
    problem: MechanismProblem, planted: dict[str, float]
) -> None:
    gap = plant(problem, **planted)
    best = find_best(MechanismSearch(gap).run())
    assert {target for mechanism in best.mechanisms for target in mechanism.targets} == set(planted)
    values = dict(zip(gap.candidates.space.targets, best.point, strict=False))
    for target, share in planted.items():
        entry = gap.candidates.space.index(target)
        assert values[target] == pytest.approx(share * gap.typical[entry] * gap.side[entry], rel=0.1)


def test_explanations_are_kept_and_read_again(problem: MechanismProblem, tmp_path: Path) -> None:
    gap = plant(problem, **{"actuator/motor/gain": 0.6})
    found = MechanismSearch(gap).run()
    assert load_explanations(tmp_path / "kept.npz", gap) is None
    save_explanations(tmp_path / "kept.npz", found, gap)
    again = load_explanations(tmp_path / "kept.npz", gap)
    assert again is not None
    assert [one.mechanisms for one in again] == [one.mechanisms for one in found]
    assert [one.total for one in again] == [one.total for one in found]
    np.testing.assert_array_equal(again[0].residual, found[0].residual)


def test_slopes_predict_what_a_small_move_does(problem: MechanismProblem) -> None:
    """Also those of more than `MAX_RESIDUAL` times the noise per unit, which were once cut off."""
    slopes, as_written = problem.slopes_as_written(), problem.with_measured(problem.written)
    assert np.abs(slopes).max() > 1.2 * MAX_RESIDUAL
    for entry in np.argsort(-np.abs(slopes).max(axis=(1, 2, 3)))[:3]:
        point = np.zeros(len(problem.typical))
        point[entry] = 0.2 * problem.typical[entry] * problem.side[entry]
        moved = as_written.residuals(point[None])[0]
        assert np.linalg.norm(moved - point[entry] * slopes[entry]) < 0.3 * np.linalg.norm(moved)


def test_a_tilt_that_a_hinge_cannot_feel_belongs_to_no_mechanism(problem: MechanismProblem) -> None:
    targets = {mechanism.targets for mechanism in problem.mechanisms}
    assert ("world/tilt/y",) in targets  # the hinge turns about y
    assert "world/tilt/x" in problem.candidates.space.targets
    assert not any("world/tilt/x" in some for some in targets)


def test_a_time_step_shows_where_it_moves_a_column_by_several_times_its_noise(problem: MechanismProblem) -> None:
    noise = np.broadcast_to(problem.windows.noise, problem.step_effect.shape)
    for size, shows in ((0.0, False), (3.9, False), (4.1, True)):
        assert replace(problem, step_effect=size * noise).shows_step is shows
