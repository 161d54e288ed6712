import numpy as np

from gapless.sim.realism.layers.objects import CENTRE, MASS, SIZE, UNEVEN_MASS
from unit.sim.realism.layers.playing import run


def test_mass_centre_and_size() -> None:
    assert run(MASS, np.array([[2.0]]), factor=1.5)[0, 0, 0] == 3.0
    shift = np.array([0.01, 0.0, -0.02])
    np.testing.assert_allclose(run(CENTRE, np.zeros((1, 3)), shift_m=shift)[0, 0], shift)
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
