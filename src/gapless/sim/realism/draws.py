"""Random numbers that each world owns: a pure function of (seed, stream, world, step, column).

A generator gives a world other numbers when the batch around it changes. Here each number is hashed from where it
belongs, so a batch of one draws what its row draws in a batch of thousands, in any order, and a whole batch is one
vectorised call. The hash is the finaliser of SplitMix64 (Steele, Lea, Flood 2014) over nested counters.
"""

import zlib
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gapless.core.errors import InputError
from gapless.core.signal import Array

_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio, odd: the step of SplitMix64
_MASK = (1 << 64) - 1
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_BY_30, _BY_27, _BY_31, _BY_32, _BY_11 = (np.uint64(shift) for shift in (30, 27, 31, 32, 11))
_LOW_BITS = np.uint64(0xFFFFFFFF)

Bits = NDArray[np.uint64]


@dataclass(frozen=True)
class Draws:
    """Where the random numbers of a batch come from; immutable: the same call gives the same numbers."""

    seed: int  # another seed, other numbers
    worlds: Bits  # (num_worlds,) the identity of each row, uint64; not its place in the batch
    step: int = 0  # how many steps were taken; whoever steps the worlds counts
    median: bool = False  # whether every number is the median of what it could be, 0.5 or 0: for predictions

    def __post_init__(self) -> None:
        """Refuses worlds that numpy would turn into floating-point numbers."""
        if self.worlds.dtype != np.uint64 or self.worlds.ndim != 1:
            raise InputError(f"give one row of uint64 as worlds, found {self.worlds.dtype} of {self.worlds.shape}")

    def at(self, step: int) -> "Draws":
        """Returns the draws of another step."""
        return type(self)(self.seed, self.worlds, step, self.median)

    def named(self, name: str) -> "Draws":
        """Returns draws of their own for one use of a layer that is used several times, such as `left arm`."""
        return type(self)(_key(self.seed, name), self.worlds, self.step, self.median)

    def rows(self, ids: NDArray[np.intp]) -> "Draws":
        """Returns the draws of some worlds."""
        return replace(self, worlds=self.worlds[ids])

    def uniform(self, stream: str, columns: int | NDArray[np.int64]) -> Array:
        """Returns numbers in [0, 1) for a purpose, `stream`: (num_worlds, columns) or in the shape of `columns`.

        `columns` is how many per world, or a counter for each, (num_worlds or 1, ...): equal counters, equal numbers.
        """
        if self.median:
            return np.full(self._shape(columns), 0.5)
        return (self._bits(stream, columns) >> _BY_11).astype(np.float64) * 2.0**-53

    def normal(self, stream: str, columns: int | NDArray[np.int64]) -> Array:
        """Returns standard normal numbers, within 6.7: Box and Muller 1958, 32 bits each; see `uniform`."""
        if self.median:
            return np.zeros(self._shape(columns))
        bits = self._bits(stream, columns)
        radius = (bits >> _BY_32).astype(np.float64)
        radius += 0.5
        radius *= 2.0**-32
        np.log(radius, out=radius)
        radius *= -2.0
        np.sqrt(radius, out=radius)
        angle = (bits & _LOW_BITS).astype(np.float64)
        angle *= 2.0 * np.pi * 2.0**-32
        return radius * np.cos(angle, out=angle)

    def _shape(self, columns: int | NDArray[np.int64]) -> tuple[int, ...]:
        return (len(self.worlds), *((columns,) if isinstance(columns, int) else columns.shape[1:]))

    def _bits(self, stream: str, columns: int | NDArray[np.int64]) -> Bits:
        key = np.uint64(_key(self.seed, stream))
        of_world = _mix(_mix(self.worlds + key) + np.uint64(self.step * _GOLDEN & _MASK))
        counters = np.arange(columns)[None] if isinstance(columns, int) else columns
        spread = counters.astype(np.int64).view(np.uint64) * np.uint64(_GOLDEN)
        return _mix(of_world.reshape(-1, *[1] * (counters.ndim - 1)) + spread)


def draws_from(rng: np.random.Generator, num_worlds: int) -> Draws:
    """Returns the draws of worlds 0, 1, ..., seeded by a generator."""
    return Draws(int(rng.integers(1 << 63)), np.arange(num_worlds, dtype=np.uint64))


@lru_cache(maxsize=4096)
def _key(seed: int, name: str) -> int:
    """Returns 64 bits that depend on a seed and a name."""
    word = np.array([(seed + (zlib.crc32(name.encode()) + 1) * _GOLDEN) & _MASK], dtype=np.uint64)
    return int(_mix(word)[0])


def _mix(bits: Bits) -> Bits:
    """Returns 64 bits each of which depends on all 64 of the argument (which is overwritten)."""
    bits ^= bits >> _BY_30
    bits *= _FIRST
    bits ^= bits >> _BY_27
    bits *= _SECOND
    bits ^= bits >> _BY_31
    return bits
