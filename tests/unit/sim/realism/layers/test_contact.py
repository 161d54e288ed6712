"""Layers on contacts and objects, in closed form."""

import numpy as np

from gapless.sim.realism.layers.contact import FRICTION_WAVES, RESTITUTION, SIZE, SOFTNESS, UNEVEN_MASS
from unit.sim.realism.layers.one_layer import flat, run


def test_waves_repeat_after_their_length_and_average_to_nothing() -> None:
    grid = np.stack(np.meshgrid(np.arange(40) * 0.005, np.arange(40) * 0.005), axis=-1).reshape(1, 1, -1, 2)
    friction = np.ones((1, 1, 1600))
    here = run(FRICTION_WAVES, friction, seen={"place": grid}, amplitude=0.3, wavelength_m=0.1)
    there = run(FRICTION_WAVES, friction, seen={"place": grid + np.array([0.1, 0.2])}, amplitude=0.3, wavelength_m=0.1)
    np.testing.assert_allclose(here, there)
    np.testing.assert_allclose(here.mean(), 1.0, atol=1e-9)
    np.testing.assert_allclose([here.min(), here.max()], [0.7, 1.3], atol=0.02)


def test_waves_differ_between_worlds() -> None:
    place = np.zeros((1, 5, 1, 2))
    out = run(FRICTION_WAVES, np.ones((1, 5, 1)), num_worlds=5, seen={"place": place}, amplitude=0.3)
    assert len(np.unique(out)) == 5


def test_a_pad_is_a_spring_in_series() -> None:
    # 1e4 N/m and a pad of 1e4 N/m (1e-4 m/N): half.
    np.testing.assert_allclose(flat(SOFTNESS, np.array([1e4]), compliance=1e-4), 5e3)


def test_fast_impacts_bounce_less() -> None:
    # (1 + 1.5 / 0.1)^-0.25 = 16^-0.25 = 1/2.
    out = flat(RESTITUTION, np.array([0.8, 0.8]), seen={"velocity": np.array([0.0, -1.5])}, fall=0.25, speed=0.1)
    np.testing.assert_allclose(out, [0.8, 0.4])
    assert flat(RESTITUTION, np.array([0.8]), seen={"velocity": np.zeros(1)}, factor=2.0) == 1.0


def test_a_size_is_scaled_and_then_grows() -> None:
    np.testing.assert_allclose(run(SIZE, np.array([[0.1, 0.2]]), factor=1.1, offset_m=-0.01)[0, 0], [0.1, 0.21])


def test_a_lump_moves_the_centre_and_the_inertia_as_two_bodies_do() -> None:
    # A solid of 2 kg; a quarter of it becomes a point at r. Summed the long way about the common centre.
    mass, centre, inertia = 2.0, np.array([0.1, 0.0, 0.0]), np.diag([0.03, 0.02, 0.01])
    share, lump = 0.25, np.array([0.2, -0.1, 0.3])
    row = np.r_[mass, centre, np.diag(inertia), 0.0, 0.0, 0.0][None]
    out = run(UNEVEN_MASS, row, share=share, x_m=lump[0], y_m=lump[1], z_m=lump[2])[0, 0]
    common = ((1 - share) * mass * centre + share * mass * (centre + lump)) / mass
    expected = (1 - share) * inertia
    for part, place in (((1 - share) * mass, centre - common), (share * mass, centre + lump - common)):
        expected = expected + part * (place @ place * np.eye(3) - np.outer(place, place))
    assert out[0] == mass
    np.testing.assert_allclose(out[1:4], common)
    np.testing.assert_allclose(out[4:7], np.diag(expected))
    np.testing.assert_allclose(out[7:], [expected[0, 1], expected[0, 2], expected[1, 2]])
