"""`randomize --method bayrn`: ranges by what policies trained in them achieve in reality.

After BayRn (Muratore and others: Data-efficient domain randomization with Bayesian optimization, RA-L 2021): a Gaussian
process over the numbers that describe the ranges is fitted to the real success of policies trained in them. It says
which to try next, by expected improvement; in the end the best posterior mean is taken.

Differences: the paper optimises mean and variance of a few chosen parameters; here ranges found by another method are
moved as groups: per dimension of the gap, how far from the model's value to the fitted one, and one factor on all
widths, so that a dozen parameters need few tries. The noise of each observation is that of a success rate of so many
trials.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from gapless.core.dimensions import Dimension
from gapless.core.distribution import Distribution, Range
from gapless.core.errors import InputError
from gapless.core.parameters import Parameter
from gapless.core.protocols import Progress
from gapless.core.results import RandomizeResult
from gapless.core.signal import Array
from gapless.data.stored_results import artefact_ids
from gapless.learn.evaluate import evaluate
from gapless.learn.train import TrainConfig, train
from gapless.loop.verb import explain_interruption, require_reality
from gapless.project.load import load_project
from gapless.randomize.verb import randomize, store_ranges
from gapless.sim.blueprint import compile_project
from gapless.sim.ranges import read_ranges

MAX_SHIFT = 1.5  # of the way from the model's value to the fitted one
MIN_WIDTH_FACTOR, MAX_WIDTH_FACTOR = 0.5, 3.0
LENGTH_SCALES = (0.2, 0.4, 0.8)  # of the Gaussian process, in [0, 1]; the most likely one is used
NUM_CANDIDATES = 2000


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

    The project must name a task and a reality. Every try is kept in the catalogue: interrupted, the same call continues
    where it was. `fit` is JSON that `identify` wrote, None for the newest in the catalogue.
    """
    config = config or BayrnConfig()
    if config.num_tries < 2 or config.num_trials < 1:
        raise InputError(f"{config.num_tries} tries of {config.num_trials} trials: give at least 2 tries and 1 trial")
    project = load_project(directory)
    require_reality(project, "bayrn tries policies in reality")
    fitted = randomize(directory, fit=fit, seed=seed)
    shifts = RangeShifts.of(read_ranges(fitted.path, compile_project(project)))
    rng = np.random.default_rng(seed)
    tried, success = [shifts.unchanged], list[float]()
    report = progress or (lambda label, share: None)

    def store(numbers: Array, tries: list[tuple[list[float], float]] | None = None) -> RandomizeResult:
        found = shifts.apply(numbers)
        result = RandomizeResult(artefact_ids(fitted.path), found.ranges, "", seed, "bayrn", found.correlations)
        return store_ranges(project, result, {"numbers": list(map(float, numbers)), "tries": tries})

    with explain_interruption():
        for k in range(config.num_tries):
            if k:
                tried.append(suggest_next(np.stack(tried), np.array(success), config.num_trials, rng))
            label = f"try {k + 1} of {config.num_tries}"
            report(label, 0.0)
            ranges = store(tried[k])
            if not ranges.path:
                raise InputError("the ranges could not be kept, and training needs them: free some space, then go on")
            training, running = _report_part(report, label, 0.0, 0.8), _report_part(report, label, 0.8, 0.2)
            policy = train(directory, ranges.path, config=config.train, seed=seed, progress=training).policy
            options: dict[str, Any] = {"num_trials": config.num_trials, "seed": seed, "reality_seed": reality_seed}
            success.append(evaluate(directory, policy, **options, progress=running).success.value)
    best = pick_best(np.stack(tried), np.array(success), config.num_trials)
    tries = [(list(numbers), rate) for numbers, rate in zip(tried, success, strict=True)]
    return store(tried[best], tries)


def _report_part(report: Progress, label: str, begin: float, share: float) -> Progress:
    """Returns a progress that fills a part of one try, whatever the verb calls what it does."""
    return lambda _, done: report(label, begin + share * done)


