from dataclasses import replace

import numpy as np
import pytest

from gapless.excite.motion import (
    MOTION,
    CommandLimits,
    Motions,
    draw_motions,
    rest_duration_s,
    sample_commands,
    scale_down,
    vary_motions,
)

RATE_HZ, DURATION_S = 50.0, 10.0
LIMITS = CommandLimits(
    rest=np.array([0.2, 0.0, 0.0]),
    low=np.array([-1.0, -2.0, 0.0]),
    high=np.array([1.0, 2.0, 1.0]),
    max_rate=np.array([1.5, np.inf, np.inf]),
    is_position=np.array([True, False, False]),
)


def one_sine(size: float, middle: float, rate_hz: float = 0.5) -> Motions:
    """Returns one motion in which every command is a single sine."""
    motion = np.zeros((1, 3), MOTION)
    motion["weight"][..., 0] = 1.0
    motion["frequency_hz"], motion["size"], motion["middle"], motion["scale"] = rate_hz, size, middle, 1.0
    return motion


@pytest.fixture
def drawn() -> Motions:
    rng = np.random.default_rng(0)
    first = draw_motions(LIMITS, 40, DURATION_S, RATE_HZ, rng)
    return np.concatenate([first, vary_motions(first, 40, DURATION_S, RATE_HZ, rng)])


def test_every_motion_keeps_the_reach_and_the_rate_of_its_commands(drawn: Motions) -> None:
    sent = sample_commands(drawn, LIMITS, DURATION_S, RATE_HZ)
    assert sent.shape == (80, 500, 3)
    assert np.all(sent >= LIMITS.low - 1e-12)
    assert np.all(sent <= LIMITS.high + 1e-12)
    assert np.all(np.abs(np.diff(sent, axis=1)) * RATE_HZ <= LIMITS.max_rate + 1e-9)


def test_every_motion_rests_at_both_ends_and_moves_between(drawn: Motions) -> None:
    sent = sample_commands(drawn, LIMITS, DURATION_S, RATE_HZ)
    still = round(rest_duration_s(DURATION_S) * RATE_HZ)
    assert np.array_equal(sent[:, : still + 1], np.broadcast_to(LIMITS.rest, sent[:, : still + 1].shape))
    assert np.allclose(sent[:, -still:], LIMITS.rest)
    assert np.all(np.ptp(sent, axis=1) > 0)


def test_no_sine_is_faster_than_the_rate_can_show(drawn: Motions) -> None:
    assert drawn["frequency_hz"].max() <= 4.0  # MAX_FREQUENCY_HZ; 50 Hz / 10 samples would allow 5 Hz
    slow = draw_motions(LIMITS, 40, DURATION_S, 20.0, np.random.default_rng(0))
    assert slow["frequency_hz"].max() <= 2.0  # 20 Hz / 10 samples
    assert np.allclose(slow["frequency_hz"] * DURATION_S, np.round(slow["frequency_hz"] * DURATION_S))  # whole periods


def test_a_sine_in_the_middle_of_its_motion() -> None:
    # size 0.4, middle 1: a place with span [-1, 1] swings by 0.4 about 0.6, the highest where that fits. A push with
    # span [-2, 2] swings by 0.8 about rest + 0.8; one with span [0, 1] by 0.2 about rest + 0.2.
    unhurried = replace(LIMITS, max_rate=np.full(3, np.inf))
    sent = sample_commands(one_sine(0.4, 1.0), unhurried, DURATION_S, RATE_HZ)[0]
    times_s = np.arange(500) / RATE_HZ
    inside = (times_s > 2.0) & (times_s < 8.0)
    wave = np.sin(2 * np.pi * 0.5 * times_s)[inside]
    assert np.allclose(sent[inside], np.stack([0.6 + 0.4 * wave, 0.8 + 0.8 * wave, 0.2 + 0.2 * wave], axis=1))


def test_calm_shrinks_the_deviation_from_rest_alone() -> None:
    motion = one_sine(0.3, 0.5)
    wild = sample_commands(motion, LIMITS, DURATION_S, RATE_HZ)
    calm = sample_commands(scale_down(motion, np.array([0.5, 1.0, 0.0])), LIMITS, DURATION_S, RATE_HZ)
    factor = np.array([0.5, 1.0, 0.0])
    assert np.allclose(calm - LIMITS.rest, factor * (wild - LIMITS.rest))


def test_one_motion_is_a_row_of_many(drawn: Motions) -> None:
    many = sample_commands(drawn, LIMITS, DURATION_S, RATE_HZ)
    assert np.array_equal(sample_commands(drawn[[7]], LIMITS, DURATION_S, RATE_HZ)[0], many[7])
