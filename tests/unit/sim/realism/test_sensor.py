import numpy as np

from gapless.sim.realism.sensor import quantised


def test_quantised_in_closed_form() -> None:
    # 0.26 in steps of 0.1 is 0.3; in steps of 0.5 it is 0.5; a step of 0 leaves it.
    value = np.array([[0.26, 0.26, 0.26]])
    np.testing.assert_allclose(quantised(value, np.array([0.1, 0.5, 0.0])), [[0.3, 0.5, 0.26]])


def test_no_quantum_is_exactly_the_identity() -> None:
    value = np.random.default_rng(0).normal(size=(20, 3))
    assert np.array_equal(quantised(value, np.zeros(3)), value)


def test_quantised_errs_by_half_a_step_at_most() -> None:
    rng = np.random.default_rng(1)
    value, step = rng.normal(size=(500, 2)), np.array([0.03, 0.7])
    assert np.all(np.abs(quantised(value, step) - value) <= step / 2 + 1e-12)
