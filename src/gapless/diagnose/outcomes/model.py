"""A hierarchical logistic model of failure, and which factors it needs.

logit P(run i fails) = intercept + sum over factors f that matter of basis_f[i] · effects_f,
effects_f ~ N(0, tau_f^2), tau_f ~ half-normal(SCALE) on a grid, or 0 where f does not matter.
A factor matters with probability rho ~ Beta(1, 1 / prior - 1), prior = EXPECTED / num_factors, at most MOST: however
many conditions a log names, half a factor is expected to matter, and once one does, others may. That is the
correction for many comparisons (J. G. Scott and J. O. Berger, 2010).
Effects are integrated out by Laplace's method, tau_f and the choice of factors by summing over models. All models
of up to two of 24 factors are summed; larger ones grow from the most probable smaller ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.special import betaln, expit

from gapless.core.signal import Array, Flags
from gapless.diagnose.outcomes.design import Design

EXPECTED = 0.5  # factors expected to matter, whatever their number
MOST = 0.2  # largest prior probability that one factor matters, where there are only one or two
SCALE = 1.5  # of the half-normal prior of tau [logit]
TAUS = np.array([0.5, 1.0, 2.0])  # [logit]; below, a factor hardly matters
TAU_WEIGHTS = TAUS * np.exp(-0.5 * (TAUS / SCALE) ** 2)  # density times spacing of a grid in log tau
TAU_WEIGHTS = TAU_WEIGHTS / TAU_WEIGHTS.sum()
INTERCEPT_SD = 2.0  # [logit]: failure rates from 2 % to 98 %
MISSING_SD = 2.0  # [logit] of runs that do not name a condition: not naming it must not look like an effect of it
MAX_FACTORS = 6
BEAM = 72  # models of one factor that grow: 24 factors with every tau, so that all pairs of so many are summed
BEAM_LARGER = 16  # models of two factors or more that grow
NEGLIGIBLE = 0.02  # a size of model that holds less than this posterior share ends the search
MAX_ELEMENTS = 4_000_000  # of one batch of design matrices

Model = tuple[tuple[int, int], ...]  # (factor, index of tau), sorted


@dataclass(frozen=True)
class Posterior:
    """Models with their weights.

    Attributes:
        includes: (num_models, num_factors) which factors matter.
        weights: (num_models,) posterior probability, summing to 1.
        priors: (num_models,) prior probability of the factors and taus of each model.
        tau_weights: (num_models,) prior probability of its taus alone.
        prior: Prior probability that one factor matters.
        means: (num_models, num_contrasts) of the contrasts asked for [logit].
        sds: (num_models, num_contrasts) [logit].
    """

    includes: Flags
    weights: Array
    priors: Array
    tau_weights: Array
    prior: float
    means: Array
    sds: Array

    @property
    def probabilities(self) -> Array:
        """(num_factors,) that each matters."""
        return self.weights @ self.includes

    def reordered(self, order: Sequence[int]) -> "Posterior":
        """Returns the same with the factors in another order."""
        return replace(self, includes=self.includes[:, list(order)])


@dataclass(frozen=True)
class Table:
    """All columns side by side; the last is zero, to fill models up to one width.

    Attributes:
        values: (num_runs, num_columns + 1) [1].
        always: Indices of columns that every model has: the intercept and who does not name a condition.
        always_sd: Their prior standard deviations [logit].
        factors: Column indices per factor.
        failed: (num_runs,).
    """

    values: Array
    always: tuple[int, ...]
    always_sd: tuple[float, ...]
    factors: tuple[tuple[int, ...], ...]
    failed: Flags


def make_table(design: Design) -> Table:
    """Returns the columns of the regression: intercept, unnamed conditions, factors, zero."""
    num_runs = len(design.failed)
    gaps = [~column.known for column in design.columns if not column.known.all()]
    unnamed = np.unique(np.array(gaps), axis=0).astype(float) if gaps else np.zeros((0, num_runs))
    parts = [np.ones((num_runs, 1)), unnamed.T, *(column.basis for column in design.columns), np.zeros((num_runs, 1))]
    ends = np.cumsum([part.shape[1] for part in parts])
    factors = tuple(tuple(range(a, b)) for a, b in pairwise(ends[1:-1]))
    sds = (INTERCEPT_SD, *[MISSING_SD] * len(unnamed))
    return Table(np.hstack(parts), tuple(range(len(sds))), sds, factors, design.failed)


def weigh_models(table: Table, groups: Sequence[Flags], alike: Flags | None = None) -> Posterior:
    """Returns the posterior over models, with the mean linear predictor of each group of runs under each model.

    Args:
        table: The regression.
        groups: Each (num_runs,) the runs of one group.
        alike: (num_factors, num_factors) which factors part the runs alike: no model has both, they share instead.
    """
    num_factors = len(table.factors)
    apart = np.ones((num_factors, num_factors), dtype=bool) if alike is None else ~alike
    contrasts = np.array([table.values[group].mean(axis=0) for group in groups]).reshape(-1, table.values.shape[1])
    models: list[Model] = [()]
    fits = [fit_models(table, models, contrasts)]
    scores = log_priors(models, num_factors) + fits[0][0]
    newest, parents = scores, models
    for size in range(min(MAX_FACTORS, num_factors)):
        best = np.argsort(-newest, kind="stable")[: BEAM if size < 2 else BEAM_LARGER]
        children = _grown([parents[k] for k in best], apart)
        if not children:
            break
        fits.append(fit_models(table, children, contrasts))
        newest = log_priors(children, num_factors) + fits[-1][0]
        models, parents = models + children, children
        scores = np.concatenate([scores, newest])
        if np.exp(newest - scores.max()).sum() < NEGLIGIBLE * np.exp(scores - scores.max()).sum():
            break
    includes = np.zeros((len(models), num_factors), dtype=bool)
    for row, model in zip(includes, models, strict=True):
        row[[factor for factor, _ in model]] = True
    weights = np.exp(scores - scores.max())
    weights = weights / weights.sum()
    means, sds = (np.concatenate([fit[k] for fit in fits]) for k in (1, 2))
    priors, taus = np.exp(log_priors(models, num_factors)), np.exp(_log_taus(models))
    return Posterior(includes, weights, priors, taus, prior_probability(num_factors), means, sds)


def prior_probability(num_factors: int) -> float:
    """Returns the probability, before any run, that one of so many factors matters."""
    return min(MOST, EXPECTED / max(num_factors, 1))


def _grown(parents: Sequence[Model], apart: Flags) -> list[Model]:
    """Returns every model with one factor more than a parent, in a fixed order."""
    found: dict[Model, None] = {}
    for parent in parents:
        used = [factor for factor, _ in parent]
        for factor in (f for f in range(len(apart)) if f not in used and apart[f, used].all()):
            for tau in range(len(TAUS)):
                found[tuple(sorted((*parent, (factor, tau))))] = None
    return list(found)


def log_priors(models: Sequence[Model], num_factors: int) -> Array:
    """Returns the log prior probability of each model, (num_models,)."""
    sizes = np.array([len(model) for model in models])
    b = 1 / prior_probability(num_factors) - 1
    return betaln(sizes + 1, num_factors - sizes + b) - betaln(1, b) + _log_taus(models)


def _log_taus(models: Sequence[Model]) -> Array:
    logs = np.log(TAU_WEIGHTS).tolist()
    return np.array([sum(logs[tau] for _, tau in model) for model in models])


def fit_models(table: Table, models: Sequence[Model], contrasts: Array) -> tuple[Array, Array, Array]:
    """Returns log evidence (num_models,), and mean and deviation of the contrasts (num_models, num_contrasts)."""
    widths = [len(table.always) + sum(len(table.factors[f]) for f, _ in model) for model in models]
    step = max(1, MAX_ELEMENTS // (len(table.failed) * max(widths)))
    parts = [_fit_batch(table, models[k : k + step], contrasts) for k in range(0, len(models), step)]
    return tuple(np.concatenate([part[k] for part in parts]) for k in range(3))  # type: ignore[return-value]


def _fit_batch(table: Table, models: Sequence[Model], contrasts: Array) -> tuple[Array, Array, Array]:
    index, precision = _padded(table, models)
    turned = np.ascontiguousarray(table.values.T)[index]  # (num_models, width, num_runs)
    design = np.swapaxes(turned, 1, 2)
    beta = np.zeros(index.shape)
    sign = np.where(table.failed, 1.0, -1.0)
    for _ in range(50):
        share = expit((design @ beta[..., None])[..., 0])
        gradient = (turned @ (table.failed - share)[..., None])[..., 0] - precision * beta
        hessian = _hessian(design, turned, share, precision)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        move = np.abs(design @ step[..., None]).max(axis=1)
        beta = beta + step / np.maximum(1.0, move / 3.0)  # no linear predictor moves by more than 3 at once
        if move.max() < 1e-4:
            break
    eta = (design @ beta[..., None])[..., 0]
    hessian = _hessian(design, turned, expit(eta), precision)
    log_likelihood = -np.logaddexp(0.0, -sign * eta).sum(axis=1)
    log_evidence = log_likelihood - 0.5 * (precision * beta**2).sum(axis=1)
    log_evidence += 0.5 * np.log(precision).sum(axis=1) - 0.5 * np.linalg.slogdet(hessian)[1]
    rows = np.moveaxis(contrasts[:, index], 0, 1)  # (num_models, num_contrasts, width)
    means = np.einsum("bcp,bp->bc", rows, beta)
    variances = np.einsum("bcp,bpc->bc", rows, np.linalg.solve(hessian, np.swapaxes(rows, 1, 2)))
    return log_evidence, means, np.sqrt(variances)


def _hessian(design: Array, turned: Array, share: Array, precision: Array) -> Array:
    hessian = (turned * (share * (1 - share))[:, None, :]) @ design
    diagonal = np.arange(precision.shape[1])
    hessian[:, diagonal, diagonal] += precision
    return hessian


def _padded(table: Table, models: Sequence[Model]) -> tuple[np.ndarray, Array]:
    """Returns column indices and prior precisions, (num_models, width), filled up with the zero column."""
    rows = [[*table.always, *(c for f, _ in model for c in table.factors[f])] for model in models]
    sds = [[*table.always_sd, *(TAUS[t] for f, t in model for _ in table.factors[f])] for model in models]
    width = max(len(row) for row in rows)
    zero = table.values.shape[1] - 1
    index = np.array([row + [zero] * (width - len(row)) for row in rows], dtype=np.intp)
    return index, np.array([row + [1.0] * (width - len(row)) for row in sds]) ** -2.0
