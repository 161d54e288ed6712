import numpy as np
import pytest

from gapless.sim.realism.actuator import lagged
from gapless.sim.realism.latency import Past, delayed, history_length, plan_delay, settled

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
    np.testing.assert_allclose(delayed(held, plan)[0, :, 0], expected, atol=2 * np.ptp(held) / FINE)


def test_no_delay_is_exactly_the_current_command() -> None:
    held = np.random.default_rng(1).normal(size=(3, 5, 2))
    plan = plan_delay(np.zeros((3, 2)), INTERVAL_S, NUM_SUBSTEPS, 5)
    expected = np.repeat(held[:, -1:], NUM_SUBSTEPS, axis=1)
    assert np.array_equal(delayed(held, plan), expected)


def test_a_constant_command_stays_exactly_what_it_is() -> None:
    held = np.full((1, 6, 1), 0.1)
    plan = plan_delay(np.array([[0.0137]]), INTERVAL_S, NUM_SUBSTEPS, 6)
    assert np.all(delayed(held, plan) == 0.1)


def test_a_whole_interval_is_the_command_before() -> None:
    held = np.array([[[1.0], [2.0], [4.0]]])
    plan = plan_delay(np.array([[INTERVAL_S]]), INTERVAL_S, NUM_SUBSTEPS, 3)
    np.testing.assert_allclose(delayed(held, plan)[0, :, 0], 2.0, rtol=1e-15)


def test_each_command_has_its_own_delay_and_a_row_of_a_batch_is_a_batch_of_one() -> None:
    rng = np.random.default_rng(2)
    held, delay_s = rng.normal(size=(7, 6, 3)), rng.uniform(0, 0.15, (7, 3))
    whole = delayed(held, plan_delay(delay_s, INTERVAL_S, NUM_SUBSTEPS, 6))
    for k in range(7):
        single = delayed(held[k : k + 1], plan_delay(delay_s[k : k + 1], INTERVAL_S, NUM_SUBSTEPS, 6))
        assert np.array_equal(single[0], whole[k])


def test_delayed_is_continuous_in_the_delay() -> None:
    length = history_length(0.15, INTERVAL_S)
    held = np.random.default_rng(3).normal(size=(1, length, 1))
    step_s = 1e-5
    delays_s = np.arange(0, 0.15, step_s)
    seen = np.stack(
        [delayed(held, plan_delay(np.array([[d]]), INTERVAL_S, NUM_SUBSTEPS, length))[0, :, 0] for d in delays_s]
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


def test_past_keeps_the_newest_rows_in_order() -> None:
    past, rows = Past(2, 3, 1), []
    for k in range(10):
        row = np.array([[k], [100.0 + k]])
        past.push(row)
        rows.append(row)
        if k >= 2:
            assert np.array_equal(past.rows, np.stack(rows[-3:], axis=1))
            assert np.array_equal(past.last, row)


def test_past_fills_some_worlds_only() -> None:
    past = Past(3, 4, 2)
    for k in range(6):
        past.push(np.full((3, 2), float(k)))
    before = past.rows.copy()
    past.fill(np.array([2, 0]), np.arange(16.0).reshape(2, 4, 2))
    assert np.array_equal(past.rows[1], before[1])
    assert np.array_equal(past.rows[[2, 0]], np.arange(16.0).reshape(2, 4, 2))
    past.push(np.full((3, 2), 9.0))
    assert np.array_equal(past.rows[2], [[2, 3], [4, 5], [6, 7], [9, 9]])
    past.fill(np.array([1]), np.full((1, 1, 2), 5.0))
    assert np.all(past.rows[1] == 5.0)


@pytest.mark.parametrize("num_past", [1, 2, 40])
def test_lags_settle_where_they_would_stand_had_they_run(num_past: int) -> None:
    rng = np.random.default_rng(4)
    past, keep = rng.normal(size=(5, num_past, 2)), rng.uniform(0, 0.99, (5, 2))
    delay_s = rng.uniform(0, 0.15, (5, 2))
    delay_s[0] = [0.0, INTERVAL_S]  # none, and one that ends with an interval
    length = history_length(0.15, INTERVAL_S)
    plan = plan_delay(delay_s, INTERVAL_S, NUM_SUBSTEPS, length)
    held = np.concatenate([np.repeat(past[:, :1], length, axis=1), past], axis=1)  # the oldest was held forever
    state = past[:, 0]
    for k in range(num_past):
        state = lagged(delayed(held[:, k + 1 : k + 1 + length], plan), state, keep)[:, -1]
    np.testing.assert_allclose(settled(past, keep, delay_s, INTERVAL_S, NUM_SUBSTEPS), state, rtol=0, atol=1e-12)
