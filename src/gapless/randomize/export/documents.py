"""Formats without code: ranges as text that `train --ranges` reads, as JSON or YAML, and the model at their centre."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gapless.core.distribution import ranges_to_text
from gapless.core.results import plain
from gapless.randomize.export.job import ExportedRange, ExportJob, note_changed, note_left_out
from gapless.sim.corrected import corrected_xml
from gapless.sim.targets import is_dc_motor

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
    return head + ranges_to_text([entry.range for entry in job.entries], job.correlations), ()


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
    return head | {"about": ABOUT, "ranges": ranges, "correlations": plain(job.correlations)}


def write_mjcf(job: ExportJob, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the MJCF of the model at the mean of every range; how far they reach is not part of a model.

    Args:
        job: What is to be written.
        folder: Where the file will be: it names meshes relative to it.
    """
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
