"""What drives do to commands and torque: limits, a spring in the gear, heat, a weak battery."""

import numpy as np

from gapless.core.signal import Array
from gapless.sim.realism.layer import Knob, Knobs, LayerContext, State, make_layer


@make_layer("torque-speed curve", "actuator", "effort", needs=("velocity",), knobs=(
    Knob("stall", "N·m, N", np.inf, 0.01, 1e4, 3.0, "rule of thumb: a hobby servo; see the data sheet"),
    Knob("free_speed", "rad/s, m/s", np.inf, 0.1, 1e4, 6.0, "rule of thumb: 60 rpm; see the data sheet"),
    Knob("limit", "N·m, N", np.inf, 0.0, 1e4, 3.0, "current limit of the drive; see its manual",
         same_as="actuator/NAME/limit"),
))  # fmt: skip
def TORQUE_SPEED(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """|y| <= min(limit, stall (1 - v sign(u) / free_speed)), at least 0: the line of a DC motor at fixed voltage.

    Braking gets more than stall, by back-EMF, up to `limit`, which is what the current limit of the drive allows.
    """
    with np.errstate(invalid="ignore"):
        line = knobs["stall"] * np.maximum(1 - context.velocity * np.sign(signal) / knobs["free_speed"], 0.0)
    unbounded = np.isinf(knobs["stall"])
    most = np.minimum(np.where(unbounded, np.inf, line), knobs["limit"])
    return state, np.clip(signal, -most, most)


@make_layer("rate limit", "actuator", "command", start=lambda signal, *_: (signal,), knobs=(
    Knob("rate", "signal/s", np.inf, 0.0, 1e5, 5.0, "rule of thumb: profile speed of small servos, rad/s"),
))  # fmt: skip
def RATE_LIMIT(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y' = clip(u, y - rate h, y + rate h)."""
    most = knobs["rate"] * context.step_s
    out = np.clip(signal, state[0] - most, state[0] + most)
    return (out,), out


@make_layer("series elasticity", "actuator", "effort", needs=("position", "velocity"), knobs=(
    Knob("rotor_inertia", "kg·m², kg", 0.0, 0.0, 10.0, 0.05, "rule of thumb: times gear ratio squared"),
    Knob("compliance", "rad/(N·m), m/N", 0.01, 1e-6, 1.0, 0.005, "rule of thumb: 200 N·m/rad", typical_with="*"),
    Knob("damping", "N·m·s/rad, N·s/m", 0.1, 0.0, 100.0, 0.1, "rule of thumb"),
), start=lambda signal, knobs, context: (
    context.position + np.zeros(signal.shape), context.velocity + np.zeros(signal.shape),
))  # fmt: skip
def SERIES_ELASTICITY(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """J a = u - f, f = (p - q) / c + d (w - v): rotor (p, w) and joint (q, v) with a spring between; y = f.

    Backward Euler, so that stiff springs and light rotors stay stable at any step. The rotor's inertia J is that
    behind the spring: take it out of the model's armature. Without it the spring passes the torque on as it is.
    """
    angle, speed = state
    step_s, inertia, damping = context.step_s, knobs["rotor_inertia"], knobs["damping"]
    stiffness = 1 / knobs["compliance"]
    ahead = angle - context.position - step_s * context.velocity
    mass = inertia + step_s * damping + step_s**2 * stiffness
    speed = (inertia * speed + step_s * (signal - stiffness * ahead + damping * context.velocity)) / mass
    angle = angle + step_s * speed
    force = stiffness * (ahead + step_s * speed) + damping * (speed - context.velocity)
    return (angle, speed), np.where(inertia > 0, force, signal)


@make_layer("heating", "actuator", "effort", start=lambda signal, *_: (np.zeros_like(signal),), knobs=(
    Knob("loss", "W/(N·m)², W/N²", 0.0, 0.0, 1e4, 2.0, "1 / motor constant squared, from the data sheet"),
    Knob("thermal_k_per_w", "K/W", 1.0, 0.0, 100.0, 5.0, "rule of thumb; in the data sheet of the motor",
         typical_with="*"),
    Knob("time_constant_s", "s", 600.0, 1.0, 1e4, 600.0, "rule of thumb: minutes for a housing"),
    Knob("soft_k", "K", 40.0, 0.0, 200.0, 40.0, "rule of thumb: derating from about 60 degrees Celsius"),
    Knob("span_k", "K", 20.0, 1.0, 200.0, 20.0, "rule of thumb"),
    Knob("weakening_per_k", "1/K", 0.0, 0.0, 0.01, 0.001, "remanence of NdFeB magnets falls about 0.1 %/K",
         typical_with="*"),
))  # fmt: skip
def HEATING(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u (1 - weakening T) clip(1 - (T - soft) / span, 0, 1), tc dT/dt = thermal loss y^2 - T.

    One thermal mass: winding losses are `loss` y^2 [W], T is the rise above the air around [K]. Magnets weaken with T,
    and the drive cuts the torque from `soft_k` on, to nothing `span_k` later. Exact for losses held over the step.
    """
    (rise,) = state
    left = np.maximum(1 - knobs["weakening_per_k"] * rise, 0.0)
    out = signal * (left * np.clip(1 - (rise - knobs["soft_k"]) / knobs["span_k"], 0.0, 1.0))
    end = knobs["thermal_k_per_w"] * knobs["loss"] * out**2
    return (end + (rise - end) * np.exp(-context.step_s / knobs["time_constant_s"]),), out


@make_layer("battery sag", "actuator", "effort", knobs=(
    Knob("voltage_v", "V", 24.0, 1.0, 1e3, 25.2, "six lithium cells, full: 4.2 V each", per_column=False,
         typical_with="*"),
    Knob("drop_v", "V", 0.0, 0.0, 1e3, 5.0, "rule of thumb: lithium, 4.2 V to 3.4 V", per_column=False),
    Knob("capacity_as", "A·s", 1e4, 10.0, 1e7, 36e3, "10 A·h, a small legged robot", per_column=False,
         typical_with="*"),
    Knob("resistance_ohm", "Ω", 0.0, 0.0, 10.0, 0.06, "rule of thumb: 10 mΩ per cell and wiring", per_column=False),
), start=lambda signal, *_: (np.zeros((len(signal), 1)),), needs=("velocity",))  # fmt: skip
def BATTERY(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u V / V0, V = V0 - drop Q / capacity - resistance I, I = sum |u v| / V0, dQ/dt = I, Q <= capacity.

    All joints share one battery: what one draws, all feel. Neither losses nor the recovery after a load are modelled.
    """
    (used,), full = state, knobs["voltage_v"]
    current = np.abs(signal * context.velocity).sum(axis=1, keepdims=True) / full
    sag = knobs["drop_v"] * used / knobs["capacity_as"] + knobs["resistance_ohm"] * current
    share = np.clip((full - sag) / full, 0.0, 1.0)
    return (np.minimum(used + current * context.step_s, knobs["capacity_as"]),), signal * share
