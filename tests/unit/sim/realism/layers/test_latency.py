"""Layers that make signals late or lose them."""

import numpy as np

from gapless.sim.realism.layers.latency import BUS, DROPPED, DUPLICATED, INFERENCE, JITTER, SAMPLE_HOLD
from unit.sim.realism.layers.one_layer import flat, run

RAMP = np.arange(400) * 0.01  # a clock: what comes out tells how late it is


def test_a_delay_is_exact_in_seconds_also_between_steps() -> None:
    for delay_s in (0.004, 0.01, 0.037, 0.3):
        np.testing.assert_allclose((RAMP - flat(INFERENCE, RAMP, inference_s=delay_s))[60:], delay_s, atol=1e-12)


def test_before_the_start_the_signal_was_what_it_was_first() -> None:
    assert np.array_equal(flat(INFERENCE, np.r_[3.0, 4.0, 5.0], inference_s=0.02), [3.0, 3.0, 3.0])


def test_jitter_is_half_normal_and_never_turns_time_back() -> None:
    out = run(JITTER, RAMP, num_worlds=400, jitter_s=0.003)[50:, :, 0]
    late = RAMP[50:, None] - out
    np.testing.assert_allclose(late.mean(), 0.003 * np.sqrt(2 / np.pi), rtol=0.02)
    wild = run(JITTER, RAMP, num_worlds=50, jitter_s=0.05)[:, :, 0]
    assert np.diff(wild, axis=0).min() > -1e-12
    assert late.std() > 0.001


def test_a_bus_serves_joints_in_turn_with_one_common_wait() -> None:
    out = run(BUS, np.repeat(RAMP[:, None], 4, axis=1), num_worlds=300, cycle_s=0.008, slot_s=0.002)[50:]
    late = RAMP[50:, None, None] - out
    np.testing.assert_allclose(np.diff(late, axis=2), 0.002, atol=1e-12)
    assert late[..., 0].min() >= -1e-12
    np.testing.assert_allclose(late[..., 0].mean(), 0.004, rtol=0.02)


def test_inference_takes_its_time_and_stalls_in_its_share_of_steps() -> None:
    out = run(INFERENCE, RAMP, num_worlds=500, inference_s=0.005, spike_share=0.1, spike_s=0.01)[50:, :, 0]
    late = RAMP[50:, None] - out
    np.testing.assert_allclose(np.unique(np.round(late, 9)), [0.005, 0.015])
    np.testing.assert_allclose((late > 0.01).mean(), 0.1, rtol=0.03)


def test_a_long_stall_lets_the_last_command_grow_old() -> None:
    late = RAMP - flat(INFERENCE, RAMP, inference_s=0.005, spike_share=0.05, spike_s=0.03)
    first = int(np.flatnonzero(late[50:] > 0.006)[0]) + 50
    np.testing.assert_allclose(late[first - 1 : first + 3], [0.005, 0.015, 0.025, 0.035])


COUNT = np.arange(2000.0)


def test_the_stated_share_is_lost_in_runs_of_the_stated_length() -> None:
    out = run(DROPPED, np.repeat(COUNT[:, None], 2, axis=1), num_worlds=200, share=0.1, burst=4.0)
    assert np.array_equal(out[..., 0], out[..., 1])  # one packet for all columns
    lost = out[..., 0] != COUNT[:, None]
    np.testing.assert_allclose(lost.mean(), 0.1, rtol=0.03)
    runs = (np.diff(lost.astype(int), axis=0) == 1).sum()
    np.testing.assert_allclose(lost.sum() / runs, 4.0, rtol=0.03)


def test_what_is_lost_is_replaced_by_what_came_last() -> None:
    out = flat(DROPPED, COUNT, share=0.5, burst=2.0)
    changed = out == COUNT
    held = np.flatnonzero(~changed[1:]) + 1
    assert np.array_equal(out[held], out[held - 1])


def test_each_duplicate_makes_the_rest_later_until_the_queue_is_flushed() -> None:
    out = run(DUPLICATED, COUNT, num_worlds=100, share=0.05, queue=3.0)[..., 0]
    late = COUNT[:, None] - out
    assert set(np.unique(late)) == {0.0, 1.0, 2.0, 3.0}
    repeats = np.diff(out, axis=0) == 0
    np.testing.assert_allclose(repeats.mean(), 0.05 * 3 / 4, rtol=0.05)  # every fourth one flushes instead
    np.testing.assert_allclose(np.bincount(late[500:].astype(int).ravel()) / late[500:].size, 0.25, rtol=0.1)


def test_a_slower_sensor_keeps_its_rate_also_when_steps_do_not_divide_it() -> None:
    out = flat(SAMPLE_HOLD, COUNT, step_s=0.01, period_s=0.025)
    fresh = np.flatnonzero(np.diff(out) > 0)
    np.testing.assert_allclose(len(fresh) / 20.0, 40.0, rtol=0.01)  # 20 s at 40 Hz
    assert set(np.diff(fresh)) == {2, 3}
    assert out[0] == 0.0
