"""What can be wrong in a body."""

import mujoco
import numpy as np

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.fields import Fields
from gapless.sim.reading import free_joint_of
from gapless.sim.targets.target import Block, Place, Target, sized

_FIELDS = ("mass", "com/x", "com/y", "com/z", "inertia")


def is_object(model: mujoco.MjModel, body: int) -> bool:
    """Tells whether a body is a thing of its own: carried by a free joint."""
    return free_joint_of(model, body) is not None


def body_target(place: Place) -> Target:
    """Returns a target of bodies."""
    place.require(_FIELDS)
    if place.field == "mass":
        return _mass(place)
    if place.field == "inertia":

        def write_inertia(fields: Fields, values: Array) -> None:
            here = np.ix_(fields.ids, place.ids)
            fields.of("body_inertia", constants=True)[here] *= values[:, None, None]

        return Target(place.path, "object", "1", 1.0, write_inertia)
    if place.shared:
        raise InputError(f"parameter {place.path}: a centre belongs to one body; name it")
    body, axis = int(place.ids[0]), "xyz".index(place.field[-1])

    def write_centre(fields: Fields, values: Array) -> None:
        fields.of("body_ipos", constants=True)[fields.ids, body, axis] = values

    return Target(place.path, "object", "m", float(place.model.body_ipos[body, axis]), write_centre)


def _mass(place: Place) -> Target:
    """Returns the target of a mass; the inertia scales along, as if the density were wrong."""
    base = place.model.body_mass[place.ids].copy()
    if not place.shared and base[0] == 0:
        raise InputError(f"parameter {place.path}: this body has no mass; name one that has")

    def put(fields: Fields, here: Block, sizes: Array) -> None:
        factor = np.divide(sizes, base, out=np.ones(sizes.shape), where=base > 0)
        fields.of("body_mass", constants=True)[here] = sizes
        fields.of("body_inertia", constants=True)[here] *= factor[:, :, None]

    return sized(place, "object", "kg", base, put)
