"""Fits a sum of kinds of noise to Allan variances, with intervals that know how the estimates scatter.

Each estimate s is about v chi2(n) / n with v the sum of the terms and n its degrees of freedom; the fit minimises the
deviance sum n (s/v - log(s/v) - 1) over terms that are not negative. That is least squares of the logarithms, weighted
by n, for large n, without their bias where n is small. Intervals are profiles: all values for which the least deviance
over the other terms is at most 3.84 c above the least of all, with c the factor by which the correlation of the
estimates makes a term scatter more than independent ones would (a sandwich). A ramp is no noise and has one size: it is
the straight line through the samples, or none.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import nnls, root_scalar
from scipy.stats import chi2

from gapless.core.signal import Array, Flags
from gapless.signals.noise.allan import TERMS, AllanVariances, estimate_covariance, term_shapes

INTERVAL_LEVEL = 0.95
MIN_DEVIANCE_SAVING = float(chi2.ppf(INTERVAL_LEVEL, 1))  # that a term must bring to be part of the fit
MAX_ROUNDS = 60  # of weights from the fit and a fit with those weights


@dataclass(frozen=True)
class AllanFit:
    """Sizes of the terms, in the order of `TERMS` and the units of `term_shapes`."""

    value: Array  # (num_terms,) fitted sizes; 0 for terms that the data do not call for
    low: Array  # (num_terms,) lower ends of the intervals
    high: Array  # (num_terms,) upper ends
    every: Array  # (num_terms,) fitted sizes if no term is left out for being small
    scatter: Array  # (num_terms, num_terms) covariance of `every`
    has_ramp: bool  # whether a ramp is called for beside them
    freedom: Array  # (num_sizes,) degrees of freedom of the Allan variances
    fitted: Array  # (num_sizes,) Allan variance of the sum, with the ramp
    chance: Array  # (num_sizes,) probability of an estimate at least as far off, to either side
    is_unsteady: Flags  # (num_terms,) whether a term leaves its interval if the fit begins later; it is then wider

    def term(self, name: str) -> tuple[float, float, float]:
        """Returns value, low and high of a term."""
        place = TERMS.index(name)
        return float(self.value[place]), float(self.low[place]), float(self.high[place])

    def variance(self, weights: Array) -> tuple[float, float]:
        """Returns a weighted sum of the terms, none left out, and its degrees of freedom."""
        total = float(weights @ self.every)
        scatter = float(weights @ self.scatter @ weights)
        return total, 2 * total**2 / max(scatter, 1e-9 * total**2, 1e-300)


def fit_terms(allan: AllanVariances, *, intervals: bool = True) -> AllanFit:
    """Returns the fit of all terms that the Allan variances call for, with the intervals of all.

    Intervals take nearly all of the time; without them their ends are 0 and inf.
    """
    all_terms = np.ones(len(TERMS), dtype=np.bool_)
    every = nnls(term_shapes(allan.sizes) / allan.variance[:, None], np.ones(len(allan.sizes)))[0]
    for _ in range(3):  # degrees of freedom depend on the terms, and the terms on them
        problem = make_deviance(allan, every)
        every = problem.minimize(all_terms)[0]
    value, _, has_ramp = problem.minimize(_select_terms(problem), problem.factors[-1] * MIN_DEVIANCE_SAVING)
    low, high = np.zeros(len(TERMS)), np.full(len(TERMS), np.inf)
    if intervals:
        ends = np.array([_find_interval(allan, problem, place, every) for place in range(len(TERMS))])
        low, high = np.minimum(ends[:, 0], value), np.maximum(ends[:, 1], value)
    fitted = problem.basis @ value + has_ramp * problem.ramp
    below = chi2.cdf(problem.freedom * allan.variance / fitted, problem.freedom)
    return AllanFit(
        *(value, low, high, every, problem.scatter(every), has_ramp, problem.freedom, fitted),
        chance=2 * np.minimum(below, 1 - below),
        is_unsteady=~all_terms,
    )


@dataclass(frozen=True)
class AllanDeviance:
    """Allan variances, what they scatter by, and the shapes to explain them with."""

    basis: Array  # (num_sizes, num_terms) Allan variance of each unit term
    measured: Array  # (num_sizes,) Allan variances
    freedom: Array  # (num_sizes,) their degrees of freedom
    ramp: Array  # (num_sizes,) Allan variance of the straight line
    factors: Array  # (num_terms,) by how much correlated estimates raise the variance of each term
    relative: Array  # (num_sizes, num_sizes) covariance of estimate / fitted

    def minimize(
        self, free: Flags, min_ramp_saving: float = 0.0, offset: Array | float = 0.0
    ) -> tuple[Array, float, bool]:
        """Returns the sizes of least deviance, that deviance, and whether the ramp lowers it by enough.

        Args:
            free: (num_terms,) which terms may be there.
            min_ramp_saving: Deviance that the ramp must save.
            offset: (num_sizes,) Allan variance that is there anyhow.
        """
        without, with_ramp = self._minimize(free, offset), self._minimize(free, offset + self.ramp)
        has_ramp = with_ramp[1] < without[1] - min_ramp_saving
        return *(with_ramp if has_ramp else without), has_ramp

    def _minimize(self, free: Flags, offset: Array | float) -> tuple[Array, float]:
        columns, sizes, best = self.basis[:, free], np.zeros(len(free)), np.inf
        fitted = np.maximum(self.measured, offset)
        for _ in range(MAX_ROUNDS):
            weight = np.sqrt(self.freedom) / fitted
            weighted = columns * weight[:, None]
            scale = np.linalg.norm(weighted, axis=0)
            solved = nnls(weighted / scale, (self.measured - offset) * weight)[0] / scale
            whole = np.maximum(columns @ solved + offset, 1e-6 * self.measured)
            ratio = self.measured / whole
            cost = float(np.sum(self.freedom * (ratio - np.log(ratio) - 1)))
            if cost < best:
                sizes[free] = solved
            worse, best = cost > best, min(cost, best)
            if np.allclose(whole, fitted, rtol=1e-7, atol=0):
                break
            fitted = np.sqrt(fitted * whole) if worse else whole
        return sizes, best

    def scatter(self, value: Array) -> Array:
        """Returns the covariance of the sizes of terms, 0 for those that are 0.

        Where flicker or a random walk is seen, both count: which of them it is, is not known well.
        """
        wanders = np.isin(TERMS, ("flicker", "walk"))
        used = np.flatnonzero((value > 0) | (wanders & np.any(value[wanders] > 0)))
        columns, weights = self.basis[:, used] / (self.basis @ value)[:, None], self.freedom / 2
        pull = (weights[:, None] * columns) @ np.linalg.pinv(columns.T @ (weights[:, None] * columns), hermitian=True)
        found = np.zeros((len(value), len(value)))
        found[np.ix_(used, used)] = pull.T @ self.relative @ pull
        return found


def make_deviance(allan: AllanVariances, value: Array) -> AllanDeviance:
    """Returns what is to be minimised, with degrees of freedom and correlations as if the terms had these sizes."""
    basis = term_shapes(allan.sizes)
    fitted = basis @ value
    relative = estimate_covariance(allan, value) / np.outer(fitted, fitted)
    freedom = 2 / np.diag(relative)
    columns, places = basis / fitted[:, None], range(len(TERMS))
    factors = [
        max(
            _scatter_factor(columns[:, [place, *others]], freedom / 2, relative)
            for count in places
            for others in combinations([k for k in places if k != place], count)
        )
        for place in places
    ]
    ramp = allan.slope**2 * allan.sizes**2 / 2
    return AllanDeviance(basis, allan.variance, freedom, ramp, np.maximum(1.0, factors), relative)


def _scatter_factor(columns: Array, weights: Array, relative: Array) -> float:
    """Returns the variance of the first of some terms over that which independent estimates would give."""
    inverse = np.linalg.pinv(columns.T @ (weights[:, None] * columns), hermitian=True)
    pull = (weights[:, None] * columns) @ inverse[:, 0]
    return float(pull @ relative @ pull / inverse[0, 0])


def _select_terms(problem: AllanDeviance) -> Flags:
    """Returns which terms stay when the one that saves least is left out again and again."""
    kept = np.ones(len(TERMS), dtype=np.bool_)
    while kept.sum() > 1:
        now = problem.minimize(kept)[1]
        places = [int(k) for k in np.flatnonzero(kept)]
        saves = {k: (problem.minimize(_leave_out(kept, k))[1] - now) / problem.factors[k] for k in places}
        least = min(saves, key=lambda k: saves[k])
        if saves[least] > MIN_DEVIANCE_SAVING:
            break
        kept = _leave_out(kept, least)
    return kept


def _leave_out(kept: Flags, place: int) -> Flags:
    left = kept.copy()
    left[place] = False
    return left


def _find_interval(allan: AllanVariances, problem: AllanDeviance, place: int, value: Array) -> tuple[float, float]:
    """Returns the ends of a term's interval.

    Each end is looked for again with the degrees of freedom that hold there: more random walk, fewer of them.
    """
    all_terms = value >= 0
    ends: list[float] = []
    for upper in (False, True):
        end = _find_end(problem, place, value, upper)
        if end > 0:
            row = problem.minimize(_leave_out(all_terms, place), offset=problem.basis[:, place] * end)[0]
            row[place] = end
            there = make_deviance(allan, row)
            end = _find_end(there, place, there.minimize(all_terms)[0], upper)
        ends.append(end)
    return ends[0], ends[1]


def _find_end(problem: AllanDeviance, place: int, value: Array, upper: bool) -> float:
    """Returns where the deviance passes its limit, searched in the logarithm of the size; 0 if it never does below."""
    others, shape = _leave_out(value >= 0, place), problem.basis[:, place]
    limit = problem.minimize(value >= 0)[1] + MIN_DEVIANCE_SAVING * problem.factors[place]

    def exceed_limit(log_size: float) -> float:
        return problem.minimize(others, offset=shape * np.exp(log_size))[1] - limit

    whole = float(np.log(np.min(problem.measured / shape)))  # as large as it can be if there is nothing else
    least = whole - 20.0
    start = float(np.log(value[place])) if value[place] > 0 else least
    low, high = (start, whole + 6.0) if upper else (least, start)
    at_low, at_high = exceed_limit(low), exceed_limit(high)
    if not upper and at_low <= 0:
        return 0.0
    if at_low * at_high > 0:  # it does not pass: the nearer end
        return float(np.exp(low if abs(at_low) < abs(at_high) else high))
    return float(np.exp(root_scalar(exceed_limit, bracket=(low, high), method="brentq", xtol=1e-4).root))
