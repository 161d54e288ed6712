"""First-order lags of actuators: of motors, drivers, rotors, valves."""

import mujoco
import numpy as np

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.targets.actuators.drive import is_dc_motor, is_filter
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.target import Place, Target


def lag_target(place: Place) -> Target:
    """Returns the target of a lag, after the delay; one that the model has of its own is changed in place.

    For `*` it is what all have besides their own.
    """
    model = place.model
    own = np.array([a for a in place.ids if is_filter(model, int(a)) or _has_inductance(model, int(a))], np.intp)
    none = [a for a in place.ids if model.actuator_dyntype[a] == mujoco.mjtDyn.mjDYN_NONE]
    bare = np.array([a for a in none if not is_dc_motor(model, int(a))], np.intp)
    if not len(own) and not len(bare):
        name = model.actuator(int(place.ids[0])).name
        text = "a DC motor lags by its inductance: give it one in the model"
        other = f"{name} has dynamics of its own that are no lag: leave it out"
        raise InputError(f"parameter {place.path}: {text if is_dc_motor(model, int(place.ids[0])) else other}")
    nominal = 0.0 if place.shared or not len(own) else float(model.actuator_dynprm[own[0], 0])

    def write(fields: Fields, values: Array) -> None:
        fields.lag_s[np.ix_(fields.ids, bare)] += values[:, None]
        if len(own):
            here = (*np.ix_(fields.ids, own), 0)
            fields.of("actuator_dynprm")[here] += (values - nominal)[:, None]

    return Target(place.path, "latency", "s", nominal, write)


def engine_keep(model: mujoco.MjModel, time_constant_s: Array) -> Array:
    """Returns the share that lags of the model leave after a physics step, as the engine integrates them.

    Args:
        model: The model.
        time_constant_s: (num_worlds, num_actuators) [s].
    """
    ratio = model.opt.timestep / np.maximum(time_constant_s, 1e-15)
    exact = model.actuator_dyntype == mujoco.mjtDyn.mjDYN_FILTEREXACT
    return np.where(exact, np.exp(-ratio), 1 - ratio)


def _has_inductance(model: mujoco.MjModel, actuator: int) -> bool:
    """Tells whether an actuator is a DC motor whose current lags; its time constant is inductance / resistance."""
    return is_dc_motor(model, actuator) and model.actuator_dynprm[actuator, 0] > 0
