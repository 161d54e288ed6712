"""All layers, by group; their paths, the order in which a signal passes them, and the values of unnamed knobs.

Naming one knob of a layer in a path switches the layer on. A named knob at its ideal leaves the model as it was
written, and what only shapes an effect (a Stribeck speed, a wavelength) needs no name: see `Knob.typical_with`.
"""

from collections.abc import Collection, Mapping

import numpy as np

from gapless.core.errors import InputError, nearest
from gapless.sim.realism.layer import Knob, Layer, SignalKind
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


def unnamed_values(layer: Layer, named: Collection[str]) -> dict[str, float]:
    """Returns the values of the knobs that are not named."""
    others = [knob for knob in layer.knobs if knob.name not in named]
    return {k.name: k.typical if k.typical_with in ("*", *named) else k.ideal for k in others}


def is_random_knob(layer: Layer, name: str) -> bool:
    """Tells whether a knob shows only in how runs scatter; see `Layer.random`."""
    return name in layer.random
