"""Ranges as they are: as the text that `train --ranges` reads, and as JSON or YAML for programs of one's own."""

import json
from pathlib import Path
from typing import Any

import yaml

from gapless.core.distribution import ranges_to_text
from gapless.core.results import plain
from gapless.randomize.export.entries import Job

ABOUT = (
    "Values are in the units given. Every value is cut at [low, high] by drawing again. mean: centre of normal, median "
    "of log-normal, value of fixed, mean of beta, otherwise the middle. std: of normal before it is cut, of beta, of "
    "the logarithm of log-normal. per: drawn once per robot, per episode or per control step. nominal: leaves the "
    "model as it was written. * in a target is one shared factor on all."
)


def write_text(job: Job, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the ranges as text, a line per parameter; nothing is left out."""
    del folder
    units = "".join(f"#   {entry.target}: {entry.unit}, {entry.dimension}\n" for entry in job.entries)
    head = f"# Training ranges of {job.blueprint.project.name}, by gapless. Unit and dimension:\n{units}"
    return head + ranges_to_text([entry.range for entry in job.entries], job.correlations), ()


def write_json(job: Job, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the ranges as JSON; nothing is left out."""
    del folder
    return json.dumps(_document(job), indent=1, ensure_ascii=False) + "\n", ()


def write_yaml(job: Job, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the ranges as YAML; nothing is left out."""
    del folder
    return yaml.safe_dump(_document(job), sort_keys=False, allow_unicode=True, width=120), ()


def _document(job: Job) -> dict[str, Any]:
    return {
        "gapless_ranges": 1,
        "project": job.blueprint.project.name,
        "model": job.blueprint.project.model_path.name,
        "rate_hz": job.blueprint.project.rate_hz,
        "about": ABOUT,
        "ranges": [
            plain(entry.range) | {"unit": entry.unit, "dimension": entry.dimension, "nominal": float(entry.nominal)}
            for entry in job.entries
        ],
        "correlations": plain(job.correlations),
    }
