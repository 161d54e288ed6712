"""Results as JSON and back, by the types of their fields: no record has code of its own for it."""

import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from gapless.core.errors import InputError, nearest
from gapless.core.results.closing import AuditResult
from gapless.core.results.fit import SensorResult
from gapless.core.results.gap import Result

FORMAT = 1
_MARKING_FIELDS: dict[type[Any], str] = {SensorResult: "sensor", AuditResult: "audited"}  # field that only it has
_RECORDS = {record.verb: record for record in Result.__subclasses__() if record not in _MARKING_FIELDS}


def to_json(result: Result) -> dict[str, Any]:
    """Returns a result as plain JSON values: `format`, `verb`, then the fields. NaN becomes null."""
    return {"format": FORMAT, "verb": result.verb, **plain(result)}


def plain(value: Any) -> Any:
    """Returns records, mappings, sequences, arrays and paths as plain JSON values. NaN becomes null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}  # type: ignore[reportUnknownVariableType]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]  # type: ignore[reportUnknownVariableType]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return value


def from_json(data: Mapping[str, Any]) -> Result:
    """Returns the record that `to_json` wrote.

    Raises:
        InputError: If the format or the verb is unknown, or a field is missing that has no default.
    """
    if data.get("format") != FORMAT:
        text = f"this result has format {data.get('format')!r}; this gapless reads format {FORMAT}"
        raise InputError(f"{text}: run the verb again, or use the gapless that wrote it")
    verb = str(data.get("verb"))
    if verb not in _RECORDS:
        raise InputError(f"no verb {verb!r} makes results; choose from: {nearest(verb, _RECORDS)}")
    marked = [record for record, field in _MARKING_FIELDS.items() if verb == record.verb and field in data]
    return _read_record(marked[0] if marked else _RECORDS[verb], data)


def _read_record(kind: type[Any], data: Mapping[str, Any]) -> Any:
    """Returns a record of a type. Fields that were added later have defaults, so that older results can be read."""
    hints = get_type_hints(kind)
    needed = [item for item in fields(kind) if item.default is MISSING and item.default_factory is MISSING]
    if absent := [item.name for item in needed if item.name not in data]:
        name = getattr(kind, "verb", kind.__name__)
        raise InputError(f"a result of {name}: it lacks {', '.join(absent)}: run the verb again")
    present = [item.name for item in fields(kind) if item.name in data]
    return kind(**{name: _read_value(hints[name], data[name]) for name in present})


def _read_value(hint: Any, value: Any) -> Any:
    """Returns a JSON value as the type that a field asks for; null for a number is NaN."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return None if value is None else _read_value(next(a for a in inner if a is not types.NoneType), value)
    if origin is tuple:
        if len(inner) == 2 and inner[1] is Ellipsis:
            return tuple(_read_value(inner[0], item) for item in value)
        return tuple(_read_value(kind, item) for kind, item in zip(inner, value, strict=True))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: _read_value(inner[1], item) for key, item in value.items()}
    if isinstance(hint, type) and is_dataclass(hint):
        return _read_record(hint, value)
    if hint is float:
        return float("nan") if value is None else float(value)
    return value
