"""List columns of Parquet and arrays of several columns in npz are one column per element."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gapless.core.errors import LogError
from gapless.formats.table.columns import column_names, read_columns

ROWS = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], None, [7.0, 8.0, 9.0]]


@pytest.mark.parametrize("kind", [pa.list_(pa.float32(), 3), pa.list_(pa.float32()), pa.large_list(pa.float64())])
def test_lists_of_parquet(tmp_path: Path, kind: pa.DataType) -> None:
    path = tmp_path / "run.parquet"
    pq.write_table(pa.table({"time_s": [0.0, 1, 2, 3], "action": pa.array(ROWS, kind), "word": list("abcd")}), path)
    assert column_names(path) == ("time_s", "action_0", "action_1", "action_2", "word")
    found = read_columns(path, ["action_2", "time_s", "action_0"])
    np.testing.assert_array_equal(found["action_2"], [3, 6, np.nan, 9])
    np.testing.assert_array_equal(found["action_0"], [1, 4, np.nan, 7])
    with pytest.raises(LogError, match=r"no column action,.*action_0"):
        read_columns(path, ["action"])


def test_lists_whose_length_varies_are_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    pq.write_table(pa.table({"time_s": [0.0, 1, 2], "cloud": [[1.0], [1.0, 2.0], []]}), path)
    assert column_names(path) == ("time_s", "cloud")
    with pytest.raises(LogError, match=r"column cloud.*0 to 2 elements") as caught:
        read_columns(path, ["time_s", "cloud"])
    assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(read_columns(path, ["time_s"])["time_s"], [0, 1, 2])


def test_arrays_of_npz(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    np.savez(path, time_s=np.arange(4.0), q=np.arange(8).reshape(4, 2), images=np.zeros((4, 2, 2)))
    assert column_names(path) == ("time_s", "q_0", "q_1", "images")
    np.testing.assert_array_equal(read_columns(path, ["time_s", "q_1"])["q_1"], [1, 3, 5, 7])
    with pytest.raises(LogError, match=r"column images holds arrays of shape \(2, 2\)"):
        read_columns(path, ["images"])
