"""Delay, lag and backlash of commands."""

import numpy as np
import pytest

from gapless.sim.realism.signal_path import (
    apply_backlash,
    apply_delay,
    apply_lag,
    engine_time_constant,
    history_length,
    lag_remainder,
    plan_delay,
    settle_lag,
)

INTERVAL_S, NUM_SUBSTEPS, FINE = 0.04, 8, 2000


def brute_force(held: np.ndarray, delay_s: float) -> np.ndarray:
    """Means over the substeps of the last interval of a held signal that is late, by fine sampling."""
    middle = (np.arange(NUM_SUBSTEPS * FINE) + 0.5) / (NUM_SUBSTEPS * FINE)
    place = len(held) - 1 + np.floor(middle - delay_s / INTERVAL_S).astype(int)
    return held[np.clip(place, 0, None)].reshape(NUM_SUBSTEPS, FINE).mean(axis=1)


@pytest.mark.parametrize("delay_s", [0.0, 0.001, 0.005, 0.0173, 0.04, 0.0401, 0.0999, 0.12, 0.15])
def test_delayed_is_the_mean_of_the_late_held_signal(delay_s: float) -> None:
    length = history_length(0.15, INTERVAL_S)
    held = np.random.default_rng(0).normal(size=(1, length, 1))
    plan = plan_delay(np.array([[delay_s]]), INTERVAL_S, NUM_SUBSTEPS, length)
    # Fine sampling errs by at most one of FINE samples of a jump.
    expected = brute_force(held[0, :, 0], delay_s)
    np.testing.assert_allclose(apply_delay(held, plan)[0, :, 0], expected, atol=2 * np.ptp(held) / FINE)


def test_no_delay_is_exactly_the_current_command() -> None:
    held = np.random.default_rng(1).normal(size=(3, 5, 2))
    plan = plan_delay(np.zeros((3, 2)), INTERVAL_S, NUM_SUBSTEPS, 5)
    expected = np.repeat(held[:, -1:], NUM_SUBSTEPS, axis=1)
    assert np.array_equal(apply_delay(held, plan), expected)


def test_a_constant_command_stays_exactly_what_it_is() -> None:
    held = np.full((1, 6, 1), 0.1)
    plan = plan_delay(np.array([[0.0137]]), INTERVAL_S, NUM_SUBSTEPS, 6)
    assert np.all(apply_delay(held, plan) == 0.1)


def test_a_whole_interval_is_the_command_before() -> None:
    held = np.array([[[1.0], [2.0], [4.0]]])
    plan = plan_delay(np.array([[INTERVAL_S]]), INTERVAL_S, NUM_SUBSTEPS, 3)
    np.testing.assert_allclose(apply_delay(held, plan)[0, :, 0], 2.0, rtol=1e-15)


def test_each_command_has_its_own_delay_and_a_row_of_a_batch_is_a_batch_of_one() -> None:
    rng = np.random.default_rng(2)
    held, delay_s = rng.normal(size=(7, 6, 3)), rng.uniform(0, 0.15, (7, 3))
    whole = apply_delay(held, plan_delay(delay_s, INTERVAL_S, NUM_SUBSTEPS, 6))
    for k in range(7):
        single = apply_delay(held[k : k + 1], plan_delay(delay_s[k : k + 1], INTERVAL_S, NUM_SUBSTEPS, 6))
        assert np.array_equal(single[0], whole[k])


def test_delayed_is_continuous_in_the_delay() -> None:
    length = history_length(0.15, INTERVAL_S)
    held = np.random.default_rng(3).normal(size=(1, length, 1))
    step_s = 1e-5
    delays_s = np.arange(0, 0.15, step_s)
    seen = np.stack(
        [apply_delay(held, plan_delay(np.array([[d]]), INTERVAL_S, NUM_SUBSTEPS, length))[0, :, 0] for d in delays_s]
    )
    # The mean over a substep h moves by at most jump * step / h; there are at most two jumps.
    steepest = 2 * np.ptp(held) * step_s / (INTERVAL_S / NUM_SUBSTEPS)
    assert np.abs(np.diff(seen, axis=0)).max() <= steepest


def test_the_history_holds_the_longest_delay() -> None:
    # 0.15 s are 3.75 intervals: the current command, 4 before it, and none to spare.
    assert history_length(0.15, INTERVAL_S) == 6
    assert history_length(0.0, INTERVAL_S) == 2
    plan = plan_delay(np.array([[0.15]]), INTERVAL_S, NUM_SUBSTEPS, 6)
    assert plan.index.min() >= 0


def test_several_intervals_are_delayed_as_one_after_another() -> None:
    rng = np.random.default_rng(5)
    held, delay_s = rng.normal(size=(3, 6 - 1 + 4, 2)), rng.uniform(0, 0.15, (3, 2))
    plan = plan_delay(delay_s, INTERVAL_S, NUM_SUBSTEPS, 6)
    each = [apply_delay(held[:, k : k + 6], plan) for k in range(4)]
    assert np.array_equal(apply_delay(held, plan, 4), np.concatenate(each, axis=1))


