"""The verb `randomize`: which ranges to train on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gapless
from gapless.core.distribution import Correlation, Range
from gapless.core.errors import InputError, nearest
from gapless.core.provenance import Provenance
from gapless.core.results import RandomizeResult
from gapless.core.signal import Array
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import RESULT, artefact_ids, newest_result, store_result_if_possible
from gapless.fit.data import ProjectData, read_project_data
from gapless.project.fingerprint import fingerprint
from gapless.project.load import load_project
from gapless.randomize.dropo import dropo_ranges
from gapless.randomize.evidence import evidence_ranges
from gapless.randomize.simopt import simopt_ranges
from gapless.sim.ranges import read_result

Progress = Callable[[str, float], None]
METHODS = ("evidence", "sbi", "dropo", "simopt")
SAMPLES = {"evidence": "posterior.parquet", "sbi": "posterior_sbi.parquet"}  # beside a fit in the catalogue


@dataclass(frozen=True)
class _Found:
    """Ranges, which of them go together, and the ids of what they come from."""

    ranges: tuple[Range, ...]
    correlations: tuple[Correlation, ...]
    inputs: tuple[str, ...]


def randomize(
    directory: str | Path,
    *,
    fit: str | Path | None = None,
    method: str = "evidence",
    seed: int = 0,
    progress: Progress | None = None,
) -> RandomizeResult:
    """Finds the ranges to train on.

    `evidence` turns a fit into ranges about what was fitted, as wide as what was left open and unexplained; `sbi` does
    so with the samples of `identify --posterior sbi`. `dropo` and `simopt` need no fit: they read the logs.

    Args:
        directory: The project folder.
        fit: JSON that `identify` wrote; None for the newest fit in the catalogue. For `evidence` and `sbi` only.
        method: How to find them, one of `METHODS`.
        seed: Seed of everything random.
        progress: Called with what is being done and how far it is, in [0, 1].

    Raises:
        InputError: If there is no fit, or it refused, or the project's logs cannot be used.
    """
    if method not in METHODS:
        raise InputError(f"no method {method!r}; choose from: {nearest(method, METHODS)}")
    if fit is not None and method not in SAMPLES:
        raise InputError(f"--method {method} reads the logs, not a fit: leave --fit out")
    project = load_project(directory)
    catalogue = Catalogue.open(project.directory)
    if method in SAMPLES:
        found = _of_fit(catalogue, fit, method)
    else:
        found = _of_logs(read_project_data(directory, progress=progress), method, seed, progress)
    result = RandomizeResult(found.inputs, found.ranges, "", seed, method, found.correlations)
    about = {"project": fingerprint(project), "method": method}
    identity = store_result_if_possible(
        catalogue, result, Provenance("randomize", gapless.__version__, found.inputs, about, seed)
    )
    path = str(catalogue.artefact_path(identity, RESULT).resolve()) if identity else ""
    return replace(result, id=identity, path=path)


def _of_logs(evidence: ProjectData, method: str, seed: int, progress: Progress | None) -> _Found:
    if method == "dropo":
        return _Found(dropo_ranges(evidence, seed, progress), (), evidence.ids)
    return _Found(*simopt_ranges(evidence, seed, progress), evidence.ids)


def _of_fit(catalogue: Catalogue, fit: str | Path | None, method: str) -> _Found:
    path = Path(fit) if fit is not None else _newest_fit(catalogue)
    found = read_result(path, "identify")
    try:
        if found["verdict"] == "refused":
            raise InputError(f"that fit was refused ({'; '.join(found['reasons'])}): record more first: {path}")
        judged = found["held_out"] if found["held_out"].get("residual_to_noise") else found["train"]
        unexplained = max(1.0, float(judged.get("residual_to_noise") or 1.0))
        entries = _sampled(found, path) if method == "sbi" else found["parameters"]
        samples = _samples(found, path, method, [entry["target"] for entry in entries])
        return _Found(*evidence_ranges(entries, unexplained, samples), artefact_ids(path))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the fit lacks a part, or one is no number ({error}): run identify again: {path}") from None


def _sampled(found: dict[str, Any], path: Path) -> list[dict[str, Any]]:
    """Returns the parameters of a fit with the medians and intervals of its neural samples."""
    if not found.get("neural"):
        raise InputError(f"this fit has no neural samples: run `gapless identify DIR --posterior sbi`: {path}")
    told = {entry["target"]: entry for entry in found["neural"]["parameters"]}
    names = {"value": "median", "low": "low", "high": "high", "level": "level"}
    return [
        entry | {name: told[entry["target"]][said] for name, said in names.items()} for entry in found["parameters"]
    ]


def _samples(found: dict[str, Any], path: Path, method: str, targets: list[str]) -> Array | None:
    """Returns a fit's samples, (num_samples, num_parameters), or None if they are gone."""
    said = (found.get("neural") or {}).get("path") if method == "sbi" else found.get("posterior")
    for place in (path.parent / SAMPLES[method], Path(said or "")):
        if place.is_file():
            try:
                table = pq.read_table(place, columns=targets)
            except (pa.ArrowException, OSError) as error:
                raise InputError(f"these are no samples of a fit ({error}): run identify again: {place}") from None
            if table.num_columns == len(targets):
                return np.stack([table[name].to_numpy() for name in targets], axis=1)
    return None


def _newest_fit(catalogue: Catalogue) -> Path:
    identity = newest_result(catalogue, "identify")
    if identity is None:
        raise InputError("there is no fit yet: run `gapless identify DIR` first, or name one with --fit FILE")
    return catalogue.artefact_path(identity, RESULT)
