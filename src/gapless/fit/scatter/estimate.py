"""One knob of chance at a time: simulated with many draws over its range, and matched to the logs.

Each log is simulated as a whole, from its first state and with its commands, under many draws, each with a value of
its own for the knob. What a prediction with median draws leaves of them has statistics, and `invert` tells which values
the logs' own statistics allow. Where that is a small part of the range, it is simulated again with values in that part.
The robot knows no time step: what its logs leave is told by a prediction with a finer one.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.results import FittedParameter
from gapless.core.signal import Array
from gapless.fit.prediction.predict import Predictor, play_windows
from gapless.fit.prediction.windows import cut_windows
from gapless.fit.scatter.invert import LEVEL, Told, invert
from gapless.fit.scatter.statistics import statistics_of
from gapless.signals.track import Track, subtract_readings
from gapless.sim.blueprint import CompiledProject, with_finer_step
from gapless.sim.measurements import StateReader
from gapless.sim.simulation import Simulation

NUM_RUNS = 384  # of each log, in each round
MOST_ROUNDS = 3
SMALLER = 0.7  # another round, if the values that are left are a smaller part than this
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
    blueprint: CompiledProject,
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

    def __init__(self, blueprint: CompiledProject, tracks: tuple[Track, ...], space: ParameterSpace, seed: int) -> None:
        self._blueprint, self._space, self._seed = blueprint, space, seed
        self._windows = cut_windows(blueprint.project, tracks, 0.0)
        self._states = StateReader.of(blueprint.project, blueprint.model)
        self._predictor = Predictor(blueprint, space)
        self._finer = Predictor(with_finer_step(blueprint, FINER), space)
        self._tiny = 1e-6 * np.maximum(np.nanstd(self._windows.measured, axis=(0, 1)), 1e-9)
        self._worlds: dict[int, Simulation] = {}

    def match(self, values: Array, column: int) -> Estimate:
        """Returns one knob, the others at their values."""
        parameter = self._space.parameters[column]
        quiet = values.copy()
        quiet[column] = parameter.nominal
        expected = self._predictor.predict(self._windows, quiet[None])[0]
        seen = self._statistics(self._windows.measured[None], self._finer.predict(self._windows, quiet[None])[0])[0]
        rng, left, right = np.random.default_rng([self._seed, 7]), 0.0, 1.0
        unit, statistics = np.zeros(0), np.zeros((0, len(seen)))
        for _ in range(MOST_ROUNDS):
            more = left + (right - left) * (np.arange(NUM_RUNS) + rng.uniform(size=NUM_RUNS)) / NUM_RUNS
            more[0], more[-1] = left, right
            near = (unit >= left) & (unit <= right)
            unit = np.concatenate([unit[near], more])
            statistics = np.concatenate([statistics[near], self._simulated(values, column, more, expected, rng)])
            told = invert(unit, statistics, seen)
            if told.right - told.left > SMALLER * (right - left):
                break
            left, right = told.left, told.right
        return _estimate(parameter, told, len(seen))

    def _simulated(self, values: Array, column: int, unit: Array, expected: Array, rng: np.random.Generator) -> Array:
        """Returns statistics of simulated runs, (num_runs, num_statistics)."""
        rows = np.tile(values, (len(unit), 1))
        rows[:, column] = [_value(self._space.parameters[column], one) for one in unit]
        most = max(1, MOST_WORLDS // len(self._windows))
        per_call = -(-len(rows) // -(-len(rows) // most))
        parts = [self._drawn(rows[first : first + per_call], expected, rng) for first in range(0, len(rows), per_call)]
        return np.concatenate(parts)

    def _drawn(self, rows: Array, expected: Array, rng: np.random.Generator) -> Array:
        num_logs = len(self._windows)
        log = np.tile(np.arange(num_logs), len(rows))
        world = self._world(len(log))
        world.set_parameters(np.repeat(rows, num_logs, axis=0))
        identity = rng.integers(1 << 63, size=len(log), dtype=np.uint64)
        shown = play_windows(world, self._states, self._windows.pick(log), identity)
        shown = shown.reshape(len(rows), num_logs, *expected.shape[1:])
        return self._statistics(np.where(np.isfinite(self._windows.measured), shown, np.nan), expected)

    def _world(self, num_worlds: int) -> Simulation:
        if num_worlds not in self._worlds:
            self._worlds[num_worlds] = Simulation(self._blueprint, num_worlds, self._space, noisy=True)
        return self._worlds[num_worlds]

    def _statistics(self, reading: Array, expected: Array) -> Array:
        left = subtract_readings(self._blueprint.project, reading, expected[None])
        begin = min(round(START_S * self._blueprint.project.rate_hz), left.shape[2] // 4) + 1
        return statistics_of(left[:, :, begin:], reading[:, :, begin:], self._tiny)


def _estimate(parameter: Parameter, told: Told, count: int) -> Estimate:
    value, bottom, top = (float(_value(parameter, unit)) for unit in (told.value, told.low, told.high))
    found = FittedParameter(
        *(parameter.target, parameter.dimension, parameter.unit, parameter.nominal, value, bottom, top, LEVEL),
        identifiable=told.high - told.low < DETERMINED,
        at_bound=told.value > 0.99,
        prior_low=parameter.low,
        prior_high=parameter.high,
    )
    return Estimate(found, told.distance < float(chi2.isf(UNLIKELY, count)))


def _value(parameter: Parameter, unit: float) -> float:
    """Returns the value at a share of the way from low to high: by factors, by squares from 0, or by amounts."""
    low, high = parameter.low, parameter.high
    if low > 0 and high / low > BY_FACTORS:
        return low * (high / low) ** unit
    return low + (high - low) * (unit**2 if low == 0 else unit)
