import numpy as np
import pytest

from gapless.diagnose.outcomes.exposures import FALLING_SHARE, MAX_SETS, SIZE_RATIO, list_exposures
from gapless.diagnose.outcomes.factors import find_factors
from unit.diagnose.outcomes.outcome_runs import moment, run


def exposures_of(values: list[str | None]) -> list:
    runs = [run(k % 2 == 0, {} if value is None else {"light": value}) for k, value in enumerate(values)]
    return list_exposures(find_factors(runs).columns)


def test_one_bad_value_is_likelier_than_two() -> None:
    found = exposures_of(["a", "b", "c"] * 4)
    assert sum(e.share for e in found) == pytest.approx(1.0)
    sets = [e for e in found if e.raises]
    assert [int(e.basis[:3].sum()) for e in sets] == [1, 1, 1, 2, 2, 2]
    assert sets[3].share == pytest.approx(SIZE_RATIO * sets[0].share)


def test_numbers_are_bad_together_with_their_neighbours() -> None:
    found = [e for e in exposures_of([str(k) for k in range(12)]) if e.raises]
    assert len(found) == 5  # low, middle, high; low and middle, middle and high


def test_who_does_not_name_a_condition_is_exposed_as_the_others_are() -> None:
    found = exposures_of(["a", "a", "a", "b", None])
    np.testing.assert_allclose(found[0].basis[:, 0], [1, 1, 1, 0, 0.75])


def test_a_trend_rises_or_falls() -> None:
    columns = find_factors([run(k % 2 == 0, {}, moment(k)[:10]) for k in range(5)]).columns
    rising, falling = list_exposures(columns)
    np.testing.assert_allclose(rising.basis[:, 0], [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(falling.basis, 1 - rising.basis)
    assert falling.share == pytest.approx(FALLING_SHARE)


def test_many_values_give_few_sets() -> None:
    assert len(exposures_of([f"part {k % 30}" for k in range(90)])) <= MAX_SETS
