import numpy as np

from gapless.sim.realism.layers.delay import BUS, COMMAND_DELAY, INFERENCE, JITTER, READING_DELAY
from unit.sim.realism.layers.playing import flat, run

RAMP = np.arange(400) * 0.01  # a clock: what comes out tells how late it is


def test_a_delay_is_exact_in_seconds_also_between_steps() -> None:
    for layer in (COMMAND_DELAY, READING_DELAY):
        for delay_s in (0.004, 0.01, 0.037, 0.4):
            np.testing.assert_allclose((RAMP - flat(layer, RAMP, delay_s=delay_s))[60:], delay_s, atol=1e-12)


def test_before_the_start_the_signal_was_what_it_was_first() -> None:
    assert np.array_equal(flat(COMMAND_DELAY, np.r_[3.0, 4.0, 5.0], delay_s=0.02), [3.0, 3.0, 3.0])


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
