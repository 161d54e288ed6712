import numpy as np
import pytest

from gapless.core.dimensions import DIMENSIONS
from gapless.core.errors import InputError
from gapless.core.parameters import Parameter, ParameterSpace

DAMPING = Parameter("joint/elbow/damping", "actuator", "N·m·s/rad", nominal=0.5, low=0.0, high=2.0)
FRICTION = Parameter("geom/box/friction", "contact", "1", nominal=1.0, low=0.2, high=1.5)
GAIN = Parameter("actuator/elbow/gain", "actuator", "1", nominal=1.0, low=0.5, high=1.5)
SPACE = ParameterSpace((DAMPING, FRICTION, GAIN))


def test_rows_are_in_column_order() -> None:
    assert SPACE.targets == ("joint/elbow/damping", "geom/box/friction", "actuator/elbow/gain")
    np.testing.assert_array_equal(SPACE.nominal, [0.5, 1.0, 1.0])
    np.testing.assert_array_equal(SPACE.low, [0.0, 0.2, 0.5])
    np.testing.assert_array_equal(SPACE.high, [2.0, 1.5, 1.5])
    assert len(SPACE) == 3


def test_dimensions_come_once_in_order_of_appearance() -> None:
    assert SPACE.dimensions == ("actuator", "contact")
    assert set(SPACE.dimensions) <= set(DIMENSIONS)


def test_index_finds_the_column() -> None:
    assert [SPACE.index(target) for target in SPACE.targets] == [0, 1, 2]


def test_index_of_a_misspelt_target_lists_what_exists() -> None:
    with pytest.raises(InputError, match=r"no parameter joint/elbow/dampin; choose from: joint/elbow/damping, "):
        SPACE.index("joint/elbow/dampin")


def test_part_of_some_dimensions_keeps_the_order() -> None:
    assert SPACE.of("actuator").targets == ("joint/elbow/damping", "actuator/elbow/gain")
    assert SPACE.of("contact", "actuator") == SPACE
    assert len(SPACE.of("visual")) == 0


def test_an_empty_space_has_an_empty_row() -> None:
    empty = ParameterSpace(())
    assert empty.nominal.shape == (0,)
    with pytest.raises(InputError, match="none exist"):
        empty.index("world/gravity")


def test_a_target_that_stands_twice_is_refused() -> None:
    with pytest.raises(InputError, match="joint/elbow/damping is listed twice"):
        ParameterSpace((DAMPING, GAIN, DAMPING))


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0), (float("nan"), 1.0)])
def test_bounds_that_leave_no_room_are_refused(low: float, high: float) -> None:
    with pytest.raises(InputError, match="is not below high"):
        Parameter("world/gravity", "environment", "m/s²", nominal=9.81, low=low, high=high)
