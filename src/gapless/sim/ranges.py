"""Reads fits and training ranges back from the files that verbs wrote."""

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
    """Returns the result that a verb wrote as JSON.

    Raises:
        InputError: If the file is missing, is no JSON, comes from another verb, or lacks a part.
    """
    place, verb = Path(path), record.verb
    data = _read_json(place, verb)
    try:
        result = from_json(data)
    except InputError as error:
        raise InputError(f"{error}: {place}") from None
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"a part of it has another type ({error}): run {verb} again: {place}") from None
    if not isinstance(result, record):
        given = "the noise of sensors" if isinstance(result, SensorResult) else f"a result of {result.verb}"
        wanted = "a fit of the model" if record is IdentifyResult else f"a result of {verb}"
        raise InputError(f"this is {given}, not {wanted}: name what `gapless {verb} DIR --json FILE` wrote: {place}")
    if isinstance(result, IdentifyResult) and not np.isfinite([p.value for p in result.parameters]).all():
        raise InputError(f"a fitted value is not a number: run identify again: {place}")
    return result


def read_fit(path: str | Path, blueprint: CompiledProject) -> tuple[ParameterSpace, Array]:
    """Returns the parameters of a fit and their values, (num_parameters,); a target and a value each are enough.

    Raises:
        InputError: If the file is no fit, or a value is not a finite number.
    """
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
    """Returns the training ranges of a file: a result of `randomize`, or ranges as text (`*.txt`).

    Raises:
        InputError: If the file cannot be read as what its name says.
    """
    ranges, correlations = _text_ranges(Path(path)) if Path(path).suffix == ".txt" else _json_ranges(path)
    return distribution_of(ranges, correlations, blueprint, path)


def distribution_of(
    ranges: tuple[Range, ...], correlations: tuple[Correlation, ...], blueprint: CompiledProject, path: str | Path
) -> Distribution:
    """Returns ranges of a file as a distribution over a project's parameters.

    Raises:
        InputError: If a number is not finite, or a target is not of this model.
    """
    numbers = [value for r in ranges for value in (r.low, r.high, r.mean, r.std)]
    if not np.isfinite(numbers).all():
        raise InputError(f"a range holds a number that is not finite: correct it: {path}")
    low, high = np.array([r.low for r in ranges]), np.array([r.high for r in ranges])
    return Distribution(_space([r.target for r in ranges], low, high, blueprint), ranges, correlations)


def _text_ranges(path: Path) -> tuple[tuple[Range, ...], tuple[Correlation, ...]]:
    if not path.is_file():
        raise InputError(f"no such file; make one with `gapless randomize DIR --json FILE`: {path}")
    try:
        return ranges_from_text(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise InputError(f"this is no text: name a file of ranges: {path}") from None
    except InputError as error:
        raise InputError(f"{error}: {path}") from None


def _read_json(place: Path, verb: str) -> dict[str, Any]:
    if not place.is_file():
        raise InputError(f"no such file; make one with `gapless {verb} DIR --json FILE`: {place}")
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise InputError(f"this is no JSON ({error}): make it with `gapless {verb} DIR --json FILE`: {place}") from None
    if not isinstance(found, dict) or found.get("verb") != verb:
        said = found.get("verb") if isinstance(found, dict) else type(found).__name__
        raise InputError(
            f"this is no result of `gapless {verb}` (it says {said!r}): make one with `gapless {verb} "
            f"DIR --json FILE`: {place}"
        )
    return found


def _json_ranges(path: str | Path) -> tuple[tuple[Range, ...], tuple[Correlation, ...]]:
    found = _read_json(Path(path), "randomize")
    if not isinstance(found.get("ranges"), list):
        raise InputError(f"there are no ranges in it; make some with `gapless randomize DIR --json FILE`: {path}")
    try:
        result = from_json({"format": 1, "inputs": (), "path": "", "seed": 0} | found)  # ranges by hand need no more
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"a range lacks a field or holds no number ({error}): correct it: {path}") from None
    except InputError as error:
        raise InputError(f"{error}: {path}") from None
    assert isinstance(result, RandomizeResult)
    return result.ranges, result.correlations


def _space(targets: list[str], low: Array, high: Array, blueprint: CompiledProject) -> ParameterSpace:
    """Returns a space whose bounds hold the nominal values and everything between `low` and `high`."""
    found: list[Parameter] = []
    for path, bottom, top in zip(targets, low, high, strict=True):
        target = resolve(path, blueprint.project, blueprint.model)
        bottom, top = min(bottom, target.nominal), max(top, target.nominal)
        room = 1e-6 + 1e-6 * abs(top)
        found.append(target.make_parameter(float(bottom - room), float(top + room)))
    return ParameterSpace(tuple(found))
