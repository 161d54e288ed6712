import numpy as np

from gapless.sim.realism.layers.reading import BIAS, ENCODER_BACKLASH, NOISE, OCCLUSION, OUTLIERS, QUANTISATION
from unit.sim.realism.layers.playing import flat, run

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
