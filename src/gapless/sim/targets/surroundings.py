"""What can be wrong around a robot: the ground it stands on, and what is read of it."""

import numpy as np

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.target import Place, Target


def world_target(place: Place) -> Target:
    """Returns a target of the world."""
    place.require_field()
    size = float(np.linalg.norm(place.model.opt.gravity))
    if size == 0:
        raise InputError(f"parameter {place.path}: the model has no gravity, so it has no direction: leave this out")
    if place.field == "gravity":

        def write_gravity(fields: Fields, values: Array) -> None:
            fields.of("opt.gravity")[fields.ids] *= (values / size)[:, None]

        return Target(place.path, "environment", "m/s²", size, write_gravity)
    about_x = place.field == "tilt/x"

    def write_tilt(fields: Fields, values: Array) -> None:
        gravity = fields.of("opt.gravity")
        x, y, z = gravity[fields.ids].T
        cos, sin = np.cos(values), np.sin(values)
        # The floor turned by +angle about the axis: gravity, seen from it, turns by -angle.
        turned = [x, cos * y + sin * z, cos * z - sin * y] if about_x else [cos * x - sin * z, y, cos * z + sin * x]
        gravity[fields.ids] = np.stack(turned, axis=1)

    return Target(place.path, "environment", "rad", 0.0, write_tilt, turn=0 if about_x else 1)


def measurement_target(place: Place) -> Target:
    """Returns a target of readings: scale * true value + bias, later by a delay."""
    place.require_field()
    field = place.field

    def write(fields: Fields, values: Array) -> None:
        here = np.ix_(fields.ids, place.ids)
        if field == "bias":
            fields.bias[here] += values[:, None]
        elif field == "scale":
            fields.scale[here] *= values[:, None]
        else:
            fields.reading_delay_s[here] += values[:, None]

    unit = {"bias": place.project.measurement_units[place.ids[0]], "scale": "1", "delay": "s"}[field]
    dimension = "latency" if field == "delay" else "sensor"
    return Target(place.path, dimension, unit, 1.0 if field == "scale" else 0.0, write)
