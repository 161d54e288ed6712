"""What can be wrong in an actuator: gains, limits, delays, lags, and the constants of motors.

The engine keeps a DC motor's constants in `gainprm` (resistance, motor constant, ..., kp, ki, kd, voltage limit) and
`biasprm` (cogging, ..., Coulomb and static friction, Stribeck speed). All are per output of the gear box, in the units
of the joint that it drives.
"""

from dataclasses import replace

import mujoco
import numpy as np

from gapless.core.signal import Array
from gapless.core.target_path import MOTOR_FIELDS
from gapless.sim.active_layers.active_layer import Ids
from gapless.sim.targets.drive import is_dc_motor, is_filter, is_position_servo
from gapless.sim.targets.target import Fields, Index, NamedElements, Target, add_to, field_target, size_target

NO_LIMIT = 1e6  # stands for the limit of an actuator that has none [N·m or N]
NO_SPEED = 1000.0  # stands for the no-load speed of a servo that has none [rad/s or m/s]
_MOTOR_COLUMNS = {  # field -> model field, column in it, units of a hinge and of a slide, attribute of the model
    "resistance": ("actuator_gainprm", 0, "Ω", "resistance"),
    "motorconst": ("actuator_gainprm", 1, "N·m/A, N/A", "motorconst"),
    "voltage": ("actuator_gainprm", 7, "V", "controller"),
    "cogging": ("actuator_biasprm", 0, "N·m, N", "cogging"),
    "coulomb": ("actuator_biasprm", 3, "N·m, N", "lugre"),
    "static": ("actuator_biasprm", 4, "N·m, N", "lugre"),
    "stribeck": ("actuator_biasprm", 5, "rad/s, m/s", "lugre"),
    "kp": ("actuator_gainprm", 4, "N·m/rad, N/m", "controller"),
    "kd": ("actuator_gainprm", 6, "N·m·s/rad, N·s/m", "controller"),
}


def actuator_target(named: NamedElements) -> Target:
    """Returns a target of actuators."""
    if named.field in MOTOR_FIELDS:
        return _motor_target(named)
    if named.field in ("kp", "kd"):
        return _servo_gain_target(named)
    if named.field == "delay":
        return Target(named.path, "latency", "s", 0.0, add_to("delay_s", named.ids))
    makers = {"gain": _gain_target, "lag": _lag_target, "limit": _limit_target, "offset": _offset_target}
    return makers.get(named.field, _speed_target)(named)


def _gain_target(named: NamedElements) -> Target:
    """Returns the target of a factor on the force; a DC motor has constants instead."""
    ids = named.select(lambda model, a: not is_dc_motor(model, a))
    if not len(ids):
        raise named.error("a DC motor has no gain; write motorconst or resistance")

    def write(fields: Fields, values: Array) -> None:
        fields.multiply(fields.ids, ids, values[:, None], "actuator_gainprm", "actuator_biasprm")

    return Target(named.path, "actuator", "1", 1.0, write, turn=1)


def _offset_target(named: NamedElements) -> Target:
    """Returns the target of a constant that is added to commands: a horn one tooth off, an offset of an amplifier."""
    units = {named.model.actuator(item.actuator).id: item.unit for item in named.project.commands}
    ids = named.select(lambda _, a: a in units)
    if not len(ids):
        raise named.error("nothing commands it, so there is nothing to add to")
    unit = units[int(ids[0])]
    if any(units[int(a)] != unit for a in ids):
        raise named.error("one value for commands of several units; name one actuator")
    return Target(named.path, "actuator", unit, 0.0, add_to("target_offset", ids))


def _limit_target(named: NamedElements) -> Target:
    """Returns the target of the largest force; a range that is not symmetric keeps its shape."""
    model = named.model
    limited = model.actuator_forcelimited[named.ids].astype(bool)
    force = np.where(limited[:, None], model.actuator_forcerange[named.ids], [-NO_LIMIT, NO_LIMIT])
    base = np.abs(force).max(axis=1)
    base[base == 0] = NO_LIMIT

    def write_sizes(fields: Fields, here: Index, sizes: Array) -> None:
        fields.of("actuator_forcelimited")[here] = 1
        fields.of("actuator_forcerange")[here] = force * (sizes / base)[:, :, None]

    return size_target(named, "actuator", named.choose_unit("N·m, N"), base, write_sizes)


