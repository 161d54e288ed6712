"""The verb `diagnose`."""

from pathlib import Path

import numpy as np

import gapless
from gapless.core.dimensions import Dimension
from gapless.core.errors import InputError
from gapless.core.provenance import Provenance
from gapless.core.results import Advice, Cause, DiagnoseResult, Probability
from gapless.core.signal import Array
from gapless.data.keep import keep_result
from gapless.diagnose.subsets import WINDOW_S, Losses, Progress, bootstrap, fit_subsets
from gapless.identify.fit import make_problem
from gapless.identify.verb import why_refuse
from gapless.project.fingerprint import fingerprint
from gapless.sim.evidence import Evidence, gather
from gapless.suspicion.examine import examine

MATTERS = 0.05  # a dimension takes part if it accounts for more than this share of the explained gap
NO_GAP_AT = 1.3  # ratio of residual to noise at which a gap is as likely as none
UNMODELLED_AT = 2.5  # ratio of residual to noise, all fitted, at which something unmodelled is as likely as not


def diagnose(directory: str | Path, *, seed: int = 0, progress: Progress | None = None) -> DiagnoseResult:
    """Says which dimensions of the gap take part in it, from the logs alone.

    Each dimension is fitted alone, and all but each; held-out windows judge. A dimension takes part if leaving it
    out costs more than `MATTERS` of what all together explain; where several could do the same, leaving out one
    costs nothing and each counts by how well it does alone. Probabilities are shares of bootstrap draws over
    held-out windows: they say how sure these windows are, and are not calibrated against known causes yet.

    Args:
        directory: The project folder.
        seed: Seed of starts, windows and draws.
        progress: Called with what is being done and how far it is, in [0, 1].

    Raises:
        InputError: If the project or its logs cannot be used.
    """
    found = examine(gather(directory))
    evidence = found.evidence
    if not len(evidence.space):
        raise InputError("no parameter to judge by: list some under `parameters` in gapless.yaml, or write auto")
    fitted, _ = evidence.split(())
    problem = make_problem(evidence, evidence.space, fitted, WINDOW_S, np.random.default_rng(seed))
    refusal = found.refusal or why_refuse(evidence, problem, WINDOW_S)
    if refusal is not None:
        return _kept(evidence, _undecided(evidence, refusal, seed))
    rng = np.random.default_rng(seed)
    losses = fit_subsets(evidence, rng, progress)
    causes, ambiguous = weigh(losses, rng)
    no_gap = _logistic((NO_GAP_AT - losses.noise_before) / 0.1)
    causes = tuple(Cause(c.dimension, c.probability * (1 - no_gap), c.share, c.low, c.high) for c in causes)
    result = DiagnoseResult(
        inputs=evidence.ids,
        causes=causes,
        no_gap=Probability(no_gap),
        unmodelled=Probability(_logistic((losses.noise_after - UNMODELLED_AT) / 0.5)),
        evidence=(*(note.text for note in found.notes), *_sentences(losses, causes)),
        ambiguous=ambiguous,
        advice=_advice(evidence, causes, ambiguous, no_gap, losses.noise_after),
        seed=seed,
    )
    return _kept(evidence, result)


def _kept(evidence: Evidence, result: DiagnoseResult) -> DiagnoseResult:
    """Enters a diagnosis in the catalogue; returns it."""
    config = {"project": fingerprint(evidence.project)}
    provenance = Provenance("diagnose", gapless.__version__, evidence.ids, config, result.seed)
    keep_result(evidence.catalogue, result, provenance)
    return result


def _undecided(evidence: Evidence, reason: str, seed: int) -> DiagnoseResult:
    """Returns the diagnosis of logs that say nothing: everything is as likely as not."""
    dimensions = evidence.space.dimensions
    causes = tuple(Cause(dimension, 0.5, 0.0, 0.0, 1.0) for dimension in dimensions)
    unknown = Probability(0.5)
    groups = (dimensions,) if len(dimensions) > 1 else ()
    advice = (Advice("measure", f"record more, then measure again: {reason}"),)
    return DiagnoseResult(evidence.ids, causes, unknown, unknown, (reason,), groups, advice, seed)


