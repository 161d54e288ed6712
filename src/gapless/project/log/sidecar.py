"""What people say of a log: `NAME.json` beside it."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from gapless.core.episode import Outcome, Source
from gapless.core.results import Note
from gapless.project.log.columns import log_error

SIDECAR_KEYS = ("source", "outcome", "failed_in", "conditions", "recorded_at")


def read_sidecar(log: Path, notes: list[Note]) -> dict[str, Any]:
    """Returns what `NAME.json` beside a log says, as arguments of `Episode`; keys not used become a note."""
    path = log.with_suffix(".json")
    return parse_sidecar(read_object(path), path, notes) if path.is_file() else {"source": "real"}


def read_object(path: Path) -> dict[str, Any]:
    """Returns the object in a JSON file; raises LogError if it is not JSON or no object."""
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8-sig"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise log_error(f"not JSON ({' '.join(str(error).split())}): correct it", path) from None
    if not isinstance(data, dict):
        raise log_error('not a JSON object: write {"source": "real"}', path)
    return data


def parse_sidecar(data: Mapping[str, Any], path: Path, notes: list[Note]) -> dict[str, Any]:
    """Returns what such an object says of a run, as arguments of `Episode`; keys not used become a note."""
    if unknown := sorted(set(data) - set(SIDECAR_KEYS)):
        text = f"{', '.join(unknown)} not used; known are {', '.join(SIDECAR_KEYS)}"
        notes.append(Note("info", path.name, text))
    return {
        "source": _parse_choice(data.get("source", "real"), "source", get_args(Source), path),
        "outcome": _parse_choice(data.get("outcome"), "outcome", (None, *get_args(Outcome)), path),
        "failed_in": _parse_text(data.get("failed_in"), "failed_in", path),
        "conditions": _parse_conditions(data.get("conditions"), path),
        "recorded_at": _parse_time(data.get("recorded_at"), path),
    }


def _parse_choice(value: Any, key: str, allowed: tuple[str | None, ...], path: Path) -> str | None:
    if (value is None or isinstance(value, str)) and value in allowed:
        return value
    words = " or ".join(word for word in allowed if word)
    raise log_error(f"{key} is {json.dumps(value)[:60]}: write {words}", path)


def _parse_text(value: Any, key: str, path: Path) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise log_error(f"{key} is {json.dumps(value)[:60]}: write text in quotes", path)


def _parse_conditions(value: Any, path: Path) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise log_error('conditions is not an object: write {"object": "mug", "light": "dim"}', path)
    for key, item in value.items():
        if not isinstance(item, str | int | float):
            raise log_error(f"condition {key} is {json.dumps(item)[:60]}: write text or a number", path)
    return {key: item if isinstance(item, str) else json.dumps(item) for key, item in value.items()}


def _parse_time(value: Any, path: Path) -> str | None:
    try:
        if value is not None:
            datetime.fromisoformat(value)
    except (TypeError, ValueError):
        text = f"recorded_at is {json.dumps(value)[:60]}: write a time such as 2026-03-01T14:05:00+00:00"
        raise log_error(text, path) from None
    return _parse_text(value, "recorded_at", path)
