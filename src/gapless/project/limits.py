"""The smallest value that each parameter can have by physics, whatever the model."""

import math

# Gains, offsets, biases, loads, centres and tilts have either sign.
NOT_NEGATIVE = frozenset(
    (
        *("damping", "frictionloss", "armature", "stiffness", "backlash", "creep"),  # of joints
        *("kp", "kd", "delay", "lag", "limit", "speed"),  # of actuators and readings
        *("resistance", "motorconst", "voltage", "cogging", "coulomb", "static", "stribeck"),  # of DC motors
        *("mass", "length", "inertia", "spread", "payload"),  # of bodies
        *("friction", "restitution", "size"),  # of geoms
    )
)


def smallest_value(target: str) -> float:
    """Returns the smallest value that a target can have, in its unit or as a factor; minus infinity without a limit.

    Knobs of layers have limits of their own besides; see `Knob`.
    """
    *_, owner, field = ("", *target.split("/"))
    name = owner if field in ("x", "y", "z") else field
    return 0.0 if name in NOT_NEGATIVE else -math.inf
