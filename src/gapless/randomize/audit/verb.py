"""The verb `audit`: training ranges beside real logs."""

from dataclasses import replace
from pathlib import Path

import numpy as np

import gapless
from gapless.check.examine import examine_data
from gapless.core.distribution import Distribution, ranges_to_text
from gapless.core.provenance import Provenance
from gapless.core.results import AuditedColumn, AuditResult
from gapless.data.stored_results import artefact_ids, store_result_if_possible
from gapless.fit.data import ProjectData, read_project_data
from gapless.fit.prediction.lengths import shortest_window_s
from gapless.fit.search.structure import build_problem
from gapless.fit.solve import Progress
from gapless.fit.summary import find_refusal
from gapless.project.fingerprint import fingerprint
from gapless.randomize.audit.predictions import fit_anywhere, fit_inside, predict_band
from gapless.randomize.audit.ranges import add_ranges, draw_rows, find_prior, make_box, read_training_ranges
from gapless.randomize.audit.verdict import find_verdicts, write_reasons

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
    """
    report = progress or (lambda label, share: None)
    read = read_project_data(directory, progress=progress)
    distribution, unread = read_training_ranges(ranges, read.blueprint)  # bad input shows before the work
    examined = examine_data(read)
    data = add_ranges(examined.evidence, distribution)
    rng = np.random.default_rng(seed)
    first_s = shortest_window_s(data.project)
    first_problem = build_problem(data, data.whole, range(len(data.tracks)), first_s, rng)
    refusal = examined.refusal or find_refusal(data, first_problem, first_s)
    result = AuditResult(
        inputs=(*data.ids, *artefact_ids(ranges)),
        audited=str(ranges),
        verdict="cannot tell",
        verdicts=("cannot tell",),
        reasons=(refusal or "",),
        parameters=(),
        columns={},
        residual_to_noise=None,
        residual_in_ranges=None,
        share=1.0,
        window_s=first_s,
        num_windows=0,
        seed=seed,
        notes=(*examined.every_note, *unread),
    )
    if refusal:
        return _store(data, distribution, result)
    drawn = draw_rows(distribution, data.whole, rng, NUM_DRAWN)
    best = fit_anywhere(data, drawn, rng, progress)
    box = make_box(distribution, data.whole, rng)
    inside = fit_inside(best, box, drawn)
    report("best values within the ranges", 1.0)
    problem, row = best.problem, best.solution.row
    priors = [find_prior(examined.evidence, problem.predictor.space.targets[k]) for k in problem.free]
    found = find_verdicts(best, inside, box, priors, problem.columns_to_noise(row))
    low, high = box.low.copy(), box.high.copy()
    for p in found.parameters:
        column = data.whole.index(p.target)
        low[column], high[column] = p.advised_low, p.advised_high
    advised = rng.uniform(low, high, (NUM_DRAWN, len(low)))
    band, advised_band = (predict_band(problem, rows, rng) for rows in (drawn, advised))
    report("predictions of drawn worlds", 1.0)
    errors = problem.columns_to_noise(row), problem.columns_to_noise(inside.row)
    numbers = np.stack([*errors, band.coverage, band.to_noise, advised_band.to_noise], axis=1).tolist()
    result = replace(
        result,
        verdict=found.verdicts[0],
        verdicts=found.verdicts,
        parameters=found.parameters,
        columns={n: AuditedColumn(*c) for n, c in zip(data.project.measurement_names, numbers, strict=True)},
        residual_to_noise=problem.to_noise(row),
        residual_in_ranges=problem.to_noise(inside.row),
        share=found.share,
        window_s=best.window_s,
        num_windows=len(problem.windows),
    )
    reasons = (*examined.reasons_not_good, *write_reasons(result, found.together))
    return _store(data, distribution, replace(result, reasons=reasons))


def _store(data: ProjectData, ranges: Distribution, result: AuditResult) -> AuditResult:
    """Stores an audit in the catalogue; returns it with its id."""
    config = {"project": fingerprint(data.project), "ranges": ranges_to_text(ranges.ranges, ranges.correlations)}
    provenance = Provenance("audit", gapless.__version__, result.inputs, config, result.seed)
    return replace(result, id=store_result_if_possible(data.catalogue, result, provenance))
