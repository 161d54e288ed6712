import math

import numpy as np
import pytest

from gapless.core.distribution import Distribution, Range
from gapless.core.errors import InputError
from gapless.core.parameters import Parameter, ParameterSpace

SPACE = ParameterSpace(
    (
        Parameter("joint/elbow/damping", "actuator", "N·m·s/rad", nominal=0.5, low=0.0, high=2.0),
        Parameter("geom/box/friction", "contact", "1", nominal=1.0, low=0.2, high=1.5),
    )
)


def normal(mean: float, std: float, low: float, high: float) -> Distribution:
    return Distribution(SPACE, (Range("joint/elbow/damping", "normal", low, high, mean, std),))


def wide(space: ParameterSpace) -> Distribution:
    whole = [Range(p.target, "uniform", p.low, p.high, (p.low + p.high) / 2) for p in space.parameters]
    return Distribution(space, tuple(whole))


def test_without_ranges_it_draws_the_model_as_written() -> None:
    rows = Distribution(SPACE).sample(np.random.default_rng(0), 4)
    np.testing.assert_array_equal(rows, np.tile([0.5, 1.0], (4, 1)))


def test_uniform_ranges_are_filled_evenly() -> None:
    rows = wide(SPACE).sample(np.random.default_rng(0), 20_000)
    assert np.all((rows >= SPACE.low) & (rows <= SPACE.high))
    # Mean and standard deviation of U(low, high): (low + high) / 2 and (high - low) / sqrt(12);
    # the mean of 20,000 draws of width 2 has standard error 2 / sqrt(12 * 20000) = 0.0041.
    np.testing.assert_allclose(rows.mean(axis=0), [1.0, 0.85], atol=4 * 0.0041)
    np.testing.assert_allclose(rows.std(axis=0), np.array([2.0, 1.3]) / math.sqrt(12), rtol=0.02)


def test_fixed_is_its_mean_and_other_columns_stay_nominal() -> None:
    fixed = Distribution(SPACE, (Range("geom/box/friction", "fixed", 0.7, 0.7, 0.7),))
    np.testing.assert_array_equal(fixed.sample(np.random.default_rng(0), 2), [[0.5, 0.7], [0.5, 0.7]])


def test_normal_is_cut_at_its_bounds_and_not_piled_up_there() -> None:
    # Cut at one standard deviation on both sides: mean stays, variance is 1 - 2 phi(1) / (2 Phi(1) - 1)
    # = 1 - 2 * 0.2419707 / 0.6826895 = 0.2911252, so the standard deviation is 0.5395601 of 0.3 = 0.1618680.
    values = normal(1.0, 0.3, 0.7, 1.3).sample(np.random.default_rng(1), 20_000)[:, 0]
    assert values.min() >= 0.7
    assert values.max() <= 1.3
    assert np.mean((values == 0.7) | (values == 1.3)) == 0.0
    assert values.mean() == pytest.approx(1.0, abs=4 * 0.162 / math.sqrt(20_000))
    assert values.std() == pytest.approx(0.1618680, rel=0.02)


def test_normal_without_width_is_its_mean() -> None:
    assert set(normal(1.0, 0.0, 0.5, 1.5).sample(np.random.default_rng(0), 5)[:, 0]) == {1.0}


def test_a_bound_at_the_mean_leaves_half_of_the_bell() -> None:
    # Mean of a half normal: std * sqrt(2 / pi) = 0.1 * 0.7978846.
    values = normal(0.0, 0.1, 0.0, 2.0).sample(np.random.default_rng(2), 20_000)[:, 0]
    assert values.min() >= 0.0
    assert values.mean() == pytest.approx(0.0797885, rel=0.03)


def test_the_same_seed_draws_the_same_rows() -> None:
    first, again, other = (wide(SPACE).sample(np.random.default_rng(seed), 6) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_sampling_leaves_the_global_generator_alone() -> None:
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    wide(SPACE).sample(np.random.default_rng(0), 3)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(InputError, match="no parameter joint/knee/damping"):
        Distribution(SPACE, (Range("joint/knee/damping", "uniform", 0.0, 1.0, 0.5),))


@pytest.mark.parametrize("mean", [-0.1, 1.1, math.nan])
def test_a_centre_outside_the_bounds_is_refused(mean: float) -> None:
    with pytest.raises(InputError, match="outside"):
        Distribution(SPACE, (Range("joint/elbow/damping", "uniform", 0.0, 1.0, mean),))
