"""Whether a column is at rest: jumps, smooth motion and vibration are no sensor noise."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.ndimage import median_filter

from gapless.core.signal import Array, Flags

MIN_JUMP_DEVIATIONS = 8.0  # robust standard deviations of the differences of neighbouring averages
MAX_NOISE_CORRELATION = 0.25  # of neighbouring differences in a random walk; all other noise has less
MIN_STANDARD_ERRORS = 4.0  # above that, for a correlation to be motion
MIN_AVERAGES = 40  # to judge by
ONE_SIGMA_PERCENTILE = 68.27  # of distances: one standard deviation of normal ones
MAX_RINGING_S = 1.0  # how long a knock may ring
DRIFT_S = 10.0  # what is smooth only over longer times is drift, as with temperature, not motion
NUM_NEIGHBOURS = 401  # frequencies about each for its median
NUM_SKIPPED = 200  # lowest frequencies, where drift stands higher than that median says
MAX_FALSE_ALARM = 1e-6  # chance of taking noise for a line


@dataclass(frozen=True)
class Disturbance:
    """Something in a column that is no noise."""

    kind: Literal["motion", "drift", "vibration"]
    text: str  # what was seen
    amplitude: float = 0.0  # of a vibration, in the column's unit; else 0


def find_knocks(values: Array, interval_s: float, quantum: float) -> Flags:
    """Returns the samples within `MAX_RINGING_S` of a knock: a jump of averages of less than `DRIFT_S`."""
    found = np.zeros(len(values), dtype=np.bool_)
    size = 1
    while len(values) >= MIN_AVERAGES * size and size * interval_s < DRIFT_S:
        steps = np.diff(_average(np.where(found, np.nan, values), size))
        for place in np.flatnonzero(_is_jump(steps, quantum / np.sqrt(size))):
            at, reach = (place + 1) * size, size + round(MAX_RINGING_S / interval_s)
            found[max(0, at - reach) : at + reach] = True
        size *= 2
    return found


def find_disturbances(values: Array, interval_s: float, quantum: float, unit: str) -> list[Disturbance]:
    """Returns what shows that a column is not at rest; nothing where it may be.

    At every averaging time neighbouring averages are compared. A difference far beyond the usual is a jump. The
    correlation of neighbouring differences is at most 1/4 for any sum of quantisation, white, flicker and random walk
    noise (1/4 for averages of a random walk), and near 1 for smooth motion. A line in the spectrum is a vibration.
    """
    found: list[Disturbance] = []
    size = 1
    while len(values) >= MIN_AVERAGES * size and not found:
        found = _find_motion(_average(values, size), size, interval_s, quantum / np.sqrt(size), unit)
        size *= 2
    return found + _find_vibration(values, interval_s, unit)


def _average(values: Array, size: int) -> Array:
    """Returns the averages of so many samples each, NaN where fewer than half of them are there."""
    rows = values[: len(values) // size * size].reshape(-1, size)
    known = np.isfinite(rows)
    count = known.sum(axis=1)
    return np.where(2 * count >= size, np.where(known, rows, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)


def _is_jump(steps: Array, least: float) -> Flags:
    known = steps[np.isfinite(steps)]
    if len(known) < MIN_AVERAGES:
        return np.zeros(len(steps), dtype=np.bool_)
    away = np.abs(steps - np.median(known))
    spread = max(float(np.percentile(np.abs(known - np.median(known)), ONE_SIGMA_PERCENTILE)), least)
    return (away > MIN_JUMP_DEVIATIONS * spread) & (spread > 0)


def _find_motion(means: Array, size: int, interval_s: float, least: float, unit: str) -> list[Disturbance]:
    steps = np.diff(means)
    known = steps[np.isfinite(steps)]
    if len(known) < MIN_AVERAGES:
        return []
    tau_s = size * interval_s
    if _is_jump(steps, least).any():
        worst = int(np.nanargmax(np.abs(steps - np.median(known))))
        jump, at_s = f"{steps[worst]:.3g} {unit}", (worst + 1) * tau_s
        if tau_s < DRIFT_S:
            return [Disturbance("motion", f"it jumps by {jump} at {at_s:.4g} s")]
        text = f"its level shifts by {jump} about {at_s:.4g} s"
        return [Disturbance("drift", f"{text}: bias instability and random walk hold with that: was it tilted?")]
    products = (steps[1:] - known.mean()) * (steps[:-1] - known.mean())
    products, power = products[np.isfinite(products)], float(np.var(known))
    correlation = float(products.mean()) / power if len(products) and power > 0 else 0.0
    if correlation < MAX_NOISE_CORRELATION + MIN_STANDARD_ERRORS / np.sqrt(len(products) or 1):
        return []
    if tau_s >= DRIFT_S:
        return [Disturbance("drift", f"it wanders smoothly over times from {tau_s:.3g} s on, as with temperature")]
    text = f"it moves smoothly, by {float(np.ptp(means[np.isfinite(means)])):.3g} {unit} in all"
    return [Disturbance("motion", f"{text}; neighbouring steps over {tau_s:.3g} s correlate by {correlation:.2f}")]


def _find_vibration(values: Array, interval_s: float, unit: str) -> list[Disturbance]:
    """Returns the strongest line of the spectrum, where one stands out from the frequencies around it."""
    known = np.isfinite(values)
    count = int(known.sum())
    if count < 4 * NUM_NEIGHBOURS:
        return []
    level = np.where(known, values - values[known].mean(), 0.0) * np.hanning(len(values))  # or drift leaks everywhere
    power = np.abs(np.fft.rfft(level)) ** 2
    usual = median_filter(power, NUM_NEIGHBOURS, mode="reflect") / np.log(2)
    ratio = power[NUM_SKIPPED:] / np.maximum(usual[NUM_SKIPPED:], 1e-300)
    place = int(np.argmax(ratio))
    if ratio[place] < np.log(len(ratio) / MAX_FALSE_ALARM):
        return []
    amplitude = 4 * float(np.sqrt(power[NUM_SKIPPED + place])) / count  # the window halves it
    frequency = (NUM_SKIPPED + place) / (len(values) * interval_s)
    text = f"it vibrates at {frequency:.4g} Hz with an amplitude of {amplitude:.2g} {unit}"
    return [Disturbance("vibration", text, amplitude)]
