import numpy as np

from gapless.realism.actuator import backlash, stribeck


def test_backlash_moves_only_when_pushed() -> None:
    # Play of 0.2: the output trails the input by 0.1 and stays while the input turns back within it.
    width, output = np.array([[0.2]]), np.array([[0.0]])
    seen = []
    for command in (0.05, 0.3, 0.5, 0.45, 0.31, 0.2, 0.0):
        output = backlash(output, np.array([[command]]), width)
        seen.append(float(output[0, 0]))
    np.testing.assert_allclose(seen, [0.0, 0.2, 0.4, 0.4, 0.4, 0.3, 0.1])


def test_without_play_the_output_is_exactly_the_input() -> None:
    rng = np.random.default_rng(0)
    position, command = rng.normal(size=(2, 50, 3))
    assert np.array_equal(backlash(position, command, np.zeros((50, 3))), command)


def test_backlash_of_a_row_of_a_batch_is_that_of_a_batch_of_one() -> None:
    rng = np.random.default_rng(1)
    position, command = rng.normal(size=(2, 9, 2))
    width = rng.uniform(0, 1, (9, 2))
    whole = backlash(position, command, width)
    for k in range(9):
        one = slice(k, k + 1)
        assert np.array_equal(backlash(position[one], command[one], width[one]), whole[one])


def test_stribeck_in_closed_form() -> None:
    # At v = speed: -b * exp(-1) * tanh(20) = -0.5 * 0.36788; at rest 0; far away nothing is left.
    force = stribeck(np.array([[0.1, 0.0, 2.0, -0.1]]), np.full((1, 4), 0.5), np.full((1, 4), 0.1))
    np.testing.assert_allclose(force, [[-0.5 * np.exp(-1), 0.0, 0.0, 0.5 * np.exp(-1)]], atol=1e-12)


def test_stribeck_opposes_motion_and_is_ideal_without_height() -> None:
    velocity = np.linspace(-1, 1, 101)[None]
    force = stribeck(velocity, np.full((1, 101), 0.3), np.full((1, 101), 0.2))
    assert np.all(force * velocity <= 0)
    assert not stribeck(velocity, np.zeros((1, 101)), np.full((1, 101), 0.2)).any()
