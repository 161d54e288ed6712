"""Spread between robots of one fleet, and from trial to trial of one robot."""

import numpy as np

from gapless.core.signal import Array
from gapless.sim.realism.layer import Knob, Knobs, Layer, Moment, State


def _start(signal: Array, knobs: Knobs, moment: Moment) -> State:
    """Draws the factors once: those of a robot are the same in all its trials, whichever world runs them."""
    width = signal.shape[1]
    one_fleet = np.zeros(len(signal), dtype=np.uint64)
    robot = np.round(knobs["robot"]).astype(np.int64)
    draws = moment.draws.at(0)
    of_robot = type(draws)(draws.seed, one_fleet).normal("fleet", robot * 65_537 + np.arange(width))
    of_trial = moment.draws.normal("trial", width)
    return (np.exp(knobs["fleet"] * of_robot + knobs["trial"] * of_trial),)


def _spread(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = u exp(fleet n_robot + trial n_trial), n standard normal per column: log-normal factors on two levels.

    A factor stays positive, and half as much is as likely as twice as much. The median robot is the model.
    """
    return state, signal * state[0]


SPREAD = Layer(
    "spread", "spread", "model",
    (
        Knob("robot", "1", 0.0, 0.0, 1e6, 0.0, "which robot of the fleet it is: 0, 1, ...", per_column=False),
        Knob("fleet", "1", 0.0, 0.0, 1.0, 0.1, "rule of thumb: 10 % between robots of one batch"),
        Knob("trial", "1", 0.0, 0.0, 1.0, 0.03, "rule of thumb: 3 % between trials of one robot"),
    ),
    _spread, _start,
)  # fmt: skip
SPREAD_LAYERS = (SPREAD,)
