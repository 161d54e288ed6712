import numpy as np

from gapless.check.findings import find_runs


def test_runs_are_found_with_their_ends() -> None:
    flags = np.array([1, 1, 0, 0, 1, 0, 1], dtype=bool)
    assert find_runs(flags) == [(0, 2), (4, 5), (6, 7)]
    assert find_runs(~flags) == [(2, 4), (5, 6)]
    assert find_runs(np.zeros(3, dtype=bool)) == []
    assert find_runs(np.zeros(0, dtype=bool)) == []
