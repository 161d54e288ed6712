"""Signals that come late or not at all: jitter, a shared bus, the time that a policy takes, lost packets.

Delays read a history of held signals as `plan_delay` does: exact for any delay, and continuous in it. All of these
layers act once per control interval. Time never runs backwards: what arrives is never older than a step more than what
arrived before.
"""

from collections.abc import Callable

import numpy as np

from gapless.core.signal import Array, Flags
from gapless.sim.realism.layer import ActFunction, Knob, Knobs, LayerContext, State, make_layer
from gapless.sim.realism.signal_path import apply_delay, history_length, plan_delay

MAX_DELAY_S = 0.5  # no signal comes later than this
MAX_QUEUED = 8  # packets
_TINY_S = 1e-9
# (signal, knobs, context, delays of the step before) -> delays now, (num_worlds, 1 or num_columns) [s]
DelayRule = Callable[[Array, Knobs, LayerContext, Array], Array]


def _begin_with_history(signal: Array, knobs: Knobs, context: LayerContext) -> State:
    length = history_length(MAX_DELAY_S, context.step_s)
    return np.repeat(signal[:, None], length, axis=1), np.full((len(signal), 1), MAX_DELAY_S)


def _delay_by(rule: DelayRule) -> ActFunction:
    """Returns the `act` of a layer that delays its signal: y(t) = u(t - d), d from `rule`, at most `MAX_DELAY_S`."""

    def act(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
        history, before_s = state
        history = np.concatenate([history[:, 1:], signal[:, None]], axis=1)
        delay_s = np.minimum(rule(signal, knobs, context, before_s), np.minimum(before_s + context.step_s, MAX_DELAY_S))
        plan = plan_delay(delay_s, context.step_s, 1, history.shape[1])
        return (history, delay_s), apply_delay(history, plan)[:, 0]

    return act


@make_layer("jitter", "latency", "command", start=_begin_with_history, random=("jitter_s",), knobs=(
    Knob("jitter_s", "s", 0.0, 0.0, 0.1, 0.003, "rule of thumb: a few ms without a real-time kernel"),
))  # fmt: skip
@_delay_by
def JITTER(signal: Array, knobs: Knobs, context: LayerContext, before_s: Array) -> Array:
    """Returns d = jitter_s |n|, n standard normal, one for all columns: they travel in one packet."""
    return knobs["jitter_s"] * np.abs(context.draws.normal("jitter", 1))


@make_layer("shared bus", "latency", "command", start=_begin_with_history, knobs=(
    Knob("cycle_s", "s", 0.0, 0.0, 0.1, 0.005, "rule of thumb: sum of the slots"),
    Knob("slot_s", "s", 0.0, 0.0, 0.01, 5e-4, "rule of thumb: one request and answer on a 1 Mbit/s serial bus"),
))  # fmt: skip
@_delay_by
def BUS(signal: Array, knobs: Knobs, context: LayerContext, before_s: Array) -> Array:
    """Returns d_k = cycle_s u + k slot_s: somewhere in its cycle (u uniform) the bus serves one joint after another."""
    wait_s = knobs["cycle_s"] * context.draws.uniform("bus", 1)
    return wait_s + knobs["slot_s"] * np.arange(signal.shape[1])


@make_layer("inference time", "latency", "command", start=_begin_with_history,
             random=("spike_share", "spike_s"), knobs=(
    Knob("inference_s", "s", 0.0, 0.0, 0.3, 0.005, "measure it: ms for small networks, 0.1 s for large ones"),
    Knob("spike_share", "1", 0.0, 0.0, 1.0, 0.01, "rule of thumb", typical_with="*"),
    Knob("spike_s", "s", 0.0, 0.0, 0.2, 0.03, "rule of thumb", typical_with="spike_share"),
))  # fmt: skip
@_delay_by
def INFERENCE(signal: Array, knobs: Knobs, context: LayerContext, before_s: Array) -> Array:
    """Returns d = inference_s, and up to inference_s + spike_s while the computer stalls.

    A stall begins with probability `spike_share` in a step. A policy does one thing at a time: while it stalls, what
    was sent last only grows older.
    """
    usual_s, worst_s = knobs["inference_s"], knobs["inference_s"] + knobs["spike_s"]
    goes_on = (before_s > usual_s + _TINY_S) & (before_s < worst_s - _TINY_S)
    begins = context.draws.uniform("inference", 1) < knobs["spike_share"]
    return np.where(goes_on | begins, worst_s, usual_s)


def draw_losses(before: Array, share: Array, burst: Array, luck: Array) -> Flags:
    """Returns what is lost now: two states, lost and not, that change by chance (Gilbert 1960).

    P(stay lost) = 1 - 1 / burst, P(become lost) = share / ((1 - share) burst): `share` of all steps are lost, in
    runs of `burst` steps on average. `before` is 1 where lost a step ago, `luck` uniform draws, `share` up to 0.5.
    """
    return luck < np.where(before > 0, 1 - 1 / burst, share / ((1 - share) * burst)) * (share > 0)


@make_layer("dropped packets", "latency", "command", random=("share", "burst"), knobs=(
    Knob("share", "1", 0.0, 0.0, 0.5, 0.01, "rule of thumb: 0 on wires, percents over radio"),
    Knob("burst", "steps", 1.0, 1.0, 50.0, 2.0, "rule of thumb: radio losses come in runs; Gilbert 1960",
         typical_with="*"),
), start=lambda signal, *_: (signal, np.zeros((len(signal), 1))))  # fmt: skip
def DROPPED(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = the last packet that arrived; all columns travel in one packet."""
    last, before = state
    lost = draw_losses(before, knobs["share"], knobs["burst"], context.draws.uniform("dropped", 1))
    out = np.where(lost, last, signal)
    return (out, lost.astype(np.float64)), out


@make_layer("duplicated packets", "latency", "command", random=("share", "queue"), knobs=(
    Knob("share", "1", 0.0, 0.0, 0.5, 0.005, "rule of thumb: retransmissions over radio"),
    Knob("queue", "packets", 1.0, 1.0, float(MAX_QUEUED), 2.0, "depth of the receiver's queue", typical_with="*"),
), start=lambda signal, *_: (
    np.repeat(signal[:, None], MAX_QUEUED + 1, axis=1), np.zeros((len(signal), 1)),
))  # fmt: skip
def DUPLICATED(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = the packet at the head of a queue that a duplicate makes one longer; over `queue` it is thrown away.

    The receiver takes one packet per step, so each duplicate makes everything after it one step later.
    """
    history, waiting = state
    history = np.concatenate([history[:, 1:], signal[:, None]], axis=1)
    waiting = waiting + (context.draws.uniform("duplicated", 1) < knobs["share"])
    waiting = np.where(waiting > knobs["queue"], 0.0, waiting)
    index = MAX_QUEUED - waiting.astype(np.intp)
    return (history, waiting), history[np.arange(len(history))[:, None], index, np.arange(signal.shape[1])]


@make_layer("slower sensor", "latency", "reading", knobs=(
    Knob("period_s", "s", 0.0, 0.0, 10.0, 1 / 30, "a camera at 30 Hz"),
), start=lambda signal, knobs, context: (signal, knobs["period_s"] + np.zeros((len(signal), 1))))  # fmt: skip
def SAMPLE_HOLD(state: State, signal: Array, knobs: Knobs, context: LayerContext) -> tuple[State, Array]:
    """Returns y = the newest sample of a sensor that takes one every `period_s`, the first at once."""
    held, age_s = state
    due = age_s >= knobs["period_s"] * (1 - 1e-9)
    out = np.where(due, signal, held)
    left_s = np.where(due, np.minimum(age_s - knobs["period_s"], knobs["period_s"]), age_s)
    return (out, left_s + context.step_s), out
