"""Samples that cannot be readings."""

import numpy as np
import pytest

from gapless.project.log.corrupt import find_corrupt

TIMES_S = np.arange(500) / 100.0
SMOOTH = np.sin(3 * TIMES_S)  # largest step 0.03


def found(values: np.ndarray, quantity: str = "position") -> dict[str, list[int]]:
    return {text.split(" ")[0]: list(np.flatnonzero(flags)) for flags, text in find_corrupt(values, TIMES_S, quantity)}


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_spike_is_found(width: int) -> None:
    values = SMOOTH.copy()
    values[200 : 200 + width] += 5.0
    assert found(values) == {"stick": list(range(200, 200 + width))}


def test_a_marker_of_lost_readings_is_found() -> None:
    values = SMOOTH.copy() + 3.0
    values[300:320] = -1.0
    assert found(values) == {"are": list(range(300, 320))}


def test_a_sensor_that_froze_and_caught_up_is_found() -> None:
    values = SMOOTH.copy()
    values[100:150] = values[100]  # from sin(3.0) = 0.14 to sin(4.5) = -0.98: it jumps by 1.1
    assert found(values) == {"repeat": list(range(101, 150))}


def test_a_sample_that_was_sent_twice_is_found() -> None:
    values = SMOOTH.copy()
    values[10] = values[9]
    assert found(values) == {"repeat": [10]}


def test_a_column_at_half_the_rate_is_found() -> None:
    values = SMOOTH[np.arange(500) // 2 * 2]
    texts = [text for _, text in find_corrupt(values, TIMES_S, "position")]
    assert len(texts) == 1
    assert "every 2 samples" in texts[0]


@pytest.mark.parametrize(
    "values",
    [
        SMOOTH,
        np.round(SMOOTH / 0.01) * 0.01,  # a coarse encoder: three quanta per sample at most
        np.round(0.1 * SMOOTH / 0.01) * 0.01,  # and a slow joint: one quantum at a time, then many samples of rest
        np.where(TIMES_S < 2, 0.0, np.clip(TIMES_S - 2, 0, 1)),  # rest, a ramp, rest
        np.where(TIMES_S < 2, 0.0, 1.0),  # a jump that stays: a step command followed at once
        np.abs(np.sin(3 * TIMES_S)),  # a ball that bounces
        SMOOTH + 0.01 * np.random.default_rng(0).standard_normal(500),
        np.zeros(500),
        np.full(500, np.nan),
    ],
    ids=["smooth", "coarse", "slow and coarse", "ramp", "step", "bounces", "noisy", "constant", "missing"],
)
def test_what_can_be_a_reading_is_kept(values: np.ndarray) -> None:
    assert found(values) == {}


@pytest.mark.parametrize("quantity", ["effort", "force", "value", "qw", "yaw"])
def test_what_may_jump_is_not_judged(quantity: str) -> None:
    values = SMOOTH.copy()
    values[200] += 50.0
    assert found(values, quantity) == {}
