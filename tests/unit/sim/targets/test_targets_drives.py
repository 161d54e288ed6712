"""Targets of drives: lags against the engine's own filter, motors and servos in closed form."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import HISTORY_S, cut_windows
from gapless.project.load import load_project
from gapless.sim.auto import candidate_terms, parameter_space
from gapless.sim.blueprint import EMPTY_SPACE, CompiledProject, compile_project
from gapless.sim.corrected import corrected_xml
from gapless.sim.realism.signal_path import engine_time_constant
from gapless.sim.simulation import Simulation
from gapless.sim.targets import resolve
from unit.sim.scenes import ARM, ARM_VALUES, arm, run, run_plain, run_rows, space_of, waves, write_project
from unit.sim.test_predict import recorded, worst

STEP_S = 0.002
# A wheel of inertia 1 without friction, gravity or contacts.
WHEEL = """<mujoco><option timestep="0.002" gravity="0 0 0"/><worldbody><body name="wheel"><joint name="axle"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody><actuator>{}</actuator></mujoco>"""
READINGS = {"q": "{joint: axle, quantity: position}", "v": "{joint: axle, quantity: velocity}"}


def wheel(folder: Path, actuator: str, parameters: list[str] | None = None) -> CompiledProject:
    xml = WHEEL.format(actuator)
    columns = {"u": "{actuator: drive}"}
    return compile_project(load_project(write_project(folder, xml, columns, READINGS, parameters=parameters)))


def filtered_arm(folder: Path, time_constant_s: float, early: str = "true") -> CompiledProject:
    """Returns the arm with the engine's own lag in both actuators."""
    lag = f'dyntype="filterexact" dynprm="{time_constant_s!r}" actearly="{early}"'
    motor = '<general name="motor" joint="shoulder" gainprm="1.5" ctrlrange="-2 2" forcerange="-2.5 2.5" {}/>'
    servo = '<general name="servo" joint="elbow" gainprm="8" biastype="affine" biasprm="0 -8 -.3" {}/>'
    body = ARM.format(**ARM_VALUES)
    begin, end = body.index("<general"), body.index("</actuator>")
    commands = {"u1": "{actuator: motor}", "u2": "{actuator: servo}"}
    readings = {c: f"{{joint: {j}, quantity: {q}}}" for c, j, q in JOINTS}
    xml = body[:begin] + motor.format(lag) + servo.format(lag) + body[end:]
    return compile_project(load_project(write_project(folder, xml, commands, readings)))


JOINTS = [
    ("q1", "shoulder", "position"),
    ("q2", "elbow", "position"),
    ("v1", "shoulder", "velocity"),
    ("v2", "elbow", "velocity"),
]


@pytest.mark.parametrize("lag_s", [0.0005, 0.01, 0.08])
def test_a_lag_is_the_filter_of_the_engine(tmp_path: Path, lag_s: float) -> None:
    ours = run_rows(arm(tmp_path / "a"), {"actuator/*/lag": lag_s})[:, 0]
    theirs = run_plain(filtered_arm(tmp_path / "b", engine_time_constant(lag_s, STEP_S)))
    assert np.abs(ours - run_plain(arm(tmp_path / "c"))).max() > 1e-3
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)


