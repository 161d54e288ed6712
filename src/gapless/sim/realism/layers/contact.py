"""Contacts and objects that are not as modelled: friction, springs, bounces, mass, size, as fields of the model."""

import numpy as np

from gapless.core.signal import Array
from gapless.sim.realism.layer import Knob, Knobs, LayerContext, State, make_layer

INERTIAL = ("mass", "cx", "cy", "cz", "ixx", "iyy", "izz", "ixy", "ixz", "iyz")
_PLACE = "rule of thumb: inside the object"


@make_layer("uneven friction", "contact", "model", random=("amplitude", "wavelength_m"), knobs=(
    Knob("amplitude", "1", 0.0, 0.0, 1.0, 0.2, "rule of thumb: planar pushing data vary by tens of per cent"),
    Knob("wavelength_m", "m", 0.1, 0.01, 10.0, 0.1, "rule of thumb"),
), start=lambda signal, knobs, context: (2 * np.pi * context.draws.uniform("waves", 2),), needs=("place",))  # fmt: skip
def FRICTION_WAVES(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = u (1 + amplitude sin(2 pi px / wavelength + a) sin(2 pi py / wavelength + b)).

    The phases a and b are drawn per world.
    """
    turns = context.place * (2 * np.pi) / knobs["wavelength_m"][..., None] + state[0][:, None]
    wave = np.sin(turns[..., 0]) * np.sin(turns[..., 1])
    return state, signal * (1 + knobs["amplitude"] * wave)


@make_layer("softness", "contact", "model", knobs=(
    Knob("compliance", "m/N", 0.0, 0.0, 1.0, 1e-4, "rule of thumb: a rubber pad that gives 1 mm at 10 N"),
))  # fmt: skip
def SOFTNESS(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """1 / y = 1 / u + compliance: a soft skin or pad in series with the stiffness u of the model."""
    return state, signal / (1 + knobs["compliance"] * np.abs(signal))


@make_layer("restitution", "contact", "model", needs=("velocity",), knobs=(
    Knob("factor", "1", 1.0, 0.0, 10.0, 0.8, "rule of thumb", same_as="geom/NAME/restitution"),
    Knob("fall", "1", 0.0, 0.0, 1.0, 0.25, "Johnson 1985: 1/4 for plastic impacts"),
    Knob("speed", "m/s", 0.1, 1e-3, 10.0, 0.1, "rule of thumb: where metals begin to yield, or below"),
))  # fmt: skip
def RESTITUTION(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = factor u (1 + |v| / speed)^-fall, at most max(u, 1): bounces lose more when faster.

    Plastic impacts go with v^-1/4 (Johnson 1985, Contact Mechanics, chapter 11): fall 0.25 far above `speed`.
    """
    shrunk = np.exp(-knobs["fall"] * np.log1p(np.abs(context.velocity) / knobs["speed"]))
    return state, np.minimum(knobs["factor"] * shrunk * signal, np.maximum(signal, 1.0))


@make_layer("size", "object", "model", num_axes=3, knobs=(
    Knob("factor", "1", 1.0, 0.1, 10.0, 1.02, "rule of thumb: 2 % between products of a kind"),
    Knob("offset_m", "m", 0.0, -0.1, 0.1, 1e-3, "rule of thumb: a label, tape, wear"),
))  # fmt: skip
def SIZE(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = factor u + offset: parts of another size, and coatings or wear that add or take the same."""
    return state, knobs["factor"] * signal + knobs["offset_m"]


@make_layer("uneven mass", "object", "model", columns=INERTIAL, kinds=("body",), knobs=(
    Knob("share", "1", 0.0, 0.0, 0.99, 0.3, "rule of thumb: a drill with its battery", per_column=False),
    Knob("x_m", "m", 0.0, -1.0, 1.0, 0.02, _PLACE, per_column=False, typical_with="*"),
    Knob("y_m", "m", 0.0, -1.0, 1.0, 0.0, _PLACE, per_column=False),
    Knob("z_m", "m", 0.0, -1.0, 1.0, 0.05, _PLACE, per_column=False, typical_with="*"),
))  # fmt: skip
def UNEVEN_MASS(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
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
