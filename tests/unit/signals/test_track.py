"""Episodes at the control rate: resampling, gaps, angles, noise, windows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.core.episode import Episode
from gapless.core.signal import TimeSeries
from gapless.fit.prediction.windows import cut_windows
from gapless.project.load import load_project
from gapless.project.records import Project
from gapless.signals.smoother import estimate_noise
from gapless.signals.track import make_track, subtract_readings
from unit.sim.scenes import THINGS, THINGS_VALUES, arm, write_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return arm(tmp_path).project


def episode(project: Project, times_s: np.ndarray, measured: np.ndarray, commands: np.ndarray) -> Episode:
    return Episode(
        "run",
        "real",
        TimeSeries(times_s, commands, project.command_names, project.command_units),
        TimeSeries(times_s, measured, project.measurement_names, project.measurement_units),
    )


def smooth_signals(times_s: np.ndarray) -> np.ndarray:
    return np.stack([np.sin(2 * times_s + k) for k in range(4)], axis=1)


def test_jittered_stamps_are_brought_to_the_control_rate(project: Project) -> None:
    rng = np.random.default_rng(0)
    times_s = np.arange(300) / 100 + rng.uniform(-0.003, 0.003, 300)
    times_s += 5.0 - times_s[0]
    track = make_track(project, episode(project, times_s, smooth_signals(times_s - 5), np.zeros((300, 2))))
    rows_s = np.arange(len(track.measured)) / 100
    assert abs(len(rows_s) - 299) <= 1
    # Straight lines over 0.016 s at most: error <= 4 * 0.016^2 / 8 = 1.3e-4.
    np.testing.assert_allclose(track.measured, smooth_signals(rows_s), atol=1.3e-4)


def test_commands_are_held_and_a_little_jitter_does_not_shift_them(project: Project) -> None:
    times_s = np.arange(50) / 100 + np.where(np.arange(50) % 2, 0.002, 0.0)
    commands = np.arange(50.0)[:, None] * [1, -1]
    track = make_track(project, episode(project, times_s, smooth_signals(times_s), commands))
    assert np.array_equal(track.commands, commands[: len(track.commands)])


def test_slow_commands_are_held_until_the_next(project: Project) -> None:
    times_s = np.arange(30) / 50
    commands = np.arange(30.0)[:, None] * [1, 1]
    track = make_track(project, episode(project, times_s, smooth_signals(times_s), commands))
    assert np.array_equal(track.commands[:6, 0], [0, 0, 1, 1, 2, 2])


def mean_of_ramp(commands: np.ndarray, rate_hz: float) -> float:
    """Returns when a ramp of 1 per second, held from row to row, has its centre of change, relative to its start."""
    return float(np.mean(commands - np.arange(len(commands)) / rate_hz))


@pytest.mark.parametrize("log_hz", [150, 200, 300, 1000])
def test_commands_faster_than_the_control_rate_are_not_shifted(project: Project, log_hz: int) -> None:
    times_s = np.arange(2 * log_hz) / log_hz
    track = make_track(project, episode(project, times_s, smooth_signals(times_s), times_s[:, None] * [1, 1]))
    # Held from stamp to stamp, a ramp u = t is on average 1 / (2 log_hz) low; over a control interval of 0.01 s that
    # begins at t its mean is t + 0.005 - 1 / (2 log_hz). The first sample of each interval would be t: later.
    assert mean_of_ramp(track.commands[:-1, 0], 100) == pytest.approx(0.005 - 0.5 / log_hz, abs=2e-5)


def test_commands_that_stay_over_a_control_interval_stay_exactly_as_sent(project: Project) -> None:
    times_s = np.arange(400) / 200 + np.random.default_rng(0).uniform(0, 0.001, 400)
    times_s -= times_s[0]
    commands = np.where(times_s < 1, 0.1, 0.7)[:, None] * [1, 1]
    track = make_track(project, episode(project, times_s, smooth_signals(times_s), commands))
    assert np.array_equal(np.unique(track.commands[:99]), [0.1])
    assert np.array_equal(np.unique(track.commands[102:]), [0.7])


def test_missing_commands_keep_the_last_one(project: Project) -> None:
    times_s = np.arange(20) / 100
    commands = np.arange(20.0)[:, None] * [1, 1]
    commands[5:8, 0] = np.nan
    track = make_track(project, episode(project, times_s, smooth_signals(times_s), commands))
    assert np.array_equal(track.commands[3:10, 0], [3, 4, 4, 4, 4, 8, 9])


def test_short_gaps_are_bridged_and_long_ones_stay_missing(project: Project) -> None:
    times_s = np.arange(100) / 100
    measured = smooth_signals(times_s)
    measured[20, 0] = np.nan  # 2 intervals without a sample
    measured[40:50, 1] = np.nan  # 11 intervals
    track = make_track(project, episode(project, times_s, measured, np.zeros((100, 2))))
    np.testing.assert_allclose(track.measured[20, 0], smooth_signals(times_s)[20, 0], atol=1e-3)
    assert np.isnan(track.measured[40:50, 1]).all()
    assert np.isfinite(track.measured[[39, 50], 1]).all()
    assert np.isfinite(track.smooth).all()
    assert np.isfinite(track.slope).all()


def test_a_column_without_any_value_is_missing_everywhere(project: Project) -> None:
    times_s = np.arange(100) / 100
    measured = smooth_signals(times_s)
    measured[:, 2] = np.nan
    track = make_track(project, episode(project, times_s, measured, np.zeros((100, 2))))
    assert np.isnan(track.measured[:, 2]).all()
    assert np.isfinite(track.smooth).all()
    assert len(cut_windows(project, [track], 0.2)) == 0  # no window starts from an unknown state


@pytest.mark.parametrize("sigma", [1e-4, 3e-3, 0.05])
def test_noise_is_recovered_from_a_smooth_signal(sigma: float) -> None:
    # Over 20 seeds of 1,000 samples; a median of third differences errs by a few percent.
    times_s = np.arange(1000) / 100
    found = [
        estimate_noise(np.sin(3 * times_s) + sigma * np.random.default_rng(seed).standard_normal(1000))
        for seed in range(20)
    ]
    assert abs(np.mean(found) / sigma - 1) < 0.1


def test_a_signal_without_noise_has_next_to_none() -> None:
    assert estimate_noise(np.sin(np.arange(1000) / 100)) < 1e-5
    assert estimate_noise(np.zeros(100)) > 0


def test_slopes_are_derivatives(project: Project) -> None:
    times_s = np.arange(300) / 100
    track = make_track(project, episode(project, times_s, smooth_signals(times_s), np.zeros((300, 2))))
    expected = np.stack([2 * np.cos(2 * times_s + k) for k in range(4)], axis=1)
    np.testing.assert_allclose(track.slope[5:-5], expected[5:-5], atol=2e-3)


@pytest.fixture
def spinning(tmp_path: Path) -> Project:
    names = {f"b_{q}": f"{{body: box, quantity: {q}}}" for q in ("yaw", "qw", "qx", "qy", "qz")}
    return load_project(write_project(tmp_path, THINGS.format(**THINGS_VALUES), {}, names))


def test_angles_unwrap_and_quaternions_keep_their_sign(spinning: Project) -> None:
    times_s = np.arange(200) / 100
    angle = 4 * times_s
    sign = np.where(np.arange(200) % 3 == 0, -1.0, 1.0)  # q and -q are one rotation
    wrapped = (angle + np.pi) % (2 * np.pi) - np.pi
    quaternion = np.stack([np.cos(angle / 2), 0 * angle, 0 * angle, np.sin(angle / 2)], axis=1) * sign[:, None]
    measured = np.concatenate([wrapped[:, None], quaternion], axis=1)
    track = make_track(spinning, episode(spinning, times_s, measured, np.zeros((200, 0))))
    np.testing.assert_allclose(track.measured[:, 0], angle, atol=1e-9)
    np.testing.assert_allclose(track.slope[:, 0], 4.0, atol=1e-6)
    assert np.abs(np.diff(track.measured[:, 1:], axis=0)).max() < 0.03


def test_differences_take_the_nearest_image(spinning: Project) -> None:
    half = np.array([np.cos(0.4), 0, 0, np.sin(0.4)])
    predicted = np.concatenate([[3.1], -half])
    measured = np.concatenate([[-3.1], half])
    error = subtract_readings(spinning, predicted, measured)
    np.testing.assert_allclose(error, [6.2 - 2 * np.pi, 0, 0, 0, 0], atol=1e-12)


def test_windows_tile_the_tracks_and_pad_with_nan(project: Project) -> None:
    tracks = []
    for count in (101, 46):
        times_s = np.arange(count) / 100
        commands = np.arange(count)[:, None] * np.array([1.0, 2.0])
        tracks.append(make_track(project, episode(project, times_s, smooth_signals(times_s), commands)))
    windows = cut_windows(project, tracks, 0.2, history_s=0.03)
    assert list(zip(windows.track, windows.first_row, strict=True)) == [
        *((0, row) for row in (3, 23, 43, 63)),
        *((1, row) for row in (3, 23)),
    ]  # the first 3 rows are only the history of the first window
    assert windows.num_steps == 20
    assert np.array_equal(windows.commands[1, :, 0], np.arange(23, 43))
    assert np.array_equal(windows.history[1, :, 0], [20, 21, 22])
    assert np.array_equal(windows.history[0, :, 0], [0, 1, 2])
    assert np.array_equal(windows.measured[2], tracks[0].measured[43:64])
    whole = cut_windows(project, tracks, 0.0)
    assert len(whole) == 2
    assert np.isnan(whole.measured[1, 46:]).all()
    assert np.isfinite(whole.measured[1, :46]).all()
    assert len(windows.pick(windows.track == 1)) == 2


def test_rows_of_no_use_are_in_no_window(project: Project) -> None:
    times_s = np.arange(101) / 100
    track = make_track(project, episode(project, times_s, smooth_signals(times_s), np.zeros((101, 2))))
    usable = track.usable.copy()
    usable[:30] = False
    usable[70] = False
    marked = replace(track, usable=usable)
    assert list(cut_windows(project, [marked], 0.2, history_s=0.03).first_row) == [
        43
    ]  # not 3, 23 (to 43) and 63 (to 83)
    whole = cut_windows(project, [marked], 0.0)  # begins at the first row of use and ends before the next of none
    assert list(whole.first_row) == [30]
    assert np.isfinite(whole.measured[0, :40]).all()
    assert np.isnan(whole.measured[0, 40:]).all()


def test_windows_may_begin_at_the_first_row(project: Project) -> None:
    times_s = np.arange(101) / 100
    track = make_track(project, episode(project, times_s, smooth_signals(times_s), np.zeros((101, 2))))
    assert list(cut_windows(project, [track], 0.2, from_first_row=True).first_row) == [0, 20, 40, 60, 80]


@pytest.mark.parametrize("jitter_s", [0.0, 0.002])
def test_a_column_slower_than_the_rate_starts_windows_but_makes_no_readings(project: Project, jitter_s: float) -> None:
    rng = np.random.default_rng(0)
    times_s = np.arange(400) / 100 + rng.uniform(-jitter_s, jitter_s, 400)
    times_s -= times_s[0]
    measured = smooth_signals(times_s)
    measured[np.arange(400) % 10 != 0, 1] = np.nan  # 10 Hz in a log of 100 Hz
    track = make_track(project, episode(project, times_s, measured, np.zeros((400, 2))))
    rows = np.arange(len(track.measured))
    present = np.isfinite(track.measured[:, 1])
    assert 38 <= present.sum() <= 41
    np.testing.assert_allclose(track.measured[present, 1], np.sin(2 * rows[present] / 100 + 1), atol=2e-3)
    # A cubic through values and slopes 0.1 s apart: 16 * 0.1^4 / 384 = 4e-6; slopes by differences err by more.
    np.testing.assert_allclose(track.smooth[20:370, 1], np.sin(2 * rows[20:370] / 100 + 1), atol=2e-3)
    np.testing.assert_allclose(track.slope[20:370, 1], 2 * np.cos(2 * rows[20:370] / 100 + 1), atol=0.05)
    assert len(cut_windows(project, [track], 0.2)) >= 15


def test_a_stated_noise_counts_for_its_column_alone(project: Project) -> None:
    times_s = np.arange(300) / 100
    readings = smooth_signals(times_s) + 0.01 * np.random.default_rng(0).standard_normal((300, 4))
    run = episode(project, times_s, readings, np.zeros((300, 2)))
    first, *others = project.measurements
    stating = replace(project, measurements=(replace(first, noise=1e-6), *others))
    stated, estimated = make_track(stating, run), make_track(project, run)
    assert stated.noise[0] == pytest.approx(1e-6)
    assert estimated.noise[0] == pytest.approx(0.01, rel=0.2)
    np.testing.assert_array_equal(stated.smooth[:, 1:], estimated.smooth[:, 1:])
