import numpy as np

from gapless.sim.realism.layers.packets import DROPPED, DUPLICATED, SAMPLE_HOLD
from unit.sim.realism.layers.playing import flat, run

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
