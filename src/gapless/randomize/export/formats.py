"""The formats that ranges can be written in, and the one function that writes them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gapless.core.errors import InputError, nearest
from gapless.core.places import require_writable
from gapless.core.results import Export, RandomizeResult
from gapless.project.load import load_project
from gapless.randomize.export import documents, gymnasium, isaaclab, mjlab, playground
from gapless.randomize.export.job import ExportJob, find_reasons, make_job, order_notes, summarize_reasons
from gapless.sim.blueprint import compile_project
from gapless.sim.ranges import read_ranges

# A job and the folder of the file -> the text of the file, and notes on what it does not carry, a line per parameter.
Exporter = Callable[[ExportJob, Path], tuple[str, tuple[str, ...]]]
FORMATS: Mapping[str, Exporter] = {
    "text": documents.write_text,
    "json": documents.write_json,
    "yaml": documents.write_yaml,
    "mjcf": documents.write_mjcf,
    "gymnasium": gymnasium.write,
    "mjlab": mjlab.write,
    "isaaclab": isaaclab.write,
    "playground": playground.write,
}


def parse_exports(options: Sequence[str]) -> dict[str, Path]:
    """Returns format -> file of `FORMAT=FILE` options.

    Raises:
        InputError: If one is not of this form, or a format comes twice.
    """
    found: dict[str, Path] = {}
    for option in options:
        form, _, file = option.partition("=")
        _check_format(form)
        if not file:
            raise InputError(f"--export {form}: no file named; write --export {form}=FILE")
        if form in found:
            raise InputError(f"--export: {form} is asked for twice; keep one")
        found[form] = Path(file)
    return found


def check_exports(files: Mapping[str, str | Path]) -> None:
    """Checks format -> file before the work begins.

    Raises:
        InputError: If a format is unknown, a file cannot be written, or two formats go to one file.
    """
    for form, file in files.items():
        _check_format(form)
        require_writable(Path(file), f"--export {form}")
    places = [Path(file) for file in files.values()]
    twice = [place for place in places if places.count(place) > 1]
    if twice:
        raise InputError(f"--export: two formats in one file; name a file for each: {twice[0]}")


def _check_format(form: str) -> None:
    if form not in FORMATS:
        known = nearest(form, FORMATS, len(FORMATS))
        raise InputError(f"--export: no format {form!r}; choose from: {known}; write FORMAT=FILE")


def export_ranges(
    directory: str | Path, ranges: RandomizeResult | str | Path, files: Mapping[str, str | Path]
) -> tuple[Export, ...]:
    """Writes training ranges in the formats of other training stacks.

    Args:
        directory: The project folder.
        ranges: A result of `randomize`, or a file of ranges: its JSON, or text (`*.txt`).
        files: Format -> file to write; the formats are those of `FORMATS`.

    Returns:
        What was written, with a line for each parameter that a format could not carry, or not as it is.

    Raises:
        InputError: If the ranges are not for this project's model, a format carries none of them, or a file cannot
            be written.
    """
    check_exports(files)
    blueprint = compile_project(load_project(directory))
    if isinstance(ranges, RandomizeResult):
        job = make_job(blueprint, ranges.ranges, ranges.correlations, ", ".join(ranges.inputs))
    else:
        found = read_ranges(ranges, blueprint)
        job = make_job(blueprint, found.ranges, found.correlations, Path(ranges).name)
    if not job.entries:
        raise InputError("there are no ranges to write: give a file that has some, or run `gapless randomize DIR`")
    texts: dict[str, str] = {}
    made: list[Export] = []
    for form, file in files.items():
        texts[form], notes = FORMATS[form](job, Path(file).parent)
        _refuse_empty(job, form, notes, Path(file))
        made.append(Export(form, str(file), order_notes(notes)))
    for item in made:  # only now: where one format is refused, no file is written
        try:
            Path(item.path).write_text(texts[item.format], encoding="utf-8")
        except OSError as error:
            raise InputError(f"--export {item.format}: cannot write: {error.strerror}: {item.path}") from None
    return tuple(made)


def _refuse_empty(job: ExportJob, form: str, notes: Sequence[str], file: Path) -> None:
    """Raises an error if a format carries none of the ranges: training would go on without any, unnoticed."""
    reasons, num = find_reasons(job, notes), len(job.entries)
    if len(reasons) < num:
        return
    others = [other for other, write in FORMATS.items() if len(find_reasons(job, write(job, file.parent)[1])) < num]
    raise InputError(
        f"--export {form}: none of the {num} ranges has a counterpart there, so nothing was written: "
        f"{summarize_reasons(reasons)}: choose another format, {', '.join(others)} carry some: {file}"
    )
