"""Sidecars: what people say of a run, in `NAME.json` beside its file."""

import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from gapless.core.episode import Outcome, Source
from gapless.core.recording import DESCRIPTION_KEY, Origin, Recording, describe_recording
from gapless.core.results import Note
from gapless.formats.source import log_error


def _check_time(text: str) -> str:
    datetime.fromisoformat(text)
    return text


def _write_text(value: str | bool | int | float) -> str:
    return value if isinstance(value, str) else json.dumps(value)


class Sidecar(BaseModel, strict=True, extra="ignore"):
    """What people say of a run, in `NAME.json`; for the fields see `Episode`. Descriptions say what to write."""

    source: Source = Field("real", description="real, twin, sim or augmented")
    outcome: Outcome | None = Field(None, description="success or failure")
    failed_in: str | None = Field(None, description="text in quotes")
    conditions: dict[str, Annotated[str | bool | int | float, AfterValidator(_write_text)]] | None = Field(
        None, description='an object of texts and numbers, such as {"object": "mug", "light": "dim"}'
    )
    recorded_at: Annotated[str, AfterValidator(_check_time)] | None = Field(
        None, description="a time such as 2026-03-01T14:05:00+00:00"
    )


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
    known = Sidecar.model_fields
    if unknown := sorted(set(data) - {*known, *(each.name for each in fields(Origin)), DESCRIPTION_KEY}):
        notes.append(Note("info", path.name, f"{', '.join(unknown)} not used; known are {', '.join(known)}"))
    try:
        found = Sidecar.model_validate(data)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        raise log_error(f"{key} is {json.dumps(data[key])[:60]}: write {known[key].description}", path) from None
    return {**found.model_dump(), "conditions": found.conditions or {}}


def read_sidecar(path: Path, earlier: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a sidecar says of a recording, in the form of `describe_recording`; unknown keys become details.

    Its top level counts more than what `write_sidecar` put under `gapless`, and that more than `earlier`, which the
    file itself says.
    """
    data = read_object(path)
    written = data.pop(DESCRIPTION_KEY, None)
    about, known = parse_sidecar(data, path, []), [each.name for each in fields(Origin)]
    said = {**earlier, **({**written, DESCRIPTION_KEY: True} if isinstance(written, dict) else {})}
    said |= {key: about[key] for key in about if data.get(key) is not None}
    origin = {key: data[key] for key in known if key in data}
    said["origin"] = _as_object(said.get("origin")) | _check_origin(origin, path)
    others = {key: value for key, value in data.items() if key not in (*known, *Sidecar.model_fields)}
    said["details"] = _as_object(said.get("details")) | others
    return said


def read_origin(data: Mapping[str, Any], path: Path) -> Origin:
    """Returns where a run comes from, as its sidecar says at its top level."""
    given = {each.name: data[each.name] for each in fields(Origin) if each.name in data}
    lists = {key: tuple(value) for key, value in _check_origin(given, path).items() if isinstance(value, list)}
    return Origin(**{**given, **lists})


def _as_object(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _check_origin(given: dict[str, Any], path: Path) -> dict[str, Any]:
    """Returns entries of an origin; raises LogError where one has another type than `Origin` wants."""
    try:
        TypeAdapter(Origin).validate_json(json.dumps(given), strict=True)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        kinds = "text in quotes; for participants and parents a list of texts, for parameters an object of numbers"
        raise log_error(f"{key} is {json.dumps(given[key])[:60]}: write {kinds}", path) from None
    return given


def write_sidecar(recording: Recording, path: Path) -> None:
    """Writes what is said of a recording: what people may correct at the top level, all of it under `gapless`."""
    said = describe_recording(recording)
    people = {key: said[key] for key in Sidecar.model_fields if key in said}
    text = json.dumps({**people, **said.get("origin", {}), DESCRIPTION_KEY: said}, indent=2, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")
