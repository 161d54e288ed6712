"""Parameters that show only in how runs scatter, estimated beside those that a fit finds.

Each log is simulated as a whole, from its first state and with its commands, under many draws, each with a value of
its own for the parameter. What a prediction with median draws leaves of them has statistics, and `invert` says which
values the logs' own statistics allow. Where that is a small part of the range, it is simulated again with values in
that part. What real logs leave is measured against a prediction with a finer time step: robots have no time-step error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import median_filter
from scipy.stats import chi2

from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.results import FittedParameter
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.prediction.predict import MAX_WORLDS, Predictor, play_windows
from gapless.fit.prediction.windows import cut_windows
from gapless.fit.scatter.statistics import ValueRange, invert, statistics_of
from gapless.fit.summary import describe_parameter
from gapless.fit.time_step import with_finer_time_step
from gapless.project.log.read import log_paths, read_log
from gapless.signals.smoother import find_quantum
from gapless.signals.track import Track, make_track, subtract_readings
from gapless.sim.blueprint import CompiledProject
from gapless.sim.measurements import StateReader
from gapless.sim.simulation import Simulation
from gapless.sim.targets import resolve

QUANTUM, PERIOD = ("quantisation", "step"), ("slower sensor", "period_s")  # layer and knob; they have no slope
MIN_SPIKE = 10.0  # distance from the median of five neighbours, in multiples of the median distance
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


def split_scatter_parameters(data: ProjectData) -> tuple[ProjectData, ParameterSpace]:
    """Returns the data without parameters that show only in statistics, and those parameters."""
    scatter: list[Parameter] = []
    for parameter in data.space.parameters:
        place = resolve(parameter.target, data.project, data.blueprint.model).knob
        if place and (
            (place.layer.name, place.knob.name) in (QUANTUM, PERIOD) or place.knob.name in place.layer.random
        ):
            scatter.append(parameter)
    others = tuple(p for p in data.space.parameters if p not in scatter)
    return replace(data, space=ParameterSpace(others)), ParameterSpace(tuple(scatter))


def estimate_scatter_parameters(
    data: ProjectData, scatter: ParameterSpace, episodes: Sequence[int], row: Array, seed: int
) -> tuple[ScatterEstimate, ...]:
    """Returns the parameters that show only in statistics: those of rounding first, then the others, one by one.

    Each log is simulated as a whole, so that predictions must hold over its length. The other parameters are those of
    the data, their values `row`.
    """
    if not len(scatter):
        return ()
    tracks = tuple(_read_as_recorded(data, k) for k in episodes)
    found = {p: one for p in scatter.parameters if (one := _estimate_quantum(data, p, tracks))}
    others = [p for p in scatter.parameters if p not in found]
    space = ParameterSpace((*data.whole.parameters, *found, *others))
    values = np.array([*row, *(one.parameter.value for one in found.values()), *(p.nominal for p in others)])
    if not others:
        return tuple(found.values())
    matcher = _Matcher(data.blueprint, tracks, space, seed)
    for _ in range(1 if len(others) == 1 else 2):  # the others as found so far
        for column in range(len(space) - len(others), len(space)):
            estimate = matcher.match(values, column)
            found[space.parameters[column]], values[column] = estimate, estimate.parameter.value
    return tuple(found.values())


class _Matcher:
    """Simulates logs under draws and compares statistics."""

    def __init__(self, blueprint: CompiledProject, tracks: tuple[Track, ...], space: ParameterSpace, seed: int) -> None:
        self._blueprint, self._space, self._seed = blueprint, space, seed
        self._windows = cut_windows(blueprint.project, tracks, 0.0)
        self._states = StateReader.of(blueprint.project, blueprint.model)
        self._predictor = Predictor(blueprint, space)
        self._finer = with_finer_time_step(self._predictor)
        self._tiny = 1e-6 * np.maximum(np.nanstd(self._windows.measured, axis=(0, 1)), 1e-9)
        self._worlds: dict[int, Simulation] = {}

    def match(self, values: Array, column: int) -> ScatterEstimate:
        """Returns one parameter, the others at their values."""
        parameter = self._space.parameters[column]
        quiet = values.copy()
        quiet[column] = parameter.nominal
        expected = self._predictor.predict(self._windows, quiet[None])[0]
        seen = self._statistics(self._windows.measured[None], self._finer.predict(self._windows, quiet[None])[0])[0]
        rng = np.random.default_rng([self._seed, 7])
        unit, statistics = np.zeros(0), np.zeros((0, len(seen)))
        found = ValueRange(value=0.5, low=0.0, high=1.0, left=0.0, right=1.0, distance=0.0)
        for _ in range(MAX_ROUNDS):
            left, right = found.left, found.right
            more = left + (right - left) * (np.arange(NUM_RUNS) + rng.uniform(size=NUM_RUNS)) / NUM_RUNS
            more[0], more[-1] = left, right
            near = (unit >= left) & (unit <= right)
            unit = np.concatenate([unit[near], more])
            simulated = self._simulate_statistics(values, column, more, expected, rng)
            statistics = np.concatenate([statistics[near], simulated])
            found = invert(unit, statistics, seen)
            if found.right - found.left > MAX_PART_LEFT * (right - left):
                break
        value, low, high = (_value(parameter, share) for share in (found.value, found.low, found.high))
        identifiable = found.high - found.low < MAX_IDENTIFIABLE_WIDTH
        fitted = describe_parameter(parameter, (value, low, high), identifiable, found.value > 0.99)
        return ScatterEstimate(fitted, found.distance < float(chi2.isf(MIN_P_VALUE, len(seen))))

    def _simulate_statistics(
        self, values: Array, column: int, unit: Array, expected: Array, rng: np.random.Generator
    ) -> Array:
        """Returns statistics of simulated runs, (num_runs, num_statistics), in equal shares of worlds."""
        num_logs, measured = len(self._windows), self._windows.measured
        rows = np.tile(values, (len(unit), 1))
        rows[:, column] = [_value(self._space.parameters[column], one) for one in unit]
        parts: list[Array] = []
        for some in np.array_split(rows, -(-len(rows) // max(1, MAX_WORLDS // num_logs))):
            log = np.tile(np.arange(num_logs), len(some))
            if len(log) not in self._worlds:
                self._worlds[len(log)] = Simulation(self._blueprint, len(log), self._space, noisy=True)
            world = self._worlds[len(log)]
            world.set_parameters(np.repeat(some, num_logs, axis=0))
            identity = rng.integers(1 << 63, size=len(log), dtype=np.uint64)
            shown = play_windows(world, self._states, self._windows.pick(log), identity)
            shown = shown.reshape(len(some), num_logs, *expected.shape[1:])
            parts.append(self._statistics(np.where(np.isfinite(measured), shown, np.nan), expected))
        return np.concatenate(parts)

    def _statistics(self, reading: Array, expected: Array) -> Array:
        left = subtract_readings(self._blueprint.project, reading, expected[None])
        begin = min(round(START_S * self._blueprint.project.rate_hz), left.shape[2] // 4) + 1
        return statistics_of(left[:, :, begin:], reading[:, :, begin:], self._tiny)


def _value(parameter: Parameter, unit: float) -> float:
    """Returns the value at a share of the way from low to high: by factors, by squares from 0, or by amounts."""
    low, high = parameter.low, parameter.high
    if low > 0 and high / low > MIN_RATIO_FOR_FACTORS:
        return low * (high / low) ** unit
    return low + (high - low) * (unit**2 if low == 0 else unit)


def _estimate_quantum(data: ProjectData, parameter: Parameter, tracks: Sequence[Track]) -> ScatterEstimate | None:
    """Returns the step of a column's readings, which they show by themselves; None for another knob."""
    place = resolve(parameter.target, data.project, data.blueprint.model).knob
    if place is None or (place.layer.name, place.knob.name) != QUANTUM:
        return None
    steps = {find_quantum(track.measured[:, column]) for track in tracks for column in place.elements}
    low, high = min(steps), max(steps)
    interval = float(np.median(list(steps))), low * (1 - 1e-6), high * (1 + 1e-6)
    fitted = describe_parameter(parameter, interval, identifiable=high - low < 1e-3 * high)
    return ScatterEstimate(fitted, explains_logs=True)


def _read_as_recorded(data: ProjectData, episode: int) -> Track:
    """Returns a track with its readings as they were recorded: outliers and repeats are what is looked for.

    It starts where it would without spikes: one reading of 30 m beside the first is a start at 3,000 m/s.
    """
    project, name = data.project, data.tracks[episode].name
    path = next(path for path in log_paths(project) if path.stem == name)
    recorded = make_track(project, read_log(project, path, as_recorded=True).episode).measured
    readings = data.episodes[episode].measurements
    calm = replace(readings, values=np.apply_along_axis(_remove_spikes, 0, readings.values))
    track = make_track(project, replace(data.episodes[episode], measurements=calm))
    return replace(track, measured=recorded, usable=np.ones(len(recorded), dtype=np.bool_))


def _remove_spikes(values: Array) -> Array:
    """Returns a column with the median of its neighbours in place of readings that are far from it."""
    known = np.isfinite(values)
    if not known.any():
        return values
    median = median_filter(values[known], 5)
    distance = np.abs(values[known] - median)
    calm = values.copy()
    calm[known] = np.where(distance > MIN_SPIKE * np.median(distance), median, values[known])
    return calm
