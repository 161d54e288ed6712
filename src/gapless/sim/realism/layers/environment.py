"""The world around the robot, and differences between robots of one fleet and between trials of one robot."""

import numpy as np

from gapless.core.signal import Array
from gapless.sim.realism.layer import Knob, Knobs, LayerContext, State, make_layer
from gapless.sim.realism.layers.sensor import step_gauss_markov

DAY_S = 86400.0
_FORCE, _THUMB = "N·m, N", "rule of thumb"


@make_layer("wind", "environment", "effort", random=("gust", "tau_s"), knobs=(
    Knob("steady", _FORCE, 0.0, -1e3, 1e3, 0.2, "rule of thumb: density / 2 times drag area times speed squared"),
    Knob("gust", _FORCE, 0.0, 0.0, 1e3, 0.1, "rule of thumb: gusts of half the mean speed"),
    Knob("tau_s", "s", 1.0, 0.01, 100.0, 1.0, "rule of thumb: turbulence length over wind speed"),
), adds=True, start=lambda signal, knobs, context: (
    knobs["gust"] * context.draws.normal("wind start", signal.shape[1]),
))  # fmt: skip
def WIND(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u + steady + g, g' = g e^(-h/tau) + gust sqrt(1 - e^(-2h/tau)) n.

    A first-order process, as in Dryden's model of turbulence along the wind.
    """
    noise = context.draws.normal("wind", signal.shape[1])
    gust = step_gauss_markov(state[0], knobs["gust"], knobs["tau_s"], context.step_s, noise)
    return (gust,), signal + (knobs["steady"] + state[0])


@make_layer("pushes", "environment", "effort", random=("rate_hz", "strength"), knobs=(
    Knob("rate_hz", "1/s", 0.0, 0.0, 10.0, 0.1, "rule of thumb: one in ten seconds", typical_with="*"),
    Knob("strength", _FORCE, 0.0, 0.0, 1e4, 30.0, "rule of thumb: a hand against a quadruped", typical_with="rate_hz"),
    Knob("length_s", "s", 0.1, 1e-3, 10.0, 0.1, _THUMB),
), start=lambda signal, knobs, context: (np.zeros_like(signal), np.zeros((len(signal), 1))), adds=True)  # fmt: skip
def PUSHES(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u + f while a push lasts; they begin by chance at `rate_hz` (Poisson), f = strength n."""
    force, left_s = state
    chance = -np.expm1(-knobs["rate_hz"] * context.step_s)
    over = left_s < context.step_s / 2
    begins = over & (context.draws.uniform("pushes", 1) < chance)
    drawn = knobs["strength"] * context.draws.normal("push", signal.shape[1])
    force = np.where(begins, drawn, np.where(over, 0.0, force))
    left_s = np.where(begins, knobs["length_s"], left_s) - context.step_s
    return (force, np.maximum(left_s, 0.0)), signal + force


@make_layer("cable drag", "environment", "effort", needs=("position", "velocity"), adds=True, knobs=(
    Knob("stiffness", "N·m/rad, N/m", 0.0, 0.0, 1e3, 0.2, "rule of thumb: pull the cable with a spring balance"),
    Knob("rest", "rad, m", 0.0, -10.0, 10.0, 0.0, "where the cable hangs free"),
    Knob("slack", "rad, m", 0.0, 0.0, 10.0, 0.3, _THUMB, typical_with="*"),
    Knob("drag", "N·m·s/rad, N·s/m", 0.0, 0.0, 100.0, 0.02, _THUMB, same_as="joint/NAME/damping"),
))  # fmt: skip
def CABLE(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u - stiffness (q - clip(q, rest - slack, rest + slack)) - drag v.

    A cable that pulls once it is taut.
    """
    position, rest, slack = context.position, knobs["rest"], knobs["slack"]
    taut = position - np.clip(position, rest - slack, rest + slack)
    return state, signal - (knobs["stiffness"] * taut + knobs["drag"] * context.velocity)


@make_layer("floor patches", "environment", "model", needs=("place",), random=("spread", "size_m"), knobs=(
    Knob("spread", "1", 0.0, 0.0, 1.0, 0.2, "rule of thumb: deviation of the logarithm, about 20 %"),
    Knob("size_m", "m", 0.5, 0.01, 100.0, 0.5, "rule of thumb: tiles, rugs, spills"),
))  # fmt: skip
def PATCHES(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u exp(spread n(cell)): square patches of side `size_m`, each with its own factor, per world."""
    cell = np.floor(np.clip(context.place / knobs["size_m"][..., None], -1e6, 1e6)).astype(np.int64)
    noise = context.draws.at(0).normal("patches", cell[..., 0] * 4_000_037 + cell[..., 1])
    return state, signal * np.exp(knobs["spread"] * noise)


@make_layer("clutter", "environment", "model", num_axes=2, random=("spread_m",), knobs=(
    Knob("spread_m", "m", 0.0, 0.0, 10.0, 0.05, "rule of thumb: things put back by hand"),
), start=lambda signal, knobs, context: (context.draws.normal("clutter", signal.shape[1]),))  # fmt: skip
def CLUTTER(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u + spread n: things that stand elsewhere in every run, n standard normal per world and axis."""
    return state, signal + knobs["spread_m"] * state[0]


@make_layer("temperature", "environment", "model", columns=("friction", "offset", "voltage"), kinds=("world",), knobs=(
    Knob("warmth_k", "K", 0.0, -40.0, 60.0, 10.0, "a hall in summer, calibrated in winter", per_column=False,
         typical_with="*"),
    Knob("thinning_per_k", "1/K", 0.0, 0.0, 0.05, 0.02, "rule of thumb: grease; halves in 35 K", per_column=False,
         typical_with="warmth_k"),
    Knob("offset_per_k", "signal/K", 0.0, -0.1, 0.1, 1e-4, _THUMB, per_column=False, typical_with="warmth_k"),
    Knob("weakening_per_k", "1/K", 0.0, 0.0, 0.02, 0.004, "rule of thumb: lithium, in the cold", per_column=False,
         typical_with="*"),
))  # fmt: skip
def TEMPERATURE(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """(friction e^(-a T), offset + b T, voltage max(1 - c |T-|, 0)), T = warmth_k: one cause that moves all three.

    T is the temperature above that of calibration. Grease thins as it warms, offsets creep, and batteries weaken in the
    cold (T- is T where negative). Use the three columns on the friction, bias and voltage knobs of other layers.
    """
    warmth_k = knobs["warmth_k"]
    friction = signal[:, :1] * np.exp(-knobs["thinning_per_k"] * warmth_k)
    offset = signal[:, 1:2] + knobs["offset_per_k"] * warmth_k
    voltage = signal[:, 2:] * np.maximum(1 + knobs["weakening_per_k"] * np.minimum(warmth_k, 0.0), 0.0)
    return state, np.concatenate([friction, offset, voltage], axis=1)


@make_layer("light of day", "environment", "model", kinds=("world",), knobs=(
    Knob("share", "1", 0.0, 0.0, 1.0, 0.6, "rule of thumb: a room with a window"),
    Knob("clock_s", "s", 43200.0, 0.0, DAY_S, 43200.0, "time of day at the start"),
    Knob("dawn_s", "s", 21600.0, 0.0, 43200.0, 21600.0, "6 h, the equinox"),
    Knob("daylight_s", "s", 43200.0, 3600.0, DAY_S, 43200.0, "12 h, the equinox"),
), start=lambda signal, *_: (np.zeros((len(signal), 1)),))  # fmt: skip
def LIGHT(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u (1 - share (1 - day)), day = sin(pi (t - dawn) / daylight) by day, 0 by night.

    `share` of the light is the sun's, the rest is lamps.
    """
    (passed_s,) = state
    clock_s = np.mod(knobs["clock_s"] + passed_s, DAY_S)
    height = np.sin(np.pi * np.clip((clock_s - knobs["dawn_s"]) / knobs["daylight_s"], 0.0, 1.0))
    return (passed_s + context.step_s,), signal * (1 - knobs["share"] * (1 - np.maximum(height, 0.0)))


def _draw_factors(signal: Array, knobs: Knobs, context: LayerContext) -> State:
    """Draws the factors once: those of a robot are the same in all its trials, whichever world runs them."""
    width = signal.shape[1]
    one_fleet = np.zeros(len(signal), dtype=np.uint64)
    robot = np.round(knobs["robot"]).astype(np.int64)
    draws = context.draws.at(0)
    of_robot = type(draws)(draws.seed, one_fleet).normal("fleet", robot * 65_537 + np.arange(width))
    of_trial = context.draws.normal("trial", width)
    return (np.exp(knobs["fleet"] * of_robot + knobs["trial"] * of_trial),)


@make_layer("spread", "spread", "model", start=_draw_factors, random=("trial",),
            kinds=("actuator", "joint", "body", "geom"), knobs=(
    Knob("robot", "1", 0.0, 0.0, 1e6, 0.0, "which robot of the fleet it is: 0, 1, ...", per_column=False),
    Knob("fleet", "1", 0.0, 0.0, 1.0, 0.1, "rule of thumb: 10 % between robots of one batch"),
    Knob("trial", "1", 0.0, 0.0, 1.0, 0.03, "rule of thumb: 3 % between trials of one robot"),
))  # fmt: skip
def SPREAD(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u exp(fleet n_robot + trial n_trial), n standard normal per column: log-normal factors on two levels.

    A factor stays positive, and half as much is as likely as twice as much. The median robot is the model.
    """
    return state, signal * state[0]
