"""What drives do to commands and torque: gain, limits, lag, play, a spring in the gear, and what a network learned."""

from dataclasses import dataclass

import numpy as np

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.realism.actuator import backlash, kept
from gapless.sim.realism.layer import Knob, Knobs, Layer, Moment, State

RECENT = 3  # samples of effort and of velocity that the network sees, the newest first


def _gain(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = gain u: a torque constant, an amplifier or a servo that is weaker or stronger than its data sheet."""
    return state, knobs["gain"] * signal


def _torque_speed(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """|y| <= min(limit, stall (1 - v sign(u) / free_speed)), at least 0: the line of a DC motor at fixed voltage.

    Braking gets more than stall, by back-EMF, up to `limit`, which is what the current limit of the drive allows.
    """
    with np.errstate(invalid="ignore"):
        line = knobs["stall"] * np.maximum(1 - moment.velocity * np.sign(signal) / knobs["free_speed"], 0.0)
    unbounded = np.isinf(knobs["stall"])
    most = np.minimum(np.where(unbounded, np.inf, line), knobs["limit"])
    return state, np.clip(signal, -most, most)


def _first(signal: Array, knobs: Knobs, moment: Moment) -> State:
    return (signal,)


def _rate(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y' = clip(u, y - rate h, y + rate h)."""
    most = knobs["rate"] * moment.step_s
    out = np.clip(signal, state[0] - most, state[0] + most)
    return (out,), out


def _lag(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y' = u + k (y - u), k = lag / (lag + h): first order, mean delay exactly `lag_s` at any step."""
    out = signal + kept(knobs["lag_s"], moment.step_s) * (state[0] - signal)
    return (out,), out


def _backlash(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y' = clip(y, u - w/2, u + w/2): the play operator."""
    out = backlash(state[0], signal, knobs["width"])
    return (out,), out


def _spring_start(signal: Array, knobs: Knobs, moment: Moment) -> State:
    shape = np.zeros(signal.shape)
    return moment.position + shape, moment.velocity + shape


def _spring(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """J a = u - f, f = (p - q) / c + d (w - v): rotor (p, w) and joint (q, v) with a spring between; y = f.

    Backward Euler, so that stiff springs and light rotors stay stable at any step. The rotor's inertia J is that
    behind the spring: take it out of the model's armature. Without it the spring passes the torque on as it is.
    """
    angle, speed = state
    step_s, inertia, damping = moment.step_s, knobs["rotor_inertia"], knobs["damping"]
    stiffness = 1 / knobs["compliance"]
    ahead = angle - moment.position - step_s * moment.velocity
    mass = inertia + step_s * damping + step_s**2 * stiffness
    speed = (inertia * speed + step_s * (signal - stiffness * ahead + damping * moment.velocity)) / mass
    angle = angle + step_s * speed
    force = stiffness * (ahead + step_s * speed) + damping * (speed - moment.velocity)
    return (angle, speed), np.where(inertia > 0, force, signal)


@dataclass(frozen=True)
class Network:
    """A network of one hidden layer: y = out tanh(hidden x + bias), the same for every joint.

    x are the last `RECENT` efforts, as shares of the knob `scale`, and the last `RECENT` velocities, as shares of
    `speed`; y is the effort as a share of `scale`. Samples are `spacing_s` apart.

    Attributes:
        hidden: (num_hidden, 2 * RECENT) weights.
        bias: (num_hidden,).
        out: (num_hidden,).
        spacing_s: Time between samples [s].
    """

    hidden: Array
    bias: Array
    out: Array
    spacing_s: float = 0.01

    def __post_init__(self) -> None:
        """Refuses weights of other shapes."""
        count = len(self.bias)
        if self.hidden.shape != (count, 2 * RECENT) or self.out.shape != (count,):
            wanted = f"hidden ({count}, {2 * RECENT}) and out ({count},)"
            raise InputError(f"the weights are {self.hidden.shape} and {self.out.shape}; give {wanted}")

    def __call__(self, efforts: Array, velocities: Array) -> Array:
        """Returns shares of the scale, (num_worlds, num_joints), of histories (num_worlds, RECENT, num_joints)."""
        seen = np.concatenate([efforts, velocities], axis=1)
        return np.einsum(
            "h,nhj->nj", self.out, np.tanh(np.einsum("hk,nkj->nhj", self.hidden, seen) + self.bias[:, None])
        )


def _next(past: Array, now: Array, due: Array) -> Array:
    """Returns a history with a newer sample: one more where it is due, in place of the newest elsewhere."""
    older = np.where(due, past[:, :-1], past[:, 1:])
    return np.concatenate([now[:, None], older], axis=1)


def learned_actuator(network: Network, name: str = "learned actuator") -> Layer:
    """Returns the layer of a network: y = u + share (scale net(u, v) - u)."""

    def start(signal: Array, knobs: Knobs, moment: Moment) -> State:
        velocity = np.broadcast_to(moment.velocity, signal.shape)
        shape = (len(signal), RECENT, signal.shape[1])
        return (
            np.broadcast_to(signal[:, None], shape).copy(),
            np.broadcast_to(velocity[:, None], shape).copy(),
            np.zeros((len(signal), 1)),
        )

    def act(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
        efforts, velocities, age_s = state
        due = (age_s >= network.spacing_s * (1 - 1e-9))[:, :, None]
        efforts, velocities = _next(efforts, signal, due), _next(velocities, moment.velocity, due)
        age_s = np.where(due[:, 0], 0.0, age_s) + moment.step_s
        scale, speed = knobs["scale"], knobs["speed"]
        said = scale * network(efforts / scale[:, None], velocities / speed[:, None])
        return (efforts, velocities, age_s), signal + knobs["share"] * (said - signal)

    knobs = (
        Knob("share", "1", 0.0, 0.0, 1.0, 0.5, "1 where the network is all there is to say of the drive"),
        Knob("scale", "N·m, N", 1.0, 0.01, 1e4, 1.0, "what the network was trained on: the largest effort"),
        Knob("speed", "rad/s, m/s", 10.0, 0.01, 1e4, 10.0, "what the network was trained on: the largest speed"),
    )
    return Layer(name, "actuator", "effort", knobs, act, start, needs=("velocity",))


GAIN = Layer(
    "gain",
    "actuator",
    "command",
    (Knob("gain", "1", 1.0, 0.0, 10.0, 0.9, "rule of thumb: 10 % off a data sheet"),),
    _gain,
)
TORQUE_SPEED = Layer(
    "torque-speed curve", "actuator", "effort",
    (
        Knob("stall", "N·m, N", np.inf, 0.01, 1e4, 3.0, "rule of thumb: a hobby servo; see the data sheet"),
        Knob("free_speed", "rad/s, m/s", np.inf, 0.1, 1e4, 6.0, "rule of thumb: 60 rpm; see the data sheet"),
        Knob("limit", "N·m, N", np.inf, 0.0, 1e4, 3.0, "current limit of the drive; see its manual"),
    ),
    _torque_speed, needs=("velocity",),
)  # fmt: skip
RATE_LIMIT = Layer(
    "rate limit", "actuator", "command",
    (Knob("rate", "signal/s", np.inf, 0.0, 1e5, 5.0, "rule of thumb: profile speed of small servos, rad/s"),),
    _rate, _first,
)  # fmt: skip
LAG = Layer(
    "lag", "actuator", "command",
    (Knob("lag_s", "s", 0.0, 0.0, 1.0, 0.03, "rule of thumb: servos answer in 10 to 100 ms"),), _lag, _first,
)  # fmt: skip
BACKLASH = Layer(
    "backlash", "actuator", "command",
    (Knob("width", "signal", 0.0, 0.0, 0.5, 0.01, "rule of thumb: half a degree, cheap spur gears"),),
    _backlash, _first,
)  # fmt: skip
SERIES_ELASTICITY = Layer(
    "series elasticity", "actuator", "effort",
    (
        Knob("rotor_inertia", "kg·m², kg", 0.0, 0.0, 10.0, 0.05, "rule of thumb: times gear ratio squared"),
        Knob("compliance", "rad/(N·m), m/N", 0.01, 1e-6, 1.0, 0.005, "rule of thumb: 200 N·m/rad"),
        Knob("damping", "N·m·s/rad, N·s/m", 0.1, 0.0, 100.0, 0.1, "rule of thumb"),
    ),
    _spring, _spring_start, needs=("position", "velocity"),
)  # fmt: skip
# A drive that saturates softly, answers late and is slowed by its own speed; written by hand, to begin with.
EXAMPLE = Network(
    hidden=np.array([[0.5, 0.3, 0.2, -0.2, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]),
    bias=np.zeros(2),
    out=np.array([0.8, 0.1]),
)
LEARNED_ACTUATOR = learned_actuator(EXAMPLE)
DRIVE_LAYERS = (GAIN, TORQUE_SPEED, RATE_LIMIT, LAG, BACKLASH, LEARNED_ACTUATOR)
