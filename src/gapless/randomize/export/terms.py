"""Event terms of mjlab and Isaac Lab: what both stacks share."""

import re
from dataclasses import dataclass

from gapless.core.distribution import Level, Range
from gapless.randomize.export.entries import Entry
from gapless.randomize.export.notes import changed

INTERVAL_S = (0.0, 0.0)


@dataclass(frozen=True)
class Term:
    """One event term, as Python.

    Attributes:
        name: Its name in the configuration.
        func: The function that it calls.
        mode: When it is called.
        params: Parameter of the function -> its value, as Python.
        comment: What it sets, for the reader.
    """

    name: str
    func: str
    mode: str
    params: dict[str, str]
    comment: str


def term_name(target: str) -> str:
    """Returns a target as a name that Python takes: `body/puck/com/x` becomes `body_puck_com_x`."""
    return re.sub(r"\W+", "_", target.replace("*", "all")).strip("_")


def pair(low: float, high: float, factor: float = 1.0, shift: float = 0.0) -> str:
    """Returns `factor * (low, high) + shift` as Python, in order."""
    ends = sorted((low * factor + shift, high * factor + shift))
    return f"({float(ends[0])!r}, {float(ends[1])!r})"


def pattern(name: str) -> str:
    """Returns a name as a regular expression that matches just it."""
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", name)


def names_text(names: list[str]) -> str:
    """Returns names as a list of patterns, as Python."""
    return repr([pattern(name) for name in names])


def only_uniform(entry: Entry, stack: str) -> tuple[Range, list[str]]:
    """Returns a range as the uniform one between the same ends, with a note where it was another."""
    item = entry.range
    if item.kind in ("uniform", "fixed"):
        return item, []
    text = f"uniform over its ends: {stack} has no {item.kind} for this term"
    return Range(item.target, "uniform", item.low, item.high, (item.low + item.high) / 2, per=item.per), [
        changed(item.target, text)
    ]


def drawn_alike(first: Entry, others: list[Entry]) -> list[str]:
    """Returns notes on ranges that one term draws together with the first, though less or more often than it."""
    odd = [other for other in others if other.range.per != first.range.per]
    return [changed(other.target, f"drawn per {first.range.per}, in one term with {first.target}") for other in odd]


def mode_of(per: Level, step: str) -> str:
    """Returns the mode of a term that draws this often."""
    return {"robot": "startup", "episode": "reset", "step": step}[per]
