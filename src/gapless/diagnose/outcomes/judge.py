"""From the posterior over models to factors, groups that cannot be told apart, and log odds."""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit, ndtr

from gapless.core.dimensions import DIMENSIONS, Dimension
from gapless.core.interval import Interval
from gapless.core.signal import Array, Flags
from gapless.diagnose.outcomes.design import Column, Design
from gapless.diagnose.outcomes.model import Posterior, make_table, weigh_models
from gapless.diagnose.outcomes.records import Factor, Level
from gapless.diagnose.outcomes.words import BASE, condition_dimensions

TOGETHER = 0.95  # shared variance from which two factors are one and the same partition of the runs
PARTLY = 0.5  # shared variance from which they may be confounded, if the posterior hesitates between them
MAX_MIXED = 50  # models whose predictions are mixed, the most probable ones
LOWEST, HIGHEST = -1.5, 4.5  # log odds from conditions [nat]


def judge(design: Design) -> tuple[tuple[Factor, ...], Posterior]:
    """Returns the factors in the order of the design, and the posterior behind them."""
    groups = [group for column in design.columns for group in _groups(column)]
    shared = _shared_variances(design.columns)
    posterior = weigh_models(make_table(design), groups, shared >= TOGETHER)
    intervals = _intervals(posterior, [int(group.sum()) for group in groups])
    probabilities, partners = posterior.probabilities, _partners(shared, posterior)
    factors, start = [], 0
    for k, column in enumerate(design.columns):
        levels = []
        for j, value in enumerate(column.values):
            runs = column.level == j
            own, rest = intervals[start + 2 * j], intervals[start + 2 * j + 1]
            levels.append(Level(value, int(runs.sum()), int(design.failed[runs].sum()), own, rest))
        start += 2 * len(column.values)
        names = tuple(design.columns[j].name for j in partners[k])
        speaks_for, known_word = condition_dimensions(column.name)
        factors.append(
            Factor(column.name, float(probabilities[k]), posterior.prior, tuple(levels), speaks_for, known_word, names)
        )
    return tuple(factors), posterior


def _groups(column: Column) -> list[Flags]:
    """Returns for each level its runs, and the other runs with a known value."""
    groups = []
    for j in range(len(column.values)):
        groups += [column.level == j, column.known & (column.level != j)]
    return groups


def _intervals(posterior: Posterior, sizes: Sequence[int]) -> list[Interval]:
    """Returns quantiles of the mixture of models: 2.5, 50 and 97.5 % of each group's failure probability."""
    kept = np.argsort(-posterior.weights, kind="stable")[:MAX_MIXED]
    weights = posterior.weights[kept] / posterior.weights[kept].sum()
    means, sds = posterior.means[kept], posterior.sds[kept]
    ends = [expit(_quantile(weights, means, sds, level)) for level in (0.5, 0.025, 0.975)]
    return [
        Interval(float(v), float(low), float(high), 0.95, n, "hierarchical logistic")
        for v, low, high, n in zip(*ends, sizes, strict=True)
    ]


def _quantile(weights: Array, means: Array, sds: Array, level: float) -> Array:
    """Returns a quantile of mixtures of normals, (num_contrasts,) [logit], by bisection to about 1e-4."""
    low, high = (means - 6 * sds).min(axis=0), (means + 6 * sds).max(axis=0)
    for _ in range(18):
        middle = (low + high) / 2
        below = weights @ ndtr((middle - means) / sds) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def shared_variance(one: Column, other: Column) -> float:
    """Returns how much of each factor's variation the other explains, the lesser of both ways, in [0, 1]."""
    both = one.known & other.known
    if both.sum() < 3:
        return 0.0
    a, b = (column.basis[both] - column.basis[both].mean(axis=0) for column in (one, other))
    return min(_explained(a, b), _explained(b, a))


def _explained(target: Array, by: Array) -> float:
    total = np.sum(target**2)
    if total <= 1e-12:
        return 0.0
    fitted = by @ np.linalg.lstsq(by, target, rcond=1e-9)[0]
    return float(np.sum(fitted**2) / total)


def _shared_variances(columns: Sequence[Column]) -> Array:
    """Returns the shared variance of every two factors, (num_factors, num_factors), 0 of each with itself."""
    shared = np.zeros((len(columns), len(columns)))
    for i in range(len(columns)):
        for j in range(i):
            shared[i, j] = shared[j, i] = shared_variance(columns[i], columns[j])
    return shared


def _partners(shared: Array, posterior: Posterior) -> list[list[int]]:
    """Returns for each factor those that it cannot be told from.

    Either both part the runs alike, or nearly so and the posterior says that one matters but not which.
    """
    found: list[list[int]] = [[] for _ in shared]
    alone = posterior.probabilities
    for i, j in np.argwhere(np.triu(shared >= PARTLY)):
        either = either_matters(posterior, (i, j))
        hesitates = either > 0.5 and min(alone[i], alone[j]) > 0.1 * either and max(alone[i], alone[j]) < 0.9
        if shared[i, j] >= TOGETHER or hesitates:
            found[i].append(int(j))
            found[j].append(int(i))
    return [sorted(partners) for partners in found]


def either_matters(posterior: Posterior, which: Sequence[int]) -> float:
    """Returns the probability that at least one of these factors matters."""
    return float(posterior.weights @ posterior.includes[:, list(which)].any(axis=1))


def condition_log_odds(factors: Sequence[Factor], posterior: Posterior) -> dict[Dimension, float]:
    """Returns what conditions add to the log odds that each dimension takes part [nat].

    If dimension d takes part, factor f matters with chance a_fd (the table of words), otherwise with BASE. The result
    is the log ratio of the two evidences, each a sum over models of posterior / prior times the chance of the model.
    Factors that changed together share what they say, because the models do; runs that say nothing leave 0.
    """
    base = _evidence(np.full(len(factors), BASE), posterior)
    found: dict[Dimension, float] = {}
    for dimension in DIMENSIONS:
        chances = np.array([factor.speaks_for.get(dimension, BASE) for factor in factors])
        found[dimension] = float(np.clip(np.log(_evidence(chances, posterior) / base), LOWEST, HIGHEST))
    return found


def _evidence(chances: Array, posterior: Posterior) -> float:
    """Returns the evidence if each factor matters with its own chance, over the models that were summed."""
    models = np.where(posterior.includes, chances, 1 - chances).prod(axis=1) * posterior.tau_weights
    return float(np.sum(models * posterior.weights / posterior.priors) / models.sum())
