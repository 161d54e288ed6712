"""The verb `randomize`: which ranges to train on; `gapless.verbs` adds exports and `bayrn`."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gapless
from gapless.core.dimensions import Dimension
from gapless.core.distribution import Correlation, Range
from gapless.core.errors import InputError, nearest
from gapless.core.protocols import Progress
from gapless.core.provenance import Provenance
from gapless.core.results import FittedParameter, IdentifyResult, RandomizeResult
from gapless.core.signal import Array
from gapless.data.catalogue import Catalogue
from gapless.data.splits import require_untested
from gapless.data.stored_results import artefact_ids, newest_result, result_path, store_result_if_possible
from gapless.fit.data import read_project_data
from gapless.project.fingerprint import fingerprint
from gapless.project.load import load_project
from gapless.project.records import Project
from gapless.randomize.evidence import evidence_ranges
from gapless.randomize.from_logs import dropo_ranges, simopt_ranges
from gapless.sim.ranges import read_result

LOG_METHODS = {"dropo": dropo_ranges, "simopt": simopt_ranges}
SAMPLE_FILES = {"evidence": "posterior.parquet", "sbi": "posterior_sbi.parquet"}  # beside a fit in the catalogue
METHODS = (*SAMPLE_FILES, *LOG_METHODS)


def randomize(
    directory: str | Path,
    *,
    fit: str | Path | None = None,
    method: str = "evidence",
    dimensions: Collection[Dimension] | None = None,
    where: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> RandomizeResult:
    """Finds the ranges to train on from a fit or from logs.

    `evidence` turns a fit into ranges about the fitted values, as wide as what was left open and unexplained; `sbi`
    does so with the samples of `identify --posterior sbi`. `dropo` and `simopt` need no fit: they read the logs.

    For `evidence` and `sbi` only: `fit` is JSON that `identify` wrote, None for the newest fit in the catalogue; and
    parameters of other than some `dimensions` are fixed at their fitted values. For `dropo` and `simopt` only: `where`
    is an SQL condition on the view `episodes` of the logs to read.
    """
    if method not in METHODS:
        raise InputError(f"no method {method!r}; choose from: {nearest(method, METHODS)}")
    if fit is not None and method in LOG_METHODS:
        raise InputError(f"--method {method} reads the logs, not a fit: leave --fit out")
    if dimensions is not None and method in LOG_METHODS:
        raise InputError(f"method {method} randomises all dimensions: leave dimensions out")
    if where is not None and method not in LOG_METHODS:
        raise InputError(
            f"method {method} reads a fit, not logs: give --where to `gapless identify`, and leave it out here"
        )
    project = load_project(directory)
    if method in LOG_METHODS:
        data = read_project_data(directory, where=where, progress=progress)
        data.warn_left_out()
        inputs, (ranges, correlations) = data.ids, LOG_METHODS[method](data, seed, progress)
    else:
        catalogue = Catalogue.open(project.directory)
        newest = newest_result(catalogue, "identify")
        if fit is None and newest is None:
            raise InputError("there is no fit yet: run `gapless identify DIR` first, or name one with --fit FILE")
        fit_path = Path(fit) if fit is not None else result_path(catalogue, str(newest))
        require_untested(catalogue, artefact_ids(fit_path), "this fit")
        inputs, (ranges, correlations) = artefact_ids(fit_path), _ranges_of_fit(fit_path, method, dimensions)
    result = RandomizeResult(inputs, ranges, "", seed, method, correlations)
    return store_ranges(project, result, {} if dimensions is None else {"dimensions": sorted(dimensions)})


def store_ranges(project: Project, result: RandomizeResult, about: dict[str, Any]) -> RandomizeResult:
    """Enters ranges in the catalogue; returns them with their id and path, which is empty where they were not kept.

    `about` is how they came about, besides the project and the method.
    """
    catalogue, config = Catalogue.open(project.directory), {"project": fingerprint(project), "method": result.method}
    provenance = Provenance("randomize", gapless.__version__, result.inputs, config | about, result.seed)
    identity = store_result_if_possible(catalogue, result, provenance)
    path = str(result_path(catalogue, identity).resolve()) if identity else ""
    return replace(result, id=identity, path=path)


def _ranges_of_fit(
    path: Path, method: str, dimensions: Collection[Dimension] | None
) -> tuple[tuple[Range, ...], tuple[Correlation, ...]]:
    fit = read_result(path, IdentifyResult)
    if fit.verdict == "refused":
        raise InputError(f"that fit was refused ({'; '.join(fit.reasons)}): record more first: {path}")
    parameters = _sampled_parameters(fit, path) if method == "sbi" else fit.parameters
    unexplained = max(1.0, fit.held_out.residual_to_noise or fit.train.residual_to_noise or 1.0)
    return evidence_ranges(parameters, unexplained, _read_samples(fit, path, method), dimensions)


def _sampled_parameters(fit: IdentifyResult, path: Path) -> tuple[FittedParameter, ...]:
    """Returns the parameters of a fit with the medians and intervals of its neural samples."""
    if not fit.neural:
        raise InputError(f"this fit has no neural samples: run `gapless identify DIR --posterior sbi`: {path}")
    sampled = {p.target: p for p in fit.neural.parameters}
    missing = [p.target for p in fit.parameters if p.target not in sampled]
    if missing:
        raise InputError(f"the neural samples lack {', '.join(missing)}: run identify again: {path}")
    pairs = [(p, sampled[p.target]) for p in fit.parameters]
    return tuple(replace(p, value=s.median, low=s.low, high=s.high, level=s.level) for p, s in pairs)


def _read_samples(fit: IdentifyResult, path: Path, method: str) -> Array | None:
    """Returns a fit's samples, (num_samples, num_parameters), or None if they are gone."""
    targets = [p.target for p in fit.parameters]
    stated = (fit.neural.path if fit.neural else None) if method == "sbi" else fit.posterior
    for place in (path.parent / SAMPLE_FILES[method], Path(stated or "")):
        if place.is_file():
            try:
                table = pq.read_table(place, columns=targets)
            except (pa.ArrowException, OSError) as error:
                raise InputError(f"these are no samples of a fit ({error}): run identify again: {place}") from None
            if table.num_columns == len(targets):
                return np.stack([table[name].to_numpy() for name in targets], axis=1)
    return None
