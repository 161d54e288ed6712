"""What the person who imports says of all recordings: `--source`, `--set KEY=VALUE`, `--condition KEY=VALUE`."""

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

    def apply(self, recording: Recording) -> Recording:
        """Returns a recording with what was stated; what nobody says of the source counts as real."""
        if unknown := [key for key in self.origin if key not in SETTABLE]:
            raise InputError(f"--set {unknown[0]}: no such key; choose from: {nearest(unknown[0], SETTABLE, 12)}")
        changes: dict[str, Any] = {key: value for key, value in self.origin.items() if key not in _LISTS}
        for key in (key for key in _LISTS if key in self.origin):
            changes[key] = tuple(text.strip() for text in self.origin[key].split(",") if text.strip())
        return replace(
            recording,
            source=self.source or recording.source or "real",
            origin=replace(recording.origin, **changes),
            conditions={**recording.conditions, **self.conditions},
        )


def read_pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Returns the pairs that an option was given as `KEY=VALUE`."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key.strip() and equals and value.strip()):
            raise InputError(f"{option} {text}: write {option} KEY=VALUE, such as {option} site=lab")
        found[key.strip()] = value.strip()
    return found
