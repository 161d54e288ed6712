"""Which parameters show only in how runs scatter, and their estimates beside those that a fit finds."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.ndimage import median_filter

from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.results import FittedParameter
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.scatter.estimate import ScatterEstimate, estimate_from_scatter
from gapless.fit.scatter.invert import LEVEL
from gapless.project.log.read import log_paths, read_log
from gapless.signals.smoother import find_quantum
from gapless.signals.track import Track, make_track
from gapless.sim.targets import resolve

QUANTUM, PERIOD = ("quantisation", "step"), ("slower sensor", "period_s")  # layer and knob; they have no slope
MIN_SPIKE = 10.0  # distance from the median of five neighbours, in multiples of the median distance


def split_scatter_parameters(data: ProjectData) -> tuple[ProjectData, ParameterSpace]:
    """Returns the data without parameters that show only in statistics, and those parameters."""
    scatter = tuple(p for p in data.space.parameters if _shows_in_scatter(p.target, data))
    others = tuple(p for p in data.space.parameters if p not in scatter)
    return replace(data, space=ParameterSpace(others)), ParameterSpace(scatter)


def _shows_in_scatter(target: str, data: ProjectData) -> bool:
    place = resolve(target, data.project, data.blueprint.model).knob
    if place is None:
        return False
    return (place.layer.name, place.knob.name) in (QUANTUM, PERIOD) or place.knob.name in place.layer.random


def estimate_scatter_parameters(
    data: ProjectData, scatter: ParameterSpace, episodes: Sequence[int], row: Array, seed: int
) -> tuple[ScatterEstimate, ...]:
    """Returns the parameters that show only in statistics: those of rounding first, then the others.

    Args:
        data: The logs, and the other parameters.
        scatter: The parameters to estimate.
        episodes: Which logs to use.
        row: (num_parameters,) values of the other parameters.
        seed: Of the simulated runs.
    """
    if not len(scatter):
        return ()
    tracks = tuple(_read_as_recorded(data, k) for k in episodes)
    quanta = {p: one for p in scatter.parameters if (one := _estimate_quantum(data, p, tracks))}
    known = ParameterSpace((*data.whole.parameters, *quanta))
    values = np.concatenate([row, [one.parameter.value for one in quanta.values()]])
    others = ParameterSpace(tuple(p for p in scatter.parameters if p not in quanta))
    return (*quanta.values(), *estimate_from_scatter(data.blueprint, tracks, known, values, others, seed))


def _estimate_quantum(data: ProjectData, parameter: Parameter, tracks: Sequence[Track]) -> ScatterEstimate | None:
    """Returns the step of a column's readings, which they show by themselves; None for another knob."""
    place = resolve(parameter.target, data.project, data.blueprint.model).knob
    if place is None or (place.layer.name, place.knob.name) != QUANTUM:
        return None
    steps = {find_quantum(track.measured[:, column]) for track in tracks for column in place.elements}
    low, high = min(steps), max(steps)
    fitted = FittedParameter(
        *(parameter.target, parameter.dimension, parameter.unit, parameter.nominal),
        *(float(np.median(list(steps))), low * (1 - 1e-6), high * (1 + 1e-6), LEVEL),
        identifiable=high - low < 1e-3 * high,
        at_bound=False,
        prior_low=parameter.low,
        prior_high=parameter.high,
    )
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
