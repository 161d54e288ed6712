"""What changed between two fits of one robot, beyond what their intervals allow.

The limits of a difference and of a ratio of two independent estimates follow from the limits of each (MOVER: Zou and
Donner, 2008; for ratios Newcombe, 2016; with symmetric limits the latter are Fieller's, 1954). Only intervals are
needed, so that a fit can be compared with any earlier one of which the JSON is left.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from gapless.core.interval import normal_quantile
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.results import Drift, FittedParameter, Since
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.fit.per_run import summarize_runs
from gapless.fit.problem import FitProblem
from gapless.fit.solve import solve_least_squares
from gapless.fit.summary import describe_parameters
from gapless.identify.earlier_fit import EarlierFit

LEVEL = 0.95  # at which the intervals of all compared parameters hold together

Limits = tuple[float, float, float]  # value, low, high


def compare_with_earlier(
    earlier: EarlierFit | None, parameters: tuple[FittedParameter, ...], train: FitProblem, row: Array
) -> tuple[Since | None, tuple[Drift, ...]]:
    """Returns which parameters were compared with an earlier fit, and those that drifted.

    Where the fits have different terms, these logs are fitted again with those of the earlier one: a term more or
    less moves the others.

    Args:
        earlier: The fit to compare with; None compares nothing.
        parameters: What was fitted to these logs.
        train: The problem that was solved.
        row: (num_parameters,) its solution.
    """
    if earlier is None:
        return None, ()
    name, old = earlier
    space, known = train.predictor.space, {p.target for p in old.parameters}
    runs = {p.run for p in train.space.parameters} | {None}
    free = tuple(k for k, p in enumerate(space.parameters) if p.target in known and p.run in runs)
    refitted = bool(free) and free != train.free
    if refitted:
        again = replace(train, free=free)
        found = summarize_runs(again, solve_least_squares(again.weighted_at(row), row))
        parameters = describe_parameters(found.space, found.solution)
    pairs = find_comparable(old.parameters, parameters)
    since = Since(name, old.recorded_to, tuple(new.target for _, new in pairs), LEVEL, refitted)
    return since, find_drifts(pairs, old.recorded_to)


def find_comparable(
    before: Sequence[FittedParameter], after: Sequence[FittedParameter]
) -> list[tuple[FittedParameter, FittedParameter]]:
    """Returns the pairs that can be compared: determined in both fits, at a bound in neither.

    Factors of the model's own values can be compared only if those values are the same.
    """
    known = {p.target: p for p in before}
    pairs = [(known[p.target], p) for p in after if p.target in known]
    return [
        (old, new)
        for old, new in pairs
        if all(p.identifiable and not p.at_bound for p in (old, new))
        and old.unit == new.unit
        and (old.unit != "1" or np.isclose(old.nominal, new.nominal))
    ]


def find_drifts(
    pairs: Sequence[tuple[FittedParameter, FittedParameter]], since: str | None = None, level: float = LEVEL
) -> tuple[Drift, ...]:
    """Returns the parameters whose change has an interval without 0, in the order of the pairs.

    Each interval is made at 1 - (1 - level) / num_pairs, so that all of them hold together at the level (Bonferroni),
    and with them those that are picked out because they exclude 0.

    Args:
        pairs: The same parameter before and after.
        since: When the last log of the earlier fit was recorded; None where unknown.
        level: The level.
    """
    each = 1.0 - (1.0 - level) / max(1, len(pairs))
    found: list[Drift] = []
    for old, new in pairs:
        before, after = limits_at_level(old, each), limits_at_level(new, each)
        low, high = difference_limits(after, before)
        if low <= 0.0 <= high:
            continue
        relative = min(old.prior_low, new.prior_low) >= 0.0 and before[1] > 0.0
        change = after[0] - before[0]
        if relative:
            change, (low, high) = after[0] / before[0] - 1, ratio_limits(after, before)
            low, high = low - 1, high - 1
        found.append(Drift(old.target, old.unit, old.value, new.value, change, low, high, level, relative, since))
    return tuple(found)


def limits_at_level(parameter: FittedParameter, level: float) -> Limits:
    """Returns a parameter's value with its limits at another level than that of its record.

    Its error is taken to be normal in the solver's coordinate, as it was when the record was made. A limit that was
    cut at a bound says less than the other one, which is then used for both.
    """
    space = ParameterSpace(
        (Parameter(*(parameter.target, parameter.dimension, parameter.unit, parameter.nominal), *_range(parameter)),)
    )
    scaling = Scaling.of(space)
    value, low, high = scaling.unit(np.array([[parameter.value], [parameter.low], [parameter.high]])).ravel()
    half = max(high - value, value - low) * _quantile(level) / _quantile(parameter.level)
    ends = scaling.values(np.clip(np.array([[value - half], [value + half]]), 0.0, 1.0)).ravel()
    return parameter.value, float(ends[0]), float(ends[1])


def _range(parameter: FittedParameter) -> tuple[float, float]:
    return parameter.prior_low, parameter.prior_high


def _quantile(level: float) -> float:
    return normal_quantile((1 + level) / 2)


def difference_limits(first: Limits, second: Limits) -> tuple[float, float]:
    """Returns the limits of first - second: with (a, l, u) and (b, m, v), a - b -+ the root of squared distances.

    low = a - b - sqrt((a - l)^2 + (v - b)^2), high = a - b + sqrt((u - a)^2 + (b - m)^2).
    """
    (a, a_low, a_high), (b, b_low, b_high) = first, second
    return (
        a - b - sqrt((a - a_low) ** 2 + (b_high - b) ** 2),
        a - b + sqrt((a_high - a) ** 2 + (b - b_low) ** 2),
    )


def ratio_limits(first: Limits, second: Limits) -> tuple[float, float]:
    """Returns the limits of first / second, where `first` is not negative and the second's limits are positive.

    They are the ratios R at which a limit of first - R * second is 0: roots of
    R^2 v (2b - v) - 2abR + l (2a - l) = 0 below, and of R^2 m (2b - m) - 2abR + u (2a - u) = 0 above.
    """
    (a, a_low, a_high), (b, b_low, b_high) = first, second
    inner = a_low * (2 * a - a_low)
    below = a * b + sqrt((a * b) ** 2 - inner * b_high * (2 * b - b_high))
    outer = b_low * (2 * b - b_low)
    above = a * b + sqrt((a * b) ** 2 - a_high * (2 * a - a_high) * outer)
    return (inner / below if below > 0 else 0.0), above / outer
