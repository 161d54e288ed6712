"""Recordings: episodes as somebody recorded them, before any mapping to a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np

from gapless.core.episode import Outcome, Source
from gapless.core.signal import Array

DESCRIPTION_KEY = "gapless"  # under which a format's own metadata keeps what `describe_recording` returns


@dataclass(frozen=True)
class Video:
    """What one camera saw during an episode: a part of a video file."""

    camera: str  # such as `observation.images.front`
    path: Path  # the file
    begin_s: float = 0.0  # where the episode begins in it [s]
    end_s: float | None = None  # where it ends [s]; None for the file's end


@dataclass(frozen=True)
class Origin:
    """Where an episode came from; None and empty where nobody said."""

    robot: str | None = None  # kind of robot, such as `so101_follower`
    robot_serial: str | None = None
    calibration: str | None = None  # which calibration was in force: a date, a file, an id
    simulator: str | None = None
    simulator_version: str | None = None
    parameters: Mapping[str, float] = field(default_factory=dict[str, float])  # of the simulation: target -> value
    policy: str | None = None
    policy_version: str | None = None
    site: str | None = None
    operator: str | None = None
    participants: tuple[str, ...] = ()  # people whose data it holds, by name or number
    consent: str | None = None  # what they agreed to, such as `research`
    parents: tuple[str, ...] = ()  # ids of the episodes it was made from: augmented, re-encoded, cut


@dataclass(frozen=True)
class Recording:
    """One episode as recorded: columns under their own names and in their own units."""

    name: str
    times_s: Array  # (num_rows,) [s], strictly increasing, 0 at the first
    columns: Mapping[str, Array]  # column -> (num_rows,) float64; NaN where nothing was recorded at that time
    # column -> type in which it was written (`float32`, `int64`, `bool`, ...), where not float64; its values are exact
    types: Mapping[str, str] = field(default_factory=dict[str, str])
    start_ns: int | None = None  # time of the first row, ns since 1970 by the recorder's clock; None where unknown
    videos: tuple[Video, ...] = ()
    source: Source | None = None  # None where the format does not say
    outcome: Outcome | None = None
    failed_in: str | None = None
    conditions: Mapping[str, str] = field(default_factory=dict[str, str])
    recorded_at: str | None = None  # ISO 8601
    origin: Origin = Origin()
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])  # what else the format says, as plain JSON

    def __post_init__(self) -> None:
        """Refuses columns of another length than the time, and time that does not move forward from 0."""
        num_rows = len(self.times_s)
        if wrong := [name for name, values in self.columns.items() if values.shape != (num_rows,)]:
            raise ValueError(f"column {wrong[0]} has shape {self.columns[wrong[0]].shape}, give ({num_rows},)")
        if num_rows and (self.times_s[0] != 0 or np.any(np.diff(self.times_s) <= 0)):
            raise ValueError("times do not increase from 0: sort the rows and delete repeated ones")

    @property
    def duration_s(self) -> float:
        """Time from the first to the last row [s]."""
        return float(self.times_s[-1]) if len(self.times_s) else 0.0


@dataclass(frozen=True)
class Skipped:
    """Something that was not read, and why."""

    what: str  # an episode, a file, a column, a video
    why: str  # one line


_LISTS = ("participants", "parents")  # of an origin
_MAPPINGS = ("conditions", "types", "details", "origin")
_SAID = ("start_ns", "source", "outcome", "failed_in", "conditions", "recorded_at", "types", "details")


def describe_recording(recording: Recording) -> dict[str, Any]:
    """Returns all that is said of a recording but its name, rows and videos, as plain JSON without empty entries."""
    said = {name: getattr(recording, name) for name in _SAID}
    origin = {each.name: getattr(recording.origin, each.name) for each in fields(Origin)}
    origin |= {name: list(origin[name]) for name in _LISTS}
    said["origin"] = {name: value for name, value in origin.items() if value not in (None, {}, [])}
    return {name: dict(v) if name in _MAPPINGS else v for name, v in said.items() if v is not None and v != {}}


def apply_description(recording: Recording, said: Mapping[str, Any]) -> Recording:
    """Returns a recording with what `describe_recording` said of it; unknown keys and wrong kinds are left out.

    A file may hold anything under the key: nothing of it is trusted to have the right type.
    """
    kinds: dict[str, type] = {"start_ns": int, "failed_in": str, "recorded_at": str}
    found: dict[str, Any] = {k: said[k] for k, kind in kinds.items() if isinstance(said.get(k), kind)}
    found |= {key: entries for key in ("types", "details") if (entries := _entries(said.get(key)))}
    for key, known in (("source", get_args(Source)), ("outcome", get_args(Outcome))):
        found |= {key: said[key]} if said.get(key) in known else {}
    if conditions := _entries(said.get("conditions")):
        found["conditions"] = {key: str(value) for key, value in conditions.items()}
    if origin := _entries(said.get("origin")):
        found["origin"] = _read_origin(origin)
    return replace(recording, **found)


def _entries(value: Any) -> dict[str, Any]:
    """Returns the entries of a JSON object; none where it is no object."""
    found = cast(dict[Any, Any], value) if isinstance(value, dict) else {}
    return {str(key): entry for key, entry in found.items()}


def _read_origin(said: Mapping[str, Any]) -> Origin:
    """Returns an origin with those entries that have the right type."""
    found: dict[str, Any] = {}
    for each in fields(Origin):
        value = said.get(each.name)
        if each.name in _LISTS:
            texts = cast(list[Any], value) if isinstance(value, list) else []
            found[each.name] = tuple(map(str, texts))
        elif each.name == "parameters":
            found[each.name] = {k: float(v) for k, v in _entries(value).items() if isinstance(v, int | float)}
        elif isinstance(value, str):
            found[each.name] = value
    return Origin(**found)
