import numpy as np
import pytest

from gapless.formats.lerobot.statistics import BASIC, compute_statistics, format_statistics, merge_statistics


def test_statistics_of_numbers_done_by_hand() -> None:
    found = compute_statistics(np.array([[1.0, 5.0], [2.0, np.nan], [6.0, 5.0]]))
    assert found["mean"].tolist() == [3.0, 5.0]
    assert found["std"].tolist() == pytest.approx([np.sqrt((4 + 1 + 9) / 3), 0.0])
    assert (found["min"].tolist(), found["max"].tolist()) == ([1.0, 5.0], [6.0, 5.0])
    assert found["q50"].tolist() == [2.0, 5.0]
    assert found["count"].tolist() == [3.0]


def test_merged_statistics_are_those_of_all_rows() -> None:
    rng = np.random.default_rng(5)
    parts = [rng.normal(number, 1 + number, size=(10 + 5 * number, 3)) for number in range(4)]
    merged, whole = merge_statistics([compute_statistics(p) for p in parts]), compute_statistics(np.concatenate(parts))
    for name in BASIC:
        np.testing.assert_allclose(merged[name], whole[name], rtol=1e-12)


def test_images_merge_by_their_counts() -> None:
    dark = {name: np.zeros((3, 1, 1)) for name in ("min", "max", "mean", "std")} | {"count": np.array([1.0])}
    light = {name: np.ones((3, 1, 1)) for name in ("min", "max", "mean")} | {"std": np.zeros((3, 1, 1))}
    merged = merge_statistics([dark, light | {"count": np.array([3.0])}])
    assert merged["mean"].tolist() == [[[0.75]]] * 3
    assert merged["std"].tolist() == [[[pytest.approx(np.sqrt(0.75 * 0.25))]]] * 3
    assert merged["count"].tolist() == [4.0]


@pytest.mark.parametrize(("dtype", "low"), [("bool", False), ("int64", 0), ("float32", 0.0)])
def test_limits_have_the_type_of_the_feature(dtype: str, low: object) -> None:
    found = format_statistics(compute_statistics(np.array([[0.0], [1.0]])), dtype, BASIC)
    assert type(found["min"][0]) is type(low)
    assert (found["mean"], found["count"]) == ([0.5], [2])
