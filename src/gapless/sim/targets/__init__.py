"""Parameter targets: what each path of the design sets, its unit, and its value in the model as written."""

from gapless.sim.targets.actuator import driven_joint, is_position_servo
from gapless.sim.targets.body import is_object
from gapless.sim.targets.contact import effective_friction
from gapless.sim.targets.joint import has_one_axis
from gapless.sim.targets.resolve import resolve
from gapless.sim.targets.target import Target

__all__ = [
    "Target",
    "driven_joint",
    "effective_friction",
    "has_one_axis",
    "is_object",
    "is_position_servo",
    "resolve",
]
