"""The formats that ranges can be written in, and the one function that writes them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from gapless.core.errors import InputError, nearest
from gapless.core.places import writable
from gapless.core.results import Export, RandomizeResult
from gapless.project.load import load_project
from gapless.randomize.export import document, gymnasium, isaaclab, mjcf, mjlab, playground
from gapless.randomize.export.entries import Job, job_of
from gapless.randomize.export.notes import not_carried, order_notes, summarize_reasons
from gapless.sim.blueprint import compile_project
from gapless.sim.ranges import read_ranges


class Exporter(Protocol):
    """Turns ranges into the text of a file."""

    def __call__(self, job: Job, folder: Path) -> tuple[str, tuple[str, ...]]:
        """Returns the text, and what it could not carry, a line per parameter.

        Args:
            job: What is to be written.
            folder: Where the file will be, for formats that name other files.
        """
        ...


FORMATS: Mapping[str, Exporter] = {
    "text": document.write_text,
    "json": document.write_json,
    "yaml": document.write_yaml,
    "mjcf": mjcf.write,
    "gymnasium": gymnasium.write,
    "mjlab": mjlab.write,
    "isaaclab": isaaclab.write,
    "playground": playground.write,
}


def wanted(exports: Sequence[str]) -> dict[str, Path]:
    """Returns format -> file of `FORMAT=FILE`, after a look at whether each can be written.

    Raises:
        InputError: If one is not of this form, names no format, comes twice, or its file cannot be written.
    """
    found: dict[str, Path] = {}
    for item in exports:
        form, _, file = item.partition("=")
        known = nearest(form, FORMATS, len(FORMATS))
        if form not in FORMATS:
            raise InputError(f"--export: no format {form!r}; choose from: {known}; write FORMAT=FILE")
        if not file:
            raise InputError(f"--export {form}: no file named; write --export {form}=FILE")
        if form in found:
            raise InputError(f"--export: {form} is asked for twice; keep one")
        found[form] = writable(Path(file), f"--export {form}")
    twice = [file for file in found.values() if list(found.values()).count(file) > 1]
    if twice:
        raise InputError(f"--export: two formats in one file; name a file for each: {twice[0]}")
    return found


def export(
    directory: str | Path, ranges: RandomizeResult | str | Path, files: Mapping[str, str | Path]
) -> tuple[Export, ...]:
    """Writes training ranges in the formats of other stacks.

    Args:
        directory: The project folder.
        ranges: A result of `randomize`, or a file of ranges: its JSON, or text (`*.txt`).
        files: Format -> file to write.

    Returns:
        What was written, with a line for each parameter that a format could not carry, or not as it is.

    Raises:
        InputError: If the ranges are not for this project's model, a format carries none of them, or a file cannot
            be written.
    """
    blueprint = compile_project(load_project(directory))
    if isinstance(ranges, RandomizeResult):
        job = job_of(blueprint, ranges.ranges, ranges.correlations, ", ".join(ranges.inputs))
    else:
        found = read_ranges(ranges, blueprint)
        job = job_of(blueprint, found.ranges, found.correlations, Path(ranges).name)
    if not job.entries:
        raise InputError("there are no ranges to write")
    texts: dict[str, str] = {}
    made: list[Export] = []
    for form, file in files.items():
        if form not in FORMATS:
            raise InputError(f"no format {form!r}; choose from: {nearest(form, FORMATS, len(FORMATS))}")
        texts[form], notes = FORMATS[form](job, Path(file).parent)
        _refuse_empty(job, form, notes, Path(file))
        made.append(Export(form, str(file), order_notes(notes)))
    for item in made:  # only now: where one format is refused, no file is written
        try:
            Path(item.path).write_text(texts[item.format], encoding="utf-8")
        except OSError as error:
            raise InputError(f"--export {item.format}: cannot write: {error.strerror}: {item.path}") from None
    return tuple(made)


def _refuse_empty(job: Job, form: str, notes: Sequence[str], file: Path) -> None:
    """Raises an error if a format carries none of the ranges: training would go on without any, unnoticed."""
    reasons = not_carried(job, notes)
    if len(reasons) < len(job.entries):
        return
    others = [
        other for other in FORMATS if len(not_carried(job, FORMATS[other](job, file.parent)[1])) < len(job.entries)
    ]
    raise InputError(
        f"--export {form}: none of the {len(job.entries)} ranges has a counterpart there, so nothing was written: "
        f"{summarize_reasons(reasons)}: choose another format, {', '.join(others)} carry some: {file}"
    )


def exported(directory: str | Path, result: RandomizeResult, files: Mapping[str, Path]) -> RandomizeResult:
    """Returns a result with what was written of it."""
    return replace(result, exports=export(directory, result, files)) if files else result
