"""All layers, in the order in which signals pass them, and their paths.

Naming one knob of a layer in a path switches the layer on. A named knob at its ideal leaves the model as it was
written, and what only shapes an effect (a Stribeck speed, a wavelength) needs no name: see `Knob.typical_with`.
"""

from collections.abc import Mapping

from gapless.sim.realism.layer import Layer
from gapless.sim.realism.layers import contact, drive, environment, friction, latency, learned, sensor

LAYERS: tuple[Layer, ...] = (
    # on commands: late first
    *(latency.INFERENCE, latency.BUS, latency.JITTER, latency.DUPLICATED, latency.DROPPED, drive.RATE_LIMIT),
    # on efforts: as a torque passes them
    *(drive.TORQUE_SPEED, learned.LEARNED_ACTUATOR, drive.HEATING, drive.BATTERY, drive.SERIES_ELASTICITY),
    *(friction.FRICTION, friction.LOAD_FRICTION, friction.LUGRE, friction.COGGING),
    *(environment.WIND, environment.PUSHES, environment.CABLE),
    # on readings: late last
    *(sensor.ENCODER_BACKLASH, sensor.BIAS, sensor.NOISE, sensor.QUANTISATION, sensor.OUTLIERS, sensor.OCCLUSION),
    *(sensor.IMU, sensor.FORCE_TORQUE, sensor.RANGE, sensor.DEPTH, latency.SAMPLE_HOLD),
    # on the model
    *(contact.FRICTION_WAVES, contact.SOFTNESS, contact.RESTITUTION, contact.UNEVEN_MASS, contact.SIZE),
    *(environment.PATCHES, environment.CLUTTER, environment.TEMPERATURE, environment.LIGHT, environment.SPREAD),
)


def path_of(layer: Layer) -> str:
    """Returns a layer's part of a path: its name in lower case, hyphens for spaces."""
    return layer.name.lower().replace(" ", "-")


BY_PATH: Mapping[str, Layer] = {path_of(layer): layer for layer in LAYERS}
