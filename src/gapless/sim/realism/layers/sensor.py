"""What sensors do to readings: any reading, inertial and force-torque sensors, and sensors of distance."""

import numpy as np

from gapless.core.signal import Array
from gapless.sim.realism.layer import Knob, Knobs, LayerContext, State, make_layer
from gapless.sim.realism.layers.latency import draw_losses
from gapless.sim.realism.signal_path import apply_backlash

_NEXT, _LAST = [1, 2, 0], [2, 0, 1]  # the axes after and before x, y, z, for cross products
_THUMB = "rule of thumb"
_IMUDATA = "ADIS16405 gyroscope, measured over 2.8 h (SMAC-Group imudata)"


def step_gauss_markov(value: Array, size: Array, tau_s: Array, step_s: float, noise: Array) -> Array:
    """Returns a first-order Gauss-Markov process one step later: x' = x e^(-h/tau) + size sqrt(1 - e^(-2h/tau)) n.

    In the long run x, `value`, has the standard deviation `size`; n, `noise`, is standard normal.
    """
    fade = -step_s / tau_s
    return value * np.exp(fade) + size * np.sqrt(-np.expm1(2 * fade)) * noise


@make_layer("encoder backlash", "sensor", "reading", start=lambda signal, *_: (signal,), knobs=(
    Knob("width", "signal", 0.0, 0.0, 0.5, 0.01, "rule of thumb: that of the gear, for an encoder on the motor"),
))  # fmt: skip
def ENCODER_BACKLASH(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y' = clip(y, u - w/2, u + w/2): the play operator."""
    out = apply_backlash(state[0], signal, knobs["width"])
    return (out,), out


@make_layer("scale and bias", "sensor", "reading", start=lambda signal, *_: (np.zeros_like(signal),),
             random=("drift",), knobs=(
    Knob("scale", "1", 1.0, -10.0, 10.0, 1.01, "rule of thumb: 1 % without calibration",
         same_as="measurement/COLUMN/scale"),
    Knob("bias", "signal", 0.0, -1e3, 1e3, 0.01, "rule of thumb: homing a joint to 0.01 rad",
         same_as="measurement/COLUMN/bias"),
    Knob("drift", "signal/√s", 0.0, 0.0, 10.0, 1e-4, "rule of thumb"),
))  # fmt: skip
def BIAS(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = scale u + bias + b, b' = b + drift sqrt(h) n: a calibration that was wrong and gets worse."""
    steps = knobs["drift"] * np.sqrt(context.step_s) * context.draws.normal("bias", signal.shape[1])
    return (state[0] + steps,), knobs["scale"] * signal + knobs["bias"] + state[0]


@make_layer("noise", "sensor", "reading", random=("noise",), knobs=(
    Knob("noise", "signal", 0.0, 0.0, 10.0, 1e-3, "rule of thumb: markers tracked to 1 mm; measure it at rest"),
))  # fmt: skip
def NOISE(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u + noise n, n standard normal, anew for each sample and column."""
    return state, signal + knobs["noise"] * context.draws.normal("noise", signal.shape[1])


@make_layer("quantisation", "sensor", "reading", knobs=(
    Knob("step", "signal", 0.0, 0.0, 1.0, 2 * np.pi / 4096, "an encoder of 12 bits"),
))  # fmt: skip
def QUANTISATION(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = step round(u / step)."""
    step = knobs["step"]
    safe = np.where(step > 0, step, 1.0)
    return state, np.where(step > 0, np.round(signal / safe) * safe, signal)


@make_layer("occlusion", "sensor", "reading", start=lambda signal, *_: (signal, np.zeros((len(signal), 1))),
             random=("share", "blind_s"), knobs=(
    Knob("share", "1", 0.0, 0.0, 0.5, 0.05, "rule of thumb; count it in your recordings"),
    Knob("blind_s", "s", 0.3, 0.0, 10.0, 0.3, "rule of thumb: an arm that passes"),
))  # fmt: skip
def OCCLUSION(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = the last pose seen while something hides it: `share` of the time, for `blind_s` on average."""
    last, before = state
    burst = np.maximum(knobs["blind_s"] / context.step_s, 1.0)
    hidden = draw_losses(before, knobs["share"], burst, context.draws.uniform("occlusion", 1))
    out = np.where(hidden, last, signal)
    return (out, hidden.astype(np.float64)), out


@make_layer("outliers", "sensor", "reading", random=("share", "size"), knobs=(
    Knob("share", "1", 0.0, 0.0, 1.0, 0.002, "rule of thumb", typical_with="*"),
    Knob("size", "signal", 0.0, 0.0, 1e3, 0.1, "rule of thumb: 0.1 m, another marker", typical_with="share"),
))  # fmt: skip
def OUTLIERS(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u + size n with probability `share`, all columns at once: a tracker that took another target."""
    wrong = context.draws.uniform("outliers", 1) < knobs["share"]
    return state, signal + wrong * knobs["size"] * context.draws.normal("outlier sizes", signal.shape[1])


@make_layer("inertial sensor", "sensor", "reading", random=("density", "instability", "tau_s", "walk"), knobs=(
    Knob("density", "signal/√Hz", 0.0, 0.0, 10.0, 6.9e-4, _IMUDATA + ": 2.36 deg/√h"),
    Knob("instability", "signal", 0.0, 0.0, 10.0, 2.2e-4, _IMUDATA + ": 0.0078 deg/s, over 0.62"),
    Knob("tau_s", "s", 100.0, 0.1, 1e4, 100.0, "rule of thumb"),
    Knob("walk", "signal/√s", 0.0, 0.0, 1.0, 1e-5, "rule of thumb"),
    Knob("scale", "1", 1.0, 0.5, 2.0, 1.005, "rule of thumb: below 1 % for MEMS",
         same_as="measurement/COLUMN/scale"),
    Knob("misalignment", "rad", 0.0, -0.5, 0.5, 0.01, "rule of thumb: half a degree, as mounted"),
    Knob("range", "signal", np.inf, 1e-3, 1e4, 5.2, "300 deg/s, a common range of MEMS gyroscopes"),
), columns=("x", "y", "z"), start=lambda signal, knobs, context: (
    knobs["instability"] * context.draws.normal("imu start", 3), np.zeros_like(signal),
))  # fmt: skip
def IMU(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = clip(scale (u + m x u) + b + r + w, -range, range), for one triad: gyroscope or accelerometer.

    w = density / sqrt(h) n: white noise. b' = b e^(-h/tau) + instability sqrt(1 - e^(-2h/tau)) n: first-order
    Gauss-Markov, whose Allan deviation peaks at 0.62 instability near 1.9 tau. r' = r + walk sqrt(h) n: random walk. m
    is a small rotation of the axes, about all three alike if one number. Terms as in IEEE Std 952-1997.
    """
    bias, walked = state
    step_s, draws = context.step_s, context.draws
    noise = draws.normal("imu", 9)
    turn = np.broadcast_to(knobs["misalignment"], signal.shape)
    turned = signal + (turn[:, _NEXT] * signal[:, _LAST] - turn[:, _LAST] * signal[:, _NEXT])
    white = knobs["density"] / np.sqrt(step_s) * noise[:, :3]
    out = np.clip(knobs["scale"] * turned + bias + walked + white, -knobs["range"], knobs["range"])
    bias = step_gauss_markov(bias, knobs["instability"], knobs["tau_s"], step_s, noise[:, 3:6])
    return (bias, walked + knobs["walk"] * np.sqrt(step_s) * noise[:, 6:]), out


@make_layer("force-torque sensor", "sensor", "reading", knobs=(
    Knob("crosstalk", "1", 0.0, -0.2, 0.2, 0.01, "rule of thumb: 1 to 2 % of full scale in data sheets"),
    Knob("zero_per_k", "1/K", 0.0, -0.1, 0.1, 5e-4, "rule of thumb: 0.05 % of full scale per kelvin"),
    Knob("full_n", "N", 100.0, 1.0, 1e4, 200.0, "data sheet of the sensor", per_column=False, typical_with="*"),
    Knob("full_nm", "N·m", 10.0, 0.01, 1e3, 10.0, "data sheet of the sensor", per_column=False),
), columns=("fx", "fy", "fz", "tx", "ty", "tz"), needs=("warmth_k",))  # fmt: skip
def FORCE_TORQUE(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y_i = u_i + F_i (crosstalk sum_{j != i} u_j / F_j + zero_per_k warmth), F the full scale of channel i."""
    full = np.concatenate([knobs["full_n"]] * 3 + [knobs["full_nm"]] * 3, axis=1)
    load = signal / full
    others = load.sum(axis=1, keepdims=True) - load
    return state, signal + full * (knobs["crosstalk"] * others + knobs["zero_per_k"] * context.warmth_k)


@make_layer("range sensor", "sensor", "reading",
             random=("noise_m", "dropout", "far_m", "multipath", "excess_m"), knobs=(
    Knob("noise_m", "m", 0.0, 0.0, 1.0, 0.02, "rule of thumb: 1 to 3 cm for small scanning LiDARs"),
    Knob("dropout", "1", 0.0, 0.0, 1.0, 0.01, "rule of thumb: dark and slanted surfaces"),
    Knob("far_m", "m", 30.0, 0.0, 1e3, 30.0, "what the driver reports without an echo: see its manual"),
    Knob("multipath", "1", 0.0, 0.0, 1.0, 0.005, "rule of thumb: corners, mirrors, glass"),
    Knob("excess_m", "m", 0.5, 0.0, 100.0, 0.5, _THUMB),
))  # fmt: skip
def RANGE(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = far with probability `dropout`, u + e with probability `multipath`, else u + noise n.

    e is exponential with mean `excess_m`: an echo by way of a second surface is too long. A mixture in the manner of
    the beam model of Thrun, Burgard, Fox 2005, chapter 6, without the unexpected obstacles.
    """
    width, draws = signal.shape[1], context.draws
    luck = draws.uniform("beam", width)
    longer = -knobs["excess_m"] * np.log1p(-draws.uniform("beam excess", width))
    echo = luck < knobs["dropout"] + knobs["multipath"]
    out = np.where(echo, signal + longer, signal + knobs["noise_m"] * draws.normal("beam noise", width))
    return state, np.where(luck < knobs["dropout"], knobs["far_m"], out)


@make_layer("depth camera", "sensor", "reading", random=("base_m", "growth_per_m", "edge_m", "flying", "shiny"), knobs=(
    Knob("base_m", "m", 0.0, 0.0, 0.1, 0.001, "rule of thumb: about 1 mm near"),
    Knob("growth_per_m", "1/m", 0.0, 0.0, 0.1, 0.0016, "Khoshelham, Elberink 2012: 4 cm at 5 m (Kinect)"),
    Knob("edge_m", "m", 0.05, 1e-3, 1.0, 0.05, _THUMB),
    Knob("flying", "1", 0.0, 0.0, 1.0, 0.3, _THUMB),
    Knob("shiny", "1", 0.0, 0.0, 1.0, 0.02, "rule of thumb: share of pixels; near 1 on bare metal"),
))  # fmt: skip
def DEPTH(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u + (base + growth u^2) n; mixed with its neighbour at edges; 0 (no depth) on shiny surfaces.

    Columns are neighbouring pixels of one line. Growth with the square of distance is that of triangulation
    (Khoshelham, Elberink 2012). Where the next pixel is further off than `edge_m`, the pixel reads something in between
    with probability `flying`; with probability `shiny`, per pixel if given so, it reads nothing.
    """
    width, draws = signal.shape[1], context.draws
    luck = draws.uniform("depth", 3 * width)
    noise = (knobs["base_m"] + knobs["growth_per_m"] * signal**2) * draws.normal("depth noise", width)
    step = np.diff(signal, axis=1, append=signal[:, -1:])
    mixed = (np.abs(step) > knobs["edge_m"]) & (luck[:, :width] < knobs["flying"])
    out = signal + noise + mixed * luck[:, width : 2 * width] * step
    return state, np.where(luck[:, 2 * width :] < knobs["shiny"], 0.0, out)
