"""Slopes of things that collide: right up to the impact, and honest about where they are not."""

import numpy as np
import pytest

from gapless.signals.smoother import smooth, smooth_between_impacts

RATE_HZ, NOISE = 200.0, 2e-4


def bounce(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Returns height and sideways place of a ball that hits the floor at row 100, and their true slopes."""
    time_s = (np.arange(200) - 100) / RATE_HZ
    fall = np.where(time_s < 0, -2.0, 1.2)  # m/s at the impact, before and after it
    height, slope = fall * time_s - 4.905 * time_s**2, fall - 9.81 * time_s
    aside = np.where(time_s < 0, 1.0, 0.6)
    place = np.stack([height, aside * time_s], axis=1)
    return place + NOISE * rng.standard_normal(place.shape), np.stack([slope, aside], axis=1)


@pytest.mark.parametrize("seed", range(5))
def test_slopes_near_an_impact_are_as_sure_as_they_say(seed: int) -> None:
    values, slope = bounce(np.random.default_rng(seed))
    found, calm = smooth_between_impacts(values, RATE_HZ, [NOISE, NOISE], [0.0, 0.0])
    assert not calm[98:103].any()
    assert calm[10:90].all()
    assert calm[112:190].all()
    for k in range(2):
        inside = calm & (np.arange(200) >= 5) & (np.arange(200) < 195)
        error = (found[k].slope - slope[:, k])[inside] / found[k].slope_sd
        assert np.sqrt(np.mean(error**2)) < 2.0
        assert np.abs(error).max() < 6.0


def test_they_are_surer_than_where_the_impact_is_smoothed_over() -> None:
    values, slope = bounce(np.random.default_rng(1))
    found, calm = smooth_between_impacts(values, RATE_HZ, [NOISE, NOISE], [0.0, 0.0])
    plain = smooth(values[:, 0], RATE_HZ, NOISE)
    errors = [np.sqrt(np.mean((one.slope - slope[:, 0])[calm] ** 2)) for one in (found[0], plain)]
    assert errors[0] < 0.7 * errors[1]


def test_without_impacts_nothing_is_flagged() -> None:
    time_s = np.arange(300) / RATE_HZ
    rng = np.random.default_rng(2)
    values = np.stack([np.sin(3 * time_s), np.cos(5 * time_s)], axis=1) + NOISE * rng.standard_normal((300, 2))
    _, calm = smooth_between_impacts(values, RATE_HZ, [None, None], [0.0, 0.0])
    assert calm.mean() > 0.95


def test_a_motion_in_a_log_that_mostly_rests_is_no_impact() -> None:
    rng = np.random.default_rng(3)
    time_s = np.arange(400) / 50.0
    moved = np.where((time_s > 1) & (time_s < 2), 0.1 * np.sin(np.pi * (time_s - 1)) ** 2 * np.sin(20 * time_s), 0.0)
    values = moved[:, None] + 1e-4 * rng.standard_normal((400, 1))
    found, calm = smooth_between_impacts(values, 50.0, [None], [0.0])
    assert calm.all()
    np.testing.assert_array_equal(found[0].value, smooth(values[:, 0], 50.0).value)
