"""Fits a sum of kinds of noise to Allan variances, with intervals that know how the estimates scatter.

Each estimate s is about v chi2(n) / n with v the sum of the terms and n its degrees of freedom; the fit minimises the
deviance sum n (s/v - log(s/v) - 1) over terms that are not negative. That is least squares of the logarithms, weighted
by n, for large n, without their bias where n is small. Intervals are profiles: all values for which the least deviance
over the other terms is at most 3.84 c above the least of all, with c the factor by which the correlation of the
estimates makes a term scatter more than independent ones would (a sandwich). A ramp is no noise and has one size: it is
the straight line through the samples, or none.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, nnls
from scipy.stats import chi2

from gapless.core.signal import Array, Flags
from gapless.signals.noise.allan.deviance import Problem, problem_at
from gapless.signals.noise.allan.variance import TERMS, Allan, shapes

LEVEL = 0.95
CALLS_FOR = float(chi2.ppf(LEVEL, 1))  # deviance that a term must save


@dataclass(frozen=True)
class Fit:
    """Sizes of the terms, in the order of `TERMS` and the units of `shapes`.

    Attributes:
        value: (num_terms,) fitted sizes; 0 for terms that the data do not call for.
        low: (num_terms,) lower ends of the intervals.
        high: (num_terms,) upper ends.
        every: (num_terms,) fitted sizes if no term is left out for being small.
        scatter: (num_terms, num_terms) covariance of `every`.
        ramps: Whether a ramp is called for beside them.
        freedom: (num_sizes,) degrees of freedom of the Allan variances.
        fitted: (num_sizes,) Allan variance of the sum, with the ramp.
        chance: (num_sizes,) probability of an estimate at least as far off, to either side.
        moved: (num_terms,) whether a term leaves its interval if the fit begins later; the interval is then wider.
    """

    value: Array
    low: Array
    high: Array
    every: Array
    scatter: Array
    ramps: bool
    freedom: Array
    fitted: Array
    chance: Array
    moved: Flags

    def term(self, name: str) -> tuple[float, float, float]:
        """Returns value, low and high of a term."""
        place = TERMS.index(name)
        return float(self.value[place]), float(self.low[place]), float(self.high[place])

    def variance(self, weights: Array) -> tuple[float, float]:
        """Returns a weighted sum of the terms, none left out, and its degrees of freedom."""
        total = float(weights @ self.every)
        scatter = float(weights @ self.scatter @ weights)
        return total, 2 * total**2 / max(scatter, 1e-9 * total**2, 1e-300)


def fit_terms(allan: Allan, *, ends: bool = True) -> Fit:
    """Returns the fit of all terms that the Allan variances call for, with the intervals of all.

    Args:
        allan: What to fit.
        ends: Whether to look for the ends of the intervals, which takes nearly all of the time; else 0 and inf.
    """
    free = np.ones(len(TERMS), dtype=np.bool_)
    every = nnls(shapes(allan.sizes) / allan.variance[:, None], np.ones(len(allan.sizes)))[0]
    for _ in range(3):  # degrees of freedom depend on the terms, and the terms on them
        problem = problem_at(allan, every)
        every = problem.least(free)[0]
    kept = _called_for(problem)
    value, _, ramps = problem.least(kept, problem.factors[-1] * CALLS_FOR)
    low, high = np.zeros(len(TERMS)), np.full(len(TERMS), np.inf)
    if ends:
        found = np.array([_ends(allan, problem, place, every) for place in range(len(TERMS))])
        low, high = np.minimum(found[:, 0], value), np.maximum(found[:, 1], value)
    fitted = problem.basis @ value + ramps * problem.ramp
    below = chi2.cdf(problem.freedom * allan.variance / fitted, problem.freedom)
    chance = 2 * np.minimum(below, 1 - below)
    found = value, low, high, every, problem.scatter(every), ramps, problem.freedom, fitted, chance
    return Fit(*found, moved=np.zeros(len(TERMS), dtype=np.bool_))


def _called_for(problem: Problem) -> Flags:
    """Returns which terms stay when the one that saves least is left out again and again."""
    kept = np.ones(len(TERMS), dtype=np.bool_)
    while kept.sum() > 1:
        now = problem.least(kept)[1]
        saves = {k: (problem.least(_without(kept, k))[1] - now) / problem.factors[k] for k in np.flatnonzero(kept)}
        least = min(saves, key=lambda k: saves[k])
        if saves[least] > CALLS_FOR:
            break
        kept = _without(kept, least)
    return kept


def _without(kept: Flags, place: int) -> Flags:
    left = kept.copy()
    left[place] = False
    return left


def _ends(allan: Allan, problem: Problem, place: int, value: Array) -> tuple[float, float]:
    """Returns the ends of a term's interval.

    Each end is looked for again with the degrees of freedom that hold there: more random walk, fewer of them.
    """
    found: list[float] = []
    for upper in (False, True):
        end = _end(problem, place, value, upper)
        if end > 0:
            row = problem.least(_without(value >= 0, place), offset=problem.basis[:, place] * end)[0]
            row[place] = end
            there = problem_at(allan, row)
            end = _end(there, place, there.least(value >= 0)[0], upper)
        found.append(end)
    return found[0], found[1]


def _end(problem: Problem, place: int, value: Array, upper: bool) -> float:
    others, shape = _without(value >= 0, place), problem.basis[:, place]
    limit = problem.least(value >= 0)[1] + CALLS_FOR * problem.factors[place]

    def above(log_size: float) -> float:
        return problem.least(others, offset=shape * np.exp(log_size))[1] - limit

    whole = float(np.log(np.min(problem.seen / shape)))  # as large as it can be if there is nothing else
    least = whole - 20.0
    start = float(np.log(value[place])) if value[place] > 0 else least
    if upper:
        return float(np.exp(_root(above, start, whole + 6.0)))
    return 0.0 if above(least) <= 0 else float(np.exp(_root(above, least, start)))


def _root(above: Callable[[float], float], low: float, high: float) -> float:
    """Returns where the deviance passes its limit; an end where it does not."""
    at_low, at_high = above(low), above(high)
    if at_low * at_high > 0:
        return low if abs(at_low) < abs(at_high) else high
    return float(brentq(above, low, high, xtol=1e-4))
