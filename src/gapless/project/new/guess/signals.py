"""What recorded signals do: which move together, which is the derivative of another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gapless.core.signal import Array

MIN_SAMPLES = 20  # fewer say nothing


@dataclass(frozen=True)
class Signals:
    """Signals of one episode, and how far each goes in all of them.

    Attributes:
        times_s: (num_samples,) [s].
        columns: As recorded.
        peaks: Largest finite magnitude of each column, in any log.
    """

    times_s: Array
    columns: Mapping[str, Array]
    peaks: Mapping[str, float]

    def correlation(self, column: str, other: str) -> float:
        """Returns how much two columns move together, in [-1, 1]; 0 where that cannot be said."""
        return _correlation(self._filled(column), self._filled(other))

    def slope(self, velocity: str, position: str) -> tuple[float, float]:
        """Returns correlation and slope [1] of a column on the derivative of another; zeros if unknown."""
        rate, speed = self.derivative(position), self._filled(velocity)
        if rate is None or speed is None:
            return 0.0, 0.0
        together = _correlation(speed, rate)
        return together, together * float(np.std(speed) / np.std(rate)) if together else 0.0

    def is_counter(self, column: str) -> bool:
        """Returns whether a column rises with every sample, as clocks and row numbers do and commands do not."""
        values = self.columns[column][np.isfinite(self.columns[column])]
        return len(values) > 2 and bool(np.all(np.diff(values) > 0))

    def derivative(self, column: str) -> Array | None:
        """Returns the derivative of a column by its time, smoothed over five samples."""
        values = self._filled(column)
        if values is None:
            return None
        times_s = np.where(np.isfinite(self.times_s), self.times_s, np.interp(*_gaps(self.times_s)))
        spread_s, spread = times_s[4:] - times_s[:-4], values[4:] - values[:-4]
        inner = np.divide(spread, spread_s, out=np.zeros_like(spread), where=spread_s > 0)
        return np.pad(inner, 2, mode="edge")

    def _filled(self, column: str) -> Array | None:
        """Returns a column with its gaps filled in between; None where too little is there or nothing moves."""
        values = self.columns[column]
        there = np.isfinite(values)
        if there.sum() < MIN_SAMPLES or np.ptp(values[there]) == 0:
            return None
        return np.interp(*_gaps(values))


def pool_signals(episodes: Sequence[tuple[Array, Mapping[str, Array]]]) -> Signals:
    """Returns the signals of the longest episode, with the peaks of all that have the same columns."""
    first = episodes[0][1]
    alike = [episode for episode in episodes if first.keys() <= episode[1].keys()]
    times_s, columns = max(alike, key=lambda episode: len(episode[0]))
    peaks = {name: max(_peak(episode[1][name]) for episode in alike) for name in first}
    return Signals(times_s, {name: columns[name] for name in first}, peaks)


def _peak(values: Array) -> float:
    return float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))


def _gaps(values: Array) -> tuple[Array, Array, Array]:
    """Returns arguments of `numpy.interp` that fill the gaps of some values."""
    there = np.flatnonzero(np.isfinite(values))
    return np.arange(len(values), dtype=float), there.astype(float), values[there]


def _correlation(values: Array | None, others: Array | None) -> float:
    if values is None or others is None or np.std(values) == 0 or np.std(others) == 0:
        return 0.0
    return float(np.corrcoef(values, others)[0, 1])
