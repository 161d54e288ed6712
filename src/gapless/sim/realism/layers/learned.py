"""Drives as a small network learned them: effort out of recent efforts and velocities."""

from dataclasses import dataclass

import numpy as np

from gapless.core.errors import InputError
from gapless.core.signal import Array, Flags
from gapless.sim.realism.layer import Knob, Knobs, Layer, LayerContext, State

RECENT = 3  # samples of effort and of velocity that the network sees, the newest first


@dataclass(frozen=True)
class Network:
    """A network of one hidden layer: y = out tanh(hidden x + bias), the same for every joint.

    x are the last `RECENT` efforts, as shares of the knob `scale`, and the last `RECENT` velocities, as shares of
    `speed`; y is the effort as a share of `scale`.
    """

    hidden: Array  # (num_hidden, 2 * RECENT) weights
    bias: Array  # (num_hidden,)
    out: Array  # (num_hidden,)
    spacing_s: float = 0.01  # time between samples [s]

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


def _push_sample(past: Array, now: Array, due: Flags) -> Array:
    """Returns a history with a newer sample: one more where it is due, in place of the newest elsewhere."""
    older = np.where(due, past[:, :-1], past[:, 1:])
    return np.concatenate([now[:, None], older], axis=1)


def learned_actuator(network: Network, name: str = "learned actuator") -> Layer:
    """Returns the layer of a network: y = u + share (scale net(u, v) - u)."""

    def start(signal: Array, knobs: Knobs, context: LayerContext) -> State:
        velocity = np.broadcast_to(context.velocity, signal.shape)
        shape = (len(signal), RECENT, signal.shape[1])
        return (
            np.broadcast_to(signal[:, None], shape).copy(),
            np.broadcast_to(velocity[:, None], shape).copy(),
            np.zeros((len(signal), 1)),
        )

    def act(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
        efforts, velocities, age_s = state
        due = (age_s >= network.spacing_s * (1 - 1e-9))[:, :, None]
        efforts, velocities = _push_sample(efforts, signal, due), _push_sample(velocities, context.velocity, due)
        age_s = np.where(due[:, 0], 0.0, age_s) + context.step_s
        scale, speed = knobs["scale"], knobs["speed"]
        output = scale * network(efforts / scale[:, None], velocities / speed[:, None])
        return (efforts, velocities, age_s), signal + knobs["share"] * (output - signal)

    knobs = (
        Knob("share", "1", 0.0, 0.0, 1.0, 0.5, "1 where the network is all there is to say of the drive"),
        Knob("scale", "N·m, N", 1.0, 0.01, 1e4, 1.0, "what the network was trained on: the largest effort"),
        Knob("speed", "rad/s, m/s", 10.0, 0.01, 1e4, 10.0, "what the network was trained on: the largest speed"),
    )
    return Layer(name, "actuator", "effort", knobs, act, start, needs=("velocity",))


# A drive that saturates softly, answers late and is slowed by its own speed; written by hand, to begin with.
EXAMPLE_NETWORK = Network(
    hidden=np.array([[0.5, 0.3, 0.2, -0.2, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]),
    bias=np.zeros(2),
    out=np.array([0.8, 0.1]),
)
LEARNED_ACTUATOR = learned_actuator(EXAMPLE_NETWORK)
