import numpy as np
import pytest

from gapless.signals.noise.allan import OVERLAP_GAIN, TERMS, compute_allan_variances, fit_terms, term_shapes
from gapless.signals.noise.terms import slope_variances
from unit.signals.noise.simulated import column


def test_by_hand() -> None:
    # 1 2 4 7 11 16: differences 1 2 3 4 5, mean of squares 11, half of it 5.5. Pairs, overlapping: means 1.5 3 5.5 9
    # 13.5; differences two apart 4 6 8, but 2 m MIN_WINDOWS = 12 > 6 samples: pairs are not averaged.
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


def test_degrees_of_freedom_are_windows_side_by_side() -> None:
    # 96 samples have 95, 93 and 89 windows of 2, 4 and 8 samples, 48, 24 and 12 of them side by side.
    found = compute_allan_variances(np.random.default_rng(1).standard_normal(96), 1.0)
    assert found.freedom[:3].tolist() == [95 / 2, 93 / 4, 89 / 8]


@pytest.mark.slow
def test_terms_scatter_no_more_than_the_fit_says() -> None:
    # White noise with a walk that crosses it at 17 samples, 120 times within each of 300 columns.
    rng = np.random.default_rng(1)
    runs = [compute_allan_variances(column(rng, 2048, walk=0.1), 1.0) for _ in range(300)]
    fits = [fit_terms(run, intervals=False) for run in runs]
    for place in (TERMS.index("white"), TERMS.index("walk")):
        seen = np.var([fit.every[place] for fit in fits])
        said = np.mean([fit.scatter[place, place] for fit in fits])
        assert 0.1 < seen / said < 1.1


def test_an_octave_alone_scatters_less_than_the_overlap_allows_for() -> None:
    rng = np.random.default_rng(2)
    for kind in ({}, {"white": 0.0, "walk": 1.0}):
        seen = np.array([compute_allan_variances(column(rng, 1024, **kind), 1.0).variance for _ in range(400)])
        found = compute_allan_variances(column(rng, 1024, **kind), 1.0)
        freedom = 2 * seen.mean(axis=0) ** 2 / seen.var(axis=0)
        assert np.all(freedom[2:6] > 0.8 * OVERLAP_GAIN * found.freedom[2:6])  # 400 runs: a standard error of 7 %


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
