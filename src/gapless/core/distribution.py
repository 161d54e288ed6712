"""Distributions over rows of parameters: what to train on."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gapless.core.errors import InputError
from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array

Kind = Literal["fixed", "uniform", "normal"]


@dataclass(frozen=True)
class Range:
    """How one parameter varies.

    Attributes:
        target: The parameter's target.
        kind: `fixed` at `mean`, `uniform` on [low, high], or `normal` truncated to [low, high].
        low: Smallest value drawn.
        high: Largest value drawn.
        mean: Centre of `normal`, the value of `fixed`; the middle for `uniform`.
        std: Standard deviation of `normal` before truncation; 0 otherwise.
        reason: Why this range, for the reader.
    """

    target: str
    kind: Kind
    low: float
    high: float
    mean: float
    std: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class Distribution:
    """Independent ranges for some parameters of a space; the others stay nominal."""

    space: ParameterSpace
    ranges: tuple[Range, ...]

    def __post_init__(self) -> None:
        """Refuses ranges for parameters that the space does not have."""
        for item in self.ranges:
            self.space.index(item.target)
            if not item.low <= item.mean <= item.high:
                raise InputError(f"{item.target}: {item.mean:g} is outside [{item.low:g}, {item.high:g}]")

    def sample(self, rng: np.random.Generator, num_worlds: int) -> Array:
        """Draws rows, (num_worlds, num_parameters), each column in its parameter's unit."""
        rows = np.tile(self.space.nominal, (num_worlds, 1))
        for item in self.ranges:
            rows[:, self.space.index(item.target)] = _draw(item, rng, num_worlds)
        return rows


def nominal_only(space: ParameterSpace) -> Distribution:
    """Returns the distribution that always draws the model as it was written."""
    return Distribution(space, ())


def wide(space: ParameterSpace) -> Distribution:
    """Returns plain wide randomisation: every parameter uniform over its whole range."""
    return Distribution(
        space,
        tuple(
            Range(p.target, "uniform", p.low, p.high, (p.low + p.high) / 2, reason="whole prior range")
            for p in space.parameters
        ),
    )


def _draw(item: Range, rng: np.random.Generator, count: int) -> Array:
    if item.kind == "fixed":
        return np.full(count, item.mean)
    if item.kind == "uniform":
        return rng.uniform(item.low, item.high, count)
    values = rng.normal(item.mean, item.std, count)
    for _ in range(100):
        outside = (values < item.low) | (values > item.high)
        if not outside.any():
            break
        values[outside] = rng.normal(item.mean, item.std, int(outside.sum()))
    return np.clip(values, item.low, item.high)
