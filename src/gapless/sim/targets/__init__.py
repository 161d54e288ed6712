"""Parameter targets: what each path of the design sets, its unit, and its value in the model as written."""

from gapless.sim.targets.drive import (
    driven_joint,
    engine_lag_remainder,
    force_per_command,
    has_one_axis,
    is_dc_motor,
    is_filter,
    is_object,
    is_position_servo,
    takes_force,
)
from gapless.sim.targets.resolve import resolve
from gapless.sim.targets.target import Fields, Target, split_target
