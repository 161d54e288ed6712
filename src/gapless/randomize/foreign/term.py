"""What an event term says, whatever file it stands in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NAMES = ("joint", "body", "geom", "actuator", "site")


@dataclass(frozen=True)
class Asset:
    """Which elements of a scene's entity a term is about.

    Attributes:
        name: The entity.
        patterns: Kind of element -> regular expressions of names; kinds that are not there mean all.
    """

    name: str
    patterns: Mapping[str, "tuple[str, ...] | Unread"] = field(default_factory=dict)


@dataclass(frozen=True)
class Called:
    """A call in a configuration that is not followed: the last part of its name, its arguments, and as it stands."""

    name: str
    arguments: tuple[Any, ...]
    text: str


@dataclass(frozen=True)
class Unread:
    """Something in a configuration that is no plain value: as it stands there."""

    text: str


@dataclass
class Written:
    """An event term as it stands in a file; later lines of the file may change it.

    Attributes:
        name: Its name.
        func: Last part of the function's name.
        mode: When it is called.
        params: Arguments of the function.
        interval_s: Seconds between two calls, of mode `interval`; None where nobody said.
    """

    name: str
    func: str
    mode: str
    params: dict[str, Any]
    interval_s: tuple[float, float] | None = None


def said_as(value: Any) -> str:
    """Returns a value for a message: what is no plain value as it stands in the file."""
    return value.text if isinstance(value, (Unread, Called)) else str(value)


def asset_of(said: Mapping[str, Any]) -> Asset:
    """Returns the selection that a SceneEntityCfg states."""
    patterns: dict[str, tuple[str, ...] | Unread] = {}
    for kind in NAMES:
        names = said.get(f"{kind}_names")
        if isinstance(names, str):
            patterns[kind] = (names,)
        elif isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names):
            patterns[kind] = tuple(names)
        elif names is not None:
            patterns[kind] = Unread(said_as(names))
    return Asset(str(said.get("name", "robot")), patterns)


def written_of(name: str, said: Mapping[str, Any]) -> Written:
    """Returns the term that the arguments of an EventTermCfg state."""
    func = said.get("func")
    text = func.text if isinstance(func, Unread) else str(func)
    interval = said.get("interval_range_s")
    ends = tuple(interval) if isinstance(interval, (list, tuple)) and len(interval) == 2 else None
    params = said.get("params")
    shown = re.match(r"<(?:function|class) '?([\w.]+)", text)  # as Python prints it
    last = (shown[1] if shown else text.replace(":", ".")).split(".")[-1]
    return Written(name, last, str(said.get("mode", "")), dict(params) if isinstance(params, Mapping) else {}, ends)
