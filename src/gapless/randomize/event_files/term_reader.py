"""Collects the ranges of terms while they are read, and finds the elements of the model that terms are about."""

import re
from dataclasses import dataclass, field, replace

import mujoco

from gapless.core.distribution import Range
from gapless.core.errors import InputError
from gapless.project.records import Project
from gapless.randomize.event_files.terms import EventTerm, SceneEntity, SourceText, TermDraw, make_range, source_text
from gapless.randomize.export.job import list_elements
from gapless.sim.targets import resolve


@dataclass
class TermReader:
    """Ranges that were read so far, and notes on what was not."""

    project: Project  # the project
    model: mujoco.MjModel  # its compiled model
    source: str  # name of the file, for the reader
    ranges: dict[str, Range] = field(default_factory=dict[str, Range])  # target -> its range
    notes: list[str] = field(default_factory=list[str])  # what could not be read, or not as it is there: a line each

    def note(self, term: EventTerm, text: str) -> None:
        """Adds a note on a term."""
        self.notes.append(f"{term.name} ({term.func}): {text}")

    def select(self, term: EventTerm, kind: str) -> tuple[str, ...]:
        """Returns the names of the elements that a term is about, in the model's order.

        All of the entity where the term names none of this kind. An object with a free joint that nothing drives is an
        entity of its own, everything else is `robot`. An entity of another name is looked for in the whole model, if
        the term gives some names and not just all.
        """
        entity = term.params.get("asset_cfg", SceneEntity("robot"))
        if not isinstance(entity, SceneEntity):
            self.note(term, f"asset_cfg was not read: {source_text(entity)}")
            return ()
        patterns = entity.patterns.get(kind)
        if isinstance(patterns, SourceText):
            self.note(term, f"left out: its names were not read: {patterns.text}")
            return ()
        owners = {element.owner for element in list_elements(self.model, "body") if element.name}
        elements = [element for element in list_elements(self.model, kind) if element.name]
        names = [e.name for e in elements if e.owner == entity.name or entity.name not in owners]
        is_all = patterns is None or any(all(_matches(p, name) for name in names) for p in patterns)
        if entity.name not in owners and is_all:
            self.note(term, f"the model has no {entity.name!r}: it has {', '.join(sorted(owners))}")
            return ()
        for pattern in patterns or ():
            if not any(_matches(pattern, name) for name in names):
                self.note(term, f"no {kind} is called {pattern!r}")
        return tuple(name for name in names if patterns is None or any(_matches(p, name) for p in patterns))

    def is_every(self, kind: str, names: tuple[str, ...]) -> bool:
        """Says whether these are all elements of their kind in the model."""
        return len(names) == sum(bool(element.name) for element in list_elements(self.model, kind))

    def add(self, term: EventTerm, path: str, draw: TermDraw | None, factor: float = 1.0) -> None:
        """Keeps the range of one parameter.

        Args:
            term: The term it comes from.
            path: The parameter's target.
            draw: What is drawn; nothing is kept for None.
            factor: The target's unit per unit of the term.
        """
        if draw is None:
            return
        per, text = term.read_level(1 / self.project.rate_hz)
        try:
            nominal = resolve(path, self.project, self.model).nominal / factor
            made = make_range(path, nominal, draw, per, f"{term.name} of {self.source}")
        except InputError as error:
            self.note(term, f"left out: {error}")
            return
        if text:
            self.note(term, f"{path}: {text}")
        if path in self.ranges:
            self.note(term, f"{path} has a range already: this one counts")
        self.ranges[path] = _scale_range(made, factor)


def _matches(pattern: str, name: str) -> bool:
    try:
        return any(re.fullmatch(pattern, part) for part in (name, name.split("/")[-1]))
    except re.error:
        return pattern == name


def _scale_range(item: Range, factor: float) -> Range:
    """Returns a range with its values multiplied."""
    if factor == 1.0:
        return item
    std = item.std if item.kind == "log-normal" else item.std * factor
    parts = tuple(replace(part, mean=part.mean * factor, std=part.std * factor) for part in item.parts)
    return replace(item, low=item.low * factor, high=item.high * factor, mean=item.mean * factor, std=std, parts=parts)
