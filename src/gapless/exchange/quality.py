"""What is wrong with the signals of a recording, as flags that a query can ask for.

A flag is a word, and where it is about one column `word:COLUMN`: `dropped`, `skewed_clock`, `stuck:q`, `saturated:q`,
`duplicated:q`, `impossible_speed:q`, `copy_of:EPISODE`.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from gapless.core.recording import Recording
from gapless.core.signal import Array
from gapless.project.new.names import read_name

MIN_ROWS = 20  # fewer say nothing of a signal
MIN_GAP = 1.5  # median intervals between two rows from which one was dropped
MAX_SKEW = 1e-3  # drift of message time against receipt time [s/s]; crystals drift by 1e-4 at most
MIN_STUCK_SHARE = 0.1  # of the rows in one stretch that repeat a value
MIN_JUMP = 5.0  # times the usual step with which a stuck signal goes on
MAX_HELD_SHARE = (
    0.8  # of the rows that repeat the one before; more is a signal that is held on purpose, as commands are
)
MIN_SATURATED_SHARE = 0.05  # of the rows exactly at the largest or smallest value, in three stretches or more
MIN_STRETCHES = 3
MIN_LEVELS = 8  # a signal of fewer values is a switch or a counter of states, which may well stand still
MIN_SPIKE = 30.0  # times the usual step that no machine's motion makes; as in project/log/corrupt.py
MAX_SPIKE_SHARE = 0.01  # of the steps; more are what the signal does


def find_flags(recording: Recording) -> tuple[str, ...]:
    """Returns what is wrong with a recording's signals; empty where nothing is."""
    return tuple([*_flag_clock(recording), *_flag_columns(recording)])


def _flag_clock(recording: Recording) -> Iterator[str]:
    steps_s = np.diff(recording.times_s)
    if len(steps_s) < MIN_ROWS:
        return
    if _is_single_rate(recording) and np.any(steps_s > MIN_GAP * np.median(steps_s)):
        yield "dropped"
    for column, values in recording.columns.items():
        if column.endswith(".transport_latency_s"):
            known = np.isfinite(values)
            if known.sum() > MIN_ROWS and abs(np.polyfit(recording.times_s[known], values[known], 1)[0]) > MAX_SKEW:
                yield "skewed_clock"
                return


def _is_single_rate(recording: Recording) -> bool:
    """Returns whether rows are of one recorder's loop; rows of several topics come at uneven times."""
    return not any(column.endswith(".transport_latency_s") for column in recording.columns)


def _flag_columns(recording: Recording) -> Iterator[str]:
    moving: dict[str, Array] = {}
    for column, values in recording.columns.items():
        known = np.isfinite(values)
        x, times_s = values[known], recording.times_s[known]
        if len(x) < MIN_ROWS or len(np.unique(x)) < MIN_LEVELS:
            continue
        if read_name(column).role != "command":  # commands may well stand still, and jump
            yield from (f"{word}:{column}" for word in _flag_signal(x, times_s))
        moving[column] = values
    yield from (f"duplicated:{column}" for column in find_duplicates(moving))


def _flag_signal(x: Array, times_s: Array) -> Iterator[str]:
    """Yields what is wrong with one signal that moves."""
    held = np.diff(x) == 0
    if held.mean() < MAX_HELD_SHARE and _is_stuck(x):
        yield "stuck"
    for bound in (x.min(), x.max()):
        at_bound = x == bound
        stretches = int(np.sum(np.diff(at_bound.astype(int), prepend=0) == 1))
        if at_bound.mean() > MIN_SATURATED_SHARE and stretches >= MIN_STRETCHES and held.mean() < MAX_HELD_SHARE:
            yield "saturated"
            break
    speeds = np.abs(np.diff(x) / np.diff(times_s))
    usual = float(np.percentile(speeds, 95))
    is_spike = speeds > MIN_SPIKE * usual
    if usual > 0 and is_spike.any() and is_spike.mean() < MAX_SPIKE_SHARE:
        yield "impossible_speed"


def _is_stuck(x: Array) -> bool:
    """Returns whether a signal that was moving stands still at once for long, or jumps where it goes on.

    What comes to rest slows down before, and starts slowly.
    """
    steps = np.abs(np.diff(x))
    moves = np.flatnonzero(steps)
    rests = np.diff(moves, prepend=-1, append=len(steps)) - 1  # steps without a change before each move, and at the end
    k = int(np.argmax(rests))
    if rests[k] < MIN_STUCK_SHARE * len(x) or not k > 0:
        return False
    fast = max(float(np.median(steps[moves])), 2 * float(steps[moves].min()))
    stops_at_once = bool(np.all(steps[moves[max(0, k - 3) : k]] >= fast))
    jumps = k < len(moves) and steps[moves[k]] > MIN_JUMP * float(np.percentile(steps, 95))
    return bool(stops_at_once or jumps)


def find_duplicates(columns: Mapping[str, Array]) -> tuple[str, ...]:
    """Returns the columns that repeat an earlier one number by number."""
    seen: dict[bytes, str] = {}
    return tuple(name for name, values in columns.items() if seen.setdefault(values.tobytes(), name) != name)
