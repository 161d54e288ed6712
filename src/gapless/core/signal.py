"""Time series with units."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class TimeSeries:
    """Named signals over common times."""

    times_s: Array  # (num_samples,) [s], strictly increasing
    values: Array  # (num_samples, num_columns), each column in its unit; NaN where nothing was recorded
    names: tuple[str, ...]  # one name per column
    units: tuple[str, ...]  # one unit per column, `1` where dimensionless

    def __post_init__(self) -> None:
        """Refuses shapes that do not belong together and time that does not move forward."""
        if self.times_s.ndim != 1 or self.values.shape != (len(self.times_s), len(self.names)):
            wanted = f"({len(self.times_s)}, {len(self.names)}): a row per time stamp, a column per name"
            raise ValueError(f"values have shape {self.values.shape}, give {wanted}")
        if len(self.units) != len(self.names):
            raise ValueError(f"{len(self.units)} units for {len(self.names)} columns: give one per column")
        if np.any(np.diff(self.times_s) <= 0):
            raise ValueError("time stamps do not increase: sort the rows and delete repeated ones")

    @property
    def duration_s(self) -> float:
        """Time from the first to the last sample [s]."""
        return float(self.times_s[-1] - self.times_s[0]) if len(self.times_s) else 0.0

    def column(self, name: str) -> Array:
        """Returns one column, (num_samples,)."""
        return self.values[:, self.names.index(name)]

    def equals(self, other: "TimeSeries") -> bool:
        """Returns whether both hold the same numbers, names and units (NaN equals NaN)."""
        same = np.array_equal(self.times_s, other.times_s) and self.names == other.names and self.units == other.units
        return same and np.array_equal(self.values, other.values, equal_nan=True)
