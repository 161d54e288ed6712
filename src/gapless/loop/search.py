"""`randomize --method bayrn`: ranges by what policies trained in them achieve in reality."""

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

import gapless
from gapless.core.errors import InputError
from gapless.core.provenance import Provenance
from gapless.core.results import RandomizeResult
from gapless.core.signal import Array
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import artefact_ids, result_path, store_result
from gapless.fit.data import Progress
from gapless.learn.evaluate import evaluate
from gapless.learn.train import TrainConfig, train
from gapless.loop.verb import explain_interruption
from gapless.project.fingerprint import fingerprint
from gapless.project.load import load_project
from gapless.project.records import Project
from gapless.randomize.bayrn import RangeShifts, pick_best, suggest_next
from gapless.randomize.verb import randomize
from gapless.sim.blueprint import compile_project
from gapless.sim.ranges import read_ranges


@dataclass(frozen=True)
class BayrnConfig:
    """How ranges are searched for."""

    num_tries: int = 6  # ranges that are tried; each costs a training and real trials
    num_trials: int = 20  # real trials per try
    train: TrainConfig = field(default_factory=TrainConfig)  # how each policy is trained


def search_ranges(
    directory: str | Path,
    *,
    fit: str | Path | None = None,
    config: BayrnConfig | None = None,
    seed: int = 0,
    reality_seed: int = 0,
    progress: Progress | None = None,
) -> RandomizeResult:
    """Searches about the ranges of a fit for those whose policy succeeds most in reality.

    Every try is kept in the catalogue: interrupted, the same call continues where it was.

    Args:
        directory: The project folder; it must name a task and a reality.
        fit: JSON that `identify` wrote; None for the newest fit in the catalogue.
        config: How to search.
        seed: Seed of everything random.
        reality_seed: Which twin, where reality is one; robots ignore it.
        progress: Called with what is being done and how far it is, in [0, 1].

    Raises:
        InputError: If project, fit or configuration cannot be used.
    """
    config = config or BayrnConfig()
    if config.num_tries < 2 or config.num_trials < 1:
        raise InputError(f"{config.num_tries} tries of {config.num_trials} trials: give at least 2 tries and 1 trial")
    project = load_project(directory)
    if project.task is None or project.reality is None:
        missing = "task" if project.task is None else "reality"
        raise InputError(f"bayrn tries policies in reality: add `{missing}: {missing}.py:NAME` to gapless.yaml")
    fitted = randomize(directory, fit=fit, seed=seed)
    shifts = RangeShifts.of(read_ranges(fitted.path, compile_project(project)))
    rng = np.random.default_rng(seed)
    tried, success = [shifts.unchanged], list[float]()
    report = progress or (lambda label, share: None)
    with explain_interruption():
        for k in range(config.num_tries):
            if k:
                tried.append(suggest_next(np.stack(tried), np.array(success), config.num_trials, rng))
            within = partial(_report_try, report, f"try {k + 1} of {config.num_tries}")
            ranges = _store_ranges(project, shifts, tried[k], fitted, seed)
            policy = train(directory, ranges.path, config=config.train, seed=seed, progress=within(0.0, 0.8)).policy
            shown = evaluate(
                directory,
                policy,
                num_trials=config.num_trials,
                seed=seed,
                reality_seed=reality_seed,
                progress=within(0.8, 0.2),
            )
            success.append(shown.success.value)
    best = pick_best(np.stack(tried), np.array(success), config.num_trials)
    tries = [(list(numbers), rate) for numbers, rate in zip(tried, success, strict=True)]
    return _store_ranges(project, shifts, tried[best], fitted, seed, tries)


def _report_try(report: Progress, label: str, begin: float, share: float) -> Progress:
    """Returns a progress that fills a part of one try, whatever the verb calls what it does."""
    report(label, begin)
    return lambda _, done: report(label, begin + share * done)


def _store_ranges(
    project: Project,
    shifts: RangeShifts,
    numbers: Array,
    fitted: RandomizeResult,
    seed: int,
    tries: list[tuple[list[float], float]] | None = None,
) -> RandomizeResult:
    """Enters the ranges at some numbers in the catalogue; returns them with their path."""
    found = shifts.apply(numbers)
    result = RandomizeResult(artefact_ids(fitted.path), found.ranges, "", seed, "bayrn", found.correlations)
    about = {"project": fingerprint(project), "method": "bayrn", "numbers": list(map(float, numbers)), "tries": tries}
    provenance = Provenance("randomize", gapless.__version__, result.inputs, about, seed)
    catalogue = Catalogue.open(project.directory)
    identity = store_result(catalogue, result, provenance)
    return replace(result, id=identity, path=str(result_path(catalogue, identity).resolve()))
