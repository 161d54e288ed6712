import numpy as np
import pytest

from gapless.core.signal import TimeSeries


def series(times: list[float], values: list[list[float]]) -> TimeSeries:
    return TimeSeries(np.array(times), np.array(values), ("q", "v"), ("rad", "rad/s"))


def test_column_and_duration() -> None:
    signal = series([0.5, 0.6, 0.8], [[1, 2], [3, 4], [5, 6]])
    assert signal.duration_s == pytest.approx(0.3)  # 0.8 - 0.5
    np.testing.assert_array_equal(signal.column("v"), [2, 4, 6])


def test_without_samples_or_columns_it_is_still_a_series() -> None:
    assert TimeSeries(np.zeros(0), np.zeros((0, 1)), ("q",), ("rad",)).duration_s == 0.0
    assert TimeSeries(np.array([0.0, 1.0]), np.zeros((2, 0)), (), ()).duration_s == 1.0


@pytest.mark.parametrize("shape", [(3,), (2, 2), (3, 1)])
def test_refuses_values_of_another_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"give \(3, 2\)"):
        TimeSeries(np.arange(3.0), np.zeros(shape), ("q", "v"), ("rad", "rad/s"))


def test_refuses_times_that_are_no_row() -> None:
    with pytest.raises(ValueError, match="shape"):
        TimeSeries(np.zeros((2, 2)), np.zeros((2, 1)), ("q",), ("rad",))


def test_refuses_a_missing_unit() -> None:
    with pytest.raises(ValueError, match="1 units for 2 columns"):
        TimeSeries(np.arange(3.0), np.zeros((3, 2)), ("q", "v"), ("rad",))


@pytest.mark.parametrize("times", [[0.0, 0.0, 1.0], [0.0, 2.0, 1.0]])
def test_refuses_time_that_stands_still_or_runs_back(times: list[float]) -> None:
    with pytest.raises(ValueError, match="do not increase"):
        series(times, [[0, 0]] * 3)


def test_an_unknown_column_is_an_error() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        series([0.0], [[1, 2]]).column("tau")


def test_equals_counts_nan_as_equal_and_sees_every_part() -> None:
    one = series([0.0, 1.0], [[1, np.nan], [3, 4]])
    assert one.equals(series([0.0, 1.0], [[1, np.nan], [3, 4]]))
    assert not one.equals(series([0.0, 1.0], [[1, 2], [3, 4]]))
    assert not one.equals(series([0.0, 1.5], [[1, np.nan], [3, 4]]))
    assert not one.equals(TimeSeries(one.times_s, one.values, ("q", "w"), one.units))
    assert not one.equals(TimeSeries(one.times_s, one.values, one.names, ("rad", "1")))
