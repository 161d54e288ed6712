import numpy as np

from gapless.sim.realism.layers.inertial import FORCE_TORQUE, IMU
from unit.sim.realism.layers.playing import run


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
