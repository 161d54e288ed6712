"""What the person who imports says of all recordings: `--source`, `--set KEY=VALUE`, `--condition KEY=VALUE`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from gapless.core.episode import Source
from gapless.core.errors import InputError, nearest
from gapless.core.recording import Origin, Recording

SETTABLE = tuple(each.name for each in fields(Origin) if each.name != "parameters")
_LISTS = ("participants", "parents")


@dataclass(frozen=True)
class Statement:
    """What holds for every recording of an import; it wins over what the files say."""

    source: Source | None = None
    origin: Mapping[str, str] = field(default_factory=dict[str, str])  # field of `Origin` -> text; lists with commas
    conditions: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        """Refuses keys that no origin has."""
        if unknown := [key for key in self.origin if key not in SETTABLE]:
            raise InputError(f"--set {unknown[0]}: no such key; choose from: {nearest(unknown[0], SETTABLE, 12)}")

    def apply(self, recording: Recording) -> Recording:
        """Returns a recording with what was stated; what nobody says of the source counts as real."""
        return replace(
            recording,
            source=self.source or recording.source or "real",
            origin=replace(recording.origin, **self._fields()),
            conditions={**recording.conditions, **self.conditions},
        )

    def is_said_in(self, row: Mapping[str, Any]) -> bool:
        """Returns whether a row of the catalogue's episodes says all of it."""
        said = {**self._fields(), **({"source": self.source} if self.source else {})}
        same = all(set(v) <= set(row[key]) if key in _LISTS else row[key] == v for key, v in said.items())
        return same and self.conditions.items() <= json.loads(row["conditions"] or "{}").items()

    def _fields(self) -> dict[str, Any]:
        """Returns the stated fields of an origin."""
        lists = {key: [text.strip() for text in self.origin[key].split(",")] for key in _LISTS if key in self.origin}
        return {**self.origin, **{key: tuple(text for text in texts if text) for key, texts in lists.items()}}


def read_pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Returns the pairs that an option was given as `KEY=VALUE`."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key.strip() and equals and value.strip()):
            raise InputError(f"{option} {text}: write {option} KEY=VALUE, such as {option} site=lab")
        found[key.strip()] = value.strip()
    return found
