"""Samples that cannot be readings: spikes, teleports, values that were repeated. They count as missing.

Only positions and velocities are examined: forces jump, and so may commands.
"""

from collections.abc import Iterator

import numpy as np

from gapless.core.signal import Array, Flags

# How many times the usual step a jump is: positions 10, velocities 30.
MIN_JUMPS = {"position": 10.0, "x": 10.0, "y": 10.0, "z": 10.0, "velocity": 30.0, "vx": 30.0, "vy": 30.0, "vz": 30.0}
MAX_SPIKE_SAMPLES = 3
MIN_STEP_QUANTA = 3.0  # a sensor that steps by fewer quanta may well repeat a value
MAX_HOLD_S = 0.1  # the same value for longer than this, and then a jump, is a sensor that froze
MIN_REGULAR_SHARE = 0.7  # share of the changes that must come at one interval for a column to be slower than its log


def find_corrupt(values: Array, times_s: Array, quantity: str) -> Iterator[tuple[Flags, str]]:
    """Yields which samples of a column are corrupt, and what they are, kind by kind.

    Args:
        values: (num_samples,) in any unit; NaN where nothing was recorded.
        times_s: (num_samples,) [s].
        quantity: What is measured; quantities that may jump yield nothing.
    """
    known = np.flatnonzero(np.isfinite(values))
    factor = MIN_JUMPS.get(quantity)
    if factor is None or len(known) < 12:
        return
    x = values[known]
    steps = np.abs(np.diff(x))
    moving = steps[steps > 0]
    if not len(moving):
        return
    quantum, usual = float(moving.min()), max(float(np.percentile(steps, 95)), float(moving.min()))
    period = _find_period(x, quantum)
    lost, frozen = _find_held(x, times_s[known], factor * usual)
    kinds: list[tuple[Flags, str]] = [
        (_find_spikes(x, factor, usual), "stick out from their neighbours by more than ten times any usual step"),
        (lost, "are one value that is reached and left by a jump"),
        (frozen, "repeat one value that then jumps to where it should be"),
    ]
    if period > 1:
        text = f"repeat the one before: it changes every {period} samples only"
        kinds.append((np.diff(x, prepend=np.nan) == 0, text))
    else:
        kinds.append((_find_repeated(x, quantum), "repeat the one before in the midst of a motion"))
    for flags, text in kinds:
        if flags.any():
            flagged = np.zeros(len(values), dtype=np.bool_)
            flagged[known[flags]] = True
            yield flagged, text


def _find_spikes(x: Array, factor: float, usual: float) -> Flags:
    """Returns samples that stick out, up to `MAX_SPIKE_SAMPLES` in a row, between neighbours that go on smoothly."""
    found = np.zeros(len(x), dtype=np.bool_)
    begins = np.flatnonzero(np.abs(np.diff(x[1:])) > factor * usual) + 2  # what sticks out is reached by a jump
    for width in range(1, MAX_SPIKE_SAMPLES + 1):
        first = begins[begins < len(x) - width - 1]
        left, right = x[first - 1], x[first + width]
        steps = (right - left, left - x[first - 2], x[first + width + 1] - right)
        around = np.max(np.abs(steps), axis=0)
        inside = np.stack([x[first + k] for k in range(width)])
        above = np.minimum((inside - left).min(axis=0), (inside - right).min(axis=0))
        below = np.minimum((left - inside).min(axis=0), (right - inside).min(axis=0))
        out = np.maximum(above, below) > factor * np.maximum(around, usual)
        for k in range(width):
            found[first[out] + k] = True
    return found


def _find_held(x: Array, times_s: Array, jump: float) -> tuple[Flags, Flags]:
    """Returns which samples repeat one value that is lost, and which one that is frozen.

    A value is lost if it is reached and left by a jump: the marker of a lost reading, such as 0 or -1. It is frozen if
    it was reached smoothly, holds for long and is left by a jump; the first of its samples was read.
    """
    edges = np.flatnonzero(np.diff(x)) + 1
    first, end = np.concatenate([[0], edges]), np.concatenate([edges, [len(x)]])  # of each run of equal values
    padded = np.concatenate([[np.nan], x, [np.nan]])
    before, after = np.abs(x[first] - padded[first]), np.abs(padded[end + 1] - x[end - 1])
    lost = (end - first > MAX_SPIKE_SAMPLES) & (before > jump) & (after > jump)
    stuck = (times_s[end - 1] - times_s[first] > MAX_HOLD_S) & (before <= jump) & (after > jump)
    frozen = np.repeat(stuck, end - first)
    frozen[first] = False
    return np.repeat(lost, end - first), frozen


def _find_period(x: Array, quantum: float) -> int:
    """Returns every how many samples a column changes, if it does so regularly and by more than a few quanta."""
    changes = np.flatnonzero(np.diff(x))
    intervals = np.diff(changes)
    if len(intervals) < 10 or np.median(np.abs(np.diff(x))[changes]) < MIN_STEP_QUANTA * quantum:
        return 1
    period = int(np.median(intervals))
    return period if period > 1 and np.mean(intervals == period) > MIN_REGULAR_SHARE else 1


def _find_repeated(x: Array, quantum: float) -> Flags:
    """Returns single samples that repeat the one before while the next makes up for it."""
    step = np.diff(x)
    found = np.zeros(len(x), dtype=np.bool_)
    before, here, after, later = step[:-3], step[1:-2], step[2:-1], step[3:]
    onward = (np.sign(before) == np.sign(after)) & (np.sign(after) == np.sign(later))
    least, most = np.minimum(np.abs(before), np.abs(later)), np.maximum(np.abs(before), np.abs(later))
    found[2:-2] = (here == 0) & onward & (least > MIN_STEP_QUANTA * quantum) & (np.abs(after) > 1.5 * most)
    return found
