"""Commands of position servos that are no targets, as data sets for policies have them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gapless.check.agreement import find_increments, measure_following
from gapless.core.signal import Array
from gapless.fit.data import read_project_data
from gapless.verbs import check, copy_example, identify
from unit.check.faults import Columns, spoil
from unit.check.robots import MOTOR, RATE_HZ, VELOCITY, write_servo
from unit.identify.realities import write_csv

READINGS = {"q": "{joint: elbow, quantity: position}"}


def distance(target: Array, position: Array) -> Array:
    return target - position


def step(target: Array, position: Array) -> Array:
    del position
    return np.diff(target, prepend=0.0)


def velocity(target: Array, position: Array) -> Array:
    return RATE_HZ * step(target, position)


KINDS = [
    (distance, "cmd looks like the target minus the position", "cmd + q"),
    (step, "cmd looks like steps of the target from row to row", "running sum of cmd"),
    (velocity, "cmd looks like the velocity of the target", "velocity actuator"),
]


@pytest.mark.parametrize(("log_command", "found", "remedy"), KINDS, ids=[kind[0].__name__ for kind in KINDS])
def test_increments_are_a_fault_that_says_what_to_log(
    log_command: Callable[[Array, Array], Array], found: str, remedy: str, tmp_path: Path
) -> None:
    # Before: sound, and identify gave kp 3 [1.6, 7] for 45.
    folder = write_servo(tmp_path, READINGS, log_command=log_command)
    result = check(folder)
    assert not result.sound
    (fault,) = [note.text for note in result.notes if note.level == "fault"]
    assert found in fault
    assert remedy in fault
    fit = identify(folder)
    assert fit.verdict == "refused"
    assert found in fit.reasons[0]
    assert not any(parameter.identifiable for parameter in fit.parameters)


def test_targets_are_no_increments(tmp_path: Path) -> None:
    assert check(write_servo(tmp_path, READINGS)).sound


@pytest.mark.parametrize("time_constant_s", [0.1, 0.6, 1.0, 2.0])
def test_a_slow_servo_still_has_targets(time_constant_s: float, tmp_path: Path) -> None:
    # T dq/dt = c - q: fast commands are as good as integrated, but c = T dq/dt + 1 q shows the target.
    folder = write_servo(tmp_path, READINGS, num_logs=0)
    times_s = np.arange(600) / RATE_HZ
    target = sum(0.2 * np.sin(rate * times_s + rate) for rate in (3.1, 4.7, 6.3, 8.9))
    position = np.zeros(600)
    for k in range(1, 600):
        position[k] = position[k - 1] + (target[k - 1] - position[k - 1]) / (time_constant_s * RATE_HZ)
    position += 1e-4 * np.random.default_rng(0).standard_normal(600)
    write_csv(folder / "logs" / "run.csv", {"time_s": times_s, "cmd": target, "q": position})
    evidence = read_project_data(folder)
    following = measure_following(evidence.blueprint, evidence.tracks)
    assert len(following.pairs) == 1
    assert find_increments(evidence.blueprint, following, evidence.tracks) == []


@pytest.mark.parametrize("actuator", [MOTOR, VELOCITY], ids=["motor", "velocity"])
def test_other_drives_are_not_asked_for_targets(actuator: str, tmp_path: Path) -> None:
    notes = check(write_servo(tmp_path, READINGS, actuator=actuator, size=0.1)).notes
    assert not any("looks like" in note.text for note in notes)


def test_all_servos_of_a_robot_are_one_fault(tmp_path: Path) -> None:
    def make_steps(columns: Columns) -> Columns:
        return columns | {name: np.diff(columns[name], prepend=columns[name][0]) for name in ("cmd_x", "cmd_y")}

    result = check(spoil(copy_example("push", tmp_path), make_steps))
    (fault,) = [note for note in result.notes if note.level == "fault"]
    assert "cmd_x looks like steps of the target from row to row, and so do cmd_y" in fault.text
    assert fault.where == "cmd_x, cmd_y"