@pytest.mark.parametrize("num_past", [1, 2, 40])
def test_lags_settle_where_they_would_stand_had_they_run(num_past: int) -> None:
    rng = np.random.default_rng(4)
    past, remainder = rng.normal(size=(5, num_past, 2)), rng.uniform(0, 0.99, (5, 2))
    delay_s = rng.uniform(0, 0.15, (5, 2))
    delay_s[0] = [0.0, INTERVAL_S]  # none, and one that ends with an interval
    length = history_length(0.15, INTERVAL_S)
    plan = plan_delay(delay_s, INTERVAL_S, NUM_SUBSTEPS, length)
    held = np.concatenate([np.repeat(past[:, :1], length, axis=1), past], axis=1)  # the oldest was held forever
    state = past[:, 0]
    for k in range(num_past):
        state = apply_lag(apply_delay(held[:, k + 1 : k + 1 + length], plan), state, remainder)[:, -1]
    np.testing.assert_allclose(
        settle_lag(past, remainder, delay_s, INTERVAL_S, NUM_SUBSTEPS), state, rtol=0, atol=1e-12
    )


def test_backlash_moves_only_when_pushed() -> None:
    # Play of 0.2: the output trails the input by 0.1 and stays while the input turns back within it.
    width, output = np.array([[0.2]]), np.array([[0.0]])
    seen = []
    for command in (0.05, 0.3, 0.5, 0.45, 0.31, 0.2, 0.0):
        output = apply_backlash(output, np.array([[command]]), width)
        seen.append(float(output[0, 0]))
    np.testing.assert_allclose(seen, [0.0, 0.2, 0.4, 0.4, 0.4, 0.3, 0.1])


def test_without_play_the_output_is_exactly_the_input() -> None:
    rng = np.random.default_rng(0)
    position, command = rng.normal(size=(2, 50, 3))
    assert np.array_equal(apply_backlash(position, command, np.zeros((50, 3))), command)


def test_backlash_of_a_row_of_a_batch_is_that_of_a_batch_of_one() -> None:
    rng = np.random.default_rng(1)
    position, command = rng.normal(size=(2, 9, 2))
    width = rng.uniform(0, 1, (9, 2))
    whole = apply_backlash(position, command, width)
    for k in range(9):
        one = slice(k, k + 1)
        assert np.array_equal(apply_backlash(position[one], command[one], width[one]), whole[one])


def test_a_lag_answers_a_step_by_ever_smaller_steps() -> None:
    # Lag 3 ms, step 1 ms: remainder = 3/4; after n steps 1 - (3/4)^n.
    remainder = lag_remainder(np.array([[0.003]]), 0.001)
    seen = apply_lag(np.ones((1, 4, 1)), np.zeros((1, 1)), remainder)
    np.testing.assert_allclose(seen[0, :, 0], [1 - 0.75**n for n in (1, 2, 3, 4)], rtol=1e-15)


def test_the_mean_delay_of_a_lag_is_the_lag_for_any_step() -> None:
    # What a step of 1 lacks, summed over time: h (k + k^2 + ...) = h k / (1 - k) = lag.
    lag_s = np.array([[0.0004, 0.002, 0.05]])
    for step_s in (0.0005, 0.002, 0.01):
        seen = apply_lag(np.ones((1, 4000, 3)), np.zeros((1, 3)), lag_remainder(lag_s, step_s))
        np.testing.assert_allclose(step_s * (1 - seen[0]).sum(axis=0), lag_s[0], rtol=1e-9)


def test_the_engine_keeps_as_much() -> None:
    for lag_s in (1e-4, 0.003, 0.2):
        remainder = float(lag_remainder(np.array(lag_s), 0.002))
        np.testing.assert_allclose(np.exp(-0.002 / engine_time_constant(lag_s, 0.002)), remainder, rtol=1e-12)
    np.testing.assert_allclose(engine_time_constant(0.2, 0.002), 0.201, rtol=1e-5)  # lag + step / 2 far above the step


def test_without_lag_the_output_is_exactly_the_input() -> None:
    rng = np.random.default_rng(2)
    command, before = rng.normal(size=(7, 5, 3)), rng.normal(size=(7, 3))
    assert np.array_equal(apply_lag(command, before, lag_remainder(np.zeros((7, 3)), 0.002)), command)


def test_lag_of_a_row_of_a_batch_is_that_of_a_batch_of_one() -> None:
    rng = np.random.default_rng(3)
    command, before, remainder = rng.normal(size=(9, 5, 2)), rng.normal(size=(9, 2)), rng.uniform(0, 1, (9, 2))
    whole = apply_lag(command, before, remainder)
    for k in range(9):
        one = slice(k, k + 1)
        assert np.array_equal(apply_lag(command[one], before[one], remainder[one]), whole[one])
