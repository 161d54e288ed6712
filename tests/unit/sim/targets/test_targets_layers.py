"""Targets that knobs of layers leave to the model: what they write, in closed form; and that the knobs name them."""

from pathlib import Path

import numpy as np
import pytest

from gapless.sim.realism.registry import LAYERS
from gapless.sim.simulation import Simulation
from unit.sim.scenes import arm, space_of, things

PAIRS = [  # target, value, field, where in it, what the target makes of the field as written
    ("world/tilt/x", 0.2, "opt.gravity", ..., lambda g: [g[0], _turn(g[1], g[2], 0.2), _turn(g[2], -g[1], 0.2)]),
    ("world/tilt/y", -0.1, "opt.gravity", ..., lambda g: [_turn(g[0], -g[2], -0.1), g[1], _turn(g[2], g[0], -0.1)]),
    ("geom/box/friction", 0.1, "geom_friction", (1, slice(0, 1)), lambda one: 0.5 * one),
    ("body/box/mass", 0.75, "body_mass", slice(1, 2), lambda one: 1.5 * one),
    ("body/box/com/x", 0.03, "body_ipos", (1, slice(0, 1)), lambda one: one + 0.03),
]


def _turn(one: float, other: float, angle: float) -> float:
    return np.cos(angle) * one + np.sin(angle) * other


@pytest.mark.parametrize("pair", PAIRS, ids=[pair[0] for pair in PAIRS])
def test_a_target_writes_its_closed_form(tmp_path: Path, pair: tuple) -> None:
    path, value, field, where, make = pair
    blueprint = things(tmp_path)
    world = Simulation(blueprint, 1, space_of(blueprint, path), 1)
    world.set_parameters(np.array([[value]]))
    before = np.atleast_1d(world.fields.nominal(field)[where])
    np.testing.assert_allclose(make(before), world.fields.of(field)[0][where], rtol=1e-12, atol=1e-12)


SAME = {f"{layer.name}, {knob.name}": knob.same_as for layer in LAYERS for knob in layer.knobs if knob.same_as}


@pytest.mark.parametrize("target", SAME.values(), ids=list(SAME))
def test_what_is_the_same_exists(tmp_path: Path, target: str) -> None:
    kind, in_arm = target.partition("/")[0], arm(tmp_path)
    names = {"actuator": "motor", "joint": "elbow", "measurement": "q1", "body": "upper"}
    if kind == "geom":
        blueprint = things(tmp_path / "things")
        space_of(blueprint, target.replace("NAME", "box"))
    else:
        space_of(in_arm, target.replace("NAME", names.get(kind, "")).replace("COLUMN", "q1"))
