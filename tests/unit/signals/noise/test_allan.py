import numpy as np
import pytest

from gapless.signals.noise.allan import TERMS, compute_allan_variances, estimate_covariance, fit_terms, term_shapes
from gapless.signals.noise.terms import slope_variances
from unit.signals.noise.simulated import column


def test_by_hand() -> None:
    # 1 2 4 7 11 16: differences 1 2 3 4 5, mean of squares 11, half of it 5.5. Pairs, overlapping: means 1.5 3 5.5 9
    # 13.5; differences two apart 4 6 8, but 2 m MIN_AVERAGES = 12 > 6 samples: pairs are not averaged.
    found = compute_allan_variances(np.array([1.0, 2, 4, 7, 11, 16]), 0.5)
    assert found.sizes.tolist() == [1]
    assert found.variance[0] == pytest.approx(5.5)
    assert found.tau_s.tolist() == [0.5]


def test_the_ramp_has_half_its_squared_rise() -> None:
    found = compute_allan_variances(0.3 * np.arange(1000.0), 1.0)
    assert found.variance == pytest.approx(0.3**2 * found.sizes**2 / 2)
    assert found.slope == pytest.approx(0.3)


@pytest.mark.parametrize("name", TERMS)
def test_shapes_are_those_of_the_simulated_noise(name: str) -> None:
    rng = np.random.default_rng(0)
    sizes = {"white": {}, "flicker": {"white": 0.0, "flicker": 1.0}, "walk": {"white": 0.0, "walk": 1.0}}
    seen = []
    for _ in range(60):
        quantised = name == "quantisation"
        values = np.diff(rng.standard_normal(4097)) if quantised else column(rng, 4096, **sizes[name])
        seen.append(compute_allan_variances(values, 1.0).variance)
    found = compute_allan_variances(values, 1.0)
    expected = term_shapes(found.sizes)[:, TERMS.index(name)] * (2 * np.log(2) / np.pi if name == "flicker" else 1.0)
    error = np.std(seen, axis=0) / np.sqrt(60)
    known = slice(3, None) if name == "flicker" else slice(None)  # its shape holds for samples that are averages
    assert np.all(np.abs(np.mean(seen, axis=0) - expected)[known] < 4.5 * error[known])


def test_the_scatter_is_that_of_many_columns() -> None:
    rng = np.random.default_rng(1)
    runs = [compute_allan_variances(column(rng, 2048, walk=0.02), 1.0) for _ in range(400)]
    seen = np.cov(np.log([run.variance for run in runs]).T)
    terms = np.array([0.0, 1.0, 0.0, 0.02**2])
    fitted = term_shapes(runs[0].sizes) @ terms
    expected = estimate_covariance(runs[0], terms) / np.outer(fitted, fitted)
    many = 2 / np.diag(expected) > 12  # below, the logarithm of chi2 is skewed
    ratio = np.diag(seen) / np.diag(expected)
    assert np.all(np.abs(ratio[many] - 1) < 0.35)  # 400 runs: a standard error of 7 % each
    assert seen[2, 3] == pytest.approx(expected[2, 3], rel=0.5)


def test_white_noise_has_two_thirds_degrees_of_freedom() -> None:
    # The known edf of overlapping estimates at m = 1: 2 n / 3 (NIST SP 1065, table 5, white FM).
    found = compute_allan_variances(np.random.default_rng(2).standard_normal(10_000), 1.0)
    variance = estimate_covariance(found, np.array([0.0, 1.0, 0.0, 0.0]))[0, 0]
    assert 2 / variance == pytest.approx(2 * 10_000 / 3, rel=0.01)


def test_missing_samples_do_not_bias_white_noise() -> None:
    rng = np.random.default_rng(3)
    values = rng.standard_normal(50_000)
    values[rng.random(50_000) < 0.2] = np.nan
    found = compute_allan_variances(values, 1.0)
    assert found.variance[:6] == pytest.approx(1 / found.sizes[:6], rel=0.06)


def test_variance_of_the_slope() -> None:
    # White noise: 12 / n^3. Random walk: 6 / (5 n). Flicker against 2,000 simulated columns.
    rng = np.random.default_rng(4)
    count = 512
    places = np.arange(count) - (count - 1) / 2
    slopes = [column(rng, count, white=0.0, flicker=1.0) @ places / (places @ places) for _ in range(2000)]
    expected = slope_variances(count)
    assert expected[1] == pytest.approx(12 / count**3)
    assert np.var(slopes) == pytest.approx(2 * np.log(2) / np.pi * expected[2], rel=0.15)


def test_terms_that_are_not_there_are_0() -> None:
    fit = fit_terms(compute_allan_variances(np.random.default_rng(5).standard_normal(20_000), 0.01))
    assert fit.value[[0, 2, 3]].tolist() == [0, 0, 0]
    assert fit.low[[0, 2, 3]].tolist() == [0, 0, 0]
    assert fit.value[1] == pytest.approx(1, rel=0.05)
    assert not fit.has_ramp


def test_a_ramp_is_no_random_walk() -> None:
    fit = fit_terms(compute_allan_variances(column(np.random.default_rng(6), 20_000, slope=1e-4), 0.01))
    assert fit.has_ramp
    assert fit.term("walk")[0] == 0
