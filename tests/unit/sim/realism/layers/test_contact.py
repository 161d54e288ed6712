import numpy as np

from gapless.sim.realism.layers.contact import (
    CONTACT_STIFFNESS,
    FRICTION_WAVES,
    RESTITUTION,
    SOFTNESS,
    SURFACE_FRICTION,
)
from unit.sim.realism.layers.playing import flat, run


def test_each_surface_and_spring_has_its_own_factor() -> None:
    for layer in (SURFACE_FRICTION, CONTACT_STIFFNESS):
        np.testing.assert_allclose(run(layer, np.array([[1.0, 0.6]]), factor=np.array([0.5, 2.0]))[0, 0], [0.5, 1.2])


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
