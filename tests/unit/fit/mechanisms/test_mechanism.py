import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.fit.mechanisms.mechanism import NUMERICS, list_mechanisms


def parameter(target: str, dimension: Dimension) -> Parameter:
    return Parameter(target, dimension, "1", 1.0, 0.1, 10.0)


SPACE = ParameterSpace(
    (
        parameter("actuator/left/gain", "actuator"),
        parameter("actuator/right/gain", "actuator"),
        parameter("world/tilt/x", "environment"),
        parameter("world/tilt/y", "environment"),
        parameter("body/load/mass", "object"),
    )
)


def test_a_vector_is_one_mechanism_and_drives_are_wrong_alone_or_together() -> None:
    found = {mechanism.targets: mechanism for mechanism in list_mechanisms(SPACE)}
    assert found["world/tilt/x", "world/tilt/y"].price == 2
    assert found["actuator/left/gain",].price == found["body/load/mass",].price == 1
    both = found["actuator/left/gain", "actuator/right/gain"]
    assert both.tied
    assert both.price == 1
    assert list_mechanisms(SPACE)[-1].targets == (NUMERICS,)


def test_one_number_moves_all_that_is_tied_by_their_typical_errors() -> None:
    found = {mechanism.targets: mechanism for mechanism in list_mechanisms(SPACE)}
    typical = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 1.0])
    both = found["actuator/left/gain", "actuator/right/gain"].directions(typical)
    np.testing.assert_array_equal(both, [[0.1, 0.2, 0.0, 0.0, 0.0, 0.0]])
    tilt = found["world/tilt/x", "world/tilt/y"].directions(typical)
    np.testing.assert_array_equal(tilt, [[0.0, 0.0, 0.3, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.4, 0.0, 0.0]])


def test_entries_of_a_vector_that_show_nowhere_cost_nothing() -> None:
    found = {mechanism.targets: mechanism for mechanism in list_mechanisms(SPACE, unseen={2})}
    assert found["world/tilt/y",].price == 1
    assert not any("world/tilt/x" in targets for targets in found)


def test_a_joint_that_is_called_tilt_is_no_vector() -> None:
    fields = ("damping", "frictionloss")
    space = ParameterSpace(tuple(parameter(f"joint/tilt/{field}", "actuator") for field in fields))
    targets = [mechanism.targets for mechanism in list_mechanisms(space)]
    assert targets[:2] == [("joint/tilt/damping",), ("joint/tilt/frictionloss",)]