def _servo_gain_target(named: NamedElements) -> Target:
    """Returns the target of a gain of position servos, in their own fields or in those of a DC motor."""
    model, column = named.model, 1 if named.field == "kp" else 2
    found = named.select(is_position_servo)
    servos = np.array([a for a in found if not is_dc_motor(model, int(a))], np.intp)
    if len(found) and not len(servos):
        return _motor_target(named)
    if not len(servos):
        name = model.actuator(int(named.ids[0])).name
        raise named.error(f"{name} is no position actuator; write actuator/{name}/gain")

    def write_sizes(fields: Fields, here: Index, sizes: Array) -> None:
        fields.of("actuator_biasprm")[(*here, column)] = -sizes
        if column == 1:
            fields.of("actuator_gainprm")[(*here, 0)] = sizes

    unit = named.choose_unit(_MOTOR_COLUMNS[named.field][2])
    base = -model.actuator_biasprm[servos, column]
    return size_target(replace(named, ids=servos), "actuator", unit, base, write_sizes)


def _lag_target(named: NamedElements) -> Target:
    """Returns the target of a lag, after the delay; one that the model has of its own is changed in place.

    For `*` it is what all have besides their own. A DC motor lags by its inductance / resistance.
    """
    model, first = named.model, int(named.ids[0])
    own = named.select(lambda m, a: is_filter(m, a) or (is_dc_motor(m, a) and m.actuator_dynprm[a, 0] > 0))
    bare = named.select(lambda m, a: m.actuator_dyntype[a] == mujoco.mjtDyn.mjDYN_NONE and not is_dc_motor(m, a))
    if not len(own) and not len(bare):
        text = f"{model.actuator(first).name} has dynamics of its own that are no lag: leave it out"
        if is_dc_motor(model, first):
            text = "a DC motor lags by its inductance: give it one in the model"
        raise named.error(text)
    nominal = 0.0 if named.shared or not len(own) else float(model.actuator_dynprm[own[0], 0])

    def write(fields: Fields, values: Array) -> None:
        fields.lag_s[np.ix_(fields.ids, bare)] += values[:, None]
        if len(own):
            fields.of("actuator_dynprm")[(*np.ix_(fields.ids, own), 0)] += (values - nominal)[:, None]

    return Target(named.path, "latency", "s", nominal, write)


def _motor_target(named: NamedElements) -> Target:
    """Returns the target of a constant of DC motors, or of a gain of their controllers, that the model gives them."""
    model, name = named.model, named.model.actuator(int(named.ids[0])).name
    motors = named.select(is_dc_motor)
    if not len(motors):
        raise named.error(f"{name} is no DC motor; write actuator/{name}/gain")
    array, column, units, attribute = _MOTOR_COLUMNS[named.field]
    given = motors[getattr(model, array)[motors, column] > 0]
    if not len(given):
        raise named.error(f"{name} has none in the model; write its `{attribute}`")
    return field_target(replace(named, ids=given), named.choose_unit(units), array, column)


def _speed_target(named: NamedElements) -> Target:
    """Returns the target of the speed at which a position servo's force is gone: limit(v) = limit (1 - v / speed).

    Braking, it still has all its force. In the engine such a servo is a DC motor with a controller: with the voltage
    limit 1, K = 1 / speed and R = K / limit give just this line.
    """
    servos = named.select(
        lambda m, a: bool(
            m.actuator_dyntype[a] == mujoco.mjtDyn.mjDYN_NONE  # a DC motor has a type of its own
            and is_position_servo(m, a)
            and m.actuator_forcelimited[a]
        )
    )
    if not len(servos):
        raise named.error("only a position actuator with a forcerange has one; for a motor, use the joint's damping")

    def write(fields: Fields, values: Array) -> None:
        limited = fields.ids[values < NO_SPEED]
        worlds, actuators = (grid.ravel() for grid in np.meshgrid(limited, servos, indexing="ij"))
        _make_motors(fields, worlds, actuators, np.repeat(values[values < NO_SPEED], len(servos)))

    return Target(named.path, "actuator", named.choose_unit("rad/s, m/s"), NO_SPEED, write, turn=2)


def _make_motors(fields: Fields, worlds: Ids, servos: Ids, speed: Array) -> None:
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
