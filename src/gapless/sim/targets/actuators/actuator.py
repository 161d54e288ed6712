"""What can be wrong in an actuator."""

from dataclasses import replace

import numpy as np

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.core.target_path import MOTOR_FIELDS
from gapless.sim.targets.actuators.drive import is_dc_motor, is_position_servo, turns
from gapless.sim.targets.actuators.lag import lag_target
from gapless.sim.targets.actuators.motor import motor_target, speed_target
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.target import Block, Place, Target, sized

NO_LIMIT = 1e6  # stands for the limit of an actuator that has none [N·m or N]


def actuator_target(place: Place) -> Target:
    """Returns a target of actuators."""
    place.require_field()
    if place.field in MOTOR_FIELDS:
        return motor_target(place)
    if place.field == "delay":

        def write_delay(fields: Fields, values: Array) -> None:
            fields.delay_s[np.ix_(fields.ids, place.ids)] += values[:, None]

        return Target(place.path, "latency", "s", 0.0, write_delay)
    if place.field == "gain":
        return _gain(place)
    if place.field in ("kp", "kd"):
        return _servo_gain(place)
    return {"lag": lag_target, "speed": speed_target, "limit": _limit, "offset": _offset}[place.field](place)


def _gain(place: Place) -> Target:
    """Returns the target of a factor on the force; a DC motor has constants instead."""
    ids = np.array([a for a in place.ids if not is_dc_motor(place.model, int(a))], np.intp)
    if not len(ids):
        text = "a DC motor has no gain; write motorconst or resistance"
        raise InputError(f"parameter {place.path}: {text}")

    def write(fields: Fields, values: Array) -> None:
        here = np.ix_(fields.ids, ids)
        fields.of("actuator_gainprm")[here] *= values[:, None, None]
        fields.of("actuator_biasprm")[here] *= values[:, None, None]

    return Target(place.path, "actuator", "1", 1.0, write, turn=1)


def _offset(place: Place) -> Target:
    """Returns the target of a constant that is added to commands: a horn one tooth off, an offset of an amplifier.

    Raises:
        InputError: If nothing commands the actuator, or the commands of all are of several units.
    """
    units = {place.model.actuator(item.actuator).id: item.unit for item in place.project.commands}
    ids = np.array([a for a in place.ids if int(a) in units], np.intp)
    if not len(ids):
        raise InputError(f"parameter {place.path}: nothing commands it, so there is nothing to add to")
    unit = units[int(ids[0])]
    if any(units[int(a)] != unit for a in ids):
        raise InputError(f"parameter {place.path}: one value for commands of several units; name one actuator")

    def write(fields: Fields, values: Array) -> None:
        fields.target_offset[np.ix_(fields.ids, ids)] += values[:, None]

    return Target(place.path, "actuator", unit, 0.0, write)


def _limit(place: Place) -> Target:
    """Returns the target of the largest force; a range that is not symmetric keeps its shape."""
    model = place.model
    limited = model.actuator_forcelimited[place.ids].astype(bool)
    force = np.where(limited[:, None], model.actuator_forcerange[place.ids], [-NO_LIMIT, NO_LIMIT])
    base = np.abs(force).max(axis=1)
    base[base == 0] = NO_LIMIT

    def put(fields: Fields, here: Block, sizes: Array) -> None:
        fields.of("actuator_forcelimited")[here] = 1
        fields.of("actuator_forcerange")[here] = force * (sizes / base)[:, :, None]

    return sized(place, "actuator", "N·m" if turns(place) else "N", base, put)


def _servo_gain(place: Place) -> Target:
    model, column = place.model, 1 if place.field == "kp" else 2
    found = [int(a) for a in place.ids if is_position_servo(model, int(a))]
    servos = np.array([a for a in found if not is_dc_motor(model, a)], np.intp)
    if found and not len(servos):
        return motor_target(place)
    if not len(servos):
        name = model.actuator(int(place.ids[0])).name
        text = f"{name} is no position actuator; write actuator/{name}/gain"
        raise InputError(f"parameter {place.path}: {text}")

    def put(fields: Fields, here: Block, sizes: Array) -> None:
        fields.of("actuator_biasprm")[(*here, column)] = -sizes
        if column == 1:
            fields.of("actuator_gainprm")[(*here, 0)] = sizes

    turning, sliding = {"kp": ("N·m/rad", "N/m"), "kd": ("N·m·s/rad", "N·s/m")}[place.field]
    unit = turning if turns(place) else sliding
    return sized(replace(place, ids=servos), "actuator", unit, -model.actuator_biasprm[servos, column], put)
