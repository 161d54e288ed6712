"""Layers on readings."""

import numpy as np

from gapless.sim.realism.layers.sensor import (
    BIAS,
    DEPTH,
    ENCODER_BACKLASH,
    FORCE_TORQUE,
    IMU,
    NOISE,
    OCCLUSION,
    OUTLIERS,
    QUANTISATION,
    RANGE,
)
from unit.sim.realism.layers.one_layer import flat, run

STILL = np.zeros(1000)


def test_scale_and_bias_are_a_line() -> None:
    np.testing.assert_allclose(flat(BIAS, np.array([0.0, 1.0]), scale=1.1, bias=-0.2), [-0.2, 0.9])


def test_drift_spreads_with_the_root_of_time() -> None:
    out = run(BIAS, STILL, num_worlds=4000, drift=0.5)[..., 0]
    np.testing.assert_allclose(out[100].std(), 0.5 * 1.0, rtol=0.05)  # after 1 s
    np.testing.assert_allclose(out[900].std(), 0.5 * 3.0, rtol=0.05)  # after 9 s


def test_noise_is_white_of_the_stated_size() -> None:
    out = run(NOISE, np.zeros((1000, 3)), num_worlds=20, noise=0.3)
    np.testing.assert_allclose(out.std(), 0.3, rtol=0.02)
    assert abs(np.corrcoef(out[1:].ravel(), out[:-1].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(out[..., 0].ravel(), out[..., 1].ravel())[0, 1]) < 0.02


def test_readings_are_multiples_of_the_step() -> None:
    np.testing.assert_allclose(flat(QUANTISATION, np.array([0.24, -0.26, 1.0]), step=0.1), [0.2, -0.3, 1.0])


def test_a_step_of_its_own_for_each_column_and_none_at_all() -> None:
    # 0.26 in steps of 0.1 is 0.3; in steps of 0.5 it is 0.5; a step of 0 leaves it, exactly.
    out = run(QUANTISATION, np.full((1, 3), 0.26), step=np.array([0.1, 0.5, 0.0]))[0, 0]
    np.testing.assert_allclose(out, [0.3, 0.5, 0.26])
    assert out[2] == 0.26


def test_quantisation_errs_by_half_a_step_at_most() -> None:
    value, step = np.random.default_rng(1).normal(size=(500, 2)), np.array([0.03, 0.7])
    assert np.all(np.abs(run(QUANTISATION, value, step=step)[:, 0] - value) <= step / 2 + 1e-12)


def test_an_encoder_behind_play_does_not_see_small_reversals() -> None:
    np.testing.assert_allclose(flat(ENCODER_BACKLASH, np.array([0.0, 1.0, 0.95, 0.7]), width=0.2), [0.0, 0.9, 0.9, 0.8])


def test_occlusion_hides_its_share_of_time_for_its_mean_length() -> None:
    clock = np.arange(3000) * 0.01
    out = run(OCCLUSION, clock, num_worlds=200, share=0.2, blind_s=0.1)[..., 0]
    hidden = out != clock[:, None]
    np.testing.assert_allclose(hidden.mean(), 0.2, rtol=0.04)
    lengths_s = hidden.sum() / (np.diff(hidden.astype(int), axis=0) == 1).sum() * 0.01
    np.testing.assert_allclose(lengths_s, 0.1, rtol=0.04)


def test_outliers_are_rare_large_and_in_all_columns() -> None:
    out = run(OUTLIERS, np.zeros((1000, 3)), num_worlds=200, share=0.01, size=2.0)
    wrong = out != 0
    assert np.array_equal(wrong.any(axis=2), wrong.all(axis=2))
    np.testing.assert_allclose(wrong.mean(), 0.01, rtol=0.05)
    np.testing.assert_allclose(out[wrong].std(), 2.0, rtol=0.03)


def allan_deviation(rates: np.ndarray, size: int) -> float:
    """Returns the Allan deviation of (num_samples, ...) for means over `size` samples, without overlap."""
    whole = len(rates) // size * size
    means = rates[:whole].reshape(-1, size, *rates.shape[1:]).mean(axis=1)
    return float(np.sqrt(np.mean(np.diff(means, axis=0) ** 2) / 2))


def at_rest(num: int, **knobs: float) -> np.ndarray:
    return run(IMU, np.zeros((num, 3)), num_worlds=100, **knobs)


def test_white_noise_falls_with_the_root_of_the_averaging_time() -> None:
    # Density N: N / sqrt(t) at any averaging time t, a slope of -1/2.
    out = at_rest(4000, density=0.02)
    for size in (1, 10, 100):
        np.testing.assert_allclose(allan_deviation(out, size), 0.02 / np.sqrt(size * 0.01), rtol=0.04)


def test_a_random_walk_rises_with_the_root_of_the_averaging_time() -> None:
    # Walk K: K sqrt(t / 3), a slope of +1/2.
    out = at_rest(4000, walk=0.1)
    for size in (50, 200):
        np.testing.assert_allclose(allan_deviation(out, size), 0.1 * np.sqrt(size * 0.01 / 3), rtol=0.05)


def test_bias_instability_peaks_near_twice_its_time_constant() -> None:
    # Gauss-Markov: deviation s, and an Allan deviation of 0.617 s at 1.89 tau; here tau = 1 s, 189 samples.
    out = at_rest(6000, instability=0.3, tau_s=1.0)
    np.testing.assert_allclose(out[0].std(), 0.3, rtol=0.1)  # from the start on
    np.testing.assert_allclose(out.std(), 0.3, rtol=0.04)
    np.testing.assert_allclose(allan_deviation(out, 189), 0.617 * 0.3, rtol=0.05)
    after_tau = (out[100:] * out[:-100]).mean() / out.var()
    np.testing.assert_allclose(after_tau, np.exp(-1.0), atol=0.03)
    assert allan_deviation(out, 189) > max(allan_deviation(out, 20), allan_deviation(out, 1500))


def test_scale_misalignment_and_saturation() -> None:
    # A turn of 0.01 rad about z shows x in y: (0, 0, 0.01) x (1, 0, 0) = (0, 0.01, 0).
    turn = np.array([0.0, 0.0, 0.01])
    np.testing.assert_allclose(
        run(IMU, np.array([[1.0, 0.0, 0.0]]), misalignment=turn, scale=1.1)[0, 0], [1.1, 0.011, 0.0]
    )
    np.testing.assert_allclose(run(IMU, np.array([[9.0, -9.0, 1.0]]), range=5.0)[0, 0], [5.0, -5.0, 1.0])


def test_force_torque_zero_moves_with_warmth_in_shares_of_full_scale() -> None:
    warmth = np.full((1, 1), 10.0)
    out = run(FORCE_TORQUE, np.zeros((1, 6)), seen={"warmth_k": warmth}, zero_per_k=1e-3, full_n=200.0, full_nm=10.0)
    np.testing.assert_allclose(out[0, 0], [2.0, 2.0, 2.0, 0.1, 0.1, 0.1])


def test_cross_talk_shows_a_force_in_the_other_channels() -> None:
    # Half of full scale in fz, 1 %: 0.5 % of full scale everywhere else.
    load = np.array([[0.0, 0.0, 100.0, 0.0, 0.0, 0.0]])
    out = run(FORCE_TORQUE, load, seen={"warmth_k": np.zeros((1, 1))}, crosstalk=0.01, full_n=200.0, full_nm=10.0)
    np.testing.assert_allclose(out[0, 0], [1.0, 1.0, 100.0, 0.05, 0.05, 0.05])


def test_beams_are_lost_or_too_long_in_their_shares() -> None:
    out = run(RANGE, np.full((200, 50), 4.0), num_worlds=20, dropout=0.05, far_m=30.0, multipath=0.1, excess_m=0.5)
    np.testing.assert_allclose((out == 30.0).mean(), 0.05, rtol=0.03)
    echo = (out > 4.0) & (out != 30.0)
    np.testing.assert_allclose(echo.mean(), 0.1, rtol=0.03)
    np.testing.assert_allclose((out[echo] - 4.0).mean(), 0.5, rtol=0.03)
    assert out.min() == 4.0


def test_noise_of_beams() -> None:
    np.testing.assert_allclose(run(RANGE, np.full((200, 50), 4.0), noise_m=0.02).std(), 0.02, rtol=0.03)


def test_depth_noise_grows_with_the_square_of_distance() -> None:
    for distance_m in (1.0, 5.0):
        out = run(DEPTH, np.full((200, 50), distance_m), base_m=0.001, growth_per_m=0.0016)
        np.testing.assert_allclose(out.std(), 0.001 + 0.0016 * distance_m**2, rtol=0.03)


def test_pixels_fly_at_edges_only() -> None:
    line = np.repeat([[1.0] * 5 + [2.0] * 5], 2000, axis=0)
    out = run(DEPTH, line, flying=0.3)[:, 0]
    flying = out != line
    np.testing.assert_allclose(flying.mean(axis=0), [0, 0, 0, 0, 0.3, 0, 0, 0, 0, 0], atol=0.03)
    assert np.all((out[flying] > 1.0) & (out[flying] < 2.0))


def test_steps_below_the_edge_are_no_edges() -> None:
    line = np.repeat([[1.0, 1.09, 1.2]], 200, axis=0)
    flying = (run(DEPTH, line, flying=1.0, edge_m=0.1)[:, 0] != line).mean(axis=0)
    assert np.array_equal(flying, [0.0, 1.0, 0.0])


def test_shiny_pixels_have_no_depth() -> None:
    out = run(DEPTH, np.ones((5000, 2)), shiny=np.array([0.0, 0.9]))[:, 0]
    np.testing.assert_allclose((out == 0).mean(axis=0), [0.0, 0.9], atol=0.02)
