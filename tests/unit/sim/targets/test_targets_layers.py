"""What a layer and a target share is one thing: the layer does to the nominal field what its target writes."""

from pathlib import Path

import numpy as np
import pytest

from gapless.core.signal import Array
from gapless.sim.realism.draws import Draws
from gapless.sim.realism.layer import LayerContext, run_layer
from gapless.sim.realism.registry import LAYERS, layer_named
from gapless.sim.simulation import Simulation
from unit.sim.scenes import arm, space_of, things

PAIRS = [  # layer, its knobs, target and value, field and where in it
    ("tilt", {"x_rad": 0.2}, "world/tilt/x", 0.2, "opt.gravity", ...),
    ("tilt", {"y_rad": -0.1}, "world/tilt/y", -0.1, "opt.gravity", ...),
    ("surface friction", {"factor": 0.5}, "geom/box/friction", 0.1, "geom_friction", (1, slice(0, 1))),
    ("mass", {"factor": 1.5}, "body/box/mass", 0.75, "body_mass", slice(1, 2)),
    ("shifted centre", {"shift_m": 0.03}, "body/box/com/x", 0.03, "body_ipos", (1, slice(0, 1))),
]


def made(layer: str, knobs: dict[str, float], signal: Array) -> Array:
    found = layer_named(layer)
    values = found.ideal(1) | {name: np.full((1, 1), value) for name, value in knobs.items()}
    width = len(found.columns) or signal.size
    whole = np.resize(signal, (1, 1, width))
    context = LayerContext(0.01, Draws(0, np.zeros(1, dtype=np.uint64)))
    return run_layer(found, whole, values, context)[0, 0, : signal.size]


@pytest.mark.parametrize("pair", PAIRS, ids=[pair[2] for pair in PAIRS])
def test_a_layer_and_its_target_do_the_same(tmp_path: Path, pair: tuple) -> None:
    layer, knobs, path, value, field, where = pair
    blueprint = things(tmp_path)
    world = Simulation(blueprint, 1, space_of(blueprint, path), 1)
    world.set_parameters(np.array([[value]]))
    before = np.atleast_1d(world.fields.nominal(field)[where])
    np.testing.assert_allclose(made(layer, knobs, before), world.fields.of(field)[0][where], rtol=1e-12, atol=1e-12)


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
