import numpy as np

from gapless.sim.realism.actuator import backlash, kept, lagged, stribeck, time_constant


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


def test_a_lag_answers_a_step_by_ever_smaller_steps() -> None:
    # Lag 3 ms, step 1 ms: kept = 3/4; after n steps 1 - (3/4)^n.
    keep = kept(np.array([[0.003]]), 0.001)
    seen = lagged(np.ones((1, 4, 1)), np.zeros((1, 1)), keep)
    np.testing.assert_allclose(seen[0, :, 0], [1 - 0.75**n for n in (1, 2, 3, 4)], rtol=1e-15)


def test_the_mean_delay_of_a_lag_is_the_lag_for_any_step() -> None:
    # What a step of 1 lacks, summed over time: h (k + k^2 + ...) = h k / (1 - k) = lag.
    lag_s = np.array([[0.0004, 0.002, 0.05]])
    for step_s in (0.0005, 0.002, 0.01):
        seen = lagged(np.ones((1, 4000, 3)), np.zeros((1, 3)), kept(lag_s, step_s))
        np.testing.assert_allclose(step_s * (1 - seen[0]).sum(axis=0), lag_s[0], rtol=1e-9)


def test_the_engine_keeps_as_much() -> None:
    for lag_s in (1e-4, 0.003, 0.2):
        keep = float(kept(np.array(lag_s), 0.002))
        np.testing.assert_allclose(np.exp(-0.002 / time_constant(lag_s, 0.002)), keep, rtol=1e-12)
    np.testing.assert_allclose(time_constant(0.2, 0.002), 0.201, rtol=1e-5)  # lag + step / 2 far above the step


def test_without_lag_the_output_is_exactly_the_input() -> None:
    rng = np.random.default_rng(2)
    command, before = rng.normal(size=(7, 5, 3)), rng.normal(size=(7, 3))
    assert np.array_equal(lagged(command, before, kept(np.zeros((7, 3)), 0.002)), command)


def test_lag_of_a_row_of_a_batch_is_that_of_a_batch_of_one() -> None:
    rng = np.random.default_rng(3)
    command, before, keep = rng.normal(size=(9, 5, 2)), rng.normal(size=(9, 2)), rng.uniform(0, 1, (9, 2))
    whole = lagged(command, before, keep)
    for k in range(9):
        one = slice(k, k + 1)
        assert np.array_equal(lagged(command[one], before[one], keep[one]), whole[one])
