"""The formats that ranges can be written in, and the one function that writes them.

Formats without code are here: text that `train --ranges` reads, JSON, YAML, and the model at the centre of the ranges.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gapless.core.distribution import ranges_to_text
from gapless.core.errors import InputError, nearest
from gapless.core.places import require_writable
from gapless.core.results import Export, RandomizeResult, plain
from gapless.project.load import load_project
from gapless.randomize.event_terms import isaaclab, mjlab
from gapless.randomize.export.job import LEFT_OUT, ExportedRange, ExportJob, note_changed, note_left_out, order_notes
from gapless.randomize.export.model_code import write_gymnasium, write_playground
from gapless.sim.blueprint import compile_project
from gapless.sim.corrected import corrected_xml
from gapless.sim.ranges import distribution_of, read_ranges
from gapless.sim.targets import is_dc_motor

MAX_REASONS = 3  # that a refusal names
ABOUT = (
    "Values are in the units given. Every value is cut at [low, high] by drawing again. mean: centre of normal, median "
    "of log-normal, value of fixed, mean of beta, otherwise the middle. std: of normal before it is cut, of beta, of "
    "the logarithm of log-normal. per: drawn once per robot, per episode or per control step. nominal: leaves the "
    "model as it was written. * in a target is one shared factor on all."
)


def write_text(job: ExportJob, _: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the ranges as text, a line per parameter; nothing is left out."""
    units = "".join(f"#   {entry.target}: {entry.unit}, {entry.dimension}\n" for entry in job.entries)
    head = f"# Training ranges of {job.blueprint.project.name}, by gapless. Unit and dimension:\n{units}"
    return head + ranges_to_text(job.distribution.ranges, job.distribution.correlations), ()


def write_json(job: ExportJob, _: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the ranges as JSON; nothing is left out."""
    return json.dumps(_document(job), indent=1, ensure_ascii=False) + "\n", ()


def write_yaml(job: ExportJob, _: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the ranges as YAML; nothing is left out."""
    return yaml.safe_dump(_document(job), sort_keys=False, allow_unicode=True, width=120), ()


def _document(job: ExportJob) -> dict[str, Any]:
    project = job.blueprint.project
    head = {"gapless_ranges": 1, "project": project.name, "model": project.model_path.name, "rate_hz": project.rate_hz}
    ranges = [
        plain(entry.range) | {"unit": entry.unit, "dimension": entry.dimension, "nominal": float(entry.nominal)}
        for entry in job.entries
    ]
    return head | {"about": ABOUT, "ranges": ranges, "correlations": plain(job.distribution.correlations)}


def write_mjcf(job: ExportJob, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the MJCF of the model at the mean of every range, which names meshes relative to `folder`."""
    centre = note_changed("all", "a model has no ranges; this is the centre of each")
    notes = (centre, *filter(None, (_mjcf_note(entry, job) for entry in job.entries)))
    row = np.array([entry.range.mean for entry in job.entries])
    xml = corrected_xml(job.blueprint, job.distribution.space, row, folder)
    lines = "".join(f"  {note}\n" for note in notes).replace("--", "- -")  # XML allows no -- in a comment
    name = job.blueprint.project.name.replace("--", "- -")
    return f"<!-- The centre of the training ranges of {name}, by gapless.\n{lines}-->\n{xml}\n", notes


def _mjcf_note(entry: ExportedRange, job: ExportJob) -> str | None:
    if entry.kind == "measurement":
        return note_left_out(entry.target, "readings are not part of a model")
    if entry.field == "backlash":
        return note_left_out(entry.target, "MJCF has no backlash")
    if entry.kind == "actuator" and entry.field == "offset":
        motors = [job.model.actuator(a).name for a in range(job.model.nu) if is_dc_motor(job.model, a)]
        some = motors if entry.name == "*" else entry.name in motors
        return f"{entry.target}: left out for DC motors: they have no place for it" if some else None
    if entry.field == "offset":
        return note_changed(entry.target, "the servo follows the shifted zero; readings in the model are not shifted")
    return None


# A job and the folder of the file -> the text of the file, and notes on what it does not carry, a line per parameter.
Exporter = Callable[[ExportJob, Path], tuple[str, tuple[str, ...]]]
FORMATS: Mapping[str, Exporter] = {
    "text": write_text,
    "json": write_json,
    "yaml": write_yaml,
    "mjcf": write_mjcf,
    "gymnasium": write_gymnasium,
    "mjlab": mjlab.write,
    "isaaclab": isaaclab.write,
    "playground": write_playground,
}


def parse_exports(options: Sequence[str]) -> dict[str, Path]:
    """Returns format -> file of `FORMAT=FILE` options; InputError where one is not of this form or comes twice."""
    found: dict[str, Path] = {}
    for option in options:
        form, _, file = option.partition("=")
        if form in FORMATS and not file:
            raise InputError(f"--export {form}: no file named; write --export {form}=FILE")
        if form in found:
            raise InputError(f"--export: {form} is asked for twice; keep one")
        found[form] = Path(file)
    return found


def check_exports(files: Mapping[str, str | Path]) -> None:
    """Raises InputError if a format is unknown, a file cannot be written, or two formats go to one file."""
    for form, file in files.items():
        if form not in FORMATS:
            known = nearest(form, FORMATS, len(FORMATS))
            raise InputError(f"--export: no format {form!r}; choose from: {known}; write FORMAT=FILE")
        require_writable(Path(file), f"--export {form}")
    places = [Path(file) for file in files.values()]
    twice = [place for place in places if places.count(place) > 1]
    if twice:
        raise InputError(f"--export: two formats in one file; name a file for each: {twice[0]}")


def export_ranges(
    directory: str | Path, ranges: RandomizeResult | str | Path, files: Mapping[str, str | Path]
) -> tuple[Export, ...]:
    """Writes training ranges in the formats of other training stacks.

    `ranges` is a result of `randomize`, or a file of ranges: its JSON, or text (`*.txt`). `files` has format -> file;
    the formats are those of `FORMATS`. Returns what was written, with a line for each parameter that a format could not
    carry, or not as it is.
    """
    check_exports(files)
    blueprint = compile_project(load_project(directory))
    if isinstance(ranges, RandomizeResult):
        source = ", ".join(ranges.inputs)
        found = distribution_of(ranges.ranges, ranges.correlations, blueprint, source)
    else:
        found, source = read_ranges(ranges, blueprint), Path(ranges).name
    job = ExportJob(blueprint, found, source)
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
    targets = {entry.target for entry in job.entries}

    def carries_some(notes: Sequence[str]) -> bool:
        return not targets <= {note.partition(LEFT_OUT)[0] for note in notes if LEFT_OUT in note}

    if carries_some(notes):
        return
    extra = len(notes) - MAX_REASONS
    reasons = "; ".join(note.replace(LEFT_OUT, ": ") for note in notes[:MAX_REASONS])
    others = [other for other, write in FORMATS.items() if carries_some(write(job, file.parent)[1])]
    raise InputError(
        f"--export {form}: none of the {len(targets)} ranges has a counterpart there, so nothing was written: {reasons}"
        f"{f'; and {extra} more' if extra > 0 else ''}: choose another format, {', '.join(others)} carry some: {file}"
    )
