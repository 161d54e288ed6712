"""What exporters say about what they could not carry: a line per parameter, on the screen and in the file."""

from collections.abc import Mapping, Sequence

import gapless
from gapless.randomize.export.entries import Job

LEFT_OUT = ": left out: "
CORRELATION = "correlation "  # how the name of a correlation begins in a note
NAMED_PER_REASON = 2  # targets that a refusal names for each of its reasons


def left_out(target: str, why: str) -> str:
    """Returns the note on a parameter that a format does not carry."""
    return f"{target}{LEFT_OUT}{why}"


def changed(target: str, how: str) -> str:
    """Returns the note on a parameter that a format carries otherwise than it is."""
    return f"{target}: changed: {how}"


def uncorrelated(job: Job) -> list[str]:
    """Returns a note on each correlation, for formats that have none."""
    return [
        left_out(f"{CORRELATION}{pair.first} {pair.second}", "each term draws on its own") for pair in job.correlations
    ]


def not_carried(job: Job, notes: Sequence[str]) -> dict[str, str]:
    """Returns target -> why, of the ranges that a format does not carry."""
    said = {target: why for target, mark, why in (note.partition(LEFT_OUT) for note in notes) if mark}
    return {entry.target: said[entry.target] for entry in job.entries if entry.target in said}


def order_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """Returns notes in the order in which people need them: ranges left out, ranges changed, correlations."""
    return tuple(sorted(notes, key=lambda note: (note.startswith(CORRELATION), LEFT_OUT not in note)))


def summarize_reasons(reasons: Mapping[str, str]) -> str:
    """Returns target -> why as one line: each reason once, with the first targets it holds for."""
    targets: dict[str, list[str]] = {}
    for target, why in reasons.items():
        targets.setdefault(why, []).append(target)
    said = []
    for number, (why, names) in enumerate(sorted(targets.items(), key=lambda item: -len(item[1])), 1):
        more = f" and {len(names) - NAMED_PER_REASON} more" if len(names) > NAMED_PER_REASON else ""
        said.append(f"({number}) {', '.join(names[:NAMED_PER_REASON])}{more}: {why}")
    return "; ".join(said)


def as_comment(job: Job, notes: Sequence[str]) -> str:
    """Returns the head of a Python file: where the ranges come from, and what is not carried."""
    name = job.blueprint.project.name
    lines = [f"# Training ranges of {name}, by gapless {gapless.__version__}.", f"# From: {job.source or 'ranges'}"]
    lines += ["# Not carried, or not as it is:" if notes else "# Everything is carried as it is."]
    return "".join(f"{line}\n" for line in [*lines, *(f"#   {note}" for note in order_notes(notes))])
