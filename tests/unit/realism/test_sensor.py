import numpy as np

from gapless.realism.sensor import drifted, quantised


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


def test_drift_reaches_its_rate_after_a_second() -> None:
    # 100 steps of sqrt(0.01) * rate * z: variance rate^2. 4,000 walks: std errs by 1 / sqrt(8000).
    rng, rate = np.random.default_rng(2), np.array([0.5, 0.0])
    drift = np.zeros((4000, 2))
    for _ in range(100):
        drift = drifted(drift, rate, 0.01, rng)
    assert abs(drift[:, 0].std() / 0.5 - 1) < 0.05
    assert not drift[:, 1].any()
