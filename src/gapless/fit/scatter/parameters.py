"""Knobs that show only in how runs scatter, beside those that a fit finds."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.ndimage import median_filter

from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.results import FittedParameter, IdentifyResult
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.scatter.estimate import Estimate, estimate
from gapless.fit.scatter.invert import LEVEL
from gapless.project.log.read import log_paths, read_log
from gapless.signals.smoother import find_quantum
from gapless.signals.track import Track, make_track
from gapless.sim.realism.registry import is_random_knob
from gapless.sim.targets import resolve

QUANTUM, PERIOD = ("quantisation", "step"), ("slower sensor", "period_s")  # no slope leads there
SPIKE = 10.0  # times the median distance from the median of five neighbours


def split_scatter_parameters(evidence: ProjectData) -> tuple[ProjectData, ParameterSpace]:
    """Returns the evidence without knobs that only statistics tell, and these."""
    chance = [p for p in evidence.space.parameters if _is_told_by_scatter(p.target, evidence)]
    left = tuple(p for p in evidence.space.parameters if p not in chance)
    return replace(evidence, space=ParameterSpace(left)), ParameterSpace(tuple(chance))


def _is_told_by_scatter(target: str, evidence: ProjectData) -> bool:
    place = resolve(target, evidence.project, evidence.blueprint.model).knob
    if place is None:
        return False
    return (place.layer.name, place.knob.name) in (QUANTUM, PERIOD) or is_random_knob(place.layer, place.knob.name)


def with_scatter(
    result: IdentifyResult, evidence: ProjectData, chance: ParameterSpace, episodes: Sequence[int], row: Array
) -> IdentifyResult:
    """Returns a result with the knobs that only statistics tell.

    Args:
        result: Of the other parameters; without any, nothing yet.
        evidence: The logs, and the other parameters.
        chance: The knobs.
        episodes: Which logs to use.
        row: (num_parameters,) values of the other parameters.
    """
    if not len(chance):
        return result
    tracks = tuple(_as_recorded(evidence, k) for k in episodes)
    rounded = {k: one for k, p in enumerate(chance.parameters) if (one := _quantum(evidence, p, tracks))}
    quanta = [one.parameter for one in rounded.values()]
    known = (*evidence.whole.parameters, *(p for k, p in enumerate(chance.parameters) if k in rounded))
    values = np.concatenate([row, [one.value for one in quanta]])
    drawn = ParameterSpace(tuple(p for k, p in enumerate(chance.parameters) if k not in rounded))
    others = estimate(evidence.blueprint, tracks, ParameterSpace(known), values, drawn, result.seed)
    found = (*rounded.values(), *others)
    parameters = (*result.parameters, *(one.parameter for one in found))
    told = [one for one in found if one.parameter.identifiable]
    word, reasons = result.verdict, (*result.reasons, *_reasons(found))
    if word == "refused" and told and not len(evidence.space):
        word, reasons = "good", _reasons(found)
    if word == "good" and not all(one.explains for one in told):
        word = "poor"
    return replace(result, parameters=parameters, verdict=word, reasons=reasons)


def _quantum(evidence: ProjectData, parameter: Parameter, tracks: Sequence[Track]) -> Estimate | None:
    """Returns the step of a column's readings, which they tell by themselves; None for another knob."""
    place = resolve(parameter.target, evidence.project, evidence.blueprint.model).knob
    if place is None or (place.layer.name, place.knob.name) != QUANTUM:
        return None
    steps = {find_quantum(track.measured[:, column]) for track in tracks for column in place.elements}
    value, alike = float(np.median(list(steps))), max(steps) - min(steps) < 1e-3 * max(steps)
    return Estimate(
        FittedParameter(
            *(parameter.target, parameter.dimension, parameter.unit, parameter.nominal),
            *(value, min(steps) * (1 - 1e-6), max(steps) * (1 + 1e-6), LEVEL),
            identifiable=bool(alike),
            at_bound=False,
            prior_low=parameter.low,
            prior_high=parameter.high,
        ),
        explains=True,
    )


def _as_recorded(evidence: ProjectData, episode: int) -> Track:
    """Returns a track with its readings as they were recorded: outliers and repeats are what is looked for.

    It starts where it would without spikes: one reading of 30 m beside the first is a start at 3,000 m/s.
    """
    project, name = evidence.project, evidence.tracks[episode].name
    path = next(path for path in log_paths(project) if path.stem == name)
    recorded = make_track(project, read_log(project, path, as_recorded=True).episode).measured
    readings = evidence.episodes[episode].measurements
    calm = replace(readings, values=np.apply_along_axis(_without_spikes, 0, readings.values))
    track = make_track(project, replace(evidence.episodes[episode], measurements=calm))
    return replace(track, measured=recorded, usable=np.ones(len(recorded), dtype=np.bool_))


def _without_spikes(values: Array) -> Array:
    """Returns a column with the median of its neighbours in place of readings that are far from it."""
    known = np.isfinite(values)
    if not known.any():
        return values
    middle = median_filter(values[known], 5)
    away = np.abs(values[known] - middle)
    out = values.copy()
    out[known] = np.where(away > SPIKE * np.median(away), middle, values[known])
    return out


def _reasons(found: Sequence[Estimate]) -> tuple[str, ...]:
    loose = [one.parameter.target for one in found if not one.parameter.identifiable]
    strange = [one.parameter.target for one in found if one.parameter.identifiable and not one.explains]
    bound = [one.parameter.target for one in found if one.parameter.identifiable and one.parameter.at_bound]
    told = [one.parameter.target for one in found if one.parameter.identifiable]
    reasons = [f"told from how runs scatter: {', '.join(told)}"] if told else []
    reasons += [f"cannot be told from how these logs scatter: {', '.join(loose)}"] if loose else []
    reasons += [f"runs simulated with it do not look like the logs: {', '.join(strange)}"] if strange else []
    reasons += [f"at a bound: {', '.join(bound)}: widen its range"] if bound else []
    return tuple(reasons)