def test_a_shared_lag_and_one_of_its_own_add_up(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    both = run_rows(blueprint, {"actuator/*/lag": 0.02, "actuator/servo/lag": 0.01, "actuator/motor/lag": 0.01})
    np.testing.assert_allclose(both, run_rows(blueprint, {"actuator/*/lag": 0.03}), rtol=0, atol=1e-9)


def test_a_small_lag_has_a_slope(tmp_path: Path) -> None:
    # A lag far below the physics step must not be flat, or no solver could leave 0.
    blueprint = arm(tmp_path)
    plain = run_plain(blueprint)
    change = [np.abs(run_rows(blueprint, {"actuator/*/lag": s})[:20, 0] - plain[:20]).max() for s in (1e-5, 2e-5)]
    np.testing.assert_allclose(change[1] / change[0], 2.0, rtol=0.02)


def test_an_episode_is_reproduced_with_lag_and_delay(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    space = space_of(blueprint, "actuator/*/lag", "actuator/*/delay")
    # Windows begin with lags that the commands of before have filled: 1.05 s after the log's own beginning, which is
    # not known, exp(-1.05 / 0.06) of that is left. Lags that began empty would show as 0.1 rad and more.
    assert worst(blueprint, space, np.array([0.06, 0.013]), num_steps=200, first_row=105).max() < 1e-4


def test_a_lag_may_be_long(tmp_path: Path) -> None:
    # 0.2 s, the longest that auto considers. Of what the oldest known command gets wrong, a past of 0.25 s leaves
    # exp(-1.25) = 0.29 and one of 1 s exp(-5) = 0.007, 43 times less.
    blueprint = arm(tmp_path)
    space, row = space_of(blueprint, "actuator/*/lag"), np.array([0.2])
    track, errors = recorded(blueprint, space, row, 260), []
    for history_s in (0.25, HISTORY_S):
        windows = cut_windows(blueprint.project, [track], 0.2, history_s)
        windows = windows.pick(windows.first_row >= 100)
        predicted = Predictor(blueprint, space).predict(windows, row[None])[0]
        errors.append(np.sqrt(np.nanmean((predicted - windows.measured)[..., :2] ** 2)))
    assert errors[1] < errors[0] / 10


@pytest.mark.parametrize("early", ["true", "false"])
def test_an_episode_is_reproduced_with_a_lag_of_the_model(tmp_path: Path, early: str) -> None:
    blueprint = filtered_arm(tmp_path, 0.06, early)
    assert worst(blueprint, EMPTY_SPACE, np.zeros(0), num_steps=200, first_row=105).max() < 1e-4


def test_a_lag_of_the_model_is_the_nominal_value_and_is_changed_in_place(tmp_path: Path) -> None:
    blueprint = filtered_arm(tmp_path / "a", 0.06)
    target = resolve("actuator/servo/lag", blueprint.project, blueprint.model)
    assert target.nominal == 0.06
    assert np.array_equal(run_rows(blueprint, {"actuator/servo/lag": 0.06})[:, 0], run_plain(blueprint))
    changed = run_rows(blueprint, {"actuator/motor/lag": 0.02, "actuator/servo/lag": 0.02})[:, 0]
    expected = run_plain(filtered_arm(tmp_path / "b", 0.02))
    np.testing.assert_allclose(changed, expected, rtol=0, atol=1e-9)
    more = run_rows(blueprint, {"actuator/*/lag": 0.01})[:, 0]
    np.testing.assert_allclose(more, run_plain(filtered_arm(tmp_path / "c", 0.07)), rtol=0, atol=1e-9)


def test_dynamics_that_are_no_lag_are_refused(tmp_path: Path) -> None:
    blueprint = wheel(tmp_path, '<general name="drive" joint="axle" dyntype="integrator"/>')
    with pytest.raises(InputError, match="no lag"):
        resolve("actuator/drive/lag", blueprint.project, blueprint.model)


SERVO = '<position name="drive" joint="axle" kp="100" forcerange="-2 2"/>'


def test_a_servo_with_a_speed_comes_near_to_it_like_a_motor(tmp_path: Path) -> None:
    # Far from its aim it gives all it has: v' = 2 (1 - v / 3), v = 3 (1 - exp(-2 t / 3)); Euler with 2 ms steps.
    blueprint = wheel(tmp_path, SERVO)
    world = Simulation(blueprint, 1, space_of(blueprint, "actuator/drive/speed"), 1)
    world.set_parameters(np.array([[3.0]]))
    speed = run(world, np.full((60, 1, 1), 50.0))[:, 0, 1]
    time_s = np.arange(61) * 0.01
    np.testing.assert_allclose(speed, 3 * (1 - np.exp(-2 * time_s / 3)), rtol=0, atol=2e-3)


def test_a_servo_with_a_speed_brakes_with_all_its_force(tmp_path: Path) -> None:
    blueprint = wheel(tmp_path, SERVO)
    world = Simulation(blueprint, 1, space_of(blueprint, "actuator/drive/speed"), 1)
    world.set_parameters(np.array([[3.0]]))
    world.restart(np.array([[0.0]]), np.array([[2.0]]), np.full((1, 5, 1), -50.0))
    speed = world.step(np.array([[-50.0]])).measured[0, 1]
    np.testing.assert_allclose(speed, 2.0 - 2.0 * 0.01, atol=1e-12)


def test_speed_builds_on_gains_and_limit_in_any_order(tmp_path: Path) -> None:
    blueprint = wheel(tmp_path, SERVO)
    row = {
        "actuator/drive/kp": 30.0,
        "actuator/drive/kd": 1.0,
        "actuator/drive/limit": 1.0,
        "actuator/drive/speed": 2.0,
    }
    first = run_rows(blueprint, row)
    assert np.array_equal(run_rows(blueprint, dict(reversed(row.items()))), first)
    assert np.abs(first - run_rows(blueprint, row | {"actuator/drive/limit": 2.0})).max() > 1e-3


MOTOR = '<dcmotor name="drive" joint="axle" resistance="2" motorconst="0.5 0.5"/>'


def test_motor_constants_in_closed_form(tmp_path: Path) -> None:
    # J v' = K / R (u - K v), J = 1: v = u / K (1 - exp(-K^2 t / R)).
    blueprint = wheel(tmp_path, MOTOR)
    space = space_of(blueprint, "actuator/drive/motorconst", "actuator/drive/resistance")
    np.testing.assert_allclose(space.nominal, [0.5, 2.0])
    world = Simulation(blueprint, 1, space, 1)
    world.set_parameters(np.array([[0.8, 0.5]]))
    speed = run(world, np.full((60, 1, 1), 6.0))[:, 0, 1]
    time_s = np.arange(61) * 0.01
    np.testing.assert_allclose(speed, 6 / 0.8 * (1 - np.exp(-(0.8**2) / 0.5 * time_s)), rtol=0, atol=0.01)


def test_auto_proposes_the_constants_of_a_dc_motor_and_no_gain(tmp_path: Path) -> None:
    blueprint = wheel(tmp_path, MOTOR)
    targets = parameter_space(blueprint, []).targets
    assert {"actuator/drive/motorconst", "actuator/drive/resistance"} <= set(targets)
    assert "actuator/drive/gain" not in targets
    with pytest.raises(InputError, match="motorconst"):
        resolve("actuator/drive/gain", blueprint.project, blueprint.model)


@pytest.mark.parametrize("field", ["coulomb", "static", "stribeck", "cogging", "voltage"])
def test_a_constant_that_the_motor_lacks_is_refused(tmp_path: Path, field: str) -> None:
    blueprint = wheel(tmp_path, MOTOR)
    with pytest.raises(InputError, match="has none in the model"):
        resolve(f"actuator/drive/{field}", blueprint.project, blueprint.model)


def test_a_dc_motor_lags_by_its_inductance(tmp_path: Path) -> None:
    slow = wheel(tmp_path / "a", MOTOR.replace("/>", ' inductance="0.1 0"/>'))
    assert resolve("actuator/drive/lag", slow.project, slow.model).nominal == pytest.approx(0.05)  # L / R
    fast = wheel(tmp_path / "b", MOTOR)
    with pytest.raises(InputError, match="inductance"):
        resolve("actuator/drive/lag", fast.project, fast.model)


CONTROLLED = """<dcmotor name="drive" joint="axle" nominal="12 3 20" input="pos" controller="10 0 1 0 0 12"
 lugre="100 1 .1 .2 .01" cogging=".05 7 .3"/>"""


def test_a_dc_motor_with_a_controller_is_a_servo(tmp_path: Path) -> None:
    blueprint = wheel(tmp_path, CONTROLLED)
    assert "actuator/drive/kp" in parameter_space(blueprint, []).targets
    assert resolve("actuator/drive/kp", blueprint.project, blueprint.model).nominal == 10.0
    assert resolve("actuator/drive/kd", blueprint.project, blueprint.model).nominal == 1.0


MOTOR_FITS = {
    MOTOR: {"actuator/drive/motorconst": 0.8, "actuator/drive/resistance": 0.5},
    CONTROLLED: {"actuator/drive/kp": 7.0, "actuator/drive/coulomb": 0.15, "actuator/drive/cogging": 0.1},
    SERVO: {"actuator/drive/speed": 2.5, "actuator/drive/limit": 1.5, "actuator/*/delay": 0.014},
}


@pytest.mark.parametrize("actuator", MOTOR_FITS)
def test_the_corrected_motor_is_the_fitted_row(tmp_path: Path, actuator: str) -> None:
    blueprint, fit = wheel(tmp_path / "a", actuator), MOTOR_FITS[actuator]
    space, row = space_of(blueprint, *fit), np.array(list(fit.values()))
    xml = corrected_xml(blueprint, space, row, tmp_path)
    again = compile_project(load_project(write_project(tmp_path / "b", xml, {"u": "{actuator: drive}"}, READINGS)))
    world = Simulation(blueprint, 1, space, 1)
    world.set_parameters(row[None])
    commands = 3 * waves(blueprint)
    by_row = run(world, commands)
    assert np.abs(by_row[:, 0] - run_plain(blueprint, commands)).max() > 1e-3
    by_model = run(Simulation(again, 1, EMPTY_SPACE, 1), commands)
    np.testing.assert_allclose(by_model, by_row, rtol=0, atol=1e-6)


def test_the_lag_is_tried_where_something_is_driven(tmp_path: Path) -> None:
    terms = [term.targets for term in candidate_terms(arm(tmp_path / "a"), [])]
    assert ("actuator/*/lag",) in terms
    bare = wheel(tmp_path / "b", MOTOR)  # it has no current that could lag
    assert ("actuator/*/lag",) not in [term.targets for term in candidate_terms(bare, [])]


def test_the_bounds_of_drives_hold_the_model(tmp_path: Path) -> None:
    listed = [f"{{target: actuator/drive/{field}}}" for field in ("speed", "lag", "limit")]
    space = parameter_space(wheel(tmp_path, SERVO, listed), [])
    assert np.all(space.low <= space.nominal)
    assert np.all(space.nominal <= space.high)


@pytest.mark.parametrize("target", ["actuator/drive/offset", "joint/axle/offset"])
def test_an_offset_is_left_out_of_a_corrected_dc_motor(tmp_path: Path, target: str) -> None:
    blueprint = wheel(tmp_path, CONTROLLED)
    assert np.ptp(run_rows(blueprint, {target: [0.0, 0.1]}), axis=1).max() > 0.01
    motor = mujoco.MjModel.from_xml_string(
        corrected_xml(blueprint, space_of(blueprint, target), np.array([0.1]), tmp_path)
    )
    # The engine keeps cogging and friction there: a force that was added would become a ripple.
    np.testing.assert_allclose(motor.actuator_biasprm, blueprint.model.actuator_biasprm, rtol=1e-6)
