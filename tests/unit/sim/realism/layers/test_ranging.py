import numpy as np

from gapless.sim.realism.layers.ranging import DEPTH, RANGE
from unit.sim.realism.layers.playing import run


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
