import numpy as np
import pytest

from gapless.core.parameters import ParameterSpace
from gapless.fit.data import read_project_data
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import cut_windows
from gapless.fit.remainder.motion import Motion, follow_motion, force_responses, smooth_in_windows
from gapless.fit.remainder.shapes import accumulate_heat, bend_bristles
from unit.identify.realities import CART, PLACE_AND_SPEED, write_reality

RATE_HZ = 100.0


def make_motion(velocity: np.ndarray, run: list[int], first_s: list[float], piece_s: float = 0.02) -> Motion:
    """Returns a motion of one joint: (num_windows, num_pieces) velocities."""
    shape = (*velocity.shape, 1)
    times_s = np.array(first_s)[:, None] + (np.arange(velocity.shape[1]) + 0.5) * piece_s
    zero, v = np.zeros(shape), velocity[..., None]
    return Motion(zero, v, zero, v, zero, np.ones(1), zero, times_s, np.array(run), piece_s)


def test_a_smooth_error_is_found_with_its_slope() -> None:
    # 2 + 3 t - 4 t^2 has the slope 3 - 8 t
    times_s = np.arange(31) / RATE_HZ
    left = (2 + 3 * times_s - 4 * times_s**2)[None, :, None]
    value, slope = smooth_in_windows(left, RATE_HZ)
    np.testing.assert_allclose(value, left, atol=1e-6)
    np.testing.assert_allclose(slope[0, :, 0], 3 - 8 * times_s, atol=1e-4)


def test_a_column_without_readings_has_no_error() -> None:
    value, slope = smooth_in_windows(np.full((1, 31, 1), np.nan), RATE_HZ)
    assert not value.any()
    assert not slope.any()


def test_a_force_on_a_free_cart_changes_its_speed_by_impulse_over_mass(tmp_path) -> None:
    # 1 N over a piece of 0.02 s on 1 kg: 0.02 m/s afterwards, nothing before
    write_reality(tmp_path, {}, xml=CART, measurements=PLACE_AND_SPEED, parameters=(), num_logs=1)
    data = read_project_data(tmp_path)
    windows = cut_windows(data.project, data.tracks, 0.3)
    predictor = Predictor(data.blueprint, ParameterSpace(()))
    num_steps, rate_hz = windows.num_steps, data.project.rate_hz
    motion = follow_motion(predictor, windows, np.zeros(0), num_steps)
    found = force_responses(predictor, windows, np.zeros(0), motion, [0])[0]
    np.testing.assert_allclose(found[:, 2, :2], 0.0, atol=1e-9)
    np.testing.assert_allclose(found[:, 2, 2:, 1], 1.0 / rate_hz, rtol=1e-6)


def test_bristles_bend_by_the_way_and_remember_across_windows() -> None:
    # z' = (v - |v| z) / way from 0: z = 1 - exp(-v t / way); pieces hold means of their two ends
    v = np.full((2, 10), 0.5)
    motion = make_motion(v, run=[0, 0], first_s=[0.0, 0.2])
    bent = bend_bristles(motion, v, way=0.5)
    start = np.tanh(0.5 * 0.1 / 0.5)
    ends = 1 - (1 - start) * np.exp(-np.arange(21) * 0.02)
    np.testing.assert_allclose(bent.ravel(), (ends[1:] + ends[:-1]) / 2, rtol=1e-9)


def test_heat_of_a_constant_effort_grows_with_time() -> None:
    motion = make_motion(np.zeros((2, 10)), run=[0, 1], first_s=[0.0, 1.0])
    heat = accumulate_heat(motion, np.full((2, 10), 3.0))
    np.testing.assert_allclose(heat, motion.time_s / motion.time_s.max())


@pytest.mark.parametrize("first_s", [0.0, 5.0])
def test_bristles_of_another_run_begin_anew(first_s: float) -> None:
    v = np.full((2, 10), -0.5)
    bent = bend_bristles(make_motion(v, run=[0, 1], first_s=[0.0, first_s]), v, way=0.5)
    np.testing.assert_allclose(bent[0], bent[1])
