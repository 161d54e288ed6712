"""Event configurations of Isaac Lab and mjlab, read as training ranges."""

from pathlib import Path
from typing import NamedTuple

import mujoco

from gapless.core.distribution import Correlation, Range
from gapless.core.errors import InputError
from gapless.project.records import Project
from gapless.randomize.event_files import isaaclab, mjlab
from gapless.randomize.event_files.files import SUFFIXES, read_terms
from gapless.randomize.event_files.term_reader import TermReader

STATE_FUNCTIONS = ("reset_", "push_", "apply_")  # how functions begin that set the state


class EventRanges(NamedTuple):
    """Ranges of an event configuration."""

    ranges: tuple[Range, ...]  # one per parameter of the project's model
    correlations: tuple[Correlation, ...]  # always empty: event terms draw on their own
    notes: tuple[str, ...]  # what could not be read, or not as it is there: a line each


def read_event_ranges(path: str | Path, project: Project, model: mujoco.MjModel) -> EventRanges:
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
        terms, notes = read_terms(place.read_text(encoding="utf-8"), place.suffix.lower())
    except UnicodeDecodeError:
        raise InputError(f"this is no text: name a file of event terms: {place}") from None
    except InputError as error:
        raise InputError(f"{error}: {place}") from None
    if not terms:
        raise InputError(f"no event terms in it; they look like `push = EventTerm(func=..., mode=...)`: {place}")
    reader, functions = TermReader(project, model, place.name, notes=notes), isaaclab.TERMS | mjlab.TERMS
    for term in terms:
        if term.func in functions:
            try:
                functions[term.func](reader, term)
            except InputError as error:
                reader.note(term, f"left out: {error}")
        elif term.func.startswith(STATE_FUNCTIONS):
            reader.note(term, "left out: it sets the state or pushes; no parameter of the model")
        else:
            reader.note(term, "left out: no parameter here is like it")
    return EventRanges(tuple(reader.ranges.values()), (), tuple(reader.notes))
