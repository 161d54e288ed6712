"""The constants of motors: of the engine's DC motors, and the speed at which a servo's force is gone.

The engine keeps a DC motor's constants in `gainprm` (resistance, motor constant, ..., kp, ki, kd, voltage limit) and
`biasprm` (cogging, ..., Coulomb and static friction, Stribeck speed). All are per output of the gear box, in the units
of the joint that it drives.
"""

from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.targets.actuators.drive import is_dc_motor, is_position_servo, turns
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.target import Block, Place, Target, sized

NO_SPEED = 1000.0  # stands for the no-load speed of a servo that has none [rad/s or m/s]
_COLUMNS = {  # field -> model field, column in it, unit of a hinge, unit of a slide
    "resistance": ("actuator_gainprm", 0, "Ω", "Ω"),
    "motorconst": ("actuator_gainprm", 1, "N·m/A", "N/A"),
    "voltage": ("actuator_gainprm", 7, "V", "V"),
    "cogging": ("actuator_biasprm", 0, "N·m", "N"),
    "coulomb": ("actuator_biasprm", 3, "N·m", "N"),
    "static": ("actuator_biasprm", 4, "N·m", "N"),
    "stribeck": ("actuator_biasprm", 5, "rad/s", "m/s"),
    "kp": ("actuator_gainprm", 4, "N·m/rad", "N/m"),
    "kd": ("actuator_gainprm", 6, "N·m·s/rad", "N·s/m"),
}


def motor_target(place: Place) -> Target:
    """Returns the target of a constant of DC motors, or of a gain of their controllers, that the model gives them.

    Raises:
        InputError: If none of the actuators is a DC motor, or none has this constant.
    """
    model, name = place.model, place.model.actuator(int(place.ids[0])).name
    motors = np.array([a for a in place.ids if is_dc_motor(model, int(a))], np.intp)
    if not len(motors):
        raise InputError(f"parameter {place.path}: {name} is no DC motor; write actuator/{name}/gain")
    array, column, *units = _COLUMNS[place.field]
    given = motors[getattr(model, array)[motors, column] > 0]
    if not len(given):
        raise InputError(f"parameter {place.path}: {name} has none in the model; write its `{_attribute(place.field)}`")

    def put(fields: Fields, here: Block, sizes: Array) -> None:
        fields.of(array)[(*here, column)] = sizes

    base = getattr(model, array)[given, column].copy()
    return sized(replace(place, ids=given), "actuator", units[0 if turns(place) else 1], base, put)


def speed_target(place: Place) -> Target:
    """Returns the target of the speed at which a position servo's force is gone: limit(v) = limit (1 - v / speed).

    Braking, it still has all its force. In the engine such a servo is a DC motor with a controller: with the voltage
    limit 1, K = 1 / speed and R = K / limit give just this line.

    Raises:
        InputError: If none of the actuators is a position servo with a force limit.
    """
    model = place.model
    able = [a for a in place.ids if _may_become_motor(model, int(a))]
    servos = np.array(able, np.intp)
    if not able:
        text = "only a position actuator with a forcerange has one; for a motor, use the joint's damping"
        raise InputError(f"parameter {place.path}: {text}")

    def write(fields: Fields, values: Array) -> None:
        limited = fields.ids[values < NO_SPEED]
        worlds, actuators = (grid.ravel() for grid in np.meshgrid(limited, servos, indexing="ij"))
        _make_motors(fields, worlds, actuators, np.repeat(values[values < NO_SPEED], len(servos)))

    unit = "rad/s" if turns(place) else "m/s"
    return Target(place.path, "actuator", unit, NO_SPEED, write, turn=2)


def _make_motors(fields: Fields, worlds: NDArray[np.intp], servos: NDArray[np.intp], speed: Array) -> None:
    """Turns some servos of some worlds, (num_pairs,) each, into DC motors with a no-load speed."""
    if not len(worlds):
        return
    here = (worlds, servos)
    gain, bias = fields.of("actuator_gainprm"), fields.of("actuator_biasprm")
    limit = np.abs(fields.of("actuator_forcerange")[here]).max(axis=1)
    constants = np.zeros((len(worlds), gain.shape[2]))
    constants[:, 0], constants[:, 1], constants[:, 7] = 1 / (speed * limit), 1 / speed, 1.0
    motor = fields.of("actuator_gaintype")[here] == mujoco.mjtGain.mjGAIN_DCMOTOR.value  # by a speed of all
    constants[:, 4] = np.where(motor, gain[(*here, 4)], gain[(*here, 0)])
    constants[:, 6] = np.where(motor, gain[(*here, 6)], -bias[(*here, 2)])
    gain[here], bias[here], fields.of("actuator_dynprm")[here] = constants, 0.0, 0.0
    fields.of("actuator_gaintype")[here] = mujoco.mjtGain.mjGAIN_DCMOTOR.value
    fields.of("actuator_biastype")[here] = mujoco.mjtBias.mjBIAS_DCMOTOR.value


def _may_become_motor(model: mujoco.MjModel, actuator: int) -> bool:
    stateless = model.actuator_dyntype[actuator] == mujoco.mjtDyn.mjDYN_NONE  # a DC motor has a type of its own
    return bool(stateless and is_position_servo(model, actuator) and model.actuator_forcelimited[actuator])


def _attribute(field: str) -> str:
    """Returns the attribute of the model that gives a constant."""
    lugre = ("coulomb", "static", "stribeck")
    return "lugre" if field in lugre else "controller" if field in ("voltage", "kp", "kd") else field
