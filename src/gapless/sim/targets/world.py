"""What can be wrong around a robot: the ground it stands on, and what is read of it."""

import numpy as np

from gapless.core.signal import Array
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.target import NamedElements, Target, add_to


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
    if named.field == "bias":
        unit = named.project.measurement_units[named.ids[0]]
        return Target(named.path, "sensor", unit, 0.0, add_to("bias", named.ids))
    if named.field == "delay":
        return Target(named.path, "latency", "s", 0.0, add_to("reading_delay_s", named.ids))

    def write_scale(fields: Fields, values: Array) -> None:
        fields.scale[np.ix_(fields.ids, named.ids)] *= values[:, None]

    return Target(named.path, "sensor", "1", 1.0, write_scale)
