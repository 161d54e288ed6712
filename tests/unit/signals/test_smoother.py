"""The smoother finds value and slope, and says how well."""

import numpy as np
import pytest

from gapless.signals.smoother import estimate_noise, find_quantum, smooth

INSIDE = slice(25, -25)


def swing(rate_hz: float, hertz: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns two sines of different frequency added, and their slope, over 10 s."""
    times_s = np.arange(int(10 * rate_hz)) / rate_hz
    fast, slow = 2 * np.pi * hertz, 0.74 * np.pi * hertz
    value = 0.5 * np.sin(fast * times_s) + 0.3 * np.sin(slow * times_s)
    return value, 0.5 * fast * np.cos(fast * times_s) + 0.3 * slow * np.cos(slow * times_s)


@pytest.mark.parametrize(("rate_hz", "hertz", "noise"), [(250, 1.7, 0.001), (250, 5.0, 0.01), (100, 1.0, 0.003)])
def test_errors_are_as_large_as_it_says(rate_hz: float, hertz: float, noise: float) -> None:
    value, slope = swing(rate_hz, hertz)
    readings = value + noise * np.random.default_rng(0).standard_normal(len(value))
    found = smooth(readings, rate_hz)
    assert found.noise == pytest.approx(noise, rel=0.1)
    assert 0.6 < np.std((found.value - value)[INSIDE]) / found.value_sd < 1.4
    assert 0.6 < np.std((found.slope - slope)[INSIDE]) / found.slope_sd < 1.4


def test_a_coarse_encoder_gives_a_slope_far_better_than_its_differences() -> None:
    value, slope = swing(250, 1.7)
    readings = np.round(value / 0.003) * 0.003
    found = smooth(readings, 250, quantum=find_quantum(readings))
    by_differences = np.std((np.gradient(readings) * 250 - slope)[INSIDE])
    assert np.std((found.slope - slope)[INSIDE]) < by_differences / 5
    assert found.noise == pytest.approx(0.003 / np.sqrt(12), rel=0.1)


def test_a_joint_at_rest_is_as_noisy_as_its_encoder_is_coarse() -> None:
    readings = np.round(np.concatenate([np.zeros(500), np.linspace(0, 0.3, 500)]) / 0.01) * 0.01
    assert smooth(readings, 100, quantum=find_quantum(readings)).noise >= 0.009 / np.sqrt(12)


def test_stated_noise_is_taken_as_it_is() -> None:
    assert smooth(swing(100, 1.0)[0], 100, noise=0.02).noise == 0.02


def test_a_clean_signal_is_left_alone() -> None:
    value, slope = swing(50, 2.0)
    found = smooth(value, 50)
    assert np.abs(found.value - value).max() < 1e-4
    assert np.abs(found.slope - slope)[INSIDE].max() < 0.01 * np.abs(slope).max()


def test_a_step_is_found_and_none_is_made_up() -> None:
    value = swing(250, 1.0)[0]
    assert find_quantum(np.round(value / 0.004) * 0.004) == pytest.approx(0.004)
    assert find_quantum(value) == 0.0
    assert find_quantum(np.zeros(100)) == 0.0


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_short_signals_pass(count: int) -> None:
    found = smooth(np.linspace(0, 1, count), 10)
    assert np.allclose(found.value, np.linspace(0, 1, count), atol=1e-3)
    if count >= 3:
        assert np.allclose(found.slope, 10 / (count - 1), rtol=1e-3)


@pytest.mark.filterwarnings("error")
def test_a_column_without_any_reading_has_a_noise_and_no_warning() -> None:
    assert 0.0 < estimate_noise(np.zeros(0)) < 1e-9
