"""Knobs that nobody named: typical where they only shape an effect, ideal where they would have one."""

from collections.abc import Mapping
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from gapless.core.signal import Array
from gapless.sim.realism.draws import Draws
from gapless.sim.realism.layer import Layer, LayerContext
from gapless.sim.realism.layers.friction import FRICTION
from gapless.sim.realism.registry import BY_PATH, LAYERS
from unit.sim.realism.layers.one_layer import run_layer

CASES = [
    ("friction", "hump", {"coulomb": 0.0, "speed": 0.1, "viscous": 0.0}),
    ("heating", "loss", {"time_constant_s": 600.0, "weakening_per_k": 0.001}),
    ("torque-speed-curve", "stall", {"free_speed": np.inf, "limit": np.inf}),
    ("outliers", "share", {"size": 0.1}),
    ("occlusion", "blind_s", {"share": 0.0}),  # rare is not never
    ("shared-bus", "slot_s", {"cycle_s": 0.0}),
    ("inertial-sensor", "density", {"range": np.inf, "tau_s": 100.0}),  # 5 rad/s is no limit to a signal of 1
    ("temperature", "thinning_per_k", {"warmth_k": 10.0, "offset_per_k": 0.0}),
]


@pytest.mark.parametrize(("layer", "named", "values"), CASES, ids=[case[0] for case in CASES])
def test_knobs_not_named(layer: str, named: str, values: dict[str, float]) -> None:
    found = BY_PATH[layer].unnamed_values(frozenset([named]))
    assert named not in found
    assert {name: found[name] for name in values} == values


class _EverythingHappens(Draws):
    """Draws with which every event happens that has a probability above 0."""

    def uniform(self, stream: str, columns: int | NDArray[np.int64]) -> Array:
        return np.full(self._shape(columns), 1e-9)

    def normal(self, stream: str, columns: int | NDArray[np.int64]) -> Array:
        return np.ones(self._shape(columns))


ONE_WORLD = np.zeros(1, dtype=np.uint64)
MEDIAN, ANY_DRAWS = [Draws(0, ONE_WORLD, median=True)], [_EverythingHappens(0, ONE_WORLD), Draws(0, ONE_WORLD)]
SIZES = (1e-3, 1.0, 1e3)  # a limit of 5 is none to a signal of 1


def change(layer: Layer, values: Mapping[str, float], any_draws: list[Draws], num_steps: int) -> list[Array]:
    """Returns what a layer adds to small and large signals, (num_steps, 1, num_columns) each."""
    width, out = len(layer.columns) or 2, []
    knobs = {name: np.full((1, 1), value) for name, value in values.items()}
    shapes = {"place": (width, 2), "warmth_k": (1,)}
    for size, draws in product(SIZES, any_draws):
        signals, rng = size * np.random.default_rng(0).normal(size=(num_steps, 1, width)), np.random.default_rng(1)
        given = {name: size * rng.normal(size=(num_steps, 1, *shapes.get(name, (width,)))) for name in layer.needs}
        out.append(run_layer(layer, signals, knobs, LayerContext(0.02, draws), **given) - signals)
    return out


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_knobs_not_named_are_typical_exactly_where_that_changes_nothing(layer: Layer) -> None:
    names = [knob.name for knob in layer.knobs if not knob.same_as]
    for named in (set(some) for count in (1, 2) for some in combinations(names, count)):
        values = {knob.name: knob.nominal if knob.name in named else knob.ideal for knob in layer.knobs}
        for knob in (one for one in layer.knobs if one.name not in named):
            typical = values | {knob.name: knob.typical}
            values = values if any(one.any() for one in change(layer, typical, ANY_DRAWS, 6)) else typical
        assert layer.unnamed_values(named) == {name: one for name, one in values.items() if name not in named}


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_random_knobs_show_in_no_median_run(layer: Layer) -> None:
    typical = {knob.name: knob.typical for knob in layer.knobs}
    for knob in layer.knobs:
        other = typical | {knob.name: knob.low if knob.typical != knob.low else knob.high}
        same = [
            all(map(np.array_equal, change(layer, typical, draws, steps), change(layer, other, draws, steps)))
            for draws, steps in ((MEDIAN, 6), (ANY_DRAWS, 150))
        ]
        once_per_run = "place" in layer.needs  # a pattern on the floor
        assert (knob.name in layer.random) == (not same[1] if same[0] else once_per_run), knob.name


def test_nominal_values_are_finite() -> None:
    assert all(np.isfinite(knob.nominal) for layer in LAYERS for knob in layer.knobs)


def test_paths_are_of_all_layers_and_differ() -> None:
    assert len(BY_PATH) == len(LAYERS)
    assert BY_PATH["friction"] is FRICTION
    assert "lugre-friction" in BY_PATH


def test_commands_are_late_first_and_readings_last() -> None:
    commands, readings = (
        [layer.dimension == "latency" for layer in LAYERS if layer.acts_on == what] for what in ("command", "reading")
    )
    assert commands == sorted(commands, reverse=True)
    assert readings == sorted(readings)
