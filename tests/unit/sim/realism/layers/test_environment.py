"""Layers of the surroundings, and spread between robots and trials."""

import numpy as np

from gapless.sim.realism.layers.environment import CABLE, LIGHT, PATCHES, PUSHES, SPREAD, TEMPERATURE, WIND
from unit.sim.realism.layers.one_layer import flat, run


def test_gusts_have_their_size_and_memory_about_the_steady_wind() -> None:
    out = run(WIND, np.zeros((2000, 3)), num_worlds=100, steady=2.0, gust=0.5, tau_s=0.5)
    np.testing.assert_allclose(out.mean(), 2.0, atol=0.02)
    np.testing.assert_allclose(out.std(), 0.5, rtol=0.03)
    gusts = out - out.mean()
    after_tau = (gusts[50:] * gusts[:-50]).mean() / gusts.var()
    np.testing.assert_allclose(after_tau, np.exp(-1.0), atol=0.03)


def test_pushes_come_at_their_rate_and_last_their_time() -> None:
    out = run(PUSHES, np.zeros((5000, 2)), num_worlds=100, rate_hz=0.5, strength=30.0, length_s=0.1)
    on = out[..., 0] != 0
    begins = (np.diff(on.astype(int), axis=0) == 1).sum()
    np.testing.assert_allclose(begins / (100 * 50.0), 0.5 / (1 + 0.5 * 0.1), rtol=0.05)  # none begins during another
    np.testing.assert_allclose(on.sum() / begins, 10.0, rtol=0.03)
    np.testing.assert_allclose(out[out != 0].std(), 30.0, rtol=0.05)


def test_a_cable_pulls_only_when_taut() -> None:
    seen = {"position": np.array([0.0, 0.5, 1.0, -1.0]), "velocity": np.array([0.0, 2.0, 0.0, 0.0])}
    out = flat(CABLE, np.zeros(4), seen=seen, stiffness=2.0, slack=0.6, drag=0.1)
    np.testing.assert_allclose(out, [0.0, -0.2, -0.8, 0.8])
    moved = flat(CABLE, np.zeros(4), seen=seen, stiffness=2.0, rest=1.0)
    np.testing.assert_allclose(moved, [2.0, 1.0, 0.0, 4.0])


def test_patches_are_constant_within_and_log_normal_between() -> None:
    place = np.zeros((2, 1, 900, 2))
    place[0, 0] = np.stack(np.meshgrid(np.arange(30), np.arange(30) - 15), axis=-1).reshape(-1, 2) * 0.5 + 0.01
    place[1] = place[0] + 0.4
    out = run(PATCHES, np.full((2, 900), 0.6), num_worlds=3, seen={"place": place}, spread=0.2, size_m=0.5)
    assert np.array_equal(out[0], out[1])
    logs = np.log(out[0] / 0.6)
    np.testing.assert_allclose(logs.std(axis=1), 0.2, rtol=0.1)
    assert abs(np.corrcoef(logs[0], logs[1])[0, 1]) < 0.1


def test_temperature_moves_friction_offset_and_battery_together() -> None:
    nominal = np.array([[1.0, 0.0, 1.0]])
    knobs = {"thinning_per_k": 0.02, "offset_per_k": 0.001, "weakening_per_k": 0.004}
    out = [run(TEMPERATURE, nominal, warmth_k=warmth, **knobs)[0, 0] for warmth in (-10.0, 0.0, 10.0)]
    np.testing.assert_allclose(out, [[np.exp(0.2), -0.01, 0.96], [1.0, 0.0, 1.0], [np.exp(-0.2), 0.01, 1.0]])


def test_light_follows_the_sun_and_the_lamps_stay() -> None:
    hours = flat(LIGHT, np.ones(24), step_s=3600.0, share=0.6, clock_s=0.0)
    np.testing.assert_allclose(hours[[0, 3, 6, 12, 22]], [0.4, 0.4, 0.4, 1.0, 0.4], atol=1e-9)
    np.testing.assert_allclose(hours[9], 0.4 + 0.6 * np.sin(np.pi / 4))
    np.testing.assert_allclose(hours[15], hours[9])
    assert flat(LIGHT, np.ones(1), share=0.6, clock_s=9 * 3600.0)[0] == hours[9]


def test_robots_keep_their_factors_and_trials_vary_about_them() -> None:
    # 100 robots with 50 trials each, a world per trial.
    robot = np.repeat(np.arange(100.0), 50)[:, None]
    out = run(SPREAD, np.ones((1, 3)), num_worlds=5000, robot=robot, fleet=0.3, trial=0.05)[0]
    logs = np.log(out).reshape(100, 50, 3)
    np.testing.assert_allclose(logs.std(axis=1).mean(), 0.05, rtol=0.05)
    np.testing.assert_allclose(logs.mean(axis=1).std(), 0.3, rtol=0.15)
    assert abs(np.corrcoef(logs.mean(axis=1).T)[0, 1]) < 0.3


def test_the_same_robot_in_another_world_is_the_same() -> None:
    first = run(SPREAD, np.ones((1, 4)), num_worlds=3, robot=np.array([[5.0], [6.0], [5.0]]), fleet=0.3)[0]
    assert np.array_equal(first[0], first[2])
    assert not np.array_equal(first[0], first[1])


def test_factors_last_the_whole_trial() -> None:
    out = run(SPREAD, np.ones((20, 2)), trial=0.1)
    assert np.ptp(out, axis=0).max() == 0.0
