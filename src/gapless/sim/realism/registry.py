"""All layers, by group; those on efforts in the order in which a torque passes them."""

from gapless.core.errors import InputError, nearest
from gapless.sim.realism.layer import Layer
from gapless.sim.realism.layers.contact import CONTACT_LAYERS
from gapless.sim.realism.layers.delay import DELAY_LAYERS
from gapless.sim.realism.layers.drive import DRIVE_LAYERS, SERIES_ELASTICITY
from gapless.sim.realism.layers.friction import FRICTION_LAYERS
from gapless.sim.realism.layers.inertial import INERTIAL_LAYERS
from gapless.sim.realism.layers.objects import OBJECT_LAYERS
from gapless.sim.realism.layers.packets import PACKET_LAYERS
from gapless.sim.realism.layers.power import POWER_LAYERS
from gapless.sim.realism.layers.ranging import RANGING_LAYERS
from gapless.sim.realism.layers.reading import READING_LAYERS
from gapless.sim.realism.layers.spread import SPREAD_LAYERS
from gapless.sim.realism.layers.surroundings import SURROUNDINGS_LAYERS

LAYERS: tuple[Layer, ...] = (
    *(*DRIVE_LAYERS, *POWER_LAYERS, SERIES_ELASTICITY, *FRICTION_LAYERS),
    *(*PACKET_LAYERS, *DELAY_LAYERS),
    *(*READING_LAYERS, *INERTIAL_LAYERS, *RANGING_LAYERS),
    *(*CONTACT_LAYERS, *OBJECT_LAYERS, *SURROUNDINGS_LAYERS, *SPREAD_LAYERS),
)


def layer_named(name: str) -> Layer:
    """Returns a layer by its name."""
    for layer in LAYERS:
        if layer.name == name:
            return layer
    raise InputError(f"there is no layer {name!r}; choose from: {nearest(name, [layer.name for layer in LAYERS])}")
