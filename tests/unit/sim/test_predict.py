"""Predictions that restart from a simulated episode reproduce it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.core.episode import Episode
from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array, TimeSeries
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import cut_windows
from gapless.project.load import load_project
from gapless.signals.track import Track, make_track, subtract_readings
from gapless.sim import simulation
from gapless.sim.blueprint import EMPTY_SPACE, CompiledProject, compile_project
from gapless.sim.simulation import Simulation
from unit.sim.scenes import POSE, THINGS, THINGS_VALUES, arm, run, space_of, waves, write_project


def recorded(blueprint: CompiledProject, space: ParameterSpace, row: Array, num_steps: int = 120) -> Track:
    """Returns a simulated episode as if it had been a log."""
    project = blueprint.project
    world = Simulation(blueprint, 1, space, 1)
    world.set_parameters(row[None])
    commands = waves(blueprint, num_steps=num_steps)
    measured = run(world, commands)[:, 0]
    times_s = np.arange(num_steps + 1) / project.rate_hz
    sent = np.concatenate([commands[:, 0], commands[-1:, 0]])
    return make_track(
        project,
        Episode(
            "sim",
            "sim",
            TimeSeries(times_s, sent, project.command_names, project.command_units),
            TimeSeries(times_s, measured, project.measurement_names, project.measurement_units),
        ),
    )


def worst(
    blueprint: CompiledProject,
    space: ParameterSpace,
    row: Array,
    window_s: float = 0.2,
    *,
    num_steps: int = 120,
    first_row: int = 6,
) -> Array:
    """Returns the largest error per column of predictions of an episode that the same row made.

    Only windows from `first_row` on count: commands of before the episode are not known.
    """
    windows = cut_windows(blueprint.project, [recorded(blueprint, space, row, num_steps)], window_s)
    predicted = Predictor(blueprint, space).predict(windows, row[None])[0]
    inside = windows.first_row >= first_row
    assert inside.any()
    return np.nanmax(np.abs(subtract_readings(blueprint.project, predicted, windows.measured))[inside], axis=(0, 1))


def test_each_run_is_predicted_with_its_own_values(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    space = space_of(blueprint, "joint/shoulder/damping", "joint/elbow/damping")
    own = ParameterSpace((space.parameters[0], replace(space.parameters[1], per="episode"))).for_runs(range(2))
    assert [(p.target, p.run) for p in own.parameters] == [
        ("joint/shoulder/damping", None),
        ("joint/elbow/damping", 0),
        ("joint/elbow/damping", 1),
    ]
    assert own.shared.targets == space.targets
    track = recorded(blueprint, EMPTY_SPACE, np.zeros(0))
    windows = cut_windows(blueprint.project, [track, track], 0.2)
    rows = np.array([[0.5, 0.1, 0.9], [0.7, 0.1, 0.3]])
    together = Predictor(blueprint, own).predict(windows, rows)
    plain = Predictor(blueprint, space)
    for run_number, column in ((0, 1), (1, 2)):
        here = windows.track == run_number
        alone = plain.predict(windows.pick(here), rows[:, [0, column]])
        np.testing.assert_array_equal(together[:, here], alone)


def test_an_episode_is_reproduced_from_its_own_states(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    # The track smooths what has no noise: positions by 1e-6 of their range.
    assert worst(blueprint, EMPTY_SPACE, np.zeros(0)).max() < 1e-4


def test_an_episode_is_reproduced_with_commands_that_were_late(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    space = space_of(blueprint, "actuator/*/delay", "joint/shoulder/damping")
    assert worst(blueprint, space, np.array([0.037, 0.5])).max() < 1e-4


def test_an_episode_is_reproduced_with_bias_and_scale(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    targets = [f"measurement/{c}/{f}" for c in ("q1", "q2", "v1", "v2") for f in ("bias", "scale")]
    row = np.array([0.1, 1.1, -0.05, 0.9, 0.2, 1.05, -0.1, 0.97])
    assert worst(blueprint, space_of(blueprint, *targets), row).max() < 1e-4


def test_an_episode_is_reproduced_with_zero_offset(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    space = space_of(blueprint, "joint/elbow/offset")
    assert worst(blueprint, space, np.array([0.15])).max() < 1e-4


def test_an_episode_is_reproduced_with_late_readings(tmp_path: Path) -> None:
    # The state is carried forward along straight lines: errors of acceleration * delay^2 / 2 remain, against
    # speed * delay if the delay were left out.
    blueprint = arm(tmp_path)
    space = space_of(blueprint, "measurement/*/delay")
    row = np.array([0.008])
    with_delay = worst(blueprint, space, row, 0.1)
    track = recorded(blueprint, space, row)
    windows = cut_windows(blueprint.project, [track], 0.1)
    without = Predictor(blueprint, space).predict(windows, np.zeros((1, 1)))[0]
    left_out = np.nanmax(np.abs(without - windows.measured)[windows.first_row > 5], axis=(0, 1))
    assert np.all(with_delay < 0.35 * left_out)


def test_late_readings_begin_with_the_reading_itself(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    space = space_of(blueprint, "measurement/*/delay")
    row = np.array([0.03])
    windows = cut_windows(blueprint.project, [recorded(blueprint, space, row)], 0.2)
    predicted = Predictor(blueprint, space).predict(windows, row[None])[0]
    np.testing.assert_allclose(predicted[:, 0], windows.start, atol=1e-9)


def test_many_rows_and_windows_are_one_row_and_window_each(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    space = space_of(blueprint, "joint/shoulder/damping", "actuator/*/delay")
    windows = cut_windows(blueprint.project, [recorded(blueprint, space, space.nominal)], 0.2)
    rows = np.array([[0.1, 0.0], [0.5, 0.02], [1.0, 0.05]])
    predictor = Predictor(blueprint, space)
    together = predictor.predict(windows, rows)
    assert together.shape == (3, len(windows), 21, 4)
    for r in range(3):
        for w in (0, len(windows) - 1):
            alone = predictor.predict(windows.pick(np.array([w])), rows[r : r + 1])
            assert np.array_equal(alone[0, 0], together[r, w])


def test_free_bodies_restart_in_flight(tmp_path: Path) -> None:
    names = {f"ball_{q}": f"{{body: ball, quantity: {q}}}" for q in POSE if q != "yaw"}
    xml = THINGS.format(**(THINGS_VALUES | {"gravity": "0 0 -1"}))
    blueprint = compile_project(load_project(write_project(tmp_path, xml, {}, names)))
    assert worst(blueprint, EMPTY_SPACE, np.zeros(0)).max() < 1e-4


def test_a_rollout_gives_what_steps_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late, lagging and loose commands, late and biased readings; also where one call of the engine is too few."""
    blueprint = arm(tmp_path)
    values = {
        "actuator/servo/delay": 0.037,
        "actuator/servo/lag": 0.02,
        "joint/elbow/backlash": 0.05,
        "measurement/q2/delay": 0.013,
        "measurement/q2/bias": 0.3,
    }
    commands = np.swapaxes(waves(blueprint, num_worlds=2, num_steps=50), 0, 1)
    shown: list[Array] = []
    for limit in (10**9, 500, 0):
        monkeypatch.setattr(simulation, "MAX_RECORDED", limit)
        world = Simulation(blueprint, 2, space_of(blueprint, *values), 1)
        world.set_parameters(np.array([[0.0] * len(values), list(values.values())]))
        world.restart(np.zeros((2, 2)), np.ones((2, 2)), commands[:, :20])
        if limit:
            shown.append(np.concatenate([world.rollout(commands), world.rollout(commands[:, ::-1])], axis=1))
        else:
            both = np.concatenate([commands, commands[:, ::-1]], axis=1)
            shown.append(np.stack([world.step(both[:, k]).measured for k in range(both.shape[1])], axis=1))
    np.testing.assert_array_equal(shown[0], shown[2])
    np.testing.assert_array_equal(shown[1], shown[2])
    assert np.abs(shown[2][0] - shown[2][1]).max() > 0.1
