"""Torque that fades: motors that heat up, batteries that sag."""

import numpy as np

from gapless.core.signal import Array
from gapless.sim.realism.layer import Knob, Knobs, Layer, Moment, State


def _cold(signal: Array, knobs: Knobs, moment: Moment) -> State:
    return (np.zeros_like(signal),)


def _heating(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = u (1 - weakening T) clip(1 - (T - soft) / span, 0, 1), tc dT/dt = thermal loss y^2 - T.

    One thermal mass: winding losses are `loss` y^2 [W], T is the rise above the air around [K]. Magnets weaken with T,
    and the drive cuts the torque from `soft_k` on, to nothing `span_k` later. Exact for losses held over the step.
    """
    (rise,) = state
    left = np.maximum(1 - knobs["weakening_per_k"] * rise, 0.0)
    out = signal * (left * np.clip(1 - (rise - knobs["soft_k"]) / knobs["span_k"], 0.0, 1.0))
    end = knobs["thermal_k_per_w"] * knobs["loss"] * out**2
    return (end + (rise - end) * np.exp(-moment.step_s / knobs["time_constant_s"]),), out


def _full(signal: Array, knobs: Knobs, moment: Moment) -> State:
    return (np.zeros((len(signal), 1)),)


def _battery(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = u V / V0, V = V0 - drop Q / capacity - resistance I, I = sum |u v| / V0, dQ/dt = I, Q <= capacity.

    All joints share one battery: what one draws, all feel. Neither losses nor the recovery after a load are modelled.
    """
    (used,), full = state, knobs["voltage_v"]
    current = np.abs(signal * moment.velocity).sum(axis=1, keepdims=True) / full
    sag = knobs["drop_v"] * used / knobs["capacity_as"] + knobs["resistance_ohm"] * current
    share = np.clip((full - sag) / full, 0.0, 1.0)
    return (np.minimum(used + current * moment.step_s, knobs["capacity_as"]),), signal * share


HEATING = Layer(
    "heating", "actuator", "effort",
    (
        Knob("loss", "W/(N·m)², W/N²", 0.0, 0.0, 1e4, 2.0, "1 / motor constant squared, from the data sheet"),
        Knob("thermal_k_per_w", "K/W", 1.0, 0.0, 100.0, 5.0, "rule of thumb; in the data sheet of the motor"),
        Knob("time_constant_s", "s", 600.0, 1.0, 1e4, 600.0, "rule of thumb: minutes for a housing"),
        Knob("soft_k", "K", 40.0, 0.0, 200.0, 40.0, "rule of thumb: derating from about 60 degrees Celsius"),
        Knob("span_k", "K", 20.0, 1.0, 200.0, 20.0, "rule of thumb"),
        Knob("weakening_per_k", "1/K", 0.0, 0.0, 0.01, 0.001, "remanence of NdFeB magnets falls about 0.1 %/K"),
    ),
    _heating, _cold,
)  # fmt: skip
BATTERY = Layer(
    "battery sag", "actuator", "effort",
    (
        Knob("voltage_v", "V", 24.0, 1.0, 1e3, 25.2, "six lithium cells, full: 4.2 V each", per_column=False),
        Knob("drop_v", "V", 0.0, 0.0, 1e3, 5.0, "rule of thumb: lithium, 4.2 V to 3.4 V", per_column=False),
        Knob("capacity_as", "A·s", 1e4, 10.0, 1e7, 36e3, "10 A·h, a small legged robot", per_column=False),
        Knob("resistance_ohm", "Ω", 0.0, 0.0, 10.0, 0.06, "rule of thumb: 10 mΩ per cell and wiring", per_column=False),
    ),
    _battery, _full, needs=("velocity",),
)  # fmt: skip
POWER_LAYERS = (HEATING, BATTERY)
