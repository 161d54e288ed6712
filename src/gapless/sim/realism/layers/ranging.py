"""Sensors of distance: beams of a LiDAR or an ultrasonic sensor, pixels of a depth camera."""

import numpy as np

from gapless.core.signal import Array
from gapless.sim.realism.layer import Knob, Knobs, Layer, Moment, State


def _beams(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = far with probability `dropout`, u + e with probability `multipath`, else u + noise n.

    e is exponential with mean `excess_m`: an echo by way of a second surface is too long. A mixture in the manner of
    the beam model of Thrun, Burgard, Fox 2005, chapter 6, without the unexpected obstacles.
    """
    width, draws = signal.shape[1], moment.draws
    luck = draws.uniform("beam", width)
    longer = -knobs["excess_m"] * np.log1p(-draws.uniform("beam excess", width))
    echo = luck < knobs["dropout"] + knobs["multipath"]
    out = np.where(echo, signal + longer, signal + knobs["noise_m"] * draws.normal("beam noise", width))
    return state, np.where(luck < knobs["dropout"], knobs["far_m"], out)


def _depth(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = u + (base + growth u^2) n; mixed with its neighbour at edges; 0 (no depth) on shiny surfaces.

    Columns are neighbouring pixels of one line. Growth with the square of distance is that of triangulation
    (Khoshelham, Elberink 2012). Where the next pixel is further off than `edge_m`, the pixel reads something in between
    with probability `flying`; with probability `shiny`, per pixel if given so, it reads nothing.
    """
    width, draws = signal.shape[1], moment.draws
    luck = draws.uniform("depth", 3 * width)
    noise = (knobs["base_m"] + knobs["growth_per_m"] * signal**2) * draws.normal("depth noise", width)
    step = np.diff(signal, axis=1, append=signal[:, -1:])
    mixed = (np.abs(step) > knobs["edge_m"]) & (luck[:, :width] < knobs["flying"])
    out = signal + noise + mixed * luck[:, width : 2 * width] * step
    return state, np.where(luck[:, 2 * width :] < knobs["shiny"], 0.0, out)


_THUMB = "rule of thumb"

RANGE = Layer(
    "range sensor", "sensor", "reading",
    (
        Knob("noise_m", "m", 0.0, 0.0, 1.0, 0.02, "rule of thumb: 1 to 3 cm for small scanning LiDARs"),
        Knob("dropout", "1", 0.0, 0.0, 1.0, 0.01, "rule of thumb: dark and slanted surfaces"),
        Knob("far_m", "m", 30.0, 0.0, 1e3, 30.0, "what the driver reports without an echo: see its manual"),
        Knob("multipath", "1", 0.0, 0.0, 1.0, 0.005, "rule of thumb: corners, mirrors, glass"),
        Knob("excess_m", "m", 0.5, 0.0, 100.0, 0.5, _THUMB),
    ),
    _beams,
)  # fmt: skip
DEPTH = Layer(
    "depth camera", "sensor", "reading",
    (
        Knob("base_m", "m", 0.0, 0.0, 0.1, 0.001, "rule of thumb: about 1 mm near"),
        Knob("growth_per_m", "1/m", 0.0, 0.0, 0.1, 0.0016, "Khoshelham, Elberink 2012: 4 cm at 5 m (Kinect)"),
        Knob("edge_m", "m", 0.05, 1e-3, 1.0, 0.05, _THUMB),
        Knob("flying", "1", 0.0, 0.0, 1.0, 0.3, _THUMB),
        Knob("shiny", "1", 0.0, 0.0, 1.0, 0.02, "rule of thumb: share of pixels; near 1 on bare metal"),
    ),
    _depth,
)  # fmt: skip
RANGING_LAYERS = (RANGE, DEPTH)