def weigh(losses: Losses, rng: np.random.Generator) -> tuple[tuple[Cause, ...], tuple[tuple[Dimension, ...], ...]]:
    """Returns the causes, most probable first, and the groups that cannot be told apart."""
    dimensions = list(losses.alone)
    table = [losses.none, losses.full, *losses.alone.values(), *losses.without.values()]
    draws = bootstrap(table, rng)
    none, full = draws[:, 0], draws[:, 1]
    gap = np.maximum(none - np.minimum(full, draws.min(axis=1)), 1e-9)
    causes: list[Cause] = []
    spare: list[Dimension] = []
    for k, dimension in enumerate(dimensions):
        alone = np.clip((none - draws[:, 2 + k]) / gap, 0.0, 1.0)
        needed = np.zeros_like(alone)
        if dimension in losses.without:
            column = 2 + len(dimensions) + list(losses.without).index(dimension)
            needed = np.clip((draws[:, column] - full) / gap, 0.0, 1.0)
        takes_part = float(np.mean(needed > MATTERS))
        could = float(np.mean(alone > 0.25))
        if takes_part < 0.5 and could > 0.5:
            spare.append(dimension)
        share = (alone + needed) / 2
        low, high = np.quantile(share, [0.025, 0.975])
        probability = max(takes_part, 0.4 * could)
        causes.append(Cause(dimension, probability, float(share.mean()), float(low), float(high)))
    causes.sort(key=lambda cause: (-cause.probability, -cause.share))
    groups = (tuple(spare),) if len(spare) > 1 else ()
    return tuple(causes), groups


def _logistic(value: float) -> float:
    return float(1.0 / (1.0 + np.exp(-np.clip(value, -50, 50))))


def _mean(values: Array) -> float:
    return float(values.mean())


def _sentences(losses: Losses, causes: tuple[Cause, ...]) -> tuple[str, ...]:
    before, full = _mean(losses.none), _mean(losses.full)
    found = [
        f"the model as written misses held-out windows by {losses.noise_before:.1f} times what noise explains",
        f"with every parameter fitted {losses.noise_after:.1f} times remain",
    ]
    for cause in causes:
        name = cause.dimension
        alone = _mean(losses.alone[name]) / before
        text = f"{name}: fitted alone it leaves {100 * alone:.0f} % of the held-out loss"
        if name in losses.without:
            rest = _mean(losses.without[name]) / before
            text += f"; without it, all others leave {100 * rest:.0f} % (all together {100 * full / before:.0f} %)"
        found.append(text)
    return tuple(found)


def _advice(
    evidence: Evidence,
    causes: tuple[Cause, ...],
    ambiguous: tuple[tuple[Dimension, ...], ...],
    no_gap: float,
    noise_after: float,
) -> tuple[Advice, ...]:
    if no_gap > 0.5:
        return (Advice("evaluate", "the signals show no gap: measure success before changing anything"),)
    likely = [cause.dimension for cause in causes if cause.probability > 0.5]
    targets = [p.target for p in evidence.space.parameters if p.dimension in likely]
    found: list[Advice] = []
    if targets:
        takes = "take" if len(likely) > 1 else "takes"
        found.append(Advice("identify", f"fit {', '.join(targets[:6])}: {', '.join(likely)} {takes} part"))
        found.append(Advice("randomize", "train on ranges about the fit rather than on wide ones"))
    if noise_after > UNMODELLED_AT:
        found.append(
            Advice("check", "look at units, signs and time stamps: something is left that no parameter explains")
        )
    for group in ambiguous:
        found.append(
            Advice("measure", f"{' and '.join(group)} look alike in these logs: record a motion that parts them")
        )
    return tuple(found) or (Advice("measure", "no dimension stands out: record more, and faster, motions"),)
