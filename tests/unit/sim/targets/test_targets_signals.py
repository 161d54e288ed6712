"""Targets around the engine: readings in closed form, commands against commands changed by hand."""

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.core.protocols import Start
from gapless.sim.blueprint import compile_project
from gapless.sim.simulation import Simulation
from gapless.sim.targets import resolve
from unit.sim.scenes import arm, run, run_plain, run_rows, space_of, waves

Q1, Q2 = 0, 1


def test_a_reading_is_scale_times_truth_plus_bias(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    true = run_plain(blueprint)
    seen = run_rows(blueprint, {"measurement/q1/scale": 1.1, "measurement/q1/bias": 0.2})[:, 0]
    np.testing.assert_allclose(seen[:, Q1], 1.1 * true[:, Q1] + 0.2, rtol=0, atol=1e-15)
    assert np.array_equal(seen[:, 1:], true[:, 1:])


def test_a_shared_bias_and_one_of_its_own_add_up(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    seen = run_rows(blueprint, {"measurement/*/bias": 0.1, "measurement/q2/bias": 0.2})[:, 0]
    expected = run_plain(blueprint) + np.array([0.1, 0.3, 0.1, 0.1])
    np.testing.assert_allclose(seen, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("delay_s", [0.004, 0.01, 0.0275, 0.2])
def test_a_late_reading_is_the_truth_of_before(tmp_path: Path, delay_s: float) -> None:
    blueprint = arm(tmp_path)
    true = run_plain(blueprint)
    seen = run_rows(blueprint, {"measurement/q1/delay": delay_s})[:, 0]
    # Straight lines between rows, 0.01 s apart; before the start the arm was at rest.
    time_s = np.arange(len(true)) * 0.01
    expected = np.interp(time_s - delay_s, time_s, true[:, Q1])
    np.testing.assert_allclose(seen[:, Q1], expected, rtol=0, atol=1e-12)
    assert np.array_equal(seen[:, 1:], true[:, 1:])


def test_an_offset_shifts_the_reading_and_what_the_servo_follows(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    commands = waves(blueprint).copy()
    seen = run_rows(blueprint, {"joint/elbow/offset": 0.1})[:, 0]
    commands[:, :, 1] -= 0.1
    expected = run_plain(blueprint, commands) + np.array([0, 0.1, 0, 0])
    np.testing.assert_allclose(seen, expected, rtol=0, atol=1e-12)


def test_an_offset_of_an_actuator_is_added_to_its_commands(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    for place, name in enumerate(("motor", "servo")):
        commands = waves(blueprint).copy()
        seen = run_rows(blueprint, {f"actuator/{name}/offset": 0.1})[:, 0]
        commands[:, :, place] += 0.1
        assert np.abs(commands).max() < 2.0  # within the limits
        np.testing.assert_allclose(seen, run_plain(blueprint, commands), rtol=0, atol=1e-12)
        assert np.abs(seen - run_plain(blueprint)).max() > 1e-3


def test_one_offset_for_commands_of_several_units_is_refused(tmp_path: Path) -> None:
    blueprint = arm(tmp_path / "a")  # a motor of gain 1.5, and a servo
    with pytest.raises(InputError, match="commands of several units; name one actuator"):
        resolve("actuator/*/offset", blueprint.project, blueprint.model)
    alone = compile_project(replace(blueprint.project, commands=blueprint.project.commands[:1]))
    with pytest.raises(InputError, match="nothing commands it"):
        resolve("actuator/servo/offset", alone.project, alone.model)
    assert resolve("actuator/*/offset", alone.project, alone.model).unit == "1"


def test_offset_and_play_count_in_the_joint_also_behind_a_gear(tmp_path: Path) -> None:
    geared = arm(tmp_path / "a", gear=3.0, kp=8 / 9, kd=0.3 / 9)
    direct = arm(tmp_path / "b")
    for target in ("joint/elbow/offset", "joint/elbow/backlash"):
        world = Simulation(geared, 1, space_of(geared, target), 1)
        world.set_parameters(np.array([[0.1]]))
        behind = run(world, waves(geared) * [1, 3])[:, 0]
        np.testing.assert_allclose(behind, run_rows(direct, {target: 0.1})[:, 0], rtol=0, atol=1e-9)


def test_backlash_is_the_play_of_the_commands(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    commands = waves(blueprint).copy()
    output = 0.0  # the servo rests where its joint is
    for k in range(len(commands)):
        output = np.clip(output, commands[k, 0, 1] - 0.1, commands[k, 0, 1] + 0.1)
        commands[k, 0, 1] = output
    seen = run_rows(blueprint, {"joint/elbow/backlash": 0.2})[:, 0]
    np.testing.assert_allclose(seen, run_plain(blueprint, commands), rtol=0, atol=1e-12)


@pytest.mark.parametrize("num_intervals", [1, 3])
def test_a_delay_of_whole_intervals_is_commands_sent_later(tmp_path: Path, num_intervals: int) -> None:
    blueprint = arm(tmp_path)
    commands = waves(blueprint)
    late = np.concatenate([np.zeros((num_intervals, 1, 2)), commands[:-num_intervals]])
    seen = run_rows(blueprint, {"actuator/*/delay": 0.01 * num_intervals})[:, 0]
    np.testing.assert_allclose(seen, run_plain(blueprint, late), rtol=0, atol=1e-9)


def test_a_delay_of_one_actuator_in_physics_steps(tmp_path: Path) -> None:
    # 3 of the 5 physics steps of an interval: by hand at the rate of the physics.
    blueprint, fine = arm(tmp_path / "a"), arm(tmp_path / "b", rate_hz=500.0)
    commands = np.repeat(waves(blueprint), 5, axis=0)
    commands[3:, :, 0] = commands[:-3, :, 0]
    commands[:3, :, 0] = 0.0
    seen = run_rows(blueprint, {"actuator/motor/delay": 0.006})[:, 0]
    np.testing.assert_allclose(seen, run_plain(fine, commands)[::5], rtol=0, atol=1e-9)


def test_a_shared_delay_and_one_of_its_own_add_up(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    both = run_rows(blueprint, {"actuator/*/delay": 0.013, "actuator/motor/delay": 0.02})
    apart = run_rows(blueprint, {"actuator/motor/delay": 0.033, "actuator/servo/delay": 0.013})
    np.testing.assert_allclose(both, apart, rtol=0, atol=1e-12)


def test_commands_stay_within_the_limits_of_the_model(tmp_path: Path) -> None:
    world = Simulation(arm(tmp_path), 2, space_of(arm(tmp_path)), 1)
    world.reset(Start({}, np.zeros((2, 0))), np.random.default_rng(0))
    applied = world.step(np.array([[5.0, 5.0], [-5.0, -5.0]])).applied_command
    assert np.array_equal(applied, [[2, 5], [-2, -5]])  # the servo has no range


def test_a_time_step_that_does_not_divide_the_interval_is_made_smaller(tmp_path: Path) -> None:
    # 0.01 s / 0.003 s = 3.33: 4 steps of 0.0025 s.
    blueprint = arm(tmp_path / "a", timestep=0.003)
    assert blueprint.num_substeps == 4
    assert blueprint.model.opt.timestep == 0.0025
    assert np.array_equal(run_plain(blueprint), run_plain(arm(tmp_path / "b", timestep=0.0025)))


MISTAKES = [
    ("joynt/elbow/damping", "no kind 'joynt'", "joint"),
    ("joint/elbo/damping", "no joint 'elbo'", "elbow"),
    ("joint/elbow/damp", "nothing called 'damp'", "damping"),
    ("joint/shoulder/backlash", "needs a position actuator", ""),
    ("actuator/serv/kp", "no actuator 'serv'", "servo"),
    ("actuator/motor/kp", "no position actuator", "actuator/motor/gain"),
    ("actuator/servo/lagg", "nothing called 'lagg'", "lag"),
    ("actuator/motor/speed", "only a position actuator with a forcerange", "damping"),
    ("actuator/motor/resistance", "no DC motor", "actuator/motor/gain"),
    ("site/tip/mass", "nothing called 'mass'", "payload"),
    ("site/*/payload", "belongs to one site", ""),
    ("body/uper/mass", "no body 'uper'", "upper"),
    ("body/upper/weight", "nothing called 'weight'", "mass"),
    ("body/*/com/x", "belongs to one body", ""),
    ("geom/foot/friction", "no geom 'foot'", "none exist"),
    ("world/tilt/z", "nothing called 'tilt/z'", "tilt/x"),
    ("measurement/q3/bias", "no measurement 'q3'", "q1"),
    ("measurement/q1/noise", "nothing called 'noise'", "bias"),
]


@pytest.mark.parametrize(("path", "text", "hint"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_what_does_not_exist_is_said_in_one_line(tmp_path: Path, path: str, text: str, hint: str) -> None:
    blueprint = arm(tmp_path)
    with pytest.raises(InputError) as caught:
        resolve(path, blueprint.project, blueprint.model)
    message = str(caught.value)
    assert path in message
    assert text in message
    assert hint in message
    assert "\n" not in message


def test_a_factor_on_nothing_is_refused(tmp_path: Path) -> None:
    blueprint = arm(tmp_path, stiffness=0.0)
    with pytest.raises(InputError, match="the model has none; name one joint"):
        resolve("joint/*/stiffness", blueprint.project, blueprint.model)


def test_a_world_without_gravity_has_no_tilt(tmp_path: Path) -> None:
    blueprint = arm(tmp_path, gravity="0 0 0")
    with pytest.raises(InputError, match="no gravity"):
        resolve("world/tilt/x", blueprint.project, blueprint.model)


def test_the_engine_gives_the_same_as_the_simulation(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    data, seen = mujoco.MjData(blueprint.model), [np.zeros(4)]
    for command in waves(blueprint)[:, 0]:
        data.ctrl[:] = command
        mujoco.mj_step(blueprint.model, data, nstep=5)
        seen.append(np.concatenate([data.qpos, data.qvel]))
    assert np.array_equal(np.stack(seen), run_plain(blueprint))
