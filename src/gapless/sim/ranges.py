"""Reads fits and training ranges back from the files that verbs wrote.

All raise `InputError` where a file is missing, is not what its name or its reader says, or lacks a part.
"""

import json
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gapless.core.distribution import Correlation, Distribution, Range, ranges_from_text
from gapless.core.errors import InputError
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.results import IdentifyResult, RandomizeResult, Result, SensorResult, from_json
from gapless.core.signal import Array
from gapless.sim.blueprint import CompiledProject
from gapless.sim.targets import resolve

ResultT = TypeVar("ResultT", bound=Result)


def read_result(path: str | Path, record: type[ResultT]) -> ResultT:
    """Returns the result that a verb wrote as JSON."""
    place, verb = Path(path), record.verb
    result = _parse_result(_read_json(place, verb), place, "a part of it has another type", f"run {verb} again")
    if not isinstance(result, record):
        given = "the noise of sensors" if isinstance(result, SensorResult) else f"a result of {result.verb}"
        wanted = "a fit of the model" if record is IdentifyResult else f"a result of {verb}"
        raise InputError(f"this is {given}, not {wanted}: name what `gapless {verb} DIR --json FILE` wrote: {place}")
    if isinstance(result, IdentifyResult) and not np.isfinite([p.value for p in result.parameters]).all():
        raise InputError(f"a fitted value is not a number: run identify again: {place}")
    return result


def read_fit(path: str | Path, blueprint: CompiledProject) -> tuple[ParameterSpace, Array]:
    """Returns the parameters of a fit and their values, (num_parameters,); a target and a value each are enough."""
    found = _read_json(Path(path), IdentifyResult.verb)
    if "parameters" not in found:
        read_result(path, IdentifyResult)  # says in words what it is instead
    try:
        targets = [str(p["target"]) for p in found["parameters"]]
        values = np.array([float(p["value"]) for p in found["parameters"]])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"a parameter lacks its target or its value ({error}): run identify again: {path}") from None
    if not np.isfinite(values).all():
        raise InputError(f"a fitted value is not a number: run identify again: {path}")
    return _space(targets, values, values, blueprint), values


def read_ranges(path: str | Path, blueprint: CompiledProject) -> Distribution:
    """Returns the training ranges of a file: a result of `randomize`, or ranges as text (`*.txt`)."""
    place, verb = Path(path), RandomizeResult.verb
    if place.suffix == ".txt":
        text = _read_text(place, verb)
        try:
            ranges, correlations = ranges_from_text(text)
        except InputError as error:
            raise InputError(f"{error}: {place}") from None
        return distribution_of(ranges, correlations, blueprint, path)
    found = {"format": 1, "inputs": (), "path": "", "seed": 0} | _read_json(place, verb)  # ranges by hand need no more
    if not isinstance(found.get("ranges"), list):
        raise InputError(f"there are no ranges in it; make some with `gapless randomize DIR --json FILE`: {path}")
    result = _parse_result(found, place, "a range lacks a field or holds no number", "correct it")
    assert isinstance(result, RandomizeResult)
    return distribution_of(result.ranges, result.correlations, blueprint, path)


def distribution_of(
    ranges: tuple[Range, ...], correlations: tuple[Correlation, ...], blueprint: CompiledProject, path: str | Path
) -> Distribution:
    """Returns ranges of a file as a distribution over a project's parameters."""
    numbers = [value for r in ranges for value in (r.low, r.high, r.mean, r.std)]
    if not np.isfinite(numbers).all():
        raise InputError(f"a range holds a number that is not finite: correct it: {path}")
    low, high = np.array([r.low for r in ranges]), np.array([r.high for r in ranges])
    return Distribution(_space([r.target for r in ranges], low, high, blueprint), ranges, correlations)


def _read_text(place: Path, verb: str) -> str:
    if not place.is_file():
        raise InputError(f"no such file; make one with `gapless {verb} DIR --json FILE`: {place}")
    try:
        return place.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"this is no text: name a file that `gapless {verb}` wrote: {place}") from None


def _read_json(place: Path, verb: str) -> dict[str, Any]:
    hint = f"make one with `gapless {verb} DIR --json FILE`"
    try:
        found = json.loads(_read_text(place, verb))
    except (ValueError, OSError) as error:
        raise InputError(f"this is no JSON ({error}): {hint}: {place}") from None
    if not isinstance(found, dict) or found.get("verb") != verb:
        said = found.get("verb") if isinstance(found, dict) else type(found).__name__
        raise InputError(f"this is no result of `gapless {verb}` (it says {said!r}): {hint}: {place}")
    return found


def _parse_result(found: dict[str, Any], place: Path, fault: str, remedy: str) -> Result:
    try:
        return from_json(found)
    except InputError as error:
        raise InputError(f"{error}: {place}") from None
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"{fault} ({error}): {remedy}: {place}") from None


def _space(targets: list[str], low: Array, high: Array, blueprint: CompiledProject) -> ParameterSpace:
    """Returns a space whose bounds hold the nominal values and everything between `low` and `high`."""
    found: list[Parameter] = []
    for path, bottom, top in zip(targets, low, high, strict=True):
        target = resolve(path, blueprint.project, blueprint.model)
        bottom, top = min(bottom, target.nominal), max(top, target.nominal)
        room = 1e-6 + 1e-6 * abs(top)
        found.append(target.make_parameter(float(bottom - room), float(top + room)))
    return ParameterSpace(tuple(found))
