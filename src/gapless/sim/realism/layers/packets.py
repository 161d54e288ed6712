"""Packets that get lost, come twice, or are sent less often than they are wanted."""

import numpy as np

from gapless.core.signal import Array, Flags
from gapless.sim.realism.layer import Knob, Knobs, Layer, Moment, State

MOST_QUEUED = 8


def lost_now(before: Array, share: Array, burst: Array, luck: Array) -> Flags:
    """Tells what is lost now: two states, lost and not, that change by chance (Gilbert 1960).

    P(stay lost) = 1 - 1 / burst, P(become lost) = share / ((1 - share) burst): `share` of all steps are lost, in
    runs of `burst` on average.

    Args:
        before: 1 where lost a step ago, 0 elsewhere.
        share: Share that is lost [1], up to 0.5.
        burst: Mean length of a run [steps], at least 1.
        luck: Uniform draws in [0, 1).
    """
    return luck < np.where(before > 0, 1 - 1 / burst, share / ((1 - share) * burst)) * (share > 0)


def _nothing_lost(signal: Array, knobs: Knobs, moment: Moment) -> State:
    return signal, np.zeros((len(signal), 1))


def _dropped(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = the last packet that arrived; all columns travel in one packet."""
    last, before = state
    lost = lost_now(before, knobs["share"], knobs["burst"], moment.draws.uniform("dropped", 1))
    out = np.where(lost, last, signal)
    return (out, lost.astype(np.float64)), out


def _queue(signal: Array, knobs: Knobs, moment: Moment) -> State:
    return np.repeat(signal[:, None], MOST_QUEUED + 1, axis=1), np.zeros((len(signal), 1))


def _duplicated(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = the packet at the head of a queue that a duplicate makes one longer; over `queue` it is thrown away.

    The receiver takes one packet per step, so each duplicate makes everything after it one step later.
    """
    history, waiting = state
    history = np.concatenate([history[:, 1:], signal[:, None]], axis=1)
    waiting = waiting + (moment.draws.uniform("duplicated", 1) < knobs["share"])
    waiting = np.where(waiting > knobs["queue"], 0.0, waiting)
    index = MOST_QUEUED - waiting.astype(np.intp)
    return (history, waiting), history[np.arange(len(history))[:, None], index, np.arange(signal.shape[1])]


def _due(signal: Array, knobs: Knobs, moment: Moment) -> State:
    return signal, knobs["period_s"] + np.zeros((len(signal), 1))


def _hold(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = the newest sample of a sensor that takes one every `period_s`, the first at once."""
    held, age_s = state
    due = age_s >= knobs["period_s"] * (1 - 1e-9)
    out = np.where(due, signal, held)
    left_s = np.where(due, np.minimum(age_s - knobs["period_s"], knobs["period_s"]), age_s)
    return (out, left_s + moment.step_s), out


DROPPED = Layer(
    "dropped packets", "latency", "command",
    (
        Knob("share", "1", 0.0, 0.0, 0.5, 0.01, "rule of thumb: 0 on wires, percents over radio"),
        Knob("burst", "steps", 1.0, 1.0, 50.0, 2.0, "rule of thumb: radio losses come in runs; Gilbert 1960"),
    ),
    _dropped, _nothing_lost,
)  # fmt: skip
DUPLICATED = Layer(
    "duplicated packets", "latency", "command",
    (
        Knob("share", "1", 0.0, 0.0, 0.5, 0.005, "rule of thumb: retransmissions over radio"),
        Knob("queue", "packets", 1.0, 1.0, float(MOST_QUEUED), 2.0, "depth of the receiver's queue"),
    ),
    _duplicated, _queue,
)  # fmt: skip
SAMPLE_HOLD = Layer(
    "slower sensor", "latency", "reading",
    (Knob("period_s", "s", 0.0, 0.0, 10.0, 1 / 30, "a camera at 30 Hz"),), _hold, _due,
)  # fmt: skip
PACKET_LAYERS = (DROPPED, DUPLICATED, SAMPLE_HOLD)
