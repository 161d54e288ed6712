"""`randomize --method bayrn`: ranges by what policies trained in them achieve in reality."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import gapless
from gapless.core.errors import InputError
from gapless.core.provenance import Provenance
from gapless.core.results import RandomizeResult
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import RESULT, artefact_ids, store_result
from gapless.learn.evaluate import evaluate
from gapless.learn.train import TrainConfig, train
from gapless.loop.verb import going_on
from gapless.project.fingerprint import fingerprint
from gapless.project.load import load_project
from gapless.project.records import Project
from gapless.randomize.bayrn import Move, best_of, suggest
from gapless.randomize.verb import randomize
from gapless.sim.blueprint import compile_project
from gapless.sim.ranges import read_ranges

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class SearchConfig:
    """How ranges are searched for.

    Attributes:
        num_tries: Ranges that are tried; each costs a training and real trials.
        num_trials: Real trials per try.
        train: How each policy is trained.
    """

    num_tries: int = 6
    num_trials: int = 20
    train: TrainConfig = field(default_factory=TrainConfig)


def search_ranges(
    directory: str | Path,
    *,
    fit: str | Path | None = None,
    config: SearchConfig | None = None,
    seed: int = 0,
    reality_seed: int = 0,
    progress: Progress | None = None,
) -> RandomizeResult:
    """Searches about the ranges of a fit for those whose policy succeeds most in reality.

    Every try is kept in the catalogue: interrupted, the same call goes on where it was.

    Args:
        directory: The project folder; it must name a task and a reality.
        fit: JSON that `identify` wrote; None for the newest fit in the catalogue.
        config: How to search.
        seed: Seed of everything random.
        reality_seed: Which twin, where reality is one; robots ignore it.
        progress: Called with what is being done and how far it is, in [0, 1].

    Raises:
        InputError: If project or fit cannot be used.
    """
    config = config or SearchConfig()
    project = load_project(directory)
    if project.task is None or project.reality is None:
        missing = "task" if project.task is None else "reality"
        raise InputError(f"bayrn tries policies in reality: add `{missing}: {missing}.py:NAME` to gapless.yaml")
    begun = randomize(directory, fit=fit, seed=seed)
    move = Move.of(read_ranges(begun.path, compile_project(project)))
    rng = np.random.default_rng(seed)
    tried, success = [move.still], list[float]()
    with going_on():
        for k in range(config.num_tries):
            if k:
                tried.append(suggest(np.stack(tried), np.array(success), config.num_trials, rng))
            _tell(progress, f"try {k + 1} of {config.num_tries}", k / config.num_tries)
            path = _keep(project, move, tried[k], begun, seed)
            policy = train(directory, path, config=config.train, seed=seed).policy
            shown = evaluate(directory, policy, num_trials=config.num_trials, seed=seed, reality_seed=reality_seed)
            success.append(shown.success.value)
    best = best_of(np.stack(tried), np.array(success), config.num_trials)
    _tell(progress, f"try {config.num_tries} of {config.num_tries}", 1.0)
    path = _keep(project, move, tried[best], begun, seed, [(list(t), s) for t, s in zip(tried, success, strict=True)])
    return replace(_result(move, tried[best], begun, seed), path=path)


def _tell(progress: Progress | None, label: str, share: float) -> None:
    if progress is not None:
        progress(label, share)


def _result(move: Move, numbers: np.ndarray, begun: RandomizeResult, seed: int) -> RandomizeResult:
    found = move.at(numbers)
    return RandomizeResult(artefact_ids(begun.path), found.ranges, "", seed, "bayrn", found.correlations)


def _keep(
    project: Project,
    move: Move,
    numbers: np.ndarray,
    begun: RandomizeResult,
    seed: int,
    tries: list[tuple[list[float], float]] | None = None,
) -> str:
    """Enters ranges in the catalogue; returns their path."""
    catalogue = Catalogue.open(project.directory)
    result = _result(move, numbers, begun, seed)
    about = {"project": fingerprint(project), "method": "bayrn", "numbers": list(map(float, numbers)), "tries": tries}
    identity = store_result(catalogue, result, Provenance("randomize", gapless.__version__, result.inputs, about, seed))
    return str(catalogue.artefact_path(identity, RESULT).resolve())
