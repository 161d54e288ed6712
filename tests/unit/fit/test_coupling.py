import numpy as np
import pytest

from gapless.fit.coupling import find_pattern, group_independent, spread_changes
from gapless.fit.data import read_project_data
from gapless.fit.problem import FitProblem
from gapless.fit.search.structure import build_problem
from unit.identify.realities import write_csv

TWO_CARTS = """<mujoco><option timestep="0.005" gravity="0 0 0"/><worldbody>
  <body name="left"><joint name="left" type="slide" axis="1 0 0" damping="1"/><geom size="0.1" mass="1"/></body>
  <body name="right" pos="0 1 0"><joint name="right" type="slide" axis="1 0 0" damping="1"/><geom size="0.1" mass="1"/>
  </body></worldbody>
  <actuator><motor name="left" joint="left"/><motor name="right" joint="right"/></actuator></mujoco>"""
PROJECT = """gapless: 1
name: carts
model: robot.xml
rate_hz: 100
commands: {f_left: {actuator: left}, f_right: {actuator: right}}
measurements:
  x_left: {joint: left, quantity: position, noise: 0.001}
  x_right: {joint: right, quantity: position, noise: 0.001}
logs: logs
parameters:
  - {target: joint/left/damping, low: 0.5, high: 2}
  - {target: joint/right/damping, low: 0.5, high: 2}
  - {target: actuator/*/delay, low: 0, high: 0.1}
"""


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> FitProblem:
    folder = tmp_path_factory.mktemp("carts")
    (folder / "logs").mkdir()
    (folder / "robot.xml").write_text(TWO_CARTS)
    (folder / "gapless.yaml").write_text(PROJECT)
    times_s = np.arange(400) / 100
    names = ["time_s", "f_left", "f_right", "x_left", "x_right"]
    rows = np.stack([times_s, *(np.sin(k * times_s) for k in (3, 4)), *(0.1 * np.sin(k * times_s) for k in (1, 2))], 1)
    write_csv(folder / "logs" / "run.csv", dict(zip(names, rows.T, strict=True)))
    data = read_project_data(folder)
    return build_problem(data, data.space, [0], 0.3, np.random.default_rng(0))


def test_causes_that_share_no_column_share_a_group() -> None:
    # Cause 2 shows in both columns and stands alone; causes 0 and 1 show in one column each, and share a prediction.
    pattern = np.array([[True, False], [False, True], [True, True]])
    groups = group_independent(pattern)
    assert sorted(map(sorted, groups)) == [[0, 1], [2]]
    changes = np.array([[10.0, 20.0], [3.0, 4.0]]) if groups[0] == [2] else np.array([[3.0, 4.0], [10.0, 20.0]])
    found = spread_changes(changes, groups, pattern)
    np.testing.assert_allclose(found, [[3.0, 0.0], [0.0, 4.0], [10.0, 20.0]])


def test_small_effects_do_not_couple_and_no_effect_couples_with_all() -> None:
    # 0.01 is 1 % of what the cause does elsewhere, and of what others do there. A cause without effect is not trusted.
    effects = np.array([[1.0, 0.01], [0.0, 1.0], [0.0, 0.0]])
    assert find_pattern(effects).tolist() == [[True, False], [False, True], [True, True]]


def test_shared_predictions_give_the_slopes_of_single_ones(problem: FitProblem) -> None:
    coupled = problem.with_coupling(problem.base)
    assert coupled.coupling is not None
    assert coupled.coupling.parameters.tolist() == [[True, False], [False, True], [True, True]]
    unit = problem.unit(problem.base)
    here, steps = problem.weighted_errors(unit[None])[0], np.full(3, 0.01)
    np.testing.assert_allclose(
        coupled.weighted_changes(unit, here, steps), problem.weighted_changes(unit, here, steps), atol=1e-9
    )
    one, other = (p.with_starts_at(problem.base).starts for p in (problem, coupled))
    assert one is not None
    assert other is not None
    residual = np.random.default_rng(0).standard_normal((1, len(problem.windows), one.directions.shape[1]))
    np.testing.assert_allclose(one.discount(residual), other.discount(residual), atol=1e-6)


def test_what_does_not_couple_shares_a_prediction(problem: FitProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    coupled, unit = problem.with_coupling(problem.base), problem.unit(problem.base)
    here = coupled.weighted_errors(unit[None])[0]
    asked: list[int] = []
    predict = problem.predictor.predict
    monkeypatch.setattr(problem.predictor, "predict", lambda *call: asked.append(len(call[1])) or predict(*call))
    coupled.weighted_changes(unit, here, np.full(3, 0.01))
    assert asked == [2]  # both dampings together, and the delay
