"""Samples that cannot be readings: spikes, teleports, values that were repeated. They count as missing.

Only positions and velocities are judged: forces jump, and so may commands.
"""

from collections.abc import Iterator

import numpy as np

from gapless.core.signal import Array, Flags, Indices

FACTORS = {"position": 10.0, "x": 10.0, "y": 10.0, "z": 10.0, "velocity": 30.0, "vx": 30.0, "vy": 30.0, "vz": 30.0}
WIDEST = 3  # samples of a spike
QUANTA = 3.0  # steps of fewer quanta may well be followed by none
HELD_S = 0.1  # the same value for longer than this, and then a jump, is a sensor that froze
REGULAR = 0.7  # share of the changes that must come at one interval for a column to be slower than its log


def find_corrupt(values: Array, times_s: Array, quantity: str) -> Iterator[tuple[Flags, str]]:
    """Yields which samples of a column are corrupt, and what they are, kind by kind.

    Args:
        values: (num_samples,) in any unit; NaN where nothing was recorded.
        times_s: (num_samples,) [s].
        quantity: What is measured; quantities that may jump yield nothing.
    """
    known = np.flatnonzero(np.isfinite(values))
    factor = FACTORS.get(quantity)
    if factor is None or len(known) < 12:
        return
    x = values[known]
    steps = np.abs(np.diff(x))
    moving = steps[steps > 0]
    if not len(moving):
        return
    quantum, usual = float(moving.min()), max(float(np.percentile(steps, 95)), float(moving.min()))
    slower = _held_regularly(x, quantum)
    kinds = [
        (_spikes(x, factor, usual), "stick out from their neighbours by more than ten times any usual step"),
        (_teleports(x, factor * usual), "are one value that is reached and left by a jump"),
        (_frozen(x, times_s[known], factor * usual), "repeat one value that then jumps to where it should be"),
    ]
    if slower > 1:
        kinds.append(
            (np.diff(x, prepend=np.nan) == 0, f"repeat the one before: it changes every {slower} samples only")
        )
    else:
        kinds.append((_stale(x, quantum), "repeat the one before in the midst of a motion"))
    for flags, text in kinds:
        if flags.any():
            there = np.zeros(len(values), dtype=np.bool_)
            there[known[flags]] = True
            yield there, text


def _spikes(x: Array, factor: float, usual: float) -> Flags:
    """Returns samples that stick out, up to `WIDEST` in a row, between neighbours that go on smoothly."""
    found = np.zeros(len(x), dtype=np.bool_)
    begins = np.flatnonzero(np.abs(np.diff(x[1:])) > factor * usual) + 2  # what sticks out is reached by a jump
    for width in range(1, WIDEST + 1):
        first = begins[begins < len(x) - width - 1]
        left, right = x[first - 1], x[first + width]
        around = np.abs(right - left)
        around = np.maximum(around, np.abs(left - x[first - 2]))
        around = np.maximum(around, np.abs(x[first + width + 1] - right))
        inside = np.stack([x[first + k] for k in range(width)])
        above = np.minimum((inside - left).min(axis=0), (inside - right).min(axis=0))
        below = np.minimum((left - inside).min(axis=0), (right - inside).min(axis=0))
        out = np.maximum(above, below) > factor * np.maximum(around, usual)
        for k in range(width):
            found[first[out] + k] = True
    return found


def _find_runs(x: Array) -> tuple[Indices, Indices]:
    """Returns where runs of equal values begin, and where they end: the place after the last."""
    edges = np.flatnonzero(np.diff(x)) + 1
    return np.concatenate([[0], edges]), np.concatenate([edges, [len(x)]])


def _find_jumps(x: Array, first: Indices, end: Indices) -> tuple[Array, Array]:
    """Returns how far each run of equal values is from the value before it and from the one after; NaN at the ends."""
    padded = np.concatenate([[np.nan], x, [np.nan]])
    return np.abs(x[first] - padded[first]), np.abs(padded[end + 1] - x[end - 1])


def _teleports(x: Array, jump: float) -> Flags:
    """Returns runs of one value that begin and end with a jump: the marker of a lost reading, such as 0 or -1."""
    first, end = _find_runs(x)
    before, after = _find_jumps(x, first, end)
    lost = (end - first > WIDEST) & (before > jump) & (after > jump)
    return np.repeat(lost, end - first)


def _frozen(x: Array, times_s: Array, jump: float) -> Flags:
    """Returns what repeats a value for long that was reached smoothly and is left by a jump."""
    first, end = _find_runs(x)
    before, after = _find_jumps(x, first, end)
    stuck = (times_s[end - 1] - times_s[first] > HELD_S) & (before <= jump) & (after > jump)
    found = np.repeat(stuck, end - first)
    found[first] = False  # the first of them was read
    return found


def _held_regularly(x: Array, quantum: float) -> int:
    """Returns every how many samples a column changes, if it does so regularly and by more than a few quanta."""
    changes = np.flatnonzero(np.diff(x))
    intervals = np.diff(changes)
    if len(intervals) < 10 or np.median(np.abs(np.diff(x))[changes]) < QUANTA * quantum:
        return 1
    period = int(np.median(intervals))
    return period if period > 1 and np.mean(intervals == period) > REGULAR else 1


def _stale(x: Array, quantum: float) -> Flags:
    """Returns single samples that repeat the one before while the next makes up for it."""
    step = np.diff(x)
    found = np.zeros(len(x), dtype=np.bool_)
    before, here, after, later = step[:-3], step[1:-2], step[2:-1], step[3:]
    onward = (np.sign(before) == np.sign(after)) & (np.sign(after) == np.sign(later))
    least, most = np.minimum(np.abs(before), np.abs(later)), np.maximum(np.abs(before), np.abs(later))
    found[2:-2] = (here == 0) & onward & (least > QUANTA * quantum) & (np.abs(after) > 1.5 * most)
    return found
