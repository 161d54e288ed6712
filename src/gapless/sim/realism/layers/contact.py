"""Contacts: friction that differs by surface and by place, springs, bounces. The signal is a field of the model."""

import numpy as np

from gapless.core.signal import Array
from gapless.sim.realism.layer import Knob, Knobs, Layer, Moment, State


def scaled(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = factor u."""
    return state, knobs["factor"] * signal


def _phases(signal: Array, knobs: Knobs, moment: Moment) -> State:
    return (2 * np.pi * moment.draws.uniform("waves", 2),)


def _waves(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = u (1 + amplitude sin(2 pi px / wavelength + a) sin(2 pi py / wavelength + b)).

    The phases a and b are drawn per world.
    """
    turns = moment.place * (2 * np.pi) / knobs["wavelength_m"][..., None] + state[0][:, None]
    wave = np.sin(turns[..., 0]) * np.sin(turns[..., 1])
    return state, signal * (1 + knobs["amplitude"] * wave)


def _softness(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """1 / y = 1 / u + compliance: a soft skin or pad in series with the stiffness u of the model."""
    return state, signal / (1 + knobs["compliance"] * np.abs(signal))


def _restitution(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = factor u (1 + |v| / speed)^-fall, at most max(u, 1): bounces lose more when faster.

    Plastic impacts go with v^-1/4 (Johnson 1985, Contact Mechanics, chapter 11): fall 0.25 far above `speed`.
    """
    shrunk = np.exp(-knobs["fall"] * np.log1p(np.abs(moment.velocity) / knobs["speed"]))
    return state, np.minimum(knobs["factor"] * shrunk * signal, np.maximum(signal, 1.0))


def factor(source: str, typical: float, low: float = 0.01, high: float = 100.0) -> Knob:
    """Returns the knob of a layer that multiplies."""
    return Knob("factor", "1", 1.0, low, high, typical, source)


SURFACE_FRICTION = Layer(
    "surface friction", "contact", "model", (factor("rule of thumb: tables of friction scatter by 30 %", 0.7),), scaled
)
FRICTION_WAVES = Layer(
    "uneven friction", "contact", "model",
    (
        Knob("amplitude", "1", 0.0, 0.0, 1.0, 0.2, "rule of thumb: planar pushing data vary by tens of per cent"),
        Knob("wavelength_m", "m", 0.1, 0.01, 10.0, 0.1, "rule of thumb"),
    ),
    _waves, _phases, needs=("place",),
)  # fmt: skip
CONTACT_STIFFNESS = Layer(
    "contact stiffness", "contact", "model", (factor("rule of thumb: seldom known to a factor of 3", 0.3),), scaled
)
SOFTNESS = Layer(
    "softness", "contact", "model",
    (Knob("compliance", "m/N", 0.0, 0.0, 1.0, 1e-4, "rule of thumb: a rubber pad that gives 1 mm at 10 N"),), _softness,
)  # fmt: skip
RESTITUTION = Layer(
    "restitution", "contact", "model",
    (
        factor("rule of thumb", 0.8, 0.0, 10.0),
        Knob("fall", "1", 0.0, 0.0, 1.0, 0.25, "Johnson 1985: 1/4 for plastic impacts"),
        Knob("speed", "m/s", 0.1, 1e-3, 10.0, 0.1, "rule of thumb: where metals begin to yield, or below"),
    ),
    _restitution, needs=("velocity",),
)  # fmt: skip
CONTACT_LAYERS = (SURFACE_FRICTION, FRICTION_WAVES, CONTACT_STIFFNESS, SOFTNESS, RESTITUTION)
