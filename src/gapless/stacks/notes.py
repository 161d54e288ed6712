"""What exporters say about what they could not carry: a line per parameter, on the screen and in the file."""

from collections.abc import Sequence

import gapless
from gapless.stacks.entries import Job


def left_out(target: str, why: str) -> str:
    """Returns the note on a parameter that a format does not carry."""
    return f"{target}: left out: {why}"


def changed(target: str, how: str) -> str:
    """Returns the note on a parameter that a format carries otherwise than it is."""
    return f"{target}: changed: {how}"


def uncorrelated(job: Job) -> list[str]:
    """Returns a note on each correlation, for formats that have none."""
    return [
        left_out(f"correlation {pair.first} {pair.second}", "each term draws on its own") for pair in job.correlations
    ]


def as_comment(job: Job, notes: Sequence[str]) -> str:
    """Returns the head of a Python file: where the ranges come from, and what is not carried."""
    name = job.blueprint.project.name
    lines = [f"# Training ranges of {name}, by gapless {gapless.__version__}.", f"# From: {job.source or 'ranges'}"]
    lines += ["# Not carried, or not as it is:" if notes else "# Everything is carried as it is."]
    return "".join(f"{line}\n" for line in [*lines, *(f"#   {note}" for note in notes)])
