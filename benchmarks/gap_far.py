"""A model that is far off: gains, inertias and frictions of `far` in `diagnose.py`, each wrong by a factor of 3 to 10.

All gains are off by about one factor, all inertias by another and all frictions by a third, each up or down; single
elements differ from their factor by up to `SPREAD`. Reality stays the robot as its maker wrote it. What belongs to
contacts, readings, delays and the surroundings is right.
"""

import mujoco
import numpy as np
from gap_robots import Robot

FACTORS = (3.0, 10.0)
SPREAD = 1.15  # of single elements about the factor that they share; none leaves `FACTORS`


def make_far(robot: Robot, rng: np.random.Generator) -> tuple[str, str]:
    """Returns the text of a model that is far off, and by what."""
    low, high = np.log(FACTORS[0] * SPREAD), np.log(FACTORS[1] / SPREAD)
    names = ("gains", "inertias", "frictions")
    shared = {name: float(np.exp(rng.uniform(low, high) * rng.choice([-1, 1]))) for name in names}

    def draw(name: str) -> float:
        return shared[name] * float(SPREAD ** rng.uniform(-1, 1))

    spec = mujoco.MjSpec.from_string(robot.text())
    for actuator in spec.actuators:
        gain, damping = draw("gains"), draw("gains")
        actuator.gainprm[0] *= gain
        actuator.biasprm[1] *= gain
        actuator.biasprm[2] *= damping
    for body in spec.bodies[1:]:
        factor = draw("inertias")
        for geom in body.geoms:
            geom.mass *= factor
        for joint in body.joints:
            joint.armature *= draw("inertias")
            joint.damping[0] *= draw("frictions")
            joint.frictionloss *= draw("frictions")
    spec.compile()
    return spec.to_xml(), "model: " + ", ".join(f"{name} x{factor:.2f}" for name, factor in shared.items())
