"""Forces that joints add on their own: friction in four forms, and cogging."""

import numpy as np

from gapless.core.signal import Array
from gapless.sim.realism.layer import Knob, Knobs, LayerContext, State, make_layer

_SHARPNESS = 20.0  # the sign of the velocity is tanh(20 v / speed)
_FORCE = "N·m, N"


@make_layer("friction", "actuator", "effort", needs=("velocity",), adds=True, knobs=(
    Knob("coulomb", _FORCE, 0.0, 0.0, 100.0, 0.1, "rule of thumb: 2 to 5 % of the stall torque of a geared servo",
         same_as="joint/NAME/frictionloss"),
    Knob("hump", _FORCE, 0.0, 0.0, 100.0, 0.05, "rule of thumb: breakaway 1.5 times Coulomb"),
    Knob("speed", "rad/s, m/s", 0.1, 1e-3, 10.0, 0.1, "rule of thumb"),
    Knob("viscous", "N·m·s/rad, N·s/m", 0.0, 0.0, 100.0, 0.1, "rule of thumb", same_as="joint/NAME/damping"),
))  # fmt: skip
def FRICTION(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u - (coulomb + hump exp(-(v / speed)^2)) tanh(20 v / speed) - viscous v.

    Armstrong-Helouvry, Dupont, Canudas de Wit 1994 (survey). Smooth at standstill: it creeps instead of sticking.
    """
    velocity, speed = context.velocity, knobs["speed"]
    ratio = velocity / speed
    hump = -knobs["hump"] * np.exp(-(ratio**2)) * np.tanh(_SHARPNESS * ratio)
    sliding = knobs["coulomb"] * np.tanh(_SHARPNESS * velocity / speed)
    return state, signal + (hump - sliding - knobs["viscous"] * velocity)


@make_layer("load-dependent friction", "actuator", "effort", needs=("velocity", "load"), adds=True, knobs=(
    Knob("share", "1", 0.0, 0.0, 1.0, 0.1, "rule of thumb: gears of 90 % efficiency"),
    Knob("speed", "rad/s, m/s", 0.1, 1e-3, 10.0, 0.1, "rule of thumb"),
))  # fmt: skip
def LOAD_FRICTION(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u - share |load| tanh(20 v / speed): teeth under load rub more (Duclusaud et al. 2024)."""
    sign = np.tanh(_SHARPNESS * context.velocity / knobs["speed"])
    return state, signal - knobs["share"] * np.abs(context.load) * sign


@make_layer("LuGre friction", "actuator", "effort", knobs=(
    Knob("coulomb", _FORCE, 0.0, 0.0, 100.0, 0.1, "rule of thumb: as for friction"),
    Knob("hump", _FORCE, 0.0, 0.0, 100.0, 0.05, "breakaway 1.5 times Coulomb, as in Canudas de Wit et al. 1995"),
    Knob("speed", "rad/s, m/s", 0.01, 1e-4, 10.0, 0.01, "rule of thumb"),
    Knob("stiffness", "N·m/rad, N/m", 100.0, 1.0, 1e6, 100.0, "rule of thumb: 1 mrad at the Coulomb force"),
    Knob("damping", "N·m·s/rad, N·s/m", 0.3, 0.0, 1e3, 0.3, "rule of thumb"),
    Knob("viscous", "N·m·s/rad, N·s/m", 0.0, 0.0, 100.0, 0.1, "rule of thumb", same_as="joint/NAME/damping"),
), start=lambda signal, *_: (np.zeros_like(signal),), needs=("velocity",), adds=True)  # fmt: skip
def LUGRE(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u - (s0 z + s1 dz/dt + viscous v), dz/dt = v - s0 |v| z / g, g = coulomb + hump exp(-(v / speed)^2).

    Canudas de Wit, Olsson, Astrom, Lischinsky 1995. Bristles bend by z before they slip. Integrated exactly for the
    velocity held over the step: z' = z e^-x + v h (1 - e^-x) / x, x = s0 |v| h / g, so stiff bristles stay stable.
    """
    (bend,), velocity, step_s = state, context.velocity, context.step_s
    level = knobs["coulomb"] + knobs["hump"] * np.exp(-((velocity / knobs["speed"]) ** 2))
    rate = knobs["stiffness"] * np.abs(velocity) * step_s / np.maximum(level, 1e-12)
    share = np.where(rate > 1e-9, -np.expm1(-rate) / np.maximum(rate, 1e-9), 1.0)
    after = np.where(level > 0, bend * np.exp(-rate) + velocity * step_s * share, 0.0)
    force = knobs["stiffness"] * after + knobs["damping"] * (after - bend) / step_s + knobs["viscous"] * velocity
    return (after,), signal - force


@make_layer("cogging", "actuator", "effort", needs=("position",), adds=True, knobs=(
    Knob("amplitude", _FORCE, 0.0, 0.0, 10.0, 0.02, "rule of thumb: 1 to 3 % of rated torque, before a gear"),
    Knob("poles", "1", 1.0, 1.0, 500.0, 84.0, "least common multiple of slots and poles, e.g. 12 and 14",
         typical_with="*"),
    Knob("phase", "rad", 0.0, -np.pi, np.pi, 0.0, "any: how the motor was mounted"),
))  # fmt: skip
def COGGING(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u + amplitude sin(poles q + phase): the rotor prefers some angles."""
    return state, signal + knobs["amplitude"] * np.sin(knobs["poles"] * context.position + knobs["phase"])
