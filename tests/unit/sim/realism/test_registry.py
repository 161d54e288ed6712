"""Knobs that nobody named: typical where they only shape an effect, ideal where they would have one."""

import numpy as np
import pytest

from gapless.sim.realism.layers.friction import FRICTION
from gapless.sim.realism.registry import BY_PATH, LAYERS, layer_named, layers_in_order, nominal_value, unnamed_values

CASES = [
    ("friction", "hump", {"coulomb": 0.0, "speed": 0.1, "viscous": 0.0}),
    ("heating", "loss", {"time_constant_s": 600.0, "weakening_per_k": 0.001}),
    ("torque-speed curve", "stall", {"free_speed": np.inf, "limit": np.inf}),
    ("outliers", "share", {"size": 0.1}),
    ("occlusion", "blind_s", {"share": 0.0}),  # rare is not never
    ("shared bus", "slot_s", {"cycle_s": 0.0}),
    ("inertial sensor", "density", {"range": np.inf, "tau_s": 100.0}),  # 5 rad/s is no limit to a signal of 1
    ("temperature", "thinning_per_k", {"warmth_k": 10.0, "offset_per_k": 0.0}),
]


@pytest.mark.parametrize(("layer", "named", "values"), CASES, ids=[case[0] for case in CASES])
def test_knobs_not_named(layer: str, named: str, values: dict[str, float]) -> None:
    found = unnamed_values(layer_named(layer), frozenset([named]))
    assert named not in found
    assert {name: found[name] for name in values} == values


def test_nominal_values_are_finite() -> None:
    assert all(np.isfinite(nominal_value(knob)) for layer in LAYERS for knob in layer.knobs)


def test_paths_are_of_all_layers_and_differ() -> None:
    assert len(BY_PATH) == len(LAYERS)
    assert BY_PATH["friction"] is FRICTION
    assert "lugre-friction" in BY_PATH


def test_commands_are_late_first_and_readings_last() -> None:
    commands, readings = (
        [layer.dimension == "latency" for layer in layers_in_order(what)] for what in ("command", "reading")
    )
    assert commands == sorted(commands, reverse=True)
    assert readings == sorted(readings)
