"""Readings beside the commands of their servos: r(t) = slope * c(t - lag), so everything is known in closed form."""

from pathlib import Path

import numpy as np
import pytest

from gapless.check.agreement import find_following_faults, measure_following
from gapless.core.episode import Episode
from gapless.core.signal import TimeSeries
from gapless.project.load import load_project
from gapless.signals.track import Track, make_track
from gapless.sim.blueprint import CompiledProject, compile_project
from unit.sim.scenes import write_project

TWO_SERVOS = """<mujoco><option gravity="0 0 0"/><worldbody>
<body name="a"><joint name="a" axis="0 0 1"/><geom size=".1" mass="1" contype="0" conaffinity="0"/></body>
<body name="b" pos="1 0 0"><joint name="b" axis="0 0 1"/><geom size=".1" mass="1" contype="0" conaffinity="0"/></body>
</worldbody><actuator>
<position name="a" joint="a" kp="10"/><position name="b" joint="b" kp="10"/></actuator></mujoco>"""
TIMES_S = np.arange(600) / 50.0


@pytest.fixture
def blueprint(tmp_path: Path) -> CompiledProject:
    measurements = {"qa": "{joint: a, quantity: position}", "qb": "{joint: b, quantity: position}"}
    commands = {"ca": "{actuator: a}", "cb": "{actuator: b}"}
    return compile_project(load_project(write_project(tmp_path, TWO_SERVOS, commands, measurements, rate_hz=50.0)))


def ca(times_s: np.ndarray) -> np.ndarray:
    return np.sin(1.3 * times_s) + 0.5 * np.sin(2.9 * times_s)


def cb(times_s: np.ndarray) -> np.ndarray:
    return np.sin(0.7 * times_s + 1) - 0.6 * np.sin(4.1 * times_s)


def track(blueprint: CompiledProject, commands: list[np.ndarray], readings: list[np.ndarray]) -> Track:
    project, noise = blueprint.project, 1e-3 * np.random.default_rng(0).standard_normal((600, 2))
    sent = TimeSeries(TIMES_S, np.stack(commands, axis=1), project.command_names, project.command_units)
    read = np.stack(readings, axis=1) + noise
    shown = TimeSeries(TIMES_S, read, project.measurement_names, project.measurement_units)
    return make_track(project, Episode("run", "real", sent, shown))


def said(blueprint: CompiledProject, readings: list[np.ndarray], commands: list[np.ndarray] | None = None) -> list[str]:
    sent = [ca(TIMES_S), cb(TIMES_S)] if commands is None else commands
    following = measure_following(blueprint, [track(blueprint, sent, readings)])
    return [finding.text for finding in find_following_faults(blueprint, following)]


def test_the_slope_and_the_lag_are_found(blueprint: CompiledProject) -> None:
    # r = 0.8 c(t - 0.1): the correlation is 1 at a lag of 5 rows, with a slope of 0.8.
    readings = [0.8 * ca(TIMES_S - 0.1), cb(TIMES_S - 0.1)]
    following = measure_following(blueprint, [track(blueprint, [ca(TIMES_S), cb(TIMES_S)], readings)])
    np.testing.assert_allclose(np.diag(following.max_correlation), 1.0, atol=1e-4)
    np.testing.assert_allclose(np.diag(following.slope), [0.8, 1.0], atol=2e-3)
    assert following.sound_readings == {0, 1}
    assert said(blueprint, readings) == []


def test_an_offset_and_a_weak_late_servo_are_no_fault(blueprint: CompiledProject) -> None:
    assert said(blueprint, [0.4 * ca(TIMES_S - 0.3) + 0.2, 0.6 * cb(TIMES_S - 0.15) - 0.1]) == []


def test_a_reading_that_moves_against_its_command_has_the_wrong_sign(blueprint: CompiledProject) -> None:
    (text,) = said(blueprint, [-ca(TIMES_S - 0.1), cb(TIMES_S - 0.1)])
    assert "qa moves against its command ca" in text
    assert "wrong sign" in text


def test_a_period_that_a_delay_can_turn_about_says_nothing_of_the_sign(blueprint: CompiledProject) -> None:
    # At 2 Hz half a period is 0.25 s: -sin(w t) is sin(w (t - 0.25)), a delay.
    fast = np.sin(4 * np.pi * TIMES_S)
    assert said(blueprint, [-fast, cb(TIMES_S - 0.1)], [fast, cb(TIMES_S)]) == []


@pytest.mark.parametrize("factor", [57.3, 1 / 57.3])
def test_degrees_show_as_a_factor(factor: float, blueprint: CompiledProject) -> None:
    (text,) = said(blueprint, [ca(TIMES_S - 0.1), cb(TIMES_S - 0.1)], [ca(TIMES_S), cb(TIMES_S) / factor])
    assert "qb" in text
    assert "degrees" in text


def test_columns_that_follow_each_others_command_are_swapped(blueprint: CompiledProject) -> None:
    (text,) = said(blueprint, [cb(TIMES_S - 0.1), ca(TIMES_S - 0.1)])
    assert "qa and qb are swapped" in text


def test_a_column_that_follows_another_command_belongs_elsewhere(blueprint: CompiledProject) -> None:
    (text,) = said(blueprint, [cb(TIMES_S - 0.1), cb(TIMES_S - 0.1)])
    assert "qa follows cb" in text
    assert "another joint's" in text


def test_readings_before_their_commands_are_a_matter_of_clocks(blueprint: CompiledProject) -> None:
    (text,) = said(blueprint, [ca(TIMES_S + 0.08), cb(TIMES_S + 0.08)])
    assert "80 ms earlier than the commands" in text


def test_joints_that_do_not_move_are_not_judged(blueprint: CompiledProject) -> None:
    assert said(blueprint, [np.zeros(600), cb(TIMES_S - 0.1)]) == []
