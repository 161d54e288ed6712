"""What can be wrong around a robot: the ground it stands on, and what is read of it."""

import numpy as np

from gapless.core.signal import Array
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.target import NamedElements, Target


def world_target(named: NamedElements) -> Target:
    """Returns a target of the world."""
    named.require_field()
    size = float(np.linalg.norm(named.model.opt.gravity))
    if size == 0:
        raise named.error("the model has no gravity, so it has no direction: leave this out")
    if named.field == "gravity":

        def write_gravity(fields: Fields, values: Array) -> None:
            fields.of("opt.gravity")[fields.ids] *= (values / size)[:, None]

        return Target(named.path, "environment", "m/s²", size, write_gravity)
    about_x = named.field == "tilt/x"

    def write_tilt(fields: Fields, values: Array) -> None:
        gravity = fields.of("opt.gravity")
        x, y, z = gravity[fields.ids].T
        cos, sin = np.cos(values), np.sin(values)
        # The floor turned by +angle about the axis: gravity, seen from it, turns by -angle.
        turned = [x, cos * y + sin * z, cos * z - sin * y] if about_x else [cos * x - sin * z, y, cos * z + sin * x]
        gravity[fields.ids] = np.stack(turned, axis=1)

    return Target(named.path, "environment", "rad", 0.0, write_tilt, turn=0 if about_x else 1)


def measurement_target(named: NamedElements) -> Target:
    """Returns a target of readings: scale * true value + bias, later by a delay."""
    named.require_field()
    field = named.field

    def write(fields: Fields, values: Array) -> None:
        here = np.ix_(fields.ids, named.ids)
        if field == "bias":
            fields.bias[here] += values[:, None]
        elif field == "scale":
            fields.scale[here] *= values[:, None]
        else:
            fields.reading_delay_s[here] += values[:, None]

    unit = {"bias": named.project.measurement_units[named.ids[0]], "scale": "1", "delay": "s"}[field]
    dimension = "latency" if field == "delay" else "sensor"
    return Target(named.path, dimension, unit, 1.0 if field == "scale" else 0.0, write)
