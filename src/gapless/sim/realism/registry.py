"""All layers, by group; their paths, the order in which a signal passes them, and the values of unnamed knobs.

Naming one knob of a layer in a path switches the layer on. Each knob that is not named takes its typical value if, with
the named ones at ideal, the layer then still changes nothing; else its ideal. So a named knob at its ideal leaves the
model as it was written, and what only shapes an effect (a Stribeck speed, a wavelength) needs no name.
"""

from collections.abc import Mapping
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from gapless.core.errors import InputError, nearest
from gapless.core.signal import Array
from gapless.sim.realism.draws import Draws
from gapless.sim.realism.layer import Knob, Layer, LayerContext, SignalKind, run_layer
from gapless.sim.realism.layers.contact import CONTACT_LAYERS, OBJECT_LAYERS
from gapless.sim.realism.layers.drive import DRIVE_LAYERS, POWER_LAYERS, SERIES_ELASTICITY
from gapless.sim.realism.layers.environment import ENVIRONMENT_LAYERS
from gapless.sim.realism.layers.friction import FRICTION_LAYERS
from gapless.sim.realism.layers.latency import LATENCY_LAYERS
from gapless.sim.realism.layers.learned import LEARNED_ACTUATOR
from gapless.sim.realism.layers.sensor import SENSOR_LAYERS

LAYERS: tuple[Layer, ...] = (
    *(*DRIVE_LAYERS, LEARNED_ACTUATOR, *POWER_LAYERS, SERIES_ELASTICITY, *FRICTION_LAYERS),  # as a torque passes them
    *(*LATENCY_LAYERS, *SENSOR_LAYERS),
    *(*CONTACT_LAYERS, *OBJECT_LAYERS, *ENVIRONMENT_LAYERS),
)
# Test signals, to find out what a knob changes.
NUM_STEPS, NUM_STEPS_OF_CHANCE, STEP_S = 6, 150, 0.02
SIGNAL_SIZES = (1e-3, 1.0, 1e3)  # a limit of 5 is none to a signal of 1


def layer_named(name: str) -> Layer:
    """Returns a layer by its name."""
    by_name = {layer.name: layer for layer in LAYERS}
    if name not in by_name:
        raise InputError(f"there is no layer {name!r}; choose from: {nearest(name, list(by_name))}")
    return by_name[name]


def path_of(layer: Layer) -> str:
    """Returns a layer's part of a path: its name in lower case, hyphens for spaces."""
    return layer.name.lower().replace(" ", "-")


BY_PATH: Mapping[str, Layer] = {path_of(layer): layer for layer in LAYERS}


def layers_in_order(acts_on: SignalKind) -> tuple[Layer, ...]:
    """Returns the layers of a signal as it passes them: delays of commands come first, delays of readings last."""
    chosen = [layer for layer in LAYERS if layer.acts_on == acts_on]
    late = [layer for layer in chosen if layer.dimension == "latency"]
    others = [layer for layer in chosen if layer.dimension != "latency"]
    return (*late[::-1], *others) if acts_on == "command" else (*others, *late)


def nominal_value(knob: Knob) -> float:
    """Returns the value that leaves the model as it was written: the ideal, or the top of the range for no limit."""
    return knob.ideal if np.isfinite(knob.ideal) else knob.high


@lru_cache(maxsize=1024)
def unnamed_values(layer: Layer, named: frozenset[str]) -> Mapping[str, float]:
    """Returns the values of the knobs that are not named."""
    values = {knob.name: nominal_value(knob) if knob.name in named else knob.ideal for knob in layer.knobs}
    for knob in layer.knobs:
        typical = values | {knob.name: knob.typical}
        if knob.name not in named and typical != values and _changes_nothing(layer, typical):
            values = typical
    return {name: value for name, value in values.items() if name not in named}


@lru_cache(maxsize=1024)
def is_random_knob(layer: Layer, name: str) -> bool:
    """Tells whether a knob shows only in how runs scatter: not in the median run, or in what is drawn once per run.

    A prediction then says nothing of it: it is estimated from statistics of what predictions leave (`fit.scatter`).
    """
    knob = next(knob for knob in layer.knobs if knob.name == name)
    typical = {knob.name: knob.typical for knob in layer.knobs}
    other = typical | {name: knob.low if knob.typical != knob.low else knob.high}

    def are_equal(any_draws: tuple[Draws, ...], num_steps: int) -> bool:
        runs = [_run(layer, values, any_draws, num_steps) for values in (typical, other)]
        return all(np.array_equal(first, second) for (first, _), (second, _) in zip(*runs, strict=True))

    if are_equal((Draws(0, _ONE_WORLD, median=True),), NUM_STEPS):
        return not are_equal(_ANY_DRAWS, NUM_STEPS_OF_CHANCE)
    return "place" in layer.needs  # a pattern on the floor, drawn once per run


class _EverythingHappens(Draws):
    """Draws with which every event happens that has a probability above 0."""

    def uniform(self, stream: str, columns: int | NDArray[np.int64]) -> Array:
        """Returns numbers below any probability but 0."""
        return np.full(self._shape(columns), 1e-9)

    def normal(self, stream: str, columns: int | NDArray[np.int64]) -> Array:
        """Returns ones."""
        return np.ones(self._shape(columns))


_ONE_WORLD = np.zeros(1, dtype=np.uint64)
_ANY_DRAWS = (_EverythingHappens(0, _ONE_WORLD), Draws(0, _ONE_WORLD))


def _changes_nothing(layer: Layer, values: Mapping[str, float]) -> bool:
    """Tells whether small and large signals come out as they went in."""
    return all(np.array_equal(out, signals) for out, signals in _run(layer, values, _ANY_DRAWS))


def _run(
    layer: Layer, values: Mapping[str, float], any_draws: tuple[Draws, ...], num_steps: int = NUM_STEPS
) -> list[tuple[Array, Array]]:
    """Returns what a layer makes of small and large signals, and these, (num_steps, 1, num_columns) each."""
    width = len(layer.columns) or 2
    knobs = {name: np.full((1, 1), value) for name, value in values.items()}
    shapes = {"place": (width, 2), "warmth_k": (1,)}
    out: list[tuple[Array, Array]] = []
    for size, draws in product(SIGNAL_SIZES, any_draws):
        signals, rng = size * np.random.default_rng(0).normal(size=(num_steps, 1, width)), np.random.default_rng(1)
        varying = {name: size * rng.normal(size=(num_steps, 1, *shapes.get(name, (width,)))) for name in layer.needs}
        out.append((run_layer(layer, signals, knobs, LayerContext(STEP_S, draws), **varying), signals))
    return out
