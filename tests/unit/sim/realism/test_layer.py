import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.sim.realism.draws import Draws
from gapless.sim.realism.layer import LayerContext, replace_worlds
from gapless.sim.realism.layers.drive import RATE_LIMIT, TORQUE_SPEED
from gapless.sim.realism.layers.sensor import IMU

CONTEXT = LayerContext(0.01, Draws(0, np.arange(2, dtype=np.uint64)))


def test_a_missing_or_unknown_knob_is_named() -> None:
    with pytest.raises(InputError, match="not given its knob rate"):
        RATE_LIMIT.begin(np.zeros((2, 1)), {}, CONTEXT)
    with pytest.raises(InputError, match=r"has no knob rates; give its knobs: rate"):
        RATE_LIMIT.begin(np.zeros((2, 1)), RATE_LIMIT.ideal(2) | {"rates": np.zeros((2, 1))}, CONTEXT)


def test_a_knob_of_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(2,\); give \(2, 1\) or \(2, 3\)"):
        RATE_LIMIT.begin(np.zeros((2, 3)), {"rate": np.zeros(2)}, CONTEXT)


def test_a_context_without_what_the_layer_needs_is_refused() -> None:
    with pytest.raises(InputError, match=r"needs the velocity; give LayerContext\(velocity=...\)"):
        TORQUE_SPEED.begin(np.zeros((2, 1)), TORQUE_SPEED.ideal(2), CONTEXT)


def test_other_columns_are_refused() -> None:
    with pytest.raises(InputError, match="columns x, y, z: give these, found 2 columns"):
        IMU.begin(np.zeros((2, 2)), IMU.ideal(2), CONTEXT)


def test_some_worlds_begin_anew_and_the_others_go_on() -> None:
    knobs = RATE_LIMIT.typical(2)
    state = RATE_LIMIT.begin(np.zeros((2, 1)), knobs, CONTEXT)
    state, _ = RATE_LIMIT.act(state, np.ones((2, 1)), knobs, CONTEXT)
    fresh = RATE_LIMIT.begin(np.full((1, 1), 5.0), {"rate": knobs["rate"][:1]}, CONTEXT)
    after = replace_worlds(state, fresh, np.array([1]))
    assert after[0][0] == state[0][0]
    assert after[0][1] == 5.0
    assert state[0][1] != 5.0  # the old state is left alone
