import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.sim.realism.draws import Draws, draws_from


def many(kind: str, steps: int = 100) -> np.ndarray:
    draws = draws_from(np.random.default_rng(3), 500)
    return np.stack([getattr(draws.at(k), kind)("x", 4) for k in range(steps)])


def test_uniform_numbers_fill_the_unit_interval_evenly() -> None:
    counts = np.histogram(many("uniform"), bins=20, range=(0, 1))[0]
    assert counts.sum() == 200000
    chi2 = ((counts - 10000.0) ** 2 / 10000.0).sum()
    assert chi2 < 43.8  # 99.9 % of chi-squared with 19 degrees of freedom


def test_normal_numbers_are_normal() -> None:
    x = many("normal")
    np.testing.assert_allclose([x.mean(), x.std(), (x**3).mean(), (x**4).mean()], [0, 1, 0, 3], atol=0.03)
    np.testing.assert_allclose((np.abs(x) > 3).mean(), 0.0027, rtol=0.15)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_neighbouring_steps_worlds_and_columns_are_independent(axis: int) -> None:
    x = np.moveaxis(many("normal"), axis, 0)
    assert abs(np.corrcoef(x[1:].ravel(), x[:-1].ravel())[0, 1]) < 0.008
    assert abs(np.corrcoef(x[1:].ravel() ** 2, x[:-1].ravel() ** 2)[0, 1]) < 0.008


def test_a_world_draws_the_same_alone_and_in_any_batch() -> None:
    whole = Draws(7, np.arange(10, dtype=np.uint64), 4)
    some = whole.rows(np.array([8, 2]))
    assert np.array_equal(some.normal("x", 3), whole.normal("x", 3)[[8, 2]])
    assert np.array_equal(whole.uniform("x", 2), whole.uniform("x", 3)[:, :2])


def test_seed_stream_step_and_name_each_give_other_numbers() -> None:
    one = Draws(7, np.arange(3, dtype=np.uint64))
    seen = [one.uniform("x", 2), one.uniform("y", 2), one.at(1).uniform("x", 2), one.named("left").uniform("x", 2)]
    seen += [Draws(8, one.worlds).uniform("x", 2), one.at(-1).uniform("x", 2)]
    assert len(np.unique(np.stack(seen))) == 36


def test_equal_counters_give_equal_numbers() -> None:
    cells = np.array([[3, -4, 3]])
    out = Draws(0, np.zeros(1, dtype=np.uint64)).normal("cell", cells)
    assert out[0, 0] == out[0, 2] != out[0, 1]


def test_worlds_that_are_not_uint64_are_refused() -> None:
    with pytest.raises(InputError, match="found int64"):
        Draws(0, np.arange(3))


def test_a_generator_seeds_them() -> None:
    first, again, other = (draws_from(np.random.default_rng(seed), 2).uniform("x", 1) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
