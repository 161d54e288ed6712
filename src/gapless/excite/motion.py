"""Motions: finite Fourier series that begin and end at rest, within the reach of each command."""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from gapless.core.signal import Array

NUM_WAVES = 4  # sines per command
SLOWEST_HZ, FASTEST_HZ = 0.1, 4.0
SAMPLES_PER_WAVE = 10  # a sine needs at least as many control intervals
REST_S = 0.3  # held still before and after: what a delay still holds must be known
RAMP_S = 1.0  # growing from rest, and going back to it


@dataclass(frozen=True)
class Channels:
    """What the commands may do, in model units.

    Attributes:
        rest: (num_commands,) command at rest.
        low: (num_commands,) smallest command, at most `rest`.
        high: (num_commands,) largest command, at least `rest`.
        max_rate: (num_commands,) how fast it may change [unit/s]; infinite where that does not matter.
        places: (num_commands,) bool: whether it commands a place, so that the middle of its motion is free to choose.
    """

    rest: Array
    low: Array
    high: Array
    max_rate: Array
    places: NDArray[np.bool_]


@dataclass(frozen=True)
class Motions:
    """Numbers that describe motions, one row each.

    Attributes:
        rate_hz: (num_motions, num_commands, num_waves) frequency of each sine, a multiple of 1 / duration [Hz].
        weight: The same shape: its share [1].
        phase: The same shape [rad].
        size: (num_motions, num_commands) amplitude as a share of half the command's span, in [0, 1].
        middle: (num_motions, num_commands) about what it swings, in [0, 1]: places anywhere in the span, others
            within one amplitude of rest.
        calm: (num_motions, num_commands) factor on the whole deviation from rest, in [0, 1].
    """

    rate_hz: Array
    weight: Array
    phase: Array
    size: Array
    middle: Array
    calm: Array

    def __len__(self) -> int:
        return len(self.size)

    def pick(self, index: NDArray[np.intp]) -> "Motions":
        """Returns some of the motions."""
        return Motions(*(getattr(self, item.name)[index] for item in fields(self)))

    def calmed(self, factor: Array) -> "Motions":
        """Returns the motions with deviations from rest times factors, (num_motions, num_commands) or alike."""
        return replace(self, calm=self.calm * factor)


def joined(first: Motions, second: Motions) -> Motions:
    """Returns the motions of both."""
    parts = (np.concatenate([getattr(first, item.name), getattr(second, item.name)]) for item in fields(first))
    return Motions(*parts)


def draw(channels: Channels, count: int, duration_s: float, rate_hz: float, rng: np.random.Generator) -> Motions:
    """Draws motions of all sizes and speeds, each command with frequencies of its own."""
    shape = (count, len(channels.rest), NUM_WAVES)
    size = np.exp(rng.uniform(np.log(0.03), 0.0, (count, 1))) * rng.uniform(0.5, 1.0, shape[:2])
    middle = np.where(channels.places, rng.uniform(0.0, 1.0, shape[:2]), rng.normal(0.5, 0.1, shape[:2]))
    rates = _rates(rng, shape, duration_s, rate_hz)
    weight = rng.uniform(0.2, 1.0, shape)
    phase = rng.uniform(0, 2 * np.pi, shape)
    return Motions(rates, weight, phase, size, np.clip(middle, 0.0, 1.0), np.ones(shape[:2]))


def vary(parents: Motions, count: int, duration_s: float, rate_hz: float, rng: np.random.Generator) -> Motions:
    """Returns children: each a parent with some commands taken from another, and all numbers moved a little."""
    mother, father = (parents.pick(rng.integers(len(parents), size=count)) for _ in range(2))
    crossed = rng.uniform(size=mother.size.shape) < 0.2

    def mixed(name: str) -> Array:
        own, other = getattr(mother, name), getattr(father, name)
        return np.where(crossed.reshape(crossed.shape + (1,) * (own.ndim - 2)), other, own)

    shape = mother.weight.shape
    step = np.exp(rng.normal(-1.5, 1.0, (count, 1)))  # some children stay near, some go far
    fresh = rng.uniform(size=shape) < 0.15
    return Motions(
        np.where(fresh, _rates(rng, shape, duration_s, rate_hz), mixed("rate_hz")),
        np.clip(mixed("weight") + step[..., None] * rng.normal(0, 0.5, shape), 0.0, 1.5),
        mixed("phase") + step[..., None] * rng.normal(0, 1.5, shape),
        np.clip(mixed("size") * np.exp(step * rng.normal(0, 0.6, shape[:2])), 0.0, 1.0),
        np.clip(mixed("middle") + step * rng.normal(0, 0.3, shape[:2]), 0.0, 1.0),
        np.clip(mixed("calm") * np.exp(0.2 * rng.standard_normal(shape[:2])), 0.0, 1.0),
    )


def _rates(rng: np.random.Generator, shape: tuple[int, ...], duration_s: float, rate_hz: float) -> Array:
    """Draws multiples of 1 / duration, evenly in their logarithm [Hz]."""
    fastest = min(FASTEST_HZ, rate_hz / SAMPLES_PER_WAVE)
    slowest = min(max(SLOWEST_HZ, 1.0 / duration_s), fastest)
    drawn = np.exp(rng.uniform(np.log(slowest), np.log(fastest), shape))
    return np.maximum(1.0, np.round(drawn * duration_s)) / duration_s


def commands(motions: Motions, channels: Channels, duration_s: float, rate_hz: float) -> Array:
    """Returns the commands, (num_motions, num_steps, num_commands), in model units.

    u(t) = rest + g(t) (middle - rest + amplitude * w(t)), where w is the sum of sines scaled to at most 1, and g
    rises smoothly from 0 to 1 and falls again. So every u(t) lies between `low` and `high`; where it changes faster
    than `max_rate`, the whole deviation from rest is scaled down, and `calm` scales it down further.
    """
    times_s = np.arange(round(duration_s * rate_hz)) / rate_hz
    angle = 2 * np.pi * motions.rate_hz[:, None] * times_s[None, :, None, None] + motions.phase[:, None]
    wave = np.sum(motions.weight[:, None] * np.sin(angle), axis=-1)
    wave /= np.maximum(np.max(np.abs(wave), axis=1, keepdims=True), 1e-9)
    half = (channels.high - channels.low) / 2
    amplitude = motions.size * half
    anywhere = channels.low + amplitude + motions.middle * 2 * (half - amplitude)
    near_rest = channels.rest + (2 * motions.middle - 1) * amplitude
    inside = np.clip(near_rest, channels.low + amplitude, channels.high - amplitude)
    middle = np.where(channels.places, anywhere, inside)
    swing = (middle - channels.rest)[:, None] + amplitude[:, None] * wave
    away = _envelope(times_s, duration_s)[:, None] * swing
    fastest = np.max(np.abs(np.diff(away, axis=1)), axis=1, initial=0.0) * rate_hz
    slower = np.minimum(1.0, channels.max_rate / np.maximum(fastest, 1e-12))
    return channels.rest + (slower * motions.calm)[:, None] * away


def rest_of(duration_s: float) -> float:
    """Returns how long a motion rests at each end [s]."""
    return min(REST_S, duration_s / 10)


def _envelope(times_s: Array, duration_s: float) -> Array:
    """Returns 0 at rest, 1 in motion, with half a cosine between, (num_steps,)."""
    ramp_s = min(RAMP_S, duration_s / 5)
    nearest_s = np.minimum(times_s, times_s[-1] - times_s) - rest_of(duration_s)
    return 0.5 - 0.5 * np.cos(np.pi * np.clip(nearest_s / ramp_s, 0.0, 1.0))
