"""Reads results back from their JSON."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, ClassVar, Literal, Union, cast, get_args, get_origin, get_type_hints

from gapless.core.errors import InputError, nearest
from gapless.core.results.audit import AuditResult
from gapless.core.results.encode import FORMAT, Result
from gapless.core.results.sensor import SensorResult

_APART: dict[type[Any], str] = {SensorResult: "sensor", AuditResult: "audited"}  # a field that only it has
_RECORDS: dict[str, type[Any]] = {record.verb: record for record in get_args(Result) if record not in _APART}


def from_json(data: Mapping[str, Any]) -> Result:
    """Returns the record that `to_json` wrote.

    Raises:
        InputError: If the format or the verb is unknown, or a field is missing that has no default.
    """
    if data.get("format") != FORMAT:
        raise InputError(
            f"this result has format {data.get('format')!r}; this gapless reads format {FORMAT}: run "
            "the verb again, or use the gapless that wrote it"
        )
    verb = str(data.get("verb"))
    if verb not in _RECORDS:
        raise InputError(f"no verb {verb!r} makes results; choose from: {nearest(verb, _RECORDS)}")
    apart = [record for record, field in _APART.items() if verb == record.verb and field in data]
    return cast(Result, _record(apart[0] if apart else _RECORDS[verb], data))


def _record(kind: type[Any], data: Mapping[str, Any]) -> Any:
    hints = get_type_hints(kind)
    absent = [item.name for item in fields(kind) if item.name not in data and _is_needed(item)]
    if absent:
        raise InputError(
            f"a result of {getattr(kind, 'verb', kind.__name__)}: it lacks {', '.join(absent)}: run the verb again"
        )
    return kind(**{item.name: _value(hints[item.name], data[item.name]) for item in fields(kind) if item.name in data})


def _is_needed(item: Field[Any]) -> bool:
    """Tells whether a field has no default: those that came later have one, so that older results can be read."""
    return item.default is MISSING and item.default_factory is MISSING


def _value(hint: Any, value: Any) -> Any:
    """Returns a JSON value as the type that a field asks for; null for a number is NaN."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return None if value is None else _value(next(a for a in inner if a is not types.NoneType), value)
    if origin is tuple:
        if len(inner) == 2 and inner[1] is Ellipsis:
            return tuple(_value(inner[0], item) for item in value)
        return tuple(_value(kind, item) for kind, item in zip(inner, value, strict=True))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: _value(inner[1], item) for key, item in value.items()}
    if origin in (Literal, ClassVar):
        return value
    if isinstance(hint, type) and is_dataclass(hint):
        return _record(hint, value)
    if hint is float:
        return float("nan") if value is None else float(value)
    return value
