"""Whether a column is at rest: jumps, smooth motion and vibration are no sensor noise."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.ndimage import median_filter

from gapless.core.signal import Array, Flags

JUMP = 8.0  # robust standard deviations of the differences of neighbouring averages
SMOOTHEST = 0.25  # correlation of neighbouring differences in a random walk; all other noise has less
SURE = 4.0  # standard errors
FEWEST = 40  # averages to judge by
ONE_SIGMA = 68.27  # percentile of distances that is one standard deviation of normal ones
AFTER_S = 1.0  # how long a knock may ring
SLOW_S = 10.0  # what is smooth only over longer times is drift, as with temperature, not motion
AROUND = 401  # frequencies about each for its median
SKIPPED = 200  # lowest frequencies, where drift stands higher than that median says
CHANCE = 1e-6  # of taking noise for a line


@dataclass(frozen=True)
class Unrest:
    """Something in a column that is no noise.

    Attributes:
        kind: `motion`, `drift` or `vibration`.
        text: What was seen.
        amplitude: Of a vibration, in the column's unit; else 0.
    """

    kind: Literal["motion", "drift", "vibration"]
    text: str
    amplitude: float = 0.0


def knocked(values: Array, interval_s: float, quantum: float) -> Flags:
    """Returns the samples within `AFTER_S` of a knock: a jump of averages of less than `SLOW_S`.

    Args:
        values: (num_samples,) NaN where one is missing.
        interval_s: Time between samples [s].
        quantum: Step of the values; 0 for none.
    """
    found = np.zeros(len(values), dtype=np.bool_)
    size = 1
    while len(values) >= FEWEST * size and size * interval_s < SLOW_S:
        steps = np.diff(_averages(np.where(found, np.nan, values), size))
        for place in np.flatnonzero(_is_jump(steps, quantum / np.sqrt(size))):
            at, reach = (place + 1) * size, size + round(AFTER_S / interval_s)
            found[max(0, at - reach) : at + reach] = True
        size *= 2
    return found


def unrest(values: Array, interval_s: float, quantum: float, unit: str) -> list[Unrest]:
    """Returns what shows that a column is not at rest; nothing where it may be.

    At every averaging time neighbouring averages are compared. A difference far beyond the usual is a jump. The
    correlation of neighbouring differences is at most 1/4 for any sum of quantisation, white, flicker and random walk
    noise (1/4 for averages of a random walk), and near 1 for smooth motion. A line in the spectrum is a vibration.

    Args:
        values: (num_samples,) NaN where one is missing.
        interval_s: Time between samples [s].
        quantum: Step of the values; 0 for none.
        unit: Unit of the values.
    """
    found: list[Unrest] = []
    size = 1
    while len(values) >= FEWEST * size and not found:
        found = _at(_averages(values, size), size, interval_s, quantum / np.sqrt(size), unit)
        size *= 2
    return found + _lines(values, interval_s, unit)


def _averages(values: Array, size: int) -> Array:
    """Returns the averages of so many samples each, NaN where fewer than half of them are there."""
    rows = values[: len(values) // size * size].reshape(-1, size)
    known = np.isfinite(rows)
    count = known.sum(axis=1)
    return np.where(2 * count >= size, np.where(known, rows, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)


def _is_jump(steps: Array, least: float) -> Flags:
    known = steps[np.isfinite(steps)]
    if len(known) < FEWEST:
        return np.zeros(len(steps), dtype=np.bool_)
    away = np.abs(steps - np.median(known))
    spread = max(float(np.percentile(np.abs(known - np.median(known)), ONE_SIGMA)), least)
    return (away > JUMP * spread) & (spread > 0)


def _at(means: Array, size: int, interval_s: float, least: float, unit: str) -> list[Unrest]:
    steps = np.diff(means)
    known = steps[np.isfinite(steps)]
    if len(known) < FEWEST:
        return []
    if _is_jump(steps, least).any():
        worst = int(np.nanargmax(np.abs(steps - np.median(known))))
        at_s = (worst + 1) * size * interval_s
        if size * interval_s >= SLOW_S:
            text = f"its level shifts by {steps[worst]:.3g} {unit} about {at_s:.4g} s"
            return [Unrest("drift", f"{text}: bias instability and random walk hold with that: was it tilted?")]
        return [Unrest("motion", f"it jumps by {steps[worst]:.3g} {unit} at {at_s:.4g} s")]
    products = (steps[1:] - known.mean()) * (steps[:-1] - known.mean())
    products, power = products[np.isfinite(products)], float(np.var(known))
    smooth = float(products.mean()) / power if len(products) and power > 0 else 0.0
    if smooth < SMOOTHEST + SURE / np.sqrt(len(products) or 1):
        return []
    tau_s = size * interval_s
    if tau_s >= SLOW_S:
        return [Unrest("drift", f"it wanders smoothly over times from {tau_s:.3g} s on, as with temperature")]
    text = f"it moves smoothly, by {float(np.ptp(means[np.isfinite(means)])):.3g} {unit} in all"
    return [Unrest("motion", f"{text}; neighbouring steps over {tau_s:.3g} s correlate by {smooth:.2f}")]


def _lines(values: Array, interval_s: float, unit: str) -> list[Unrest]:
    """Returns the strongest line of the spectrum, where one stands out from the frequencies around it."""
    known = np.isfinite(values)
    count = int(known.sum())
    if count < 4 * AROUND:
        return []
    level = np.where(known, values - values[known].mean(), 0.0) * np.hanning(len(values))  # or drift leaks everywhere
    power = np.abs(np.fft.rfft(level)) ** 2
    usual = median_filter(power, AROUND, mode="reflect") / np.log(2)
    ratio = power[SKIPPED:] / np.maximum(usual[SKIPPED:], 1e-300)
    place = int(np.argmax(ratio))
    if ratio[place] < np.log(len(ratio) / CHANCE):
        return []
    amplitude = 4 * float(np.sqrt(power[SKIPPED + place])) / count  # the window halves it
    frequency = (SKIPPED + place) / (len(values) * interval_s)
    text = f"it vibrates at {frequency:.4g} Hz with an amplitude of {amplitude:.2g} {unit}"
    return [Unrest("vibration", text, amplitude)]
