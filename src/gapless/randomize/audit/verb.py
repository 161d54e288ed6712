"""The verb `audit`: training ranges beside real logs."""

from dataclasses import replace
from pathlib import Path

import numpy as np

import gapless
from gapless.check.examine import examine_data
from gapless.core.distribution import Distribution, ranges_to_text
from gapless.core.provenance import Provenance
from gapless.core.results import AuditedColumn, AuditResult
from gapless.core.signal import Array
from gapless.data.stored_results import artefact_ids, store_result_if_possible
from gapless.fit.data import ProjectData, read_project_data
from gapless.fit.prediction.lengths import shortest_window_s
from gapless.fit.search.structure import build_problem
from gapless.fit.solve import Progress
from gapless.fit.summary import find_refusal
from gapless.project.fingerprint import fingerprint
from gapless.randomize.audit.band import Band, band_of
from gapless.randomize.audit.explain import Explained, Inside, best_inside, explain
from gapless.randomize.audit.judge import Judged, judge
from gapless.randomize.audit.ranges import Box, box_of, drawn_rows, prior_of, ranges_of, uniform_within, with_ranges
from gapless.randomize.audit.words import reasons_of

NUM_DRAWN = 64  # rows that the band of predictions is made of


def audit(directory: str | Path, ranges: str | Path, *, seed: int = 0, progress: Progress | None = None) -> AuditResult:
    """Says whether reality, as the logs show it, lies inside the ranges that a policy is trained on.

    The best row within the ranges is compared with the best row within prior bounds: where it predicts the logs
    clearly worse, the ranges are too narrow. Ranges far wider than what the logs leave open are too wide. Where even
    the best row leaves more than noise explains, the model is wrong: it lacks something.

    Args:
        directory: The project folder.
        ranges: The ranges: JSON that `randomize` wrote, text (`*.txt`), or an event configuration of Isaac Lab or mjlab
            (`*.py`, or the YAML or JSON that a run wrote).
        seed: Seed of the windows and starts that are tried, and of the rows that are drawn.
        progress: Called with what is being done and how far it is, in [0, 1].

    Raises:
        InputError: If the project, its logs or the ranges cannot be used.
    """
    gathered = read_project_data(directory, progress=progress)
    distribution, unread = ranges_of(ranges, gathered.blueprint)  # bad input shows before the work
    looked = examine_data(gathered)
    plain = looked.evidence
    evidence = with_ranges(plain, distribution)
    rng = np.random.default_rng(seed)
    first_s = shortest_window_s(evidence.project)
    refusal = looked.refusal or find_refusal(
        evidence, build_problem(evidence, evidence.whole, range(len(evidence.tracks)), first_s, rng), first_s
    )
    empty = AuditResult(
        *((*evidence.ids, *artefact_ids(ranges)), str(ranges), "cannot tell", ("cannot tell",), (), (), {}, None, None),
        *(1.0, first_s, 0, seed),
        notes=(*looked.every_note, *unread),
    )
    if refusal:
        return _kept(evidence, distribution, replace(empty, reasons=(refusal,)))
    tries = drawn_rows(distribution, evidence.whole, rng, NUM_DRAWN)
    explained = explain(evidence, evidence.whole, tries, rng, progress)
    box = box_of(distribution, evidence.whole, rng)
    inside = best_inside(explained, box, tries)
    if progress is not None:
        progress("best values within the ranges", 1.0)
    problem, row = explained.problem, explained.solution.row
    priors = [prior_of(plain, problem.predictor.space.targets[k]) for k in problem.free]
    judged = judge(explained, inside, box, priors, problem.columns_to_noise(row))
    bands = [band_of(problem, rows, rng) for rows in (tries, _advised(judged, box, evidence, rng))]
    if progress is not None:
        progress("predictions of drawn worlds", 1.0)
    result = replace(
        empty,
        verdict=judged.verdicts[0],
        verdicts=judged.verdicts,
        parameters=judged.parameters,
        columns=_columns(explained, inside, bands),
        residual_to_noise=problem.to_noise(row),
        residual_in_ranges=problem.to_noise(inside.row),
        share=judged.share,
        window_s=explained.window_s,
        num_windows=len(problem.windows),
    )
    reasons = (*looked.reasons_not_good, *reasons_of(result, judged.together))
    return _kept(evidence, distribution, replace(result, reasons=reasons))


def _advised(judged: Judged, box: Box, evidence: ProjectData, rng: np.random.Generator) -> Array:
    """Returns rows drawn evenly from the advised ranges."""
    low, high = box.low.copy(), box.high.copy()
    for entry in judged.parameters:
        column = evidence.whole.index(entry.target)
        low[column], high[column] = entry.advised_low, entry.advised_high
    return uniform_within(low, high, rng, NUM_DRAWN)


def _columns(explained: Explained, inside: Inside, bands: list[Band]) -> dict[str, AuditedColumn]:
    problem = explained.problem
    numbers = zip(
        problem.columns_to_noise(explained.solution.row),
        problem.columns_to_noise(inside.row),
        bands[0].coverage,
        bands[0].to_noise,
        bands[1].to_noise,
        strict=True,
    )
    names = problem.predictor.blueprint.project.measurement_names
    return {name: AuditedColumn(*map(float, entry)) for name, entry in zip(names, numbers, strict=True)}


def _kept(evidence: ProjectData, ranges: Distribution, result: AuditResult) -> AuditResult:
    """Enters an audit in the catalogue; returns it."""
    config = {"project": fingerprint(evidence.project), "ranges": ranges_to_text(ranges.ranges, ranges.correlations)}
    provenance = Provenance("randomize --audit", gapless.__version__, result.inputs, config, result.seed)
    return replace(result, id=store_result_if_possible(evidence.catalogue, result, provenance))
