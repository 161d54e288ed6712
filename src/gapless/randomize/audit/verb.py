"""The verb `audit`: training ranges beside real logs."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

import gapless
from gapless.check.examine import examine_data
from gapless.core.distribution import Distribution, ranges_to_text
from gapless.core.errors import InputError
from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Progress
from gapless.core.provenance import Provenance
from gapless.core.results import AuditedColumn, AuditResult, Note
from gapless.data.stored_results import artefact_ids, store_result_if_possible
from gapless.fit.data import ProjectData, read_project_data
from gapless.fit.prediction.windows import shortest_window_s
from gapless.fit.search.structure import build_problem
from gapless.fit.summary import find_refusal
from gapless.project.fingerprint import fingerprint
from gapless.randomize.audit.predictions import fit_anywhere, fit_inside, make_box, predict_band
from gapless.randomize.audit.verdict import find_verdicts, write_reasons
from gapless.randomize.event_terms.files import SUFFIXES, read_event_ranges
from gapless.sim.auto import parameters_of
from gapless.sim.blueprint import CompiledProject
from gapless.sim.ranges import distribution_of, read_ranges
from gapless.sim.targets.target import split_target

NUM_DRAWN = 64  # rows that the band of predictions is made of


def audit(
    directory: str | Path,
    ranges: str | Path,
    *,
    where: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> AuditResult:
    """Says whether reality, as the logs show it, lies inside the ranges that a policy is trained on.

    The best row within the ranges is compared with the best row within prior bounds: where it predicts the logs
    clearly worse, the ranges are too narrow. Ranges far wider than what the logs leave open are too wide. Where even
    the best row leaves more than noise explains, the model is wrong: it lacks something.

    `ranges` is JSON that `randomize` wrote, text (`*.txt`), or an event configuration of Isaac Lab or mjlab (`*.py`, or
    the YAML or JSON that a run wrote); `where` is an SQL condition on the view `episodes` of the logs to use, None for
    all; `seed` that of windows, starts and rows that are drawn.
    """
    report = progress or (lambda label, share: None)
    read = read_project_data(directory, where=where, progress=progress)
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
    trained_on = replace(distribution, space=data.whole)  # what has no range stays nominal
    drawn = trained_on.sample(rng, NUM_DRAWN)
    best = fit_anywhere(data, drawn, rng, progress)
    box = make_box(trained_on, rng)
    inside, growth = fit_inside(best, box, drawn)
    report("best values within the ranges", 1.0)
    problem, row = best.problem, best.solution.row
    known = {p.target: p for p in examined.evidence.whole.parameters}  # without what a range adds to their bounds
    targets = [problem.predictor.space.targets[k] for k in problem.free]
    priors = [known.get(t) or parameters_of(read.blueprint, examined.evidence.tracks, [t])[0] for t in targets]
    verdicts, parameters, together = find_verdicts(best, growth, box, priors, problem.columns_to_noise(row))
    low, high = box.low.copy(), box.high.copy()
    for p in parameters:
        column = data.whole.index(p.target)
        low[column], high[column] = p.advised_low, p.advised_high
    advised = rng.uniform(low, high, (NUM_DRAWN, len(low)))
    (coverage, band), (_, advised_band) = (predict_band(problem, rows, rng) for rows in (drawn, advised))
    report("predictions of drawn worlds", 1.0)
    errors = problem.columns_to_noise(row), problem.columns_to_noise(inside)
    numbers = np.stack([*errors, coverage, band, advised_band], axis=1).tolist()
    result = replace(
        result,
        verdict=verdicts[0],
        verdicts=verdicts,
        parameters=parameters,
        columns={n: AuditedColumn(*c) for n, c in zip(data.project.measurement_names, numbers, strict=True)},
        residual_to_noise=problem.to_noise(row),
        residual_in_ranges=problem.to_noise(inside),
        share=float(np.prod([p.share for p in parameters if p.verdict == "too wide"])),
        window_s=best.window_s,
        num_windows=len(problem.windows),
    )
    reasons = (*examined.reasons_not_good, *write_reasons(result, together))
    return _store(data, distribution, replace(result, reasons=reasons))


def _store(data: ProjectData, ranges: Distribution, result: AuditResult) -> AuditResult:
    """Stores an audit in the catalogue; returns it with its id."""
    config = {"project": fingerprint(data.project), "ranges": ranges_to_text(ranges.ranges, ranges.correlations)}
    provenance = Provenance("audit", gapless.__version__, result.inputs, config, result.seed)
    return replace(result, id=store_result_if_possible(data.catalogue, result, provenance))


def read_training_ranges(path: str | Path, blueprint: CompiledProject) -> tuple[Distribution, tuple[Note, ...]]:
    """Returns the ranges of a file, whoever wrote it, and what could not be read of it.

    It may be a result of `randomize`, ranges as text, or an event configuration of Isaac Lab or mjlab.
    """
    notes: tuple[Note, ...] = ()
    if _is_event_file(Path(path)):
        events, texts = read_event_ranges(path, blueprint.project, blueprint.model)
        found = distribution_of(events, (), blueprint, path)
        notes = tuple(Note("info", Path(path).name, text) for text in texts)
        if not found.ranges:
            raise InputError(
                f"none of its event terms is a parameter of this model ({texts[0]}): name a file for this robot: {path}"
            )
    else:
        found = read_ranges(path, blueprint)
    if not found.ranges:
        raise InputError(f"there are no ranges in it: write a line per parameter, such as uniform 0.1 .. 0.5: {path}")
    return found, notes


def _is_event_file(path: Path) -> bool:
    """Says whether a file is an event configuration of another stack; JSON of ours names its verb."""
    if path.suffix.lower() != ".json":
        return path.suffix.lower() in SUFFIXES
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError):
        return False
    return isinstance(found, dict) and "verb" not in found


def add_ranges(data: ProjectData, ranges: Distribution) -> ProjectData:
    """Returns data whose parameters include those of the ranges, with bounds that include the ranges.

    A term that a range belongs to is no longer tried, but fitted. A range of one factor for all (`*`) replaces single
    parameters of its kind, and the other way round: together they are not identifiable.
    """
    named = set(ranges.space.targets)
    kept = [p for p in data.space.parameters if p.target in named or not _conflicts(p.target, named)]
    kept += [p for term in data.terms if named & set(term.targets) for p in term.parameters]
    space = {p.target: p for p in kept}
    missing = [target for target in ranges.space.targets if target not in space]
    space |= {p.target: p for p in parameters_of(data.blueprint, data.tracks, missing)}
    for item in ranges.ranges:
        p = space[item.target]
        space[item.target] = replace(p, low=min(p.low, item.low), high=max(p.high, item.high))
    terms = tuple(t for t in data.terms if not any(x in named or _conflicts(x, named) for x in t.targets))
    return replace(data, space=ParameterSpace(tuple(space.values())), terms=terms)


def _conflicts(target: str, named: set[str]) -> bool:
    """Says whether a target and one of some others are of the same kind, and one of the two is for all."""
    own, others = split_target(target), [split_target(other) for other in named]
    alike = [one for one in others if (one.kind, one.field) == (own.kind, own.field) and one != own]
    return any("*" in (own.name, one.name) for one in alike)
