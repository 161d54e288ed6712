"""Signals that come late: fixed delays, jitter, a shared bus, the time that a policy thinks.

All of them read a history of held signals as `plan_delay` does: exact for any delay, and continuous in it. They act
once per control interval. Time never runs backwards: what arrives is never older than a step more than what arrived
before.
"""

from dataclasses import replace
from typing import Protocol

import numpy as np

from gapless.core.signal import Array
from gapless.sim.realism.latency import delayed, history_length, plan_delay
from gapless.sim.realism.layer import Act, Knob, Knobs, Layer, Moment, State

MOST_S = 0.5  # no signal comes later than this
_TINY_S = 1e-9


class LateBy(Protocol):
    """How late each column is now, (num_worlds, 1 or num_columns) [s]."""

    def __call__(self, signal: Array, knobs: Knobs, moment: Moment, before_s: Array) -> Array:
        """Returns the delays; `before_s` are those of the step before."""
        ...


def _start(signal: Array, knobs: Knobs, moment: Moment) -> State:
    length = history_length(MOST_S, moment.step_s)
    return np.repeat(signal[:, None], length, axis=1), np.full((len(signal), 1), MOST_S)


def late(late_by: LateBy) -> Act:
    """Returns the `act` of a layer that delays its signal: y(t) = u(t - d), d from `late_by`, at most `MOST_S`."""

    def act(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
        history, before_s = state
        history = np.concatenate([history[:, 1:], signal[:, None]], axis=1)
        delay_s = np.minimum(late_by(signal, knobs, moment, before_s), np.minimum(before_s + moment.step_s, MOST_S))
        plan = plan_delay(delay_s, moment.step_s, 1, history.shape[1])
        return (history, delay_s), delayed(history, plan)[:, 0]

    return act


def _fixed(signal: Array, knobs: Knobs, moment: Moment, before_s: Array) -> Array:
    """Returns d = delay_s."""
    return knobs["delay_s"]


def _jitter(signal: Array, knobs: Knobs, moment: Moment, before_s: Array) -> Array:
    """Returns d = jitter_s |n|, n standard normal, one for all columns: they travel in one packet."""
    return knobs["jitter_s"] * np.abs(moment.draws.normal("jitter", 1))


def _bus(signal: Array, knobs: Knobs, moment: Moment, before_s: Array) -> Array:
    """Returns d_k = cycle_s u + k slot_s: somewhere in its cycle (u uniform) the bus serves one joint after another."""
    wait_s = knobs["cycle_s"] * moment.draws.uniform("bus", 1)
    return wait_s + knobs["slot_s"] * np.arange(signal.shape[1])


def _inference(signal: Array, knobs: Knobs, moment: Moment, before_s: Array) -> Array:
    """Returns d = inference_s, and up to inference_s + spike_s while the computer stalls.

    A stall begins with probability `spike_share` in a step. A policy does one thing at a time: while it stalls, what
    was sent last only grows older.
    """
    usual_s, worst_s = knobs["inference_s"], knobs["inference_s"] + knobs["spike_s"]
    goes_on = (before_s > usual_s + _TINY_S) & (before_s < worst_s - _TINY_S)
    begins = moment.draws.uniform("inference", 1) < knobs["spike_share"]
    return np.where(goes_on | begins, worst_s, usual_s)


_DELAY = Knob("delay_s", "s", 0.0, 0.0, 0.4, 0.02, "rule of thumb: 5 to 50 ms over USB, CAN or Ethernet and firmware")

COMMAND_DELAY = Layer("command delay", "latency", "command", (_DELAY,), late(_fixed), _start)
READING_DELAY = replace(COMMAND_DELAY, name="reading delay", acts_on="reading")
JITTER = Layer(
    "jitter", "latency", "command",
    (Knob("jitter_s", "s", 0.0, 0.0, 0.1, 0.003, "rule of thumb: a few ms without a real-time kernel"),),
    late(_jitter), _start,
)  # fmt: skip
BUS = Layer(
    "shared bus", "latency", "command",
    (
        Knob("cycle_s", "s", 0.0, 0.0, 0.1, 0.005, "rule of thumb: sum of the slots"),
        Knob("slot_s", "s", 0.0, 0.0, 0.01, 5e-4, "rule of thumb: one request and answer on a 1 Mbit/s serial bus"),
    ),
    late(_bus), _start,
)  # fmt: skip
INFERENCE = Layer(
    "inference time", "latency", "command",
    (
        Knob("inference_s", "s", 0.0, 0.0, 0.3, 0.005, "measure it: ms for small networks, 0.1 s for large ones"),
        Knob("spike_share", "1", 0.0, 0.0, 1.0, 0.01, "rule of thumb"),
        Knob("spike_s", "s", 0.0, 0.0, 0.2, 0.03, "rule of thumb"),
    ),
    late(_inference), _start,
)  # fmt: skip
DELAY_LAYERS = (COMMAND_DELAY, READING_DELAY, JITTER, BUS, INFERENCE)
