"""What any reading suffers: scale and bias that wander, noise, steps, play, gaps and outliers."""

import numpy as np

from gapless.core.signal import Array
from gapless.sim.realism.actuator import backlash
from gapless.sim.realism.layer import Knob, Knobs, Layer, Moment, State
from gapless.sim.realism.layers.packets import lost_now
from gapless.sim.realism.sensor import quantised


def _no_drift(signal: Array, knobs: Knobs, moment: Moment) -> State:
    return (np.zeros_like(signal),)


def _bias(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = scale u + bias + b, b' = b + drift sqrt(h) n: a calibration that was wrong and gets worse."""
    steps = knobs["drift"] * np.sqrt(moment.step_s) * moment.draws.normal("bias", signal.shape[1])
    return (state[0] + steps,), knobs["scale"] * signal + knobs["bias"] + state[0]


def _noise(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = u + noise n, n standard normal, anew for each sample and column."""
    return state, signal + knobs["noise"] * moment.draws.normal("noise", signal.shape[1])


def _quantisation(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = step round(u / step)."""
    return state, quantised(signal, knobs["step"])


def _first(signal: Array, knobs: Knobs, moment: Moment) -> State:
    return (signal,)


def _backlash(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y' = clip(y, u - w/2, u + w/2): a gear or a coupling with play between joint and encoder."""
    out = backlash(state[0], signal, knobs["width"])
    return (out,), out


def _in_sight(signal: Array, knobs: Knobs, moment: Moment) -> State:
    return signal, np.zeros((len(signal), 1))


def _occlusion(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = the last pose seen while something hides it: `share` of the time, for `blind_s` on average."""
    last, before = state
    burst = np.maximum(knobs["blind_s"] / moment.step_s, 1.0)
    hidden = lost_now(before, knobs["share"], burst, moment.draws.uniform("occlusion", 1))
    out = np.where(hidden, last, signal)
    return (out, hidden.astype(np.float64)), out


def _outliers(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = u + size n with probability `share`, all columns at once: a tracker that took another target."""
    wrong = moment.draws.uniform("outliers", 1) < knobs["share"]
    return state, signal + wrong * knobs["size"] * moment.draws.normal("outlier sizes", signal.shape[1])


BIAS = Layer(
    "scale and bias", "sensor", "reading",
    (
        Knob("scale", "1", 1.0, -10.0, 10.0, 1.01, "rule of thumb: 1 % without calibration"),
        Knob("bias", "signal", 0.0, -1e3, 1e3, 0.01, "rule of thumb: homing a joint to 0.01 rad"),
        Knob("drift", "signal/√s", 0.0, 0.0, 10.0, 1e-4, "rule of thumb"),
    ),
    _bias, _no_drift,
)  # fmt: skip
NOISE = Layer(
    "noise", "sensor", "reading",
    (Knob("noise", "signal", 0.0, 0.0, 10.0, 1e-3, "rule of thumb: markers tracked to 1 mm; measure it at rest"),),
    _noise,
)  # fmt: skip
QUANTISATION = Layer(
    "quantisation", "sensor", "reading",
    (Knob("step", "signal", 0.0, 0.0, 1.0, 2 * np.pi / 4096, "an encoder of 12 bits"),), _quantisation,
)  # fmt: skip
ENCODER_BACKLASH = Layer(
    "encoder backlash", "sensor", "reading",
    (Knob("width", "signal", 0.0, 0.0, 0.5, 0.01, "rule of thumb: that of the gear, for an encoder on the motor"),),
    _backlash, _first,
)  # fmt: skip
OCCLUSION = Layer(
    "occlusion", "sensor", "reading",
    (
        Knob("share", "1", 0.0, 0.0, 0.5, 0.05, "rule of thumb; count it in your recordings"),
        Knob("blind_s", "s", 0.3, 0.0, 10.0, 0.3, "rule of thumb: an arm that passes"),
    ),
    _occlusion, _in_sight,
)  # fmt: skip
OUTLIERS = Layer(
    "outliers", "sensor", "reading",
    (
        Knob("share", "1", 0.0, 0.0, 1.0, 0.002, "rule of thumb"),
        Knob("size", "signal", 0.0, 0.0, 1e3, 0.1, "rule of thumb: 0.1 m, another marker"),
    ),
    _outliers,
)  # fmt: skip
READING_LAYERS = (ENCODER_BACKLASH, BIAS, NOISE, QUANTISATION, OUTLIERS, OCCLUSION)