@dataclass(frozen=True)
class RangeShifts:
    """What is searched over: one number in [0, 1] per dimension, and one for the widths."""

    ranges: Distribution
    dimensions: tuple[Dimension, ...]

    @classmethod
    def of(cls, ranges: Distribution) -> "RangeShifts":
        """Returns the search about some ranges."""
        columns = [ranges.space.index(item.target) for item in ranges.ranges]
        return cls(ranges, tuple(dict.fromkeys(ranges.space.parameters[k].dimension for k in columns)))

    @property
    def unchanged(self) -> Array:
        """The numbers that leave the ranges as they are, (num_dimensions + 1,)."""
        width = np.log(1 / MIN_WIDTH_FACTOR) / np.log(MAX_WIDTH_FACTOR / MIN_WIDTH_FACTOR)
        return np.append(np.full(len(self.dimensions), 1 / MAX_SHIFT), width)

    def apply(self, numbers: Array) -> Distribution:
        """Returns the ranges at some numbers in [0, 1], (num_dimensions + 1,)."""
        factor = MIN_WIDTH_FACTOR * (MAX_WIDTH_FACTOR / MIN_WIDTH_FACTOR) ** float(numbers[-1])
        shift = dict(zip(self.dimensions, (MAX_SHIFT * numbers[:-1]).tolist(), strict=True))
        parameters = [self.ranges.space.parameters[self.ranges.space.index(r.target)] for r in self.ranges.ranges]
        pairs = zip(self.ranges.ranges, parameters, strict=True)
        return replace(self.ranges, ranges=tuple(_shift_range(r, p, shift[p.dimension], factor) for r, p in pairs))


def _shift_range(item: Range, parameter: Parameter, shift: float, factor: float) -> Range:
    by_factor = item.kind in ("log-normal", "log-uniform") and parameter.nominal > 0
    to_scale, from_scale = (np.log, np.exp) if by_factor else (float, float)
    nominal, low, high, mean = (to_scale(v) for v in (parameter.nominal, item.low, item.high, item.mean))
    middle = mean if item.bell else (low + high) / 2
    centre = nominal + shift * (middle - nominal)
    smallest = 0.0 if item.low >= 0 else -np.inf  # what cannot be negative stays so
    low, high = (max(float(from_scale(centre + factor * (end - middle))), smallest) for end in (low, high))
    mean = min(max(float(from_scale(centre)), low), high) if item.bell else (low + high) / 2
    return replace(item, low=low, high=high, mean=mean, std=factor * item.std)


def suggest_next(tried: Array, success: Array, num_trials: int, rng: np.random.Generator) -> Array:
    """Returns the numbers to try next, (num_numbers,): those of greatest expected improvement.

    `tried` are (num_tried, num_numbers), with the share of `num_trials` real trials that succeeded, (num_tried,).
    """
    candidates = rng.random((NUM_CANDIDATES, tried.shape[1]))
    mean, std = _predict_success(tried, success, num_trials, candidates)
    best = float(_predict_success(tried, success, num_trials, tried)[0].max())
    gain = (mean - best) / std
    return candidates[int(np.argmax(std * (gain * norm.cdf(gain) + norm.pdf(gain))))]


def pick_best(tried: Array, success: Array, num_trials: int) -> int:
    """Returns which of those tried has the best posterior mean: a lucky share of few trials is no reason alone."""
    return int(np.argmax(_predict_success(tried, success, num_trials, tried)[0]))


def _predict_success(tried: Array, success: Array, num_trials: int, points: Array) -> tuple[Array, Array]:
    """Returns mean and standard deviation of a Gaussian process at some points, each (num_points,).

    Matern 5/2; of a few length scales the one under which the observations are most likely.
    """
    rate = (success * num_trials + 1) / (num_trials + 2)  # Laplace: 0 of 20 is not certain
    noise = rate * (1 - rate) / num_trials
    centre, scale = float(success.mean()), max(float(success.var()), 0.04)
    roots = {k: np.linalg.cholesky(scale * _matern(tried, tried, k) + np.diag(noise)) for k in LENGTH_SCALES}
    whitened = {k: np.linalg.solve(root, success - centre) for k, root in roots.items()}
    length = max(LENGTH_SCALES, key=lambda k: -0.5 * whitened[k] @ whitened[k] - np.log(np.diag(roots[k])).sum())
    cross = np.linalg.solve(roots[length], scale * _matern(tried, points, length))
    variance = np.maximum(scale - np.sum(cross**2, axis=0), 1e-9)
    return centre + cross.T @ whitened[length], np.sqrt(variance)


def _matern(one: Array, other: Array, length: float) -> Array:
    distance = np.sqrt(5) * np.linalg.norm(one[:, None] - other[None], axis=-1) / length
    return (1 + distance + distance**2 / 3) * np.exp(-distance)
