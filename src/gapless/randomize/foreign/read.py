"""Event configurations of other stacks, read as training ranges."""

from pathlib import Path
from typing import NamedTuple

import mujoco

from gapless.core.distribution import Correlation, Range
from gapless.core.errors import InputError
from gapless.project.records import Project
from gapless.randomize.foreign import isaaclab, mjlab
from gapless.randomize.foreign.dump import terms_of_dump
from gapless.randomize.foreign.reading import Reading
from gapless.randomize.foreign.source import terms_of_source

SUFFIXES = (".py", ".yaml", ".yml", ".json")
STATE = ("reset_", "push_", "apply_")


class Foreign(NamedTuple):
    """Ranges of another stack.

    Attributes:
        ranges: One per parameter of the project's model.
        correlations: Always empty: event terms draw on their own.
        notes: What could not be read, or not as it is there: a line each.
    """

    ranges: tuple[Range, ...]
    correlations: tuple[Correlation, ...]
    notes: tuple[str, ...]


def read_foreign(path: str | Path, project: Project, model: mujoco.MjModel) -> Foreign:
    """Returns the ranges that an event configuration of Isaac Lab or mjlab states for a project's model.

    A Python file is read from its syntax and never run. Factors and additions become values by the model's own.

    Args:
        path: `*.py` with EventTerm or EventTermCfg, or the YAML or JSON that a run wrote.
        project: The project.
        model: Its compiled model.

    Raises:
        InputError: If the file is missing, is of another kind, or holds no event terms.
    """
    place = Path(path)
    if place.suffix.lower() not in SUFFIXES:
        raise InputError(f"event terms are in {', '.join(SUFFIXES)} files: name one: {place}")
    if not place.is_file():
        raise InputError(f"no such file: name a file of event terms: {place}")
    try:
        text = place.read_text(encoding="utf-8")
        is_source = place.suffix.lower() == ".py"
        terms, notes = terms_of_source(text) if is_source else terms_of_dump(text, place.suffix.lower() == ".json")
    except UnicodeDecodeError:
        raise InputError(f"this is no text: name a file of event terms: {place}") from None
    except InputError as error:
        raise InputError(f"{error}: {place}") from None
    if not terms:
        raise InputError(f"no event terms in it; they look like `push = EventTerm(func=..., mode=...)`: {place}")
    reading = Reading(project, model, place.name, notes=list(notes))
    known = isaaclab.TERMS | mjlab.TERMS
    for term in terms:
        if term.func in known:
            try:
                known[term.func](reading, term)
            except InputError as error:
                reading.note(term, f"left out: {error}")
        elif term.func.startswith(STATE):
            reading.note(term, "left out: it sets the state or pushes; no parameter of the model")
        else:
            reading.note(term, "left out: no parameter here is like it")
    return Foreign(tuple(reading.ranges.values()), (), tuple(reading.notes))
