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
    soft: Array  # (num_parameters,) steps are amounts up to this above `low`, factors beyond; infinite: amounts only

    @classmethod
    def of(cls, space: ParameterSpace) -> "Scaling":
        """Returns the scaling that suits each parameter's bounds and nominal value."""
        return cls(space.low, space.high, np.array([_soft(p) for p in space.parameters]))

    def unit(self, values: Array) -> Array:
        """Returns (..., num_parameters) values as numbers in [0, 1]."""
        above = np.maximum(values - self.low, 0.0) / self.soft
        in_factors = np.log1p(above) / np.log1p(np.where(self._ratio > 0, self._ratio, 1.0))
        return np.where(self._ratio > 0, in_factors, (values - self.low) / (self.high - self.low))

    def values(self, unit: Array) -> Array:
        """Returns (..., num_parameters) numbers in [0, 1] as values."""
        above = self._finite_soft * np.expm1(unit * np.log1p(self._ratio))
        return self.low + np.where(self._ratio > 0, above, unit * (self.high - self.low))

    def slope(self, unit: Array) -> Array:
        """Returns how fast values change with `unit`, (..., num_parameters)."""
        rate = np.log1p(self._ratio)
        return np.where(self._ratio > 0, self._finite_soft * rate * np.exp(unit * rate), self.high - self.low)

    @property
    def _ratio(self) -> Array:
        return (self.high - self.low) / self.soft

    @property
    def _finite_soft(self) -> Array:
        return np.where(self._ratio > 0, self.soft, 1.0)


def _soft(parameter: Parameter) -> float:
    if parameter.low > 0 and parameter.high / parameter.low > MIN_RATIO_FOR_FACTORS:
        return parameter.low
    if parameter.low == 0 and parameter.target.endswith(("/lag", "/stiffness", "/backlash")):
        return parameter.high / 4  # one that is there is far from none: by factors it would take many steps
    if parameter.low == 0:
        return min(max(parameter.nominal, parameter.high / 100), parameter.high / 4)
    return float("inf")
