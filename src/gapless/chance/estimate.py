"""One knob of chance at a time: simulated with many draws over its range, and matched to the logs.

Each log is simulated as a whole, from its first state and with its commands, under many draws for each of some values
of the knob; the draws are the same for all values. What a prediction with median draws leaves of them has statistics
that scatter from draw to draw. With mean m(v) and covariance C(v), the logs' own statistics s have the likelihood of a
normal distribution (synthetic likelihood, Wood 2010), whose highest point is the value, and whose drop by 1.92 ends
the interval. The robot knows no time step: what its logs leave is told by a prediction with a finer one.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from gapless.chance.statistics import statistics_of
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.results import FittedParameter
from gapless.core.signal import Array
from gapless.sim.blueprint import Blueprint, finer
from gapless.sim.prediction.predict import Predictor, play_windows
from gapless.sim.prediction.restart import StateReader
from gapless.sim.prediction.windows import cut
from gapless.sim.simulation import Simulation
from gapless.tracks.track import Track, difference

LEVEL = 0.95
NUM_VALUES = 9  # of a knob, in each of two rounds
NUM_RUNS = 32  # draws of each log per value
RESOLUTION = 0.03  # of a statistic: finer than this no simulation is trusted
BY_FACTORS = 8.0  # bounds further apart than this are stepped in by factors
DETERMINED = 0.4  # widest interval, as a share of the range, of a knob that the logs determine
UNLIKELY = 1e-3  # that the right value explains the logs worse than this: then something else is there too
START_S = 0.5  # at the start of a log the error of the state that predictions start from is left out, too [s]
FINER = 8  # how much finer a time step predicts the logs
MOST_WORLDS = 2048  # simulated at once


@dataclass(frozen=True)
class Estimate:
    """A knob of chance as the logs tell it.

    Attributes:
        parameter: The value with its interval.
        explains: Whether with this value the logs look as simulated runs do.
    """

    parameter: FittedParameter
    explains: bool


def estimate(
    blueprint: Blueprint,
    tracks: tuple[Track, ...],
    known: ParameterSpace,
    row: Array,
    chance: ParameterSpace,
    seed: int = 0,
) -> tuple[Estimate, ...]:
    """Returns knobs of chance, one after the other, the others as found so far; twice if there are several.

    Args:
        blueprint: The compiled project.
        tracks: The logs; each is simulated as a whole, so that predictions must hold over their length.
        known: Parameters with a value, such as those that a fit has found.
        row: (num_known,) their values.
        chance: The knobs.
        seed: Of the draws.
    """
    space = ParameterSpace((*known.parameters, *chance.parameters))
    values = np.concatenate([row, chance.nominal])
    if not len(chance):
        return ()
    matcher = _Matcher(blueprint, tracks, space, seed)
    found: dict[int, Estimate] = {}
    for _ in range(1 if len(chance) == 1 else 2):
        for k in range(len(known), len(space)):
            found[k] = matcher.match(values, k)
            values[k] = found[k].parameter.value
    return tuple(found[k] for k in sorted(found))


class _Matcher:
    """Simulates logs under draws and compares statistics."""

    def __init__(self, blueprint: Blueprint, tracks: tuple[Track, ...], space: ParameterSpace, seed: int) -> None:
        self._blueprint, self._space, self._seed = blueprint, space, seed
        self._windows = cut(blueprint.project, tracks, 0.0)
        self._states = StateReader.of(blueprint.project, blueprint.model)
        self._predictor = Predictor(blueprint, space)
        self._finer = Predictor(finer(blueprint, FINER), space)
        self._tiny = 1e-6 * np.maximum(np.nanstd(self._windows.measured, axis=(0, 1)), 1e-9)
        self._worlds: dict[int, Simulation] = {}

    def match(self, values: Array, column: int) -> Estimate:
        """Returns one knob, the others at their values."""
        parameter = self._space.parameters[column]
        quiet = values.copy()
        quiet[column] = parameter.nominal
        expected = self._predictor.predict(self._windows, quiet[None])[0]
        seen = self._statistics(self._windows.measured[None], self._finer.predict(self._windows, quiet[None])[0])[0]
        unit = np.linspace(0.0, 1.0, NUM_VALUES)
        statistics = self._simulated(values, column, unit, expected)
        fine, height, _ = _likelihood(unit, statistics, seen)
        low, high = _interval(fine, height)
        cell = unit[1] - unit[0]
        closer = np.linspace(max(0.0, low - cell / 2), min(1.0, high + cell / 2), NUM_VALUES)
        statistics = self._simulated(values, column, closer, expected)
        fine, height, distance = _likelihood(closer, statistics, seen)
        low, high = _interval(fine, height)
        best = int(np.argmax(height))
        return self._estimate(parameter, float(fine[best]), low, high, float(distance[best]), len(seen))

    def _estimate(
        self, parameter: Parameter, best: float, low: float, high: float, distance: float, count: int
    ) -> Estimate:
        value, bottom, top = (float(_value(parameter, unit)) for unit in (best, low, high))
        found = FittedParameter(
            *(parameter.target, parameter.dimension, parameter.unit, parameter.nominal, value, bottom, top, LEVEL),
            identifiable=high - low < DETERMINED,
            at_bound=best > 0.99,
            prior_low=parameter.low,
            prior_high=parameter.high,
        )
        return Estimate(found, distance < float(chi2.isf(UNLIKELY, count)))

    def _simulated(self, values: Array, column: int, unit: Array, expected: Array) -> Array:
        """Returns statistics of simulated runs, (num_values, num_runs, num_statistics)."""
        num_logs = len(self._windows)
        rows = np.tile(values, (len(unit), 1))
        rows[:, column] = [_value(self._space.parameters[column], one) for one in unit]
        per_call = max(1, MOST_WORLDS // (NUM_RUNS * num_logs))
        parts = [self._drawn(rows[first : first + per_call], expected) for first in range(0, len(rows), per_call)]
        return np.concatenate(parts)

    def _drawn(self, rows: Array, expected: Array) -> Array:
        num_logs, num_values = len(self._windows), len(rows)
        log = np.tile(np.arange(num_logs), num_values * NUM_RUNS)
        count = NUM_RUNS * num_logs
        identity = np.random.default_rng([self._seed, 7]).integers(1 << 63, size=count, dtype=np.uint64)
        world = self._world(len(log))
        world.set_parameters(np.repeat(rows, count, axis=0))
        shown = play_windows(world, self._states, self._windows.pick(log), np.tile(identity, num_values))
        shape = (num_values * NUM_RUNS, num_logs, *expected.shape[1:])
        shown = np.where(np.isfinite(self._windows.measured), shown.reshape(shape), np.nan)
        return self._statistics(shown, expected).reshape(num_values, NUM_RUNS, -1)

    def _world(self, num_worlds: int) -> Simulation:
        if num_worlds not in self._worlds:
            self._worlds[num_worlds] = Simulation(self._blueprint, num_worlds, self._space, noisy=True)
        return self._worlds[num_worlds]

    def _statistics(self, reading: Array, expected: Array) -> Array:
        left = difference(self._blueprint.project, reading, expected[None])
        begin = min(round(START_S * self._blueprint.project.rate_hz), left.shape[2] // 4) + 1
        return statistics_of(left[:, :, begin:], reading[:, :, begin:], self._tiny)


def _value(parameter: Parameter, unit: float) -> float:
    """Returns the value at a share of the way from low to high: by factors, by squares from 0, or by amounts."""
    low, high = parameter.low, parameter.high
    if low > 0 and high / low > BY_FACTORS:
        return low * (high / low) ** unit
    return low + (high - low) * (unit**2 if low == 0 else unit)


def _likelihood(unit: Array, statistics: Array, seen: Array) -> tuple[Array, Array, Array]:
    """Returns shares of the range, the logarithm of their likelihood, and how far the logs are, squared.

    Means and covariances between the values that were simulated follow lines.
    """
    mean = statistics.mean(axis=1)
    spread = statistics - mean[:, None]
    num_runs = statistics.shape[1]
    covariance = np.einsum("vri,vrj->vij", spread, spread) / (num_runs - 1) * (1 + 1 / num_runs)
    covariance += RESOLUTION**2 * np.eye(mean.shape[1])
    fine = np.linspace(unit[0], unit[-1], 40 * (len(unit) - 1) + 1)
    place = np.minimum(np.searchsorted(unit, fine, side="right") - 1, len(unit) - 2)
    share = (fine - unit[place]) / (unit[place + 1] - unit[place])
    centre = mean[place] + share[:, None] * (mean[place + 1] - mean[place])
    matrix = covariance[place] + share[:, None, None] * (covariance[place + 1] - covariance[place])
    off = seen - centre
    distance = np.einsum("vi,vi->v", off, np.linalg.solve(matrix, off[:, :, None])[:, :, 0])
    return fine, -0.5 * (distance + np.linalg.slogdet(matrix)[1]), distance


def _interval(fine: Array, height: Array) -> tuple[float, float]:
    inside = fine[height > height.max() - 0.5 * float(chi2.isf(1 - LEVEL, 1))]
    return float(inside[0]), float(inside[-1])
