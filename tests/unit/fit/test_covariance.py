from dataclasses import replace

import numpy as np
from scipy.stats import t as student

from gapless.core.interval import normal_quantile
from gapless.core.signal import Array
from gapless.fit.problem import flatten_outliers, robust_bend, robust_pull, robust_slope
from gapless.fit.solution import Pieces, clustered_covariance, shared_start_variance


def linear(slopes: Array, noise: Array) -> Pieces:
    """Returns what pieces say where residuals are noise + slopes @ x: (num_pieces, num_per_piece[, num_parameters])."""
    flat = slopes.reshape(-1, slopes.shape[2])
    solution = np.linalg.lstsq(flat, -noise.ravel(), rcond=None)[0]
    residual = noise + slopes @ solution
    return pieces_of(slopes, residual)


def pieces_of(slopes: Array, residual: Array) -> Pieces:
    """Returns independent pieces."""
    nothing = np.zeros(2 * slopes.shape[2:])
    return Pieces(np.einsum("wri,wrj->wij", slopes, slopes), np.einsum("wri,wr->wi", slopes, residual), nothing)


def test_the_mean_of_a_few_readings_has_the_interval_that_textbooks_give() -> None:
    # One parameter, its value read 6 times: variance s^2 / 6 with s^2 = sum (y - mean)^2 / 5, and Student's t with 5.
    noise = np.array([0.3, -1.2, 0.4, 2.0, -0.7, 0.1])[:, None]
    variance = clustered_covariance(linear(np.ones((6, 1, 1)), noise), 1e-9)[0, 0]
    expected = np.std(noise, ddof=1) / np.sqrt(6) * student.ppf(0.975, 5)
    np.testing.assert_allclose(np.sqrt(variance) * normal_quantile(0.975), expected, rtol=1e-6)


def covered(num_pieces: int, heavy: float, num_draws: int = 500) -> tuple[float, float]:
    """Returns how often intervals of three parameters cover, corrected and not, if every third piece weighs more.

    Errors go together within a piece.
    """
    rng = np.random.default_rng(0)
    weight = np.where(np.arange(num_pieces) % 3 == 0, heavy, 1.0)[:, None, None]
    inside = np.zeros(2)
    for _ in range(num_draws):
        slopes = weight * rng.standard_normal((num_pieces, 5, 3))
        noise = rng.standard_normal((num_pieces, 5)) + 0.5 * rng.standard_normal((num_pieces, 1))
        pieces = linear(slopes, noise)
        error = np.linalg.lstsq(slopes.reshape(-1, 3), -noise.ravel(), rcond=None)[0]
        inverse = np.linalg.inv(pieces.whole_information)
        plain = inverse @ pieces.gradients.T @ pieces.gradients @ inverse
        for k, covariance in enumerate((clustered_covariance(pieces, 1e-9), plain)):
            inside[k] += np.mean(np.abs(error) <= normal_quantile(0.975) * np.sqrt(np.diag(covariance)))
    return float(inside[0] / num_draws), float(inside[1] / num_draws)


def test_intervals_cover_where_some_pieces_weigh_more() -> None:
    corrected, plain = covered(num_pieces=24, heavy=2.0)
    assert 0.93 <= corrected <= 0.97
    assert plain < 0.93  # what the correction is for


def test_intervals_are_rather_too_wide_where_hardly_more_pieces_than_parameters_count() -> None:
    corrected, plain = covered(num_pieces=10, heavy=4.0)  # four pieces have nearly all the information
    assert 0.93 <= corrected <= 0.99
    assert plain < 0.85


def test_halves_of_windows_whose_start_follows_the_readings_are_not_independent() -> None:
    # Each window has an offset of its own, fitted away, and is judged in two halves. The variance of the parameter is
    # 1 / (information left): 4000 windows tell it to 2 %.
    rng, count = np.random.default_rng(1), 4000
    offset = np.full((count, 6, 1), 6**-0.5)
    without = np.eye(6) - np.full((6, 6), 1 / 6)
    slopes = without @ (rng.standard_normal((count, 6, 1)) + np.arange(6)[:, None])
    residual = rng.standard_normal((count, 6)) @ without
    halves = pieces_of(slopes.reshape(2 * count, 3, 1), residual.reshape(2 * count, 3))
    along = np.einsum("wrd,wri->wdi", offset.reshape(2 * count, 3, 1), slopes.reshape(2 * count, 3, 1))
    shared = shared_start_variance(along, np.einsum("wrd,wri->wdi", offset, slopes), 1.0)
    expected = 1 / halves.whole_information[0, 0]
    np.testing.assert_allclose(clustered_covariance(replace(halves, shared=shared), 1e-9)[0, 0], expected, rtol=0.08)
    assert clustered_covariance(halves, 1e-9)[0, 0] < 0.8 * expected


def test_slopes_of_the_loss_are_those_of_differences() -> None:
    residual, step = np.linspace(-12.0, 12.0, 97), 1e-5
    np.testing.assert_allclose(
        robust_slope(residual),
        (flatten_outliers(residual + step) - flatten_outliers(residual - step)) / (2 * step),
        atol=1e-8,
    )
    np.testing.assert_allclose(robust_pull(residual), flatten_outliers(residual) * robust_slope(residual), atol=1e-12)
    np.testing.assert_allclose(
        robust_bend(residual), (robust_pull(residual + step) - robust_pull(residual - step)) / (2 * step), atol=1e-8
    )
