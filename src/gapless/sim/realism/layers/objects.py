"""Objects that are not as modelled: heavier, lopsided, of another size. The signal is a field of the model."""

import numpy as np

from gapless.core.signal import Array
from gapless.sim.realism.layer import Knob, Knobs, Layer, Moment, State
from gapless.sim.realism.layers.contact import factor, scaled

INERTIAL = ("mass", "cx", "cy", "cz", "ixx", "iyy", "izz", "ixy", "ixz", "iyz")


def _centre(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = u + shift: the centre of mass is elsewhere; a shift per axis, or one for all three."""
    return state, signal + knobs["shift_m"]


def _size(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = factor u + offset: parts of another size, and coatings or wear that add or take the same."""
    return state, knobs["factor"] * signal + knobs["offset_m"]


def _lump(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """A share s of the mass m is a lump at r from the centre c; the whole mass stays.

    c' = c + s r, I' = (1 - s) I + m s (1 - s) (|r|^2 E - r r^T): two bodies about their common centre (Steiner).
    """
    share = knobs["share"]
    place = np.concatenate([knobs["x_m"], knobs["y_m"], knobs["z_m"]], axis=1)
    square = place**2
    x, y, z = place.T[..., None]
    turning = np.concatenate([square.sum(axis=1, keepdims=True) - square, -x * y, -x * z, -y * z], axis=1)
    mass, centre, inertia = signal[:, :1], signal[:, 1:4], signal[:, 4:]
    added = mass * share * (1 - share) * turning
    return state, np.concatenate([mass, centre + share * place, (1 - share) * inertia + added], axis=1)


_PLACE = "rule of thumb: inside the object"

MASS = Layer("mass", "object", "model", (factor("rule of thumb: 20 % between products of a kind", 1.2),), scaled)
CENTRE = Layer(
    "shifted centre", "object", "model",
    (Knob("shift_m", "m", 0.0, -1.0, 1.0, 0.01, "rule of thumb: 10 % of the size of a hand-held thing"),),
    _centre, columns=("cx", "cy", "cz"),
)  # fmt: skip
SIZE = Layer(
    "size", "object", "model",
    (
        factor("rule of thumb: 2 % between products of a kind", 1.02, 0.1, 10.0),
        Knob("offset_m", "m", 0.0, -0.1, 0.1, 1e-3, "rule of thumb: a label, tape, wear"),
    ),
    _size,
)  # fmt: skip
UNEVEN_MASS = Layer(
    "uneven mass", "object", "model",
    (
        Knob("share", "1", 0.0, 0.0, 0.99, 0.3, "rule of thumb: a drill with its battery", per_column=False),
        Knob("x_m", "m", 0.0, -1.0, 1.0, 0.02, _PLACE, per_column=False),
        Knob("y_m", "m", 0.0, -1.0, 1.0, 0.0, _PLACE, per_column=False),
        Knob("z_m", "m", 0.0, -1.0, 1.0, 0.05, _PLACE, per_column=False),
    ),
    _lump, columns=INERTIAL,
)  # fmt: skip
OBJECT_LAYERS = (MASS, UNEVEN_MASS, CENTRE, SIZE)
