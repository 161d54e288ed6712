"""Parameters as numbers in [0, 1] that a solver can step in evenly.

A gain that may be ten times too small or too large is stepped in by factors; a friction that may be nothing or much is
stepped in by amounts near nothing and by factors far from it; an offset by amounts.
"""

from dataclasses import dataclass

import numpy as np

from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.signal import Array

MIN_RATIO_FOR_FACTORS = 8.0  # bounds further apart than this factor are stepped in by factors


@dataclass(frozen=True)
class Scaling:
    """Maps parameters to [0, 1] and back: u = log(1 + (v - low) / soft) / log(1 + (high - low) / soft)."""

    low: Array  # (num_parameters,) value at 0
    high: Array  # (num_parameters,) value at 1
    # (num_parameters,) below this above `low` steps are amounts, above it factors; infinite for amounts only
    soft: Array

    @classmethod
    def of(cls, space: ParameterSpace) -> "Scaling":
        """Returns the scaling that suits each parameter's bounds and nominal value."""
        return cls(space.low, space.high, np.array([_soft(p) for p in space.parameters]))

    def unit(self, values: Array) -> Array:
        """Returns (..., num_parameters) values as numbers in [0, 1]."""
        linear = (values - self.low) / (self.high - self.low)
        ratio = (self.high - self.low) / self.soft
        above = np.maximum(values - self.low, 0.0) / self.soft
        return np.where(ratio > 0, np.log1p(above) / np.log1p(np.where(ratio > 0, ratio, 1.0)), linear)

    def values(self, unit: Array) -> Array:
        """Returns (..., num_parameters) numbers in [0, 1] as values."""
        ratio = (self.high - self.low) / self.soft
        soft = np.where(ratio > 0, self.soft, 1.0)
        return self.low + np.where(ratio > 0, soft * np.expm1(unit * np.log1p(ratio)), unit * (self.high - self.low))

    def slope(self, unit: Array) -> Array:
        """Returns how fast values change with `unit`, (..., num_parameters)."""
        ratio = (self.high - self.low) / self.soft
        soft = np.where(ratio > 0, self.soft, 1.0)
        rate = np.log1p(ratio)
        return np.where(ratio > 0, soft * rate * np.exp(unit * rate), self.high - self.low)


def _soft(parameter: Parameter) -> float:
    if parameter.low > 0 and parameter.high / parameter.low > MIN_RATIO_FOR_FACTORS:
        return parameter.low
    if parameter.low == 0 and parameter.target.endswith(("/lag", "/stiffness", "/backlash")):
        return parameter.high / 4  # one that is there is far from none: by factors it would take many steps
    if parameter.low == 0:
        return min(max(parameter.nominal, parameter.high / 100), parameter.high / 4)
    return float("inf")
