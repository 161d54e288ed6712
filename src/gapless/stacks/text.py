"""Ranges as the text that `train --ranges` reads."""

from pathlib import Path

from gapless.core.distribution import ranges_to_text
from gapless.stacks.entries import Job


def write(job: Job, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the ranges as text, a line per parameter; nothing is left out."""
    del folder
    units = "".join(f"#   {entry.target}: {entry.unit}, {entry.dimension}\n" for entry in job.entries)
    head = f"# Training ranges of {job.blueprint.project.name}, by gapless. Unit and dimension:\n{units}"
    return head + ranges_to_text([entry.range for entry in job.entries], job.correlations), ()
