"""The parts of a target's path, `KIND/NAME/FIELD`. Names may hold any character, `/` too; fields are known."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

MOTOR_FIELDS = ("resistance", "motorconst", "voltage", "cogging", "coulomb", "static", "stribeck")
FIELDS = {
    "joint": ("damping", "frictionloss", "armature", "stiffness", "load", "offset", "backlash", "creep"),
    "actuator": ("gain", "kp", "kd", "delay", "lag", "limit", "speed", "offset", *MOTOR_FIELDS),
    "body": (
        *("mass", "length", "com/x", "com/y", "com/z", "inertia"),
        *("spread/x", "spread/y", "spread/z", "payload", "tip_payload"),
    ),
    "geom": ("friction", "stiffness", "restitution", "size/x", "size/y", "size/z"),
    "site": ("payload",),
    "world": ("tilt/x", "tilt/y", "gravity"),
    "measurement": ("bias", "scale", "delay"),
}
# Fields that physics keeps from being negative. Gains, offsets, biases, loads, centres and tilts have either sign.
NOT_NEGATIVE = frozenset(
    (
        *("damping", "frictionloss", "armature", "stiffness", "backlash", "creep"),  # of joints
        *("kp", "kd", "delay", "lag", "limit", "speed", *MOTOR_FIELDS),  # of actuators and readings
        *("mass", "length", "inertia", "spread", "payload", "tip_payload"),  # of bodies
        *("friction", "restitution", "size"),  # of geoms
    )
)


def smallest_value(target: str) -> float:
    """Returns the smallest value that a target can have by physics, in its unit or as a factor; -inf without a limit.

    Knobs of layers have limits of their own besides; see `Knob`.
    """
    *_, owner, field = ("", *target.split("/"))
    name = owner if field in ("x", "y", "z") else field
    return 0.0 if name in NOT_NEGATIVE else -math.inf


@dataclass(frozen=True)
class TargetPath:
    """A path in its parts."""

    kind: str  # what is set: joint, actuator, body, geom, site, world or measurement
    name: str  # name of the element as the model or the log has it; `*` for all, empty for the world
    field: str  # what is set of it: `damping`, `com/x`, or a knob of a layer, `cogging/amplitude`


def split_path(
    path: str, names: Collection[str] = (), is_knob: Callable[[str], bool] = lambda field: False
) -> TargetPath:
    """Returns the parts of a path.

    The kind stands in front and a known field at the end; what lies between is the name. Of several readings, one
    whose name is among `names`, those that exist, wins, then the one with the longest field. Without a known field the
    name ends at the first `/`, or after the longest of `names` that fits. `is_knob` says whether a field is a knob of a
    layer; the room `targets` knows.
    """
    kind, _, rest = path.partition("/")
    if kind == "world":
        return TargetPath(kind, "", rest)
    splits = [(rest[:k], rest[k + 1 :]) for k in range(1, len(rest)) if rest[k] == "/"]
    existing = [one for one in splits if one[0] in names]
    for some in (existing, splits):
        for name, field in some:
            if field in FIELDS.get(kind, ()) or is_knob(field):
                return TargetPath(kind, name, field)
    name, field = existing[-1] if existing else splits[0] if splits else (rest, "")
    return TargetPath(kind, name, field)
