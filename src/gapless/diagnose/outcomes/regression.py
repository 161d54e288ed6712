"""A hierarchical logistic model of failure, and which factors it needs.

logit P(run i fails) = intercept + sum over factors f that matter of basis_f[i] · effects_f,
effects_f ~ N(0, tau_f^2), tau_f ~ half-normal(TAU_SCALE) on a grid, or 0 where f does not matter.
A factor matters with probability rho ~ Beta(1, 1 / prior - 1), prior = EXPECTED_FACTORS / num_factors, at most
MAX_PRIOR: however many conditions a log names, half a factor is expected to matter, and once one does, others may. That
is the correction for many comparisons (J. G. Scott and J. O. Berger, 2010).
Effects are integrated out by Laplace's method, tau_f and the choice of factors by summing over models. All models
of up to two of 24 factors are summed; larger ones grow from the most probable smaller ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import betaln, expit

from gapless.core.signal import Array, Flags
from gapless.diagnose.outcomes.factors import RunFactors

EXPECTED_FACTORS = 0.5  # factors expected to matter, whatever their number
MAX_PRIOR = 0.2  # largest prior probability that one factor matters, where there are only one or two
TAU_SCALE = 1.5  # of the half-normal prior of tau [logit]
TAUS = np.array([0.5, 1.0, 2.0])  # [logit]; below, a factor hardly matters
TAU_WEIGHTS = TAUS * np.exp(-0.5 * (TAUS / TAU_SCALE) ** 2)  # density times spacing of a grid in log tau
TAU_WEIGHTS = TAU_WEIGHTS / TAU_WEIGHTS.sum()
INTERCEPT_SD = 2.0  # [logit]: failure rates from 2 % to 98 %
MISSING_SD = 2.0  # [logit] of runs that do not name a condition: not naming it must not look like an effect of it
MAX_FACTORS = 6  # of one model
NUM_GROWN = 72  # models of one factor that grow: 24 factors with every tau, so that all pairs of so many are summed
NUM_GROWN_LARGER = 16  # models of two factors or more that grow
MIN_SIZE_SHARE = 0.02  # a size of model that holds less than this posterior share ends the search
MAX_ELEMENTS = 4_000_000  # of one batch of design matrices
MAX_NEWTON_STEPS = 50
MAX_MOVE = 3.0  # of any linear predictor in one Newton step [logit]

Model = tuple[tuple[int, int], ...]  # (factor, index of tau), sorted


@dataclass(frozen=True)
class ModelPosterior:
    """Models with their weights.

    Attributes:
        includes: (num_models, num_factors) which factors matter.
        weights: (num_models,) posterior probability, summing to 1.
        priors: (num_models,) prior probability of the factors and taus of each model.
        tau_weights: (num_models,) prior probability of its taus alone.
        means: (num_models, num_contrasts) of the contrasts asked for [logit].
        sds: (num_models, num_contrasts) [logit].
    """

    includes: Flags
    weights: Array
    priors: Array
    tau_weights: Array
    means: Array
    sds: Array

    @property
    def probabilities(self) -> Array:
        """(num_factors,) that each matters."""
        return self.weights @ self.includes


@dataclass(frozen=True)
class Regressors:
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


def make_regressors(runs: RunFactors) -> Regressors:
    """Returns the columns of the regression: intercept, unnamed conditions, factors, zero."""
    num_runs = len(runs.failed)
    gaps = [~column.known for column in runs.columns if not column.known.all()]
    unnamed = np.unique(np.array(gaps), axis=0).astype(float) if gaps else np.zeros((0, num_runs))
    parts = [np.ones((num_runs, 1)), unnamed.T, *(column.basis for column in runs.columns), np.zeros((num_runs, 1))]
    ends = np.cumsum([part.shape[1] for part in parts])
    factors = tuple(tuple(range(a, b)) for a, b in pairwise(ends[1:-1]))
    sds = (INTERCEPT_SD, *[MISSING_SD] * len(unnamed))
    return Regressors(np.hstack(parts), tuple(range(len(sds))), sds, factors, runs.failed)


def weigh_models(regressors: Regressors, groups: Sequence[Flags], alike: Flags | None = None) -> ModelPosterior:
    """Returns the posterior over models, with the mean linear predictor of each group of runs under each model.

    Args:
        regressors: The regression.
        groups: Each (num_runs,) the runs of one group.
        alike: (num_factors, num_factors) which factors divide the runs alike: no model has both, they share instead.
    """
    num_factors, values = len(regressors.factors), regressors.values
    apart = np.ones((num_factors, num_factors), dtype=bool) if alike is None else ~alike
    contrasts = np.array([values[group].mean(axis=0) for group in groups]).reshape(-1, values.shape[1])
    models: list[Model] = [()]
    fits = [fit_models(regressors, models, contrasts)]
    scores = log_priors(models, num_factors) + fits[0][0]
    newest, parents = scores, models
    for size in range(min(MAX_FACTORS, num_factors)):
        best = np.argsort(-newest, kind="stable")[: NUM_GROWN if size < 2 else NUM_GROWN_LARGER]
        children = _grow_models([parents[k] for k in best], apart)
        if not children:
            break
        fits.append(fit_models(regressors, children, contrasts))
        newest = log_priors(children, num_factors) + fits[-1][0]
        models, parents = models + children, children
        scores = np.concatenate([scores, newest])
        if np.exp(newest - scores.max()).sum() < MIN_SIZE_SHARE * np.exp(scores - scores.max()).sum():
            break
    includes = np.zeros((len(models), num_factors), dtype=bool)
    for row, model in zip(includes, models, strict=True):
        row[[factor for factor, _ in model]] = True
    weights = np.exp(scores - scores.max())
    means, sds = (np.concatenate([fit[k] for fit in fits]) for k in (1, 2))
    priors, taus = np.exp(log_priors(models, num_factors)), np.exp(_log_taus(models))
    return ModelPosterior(includes, weights / weights.sum(), priors, taus, means, sds)


def prior_probability(num_factors: int) -> float:
    """Returns the probability, before any run, that one of so many factors matters."""
    return min(MAX_PRIOR, EXPECTED_FACTORS / max(num_factors, 1))


def _grow_models(parents: Sequence[Model], apart: Flags) -> list[Model]:
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


def fit_models(regressors: Regressors, models: Sequence[Model], contrasts: Array) -> tuple[Array, Array, Array]:
    """Returns log evidence (num_models,), and mean and deviation of the contrasts (num_models, num_contrasts)."""
    widths = [len(regressors.always) + sum(len(regressors.factors[f]) for f, _ in model) for model in models]
    step = max(1, MAX_ELEMENTS // (len(regressors.failed) * max(widths)))
    batches = [_fit_batch(regressors, models[k : k + step], contrasts) for k in range(0, len(models), step)]
    evidence, means, sds = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    return evidence, means, sds


def _fit_batch(regressors: Regressors, models: Sequence[Model], contrasts: Array) -> tuple[Array, Array, Array]:
    index, precision = _pad_models(regressors, models)
    turned = np.ascontiguousarray(regressors.values.T)[index]  # (num_models, width, num_runs)
    design, failed = np.swapaxes(turned, 1, 2), regressors.failed
    diagonal = np.arange(precision.shape[1])

    def curvature(share: Array) -> Array:
        hessian = (turned * (share * (1 - share))[:, None, :]) @ design
        hessian[:, diagonal, diagonal] += precision
        return hessian

    beta = np.zeros(index.shape)
    for _ in range(MAX_NEWTON_STEPS):
        share = expit((design @ beta[..., None])[..., 0])
        gradient = (turned @ (failed - share)[..., None])[..., 0] - precision * beta
        step = np.linalg.solve(curvature(share), gradient[..., None])[..., 0]
        move = np.abs(design @ step[..., None]).max(axis=1)
        beta = beta + step / np.maximum(1.0, move / MAX_MOVE)
        if move.max() < 1e-4:
            break
    eta = (design @ beta[..., None])[..., 0]
    hessian = curvature(expit(eta))
    log_likelihood = -np.logaddexp(0.0, np.where(failed, -eta, eta)).sum(axis=1)
    log_evidence = log_likelihood - 0.5 * (precision * beta**2).sum(axis=1)
    log_evidence += 0.5 * np.log(precision).sum(axis=1) - 0.5 * np.linalg.slogdet(hessian)[1]
    rows = np.moveaxis(contrasts[:, index], 0, 1)  # (num_models, num_contrasts, width)
    means = np.einsum("bcp,bp->bc", rows, beta)
    variances = np.einsum("bcp,bpc->bc", rows, np.linalg.solve(hessian, np.swapaxes(rows, 1, 2)))
    return log_evidence, means, np.sqrt(variances)


def _pad_models(regressors: Regressors, models: Sequence[Model]) -> tuple[np.ndarray, Array]:
    """Returns column indices and prior precisions, (num_models, width), filled up with the zero column."""
    rows = [[*regressors.always, *(c for f, _ in model for c in regressors.factors[f])] for model in models]
    sds = [[*regressors.always_sd, *(TAUS[t] for f, t in model for _ in regressors.factors[f])] for model in models]
    width = max(len(row) for row in rows)
    zero = regressors.values.shape[1] - 1
    index = np.array([row + [zero] * (width - len(row)) for row in rows], dtype=np.intp)
    return index, np.array([row + [1.0] * (width - len(row)) for row in sds]) ** -2.0
