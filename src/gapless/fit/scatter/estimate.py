"""One parameter of noise or chance at a time: simulated with many draws over its range, and matched to the logs.

Each log is simulated as a whole, from its first state and with its commands, under many draws, each with a value of
its own for the parameter. What a prediction with median draws leaves of them has statistics, and `invert` says which
values the logs' own statistics allow. Where that is a small part of the range, it is simulated again with values in
that part. What real logs leave is measured against a prediction with a finer time step: robots have no time-step error.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.results import FittedParameter
from gapless.core.signal import Array
from gapless.fit.prediction.predict import MAX_WORLDS, Predictor, play_windows
from gapless.fit.prediction.windows import cut_windows
from gapless.fit.scatter.invert import LEVEL, ValueRange, invert
from gapless.fit.scatter.statistics import statistics_of
from gapless.fit.time_step import FINER
from gapless.signals.track import Track, subtract_readings
from gapless.sim.blueprint import CompiledProject, with_finer_step
from gapless.sim.measurements import StateReader
from gapless.sim.simulation import Simulation

NUM_RUNS = 384  # of each log, in each round
MAX_ROUNDS = 3
MAX_PART_LEFT = 0.7  # of the range: another round, if the values that are left are a smaller part
MIN_RATIO_FOR_FACTORS = 8.0  # bounds further apart than this are stepped in by factors
MAX_IDENTIFIABLE_WIDTH = 0.4  # of an interval, as a share of the range
MIN_P_VALUE = 1e-3  # of the logs under the best value: below, something else is there too
START_S = 0.5  # left out at the start of a log, where the error of the start state shows [s]


@dataclass(frozen=True)
class ScatterEstimate:
    """A parameter estimated from how runs scatter."""

    parameter: FittedParameter  # the value with its interval
    explains_logs: bool  # whether with this value the logs look as simulated runs do


def estimate_from_scatter(
    blueprint: CompiledProject,
    tracks: tuple[Track, ...],
    known: ParameterSpace,
    row: Array,
    chance: ParameterSpace,
    seed: int = 0,
) -> tuple[ScatterEstimate, ...]:
    """Returns parameters of chance, one after the other, the others as found so far; twice if there are several.

    Args:
        blueprint: The compiled project.
        tracks: The logs; each is simulated as a whole, so that predictions must hold over their length.
        known: Parameters with a value, such as those that a fit has found.
        row: (num_known,) their values.
        chance: The parameters to estimate.
        seed: Of the draws.
    """
    space = ParameterSpace((*known.parameters, *chance.parameters))
    values = np.concatenate([row, chance.nominal])
    if not len(chance):
        return ()
    matcher = _Matcher(blueprint, tracks, space, seed)
    found: dict[int, ScatterEstimate] = {}
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

    def match(self, values: Array, column: int) -> ScatterEstimate:
        """Returns one parameter, the others at their values."""
        parameter = self._space.parameters[column]
        quiet = values.copy()
        quiet[column] = parameter.nominal
        expected = self._predictor.predict(self._windows, quiet[None])[0]
        seen = self._statistics(self._windows.measured[None], self._finer.predict(self._windows, quiet[None])[0])[0]
        rng, left, right = np.random.default_rng([self._seed, 7]), 0.0, 1.0
        unit, statistics = np.zeros(0), np.zeros((0, len(seen)))
        found: ValueRange | None = None
        for _ in range(MAX_ROUNDS):
            more = left + (right - left) * (np.arange(NUM_RUNS) + rng.uniform(size=NUM_RUNS)) / NUM_RUNS
            more[0], more[-1] = left, right
            near = (unit >= left) & (unit <= right)
            unit = np.concatenate([unit[near], more])
            statistics = np.concatenate(
                [statistics[near], self._simulate_statistics(values, column, more, expected, rng)]
            )
            found = invert(unit, statistics, seen)
            if found.right - found.left > MAX_PART_LEFT * (right - left):
                break
            left, right = found.left, found.right
        assert found is not None  # there is a round at least
        return _describe(parameter, found, len(seen))

    def _simulate_statistics(
        self, values: Array, column: int, unit: Array, expected: Array, rng: np.random.Generator
    ) -> Array:
        """Returns statistics of simulated runs, (num_runs, num_statistics)."""
        rows = np.tile(values, (len(unit), 1))
        rows[:, column] = [_value(self._space.parameters[column], one) for one in unit]
        most = max(1, MAX_WORLDS // len(self._windows))
        per_call = -(-len(rows) // -(-len(rows) // most))
        parts = [
            self._simulate_runs(rows[first : first + per_call], expected, rng)
            for first in range(0, len(rows), per_call)
        ]
        return np.concatenate(parts)

    def _simulate_runs(self, rows: Array, expected: Array, rng: np.random.Generator) -> Array:
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


def _describe(parameter: Parameter, found: ValueRange, num_statistics: int) -> ScatterEstimate:
    value, low, high = (float(_value(parameter, unit)) for unit in (found.value, found.low, found.high))
    fitted = FittedParameter(
        *(parameter.target, parameter.dimension, parameter.unit, parameter.nominal, value, low, high, LEVEL),
        identifiable=found.high - found.low < MAX_IDENTIFIABLE_WIDTH,
        at_bound=found.value > 0.99,
        prior_low=parameter.low,
        prior_high=parameter.high,
    )
    return ScatterEstimate(fitted, found.distance < float(chi2.isf(MIN_P_VALUE, num_statistics)))


def _value(parameter: Parameter, unit: float) -> float:
    """Returns the value at a share of the way from low to high: by factors, by squares from 0, or by amounts."""
    low, high = parameter.low, parameter.high
    if low > 0 and high / low > MIN_RATIO_FOR_FACTORS:
        return low * (high / low) ** unit
    return low + (high - low) * (unit**2 if low == 0 else unit)
