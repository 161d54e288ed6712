"""A hierarchical logistic model of failure, and which factors it needs.

logit P(run i fails) = intercept + sum over factors f that matter of basis_f[i] · effects_f,
effects_f ~ N(0, tau^2), tau ~ half-normal(TAU_SCALE) on a grid, shared by the factors of a model.
A factor matters with probability rho ~ Beta(1, 1 / prior - 1), prior = EXPECTED_FACTORS / num_factors, at most
MAX_PRIOR: however many conditions a log names, half a factor is expected to matter, and once one does, others may. That
is the correction for many comparisons (J. G. Scott and J. O. Berger, 2010).
Effects are integrated out by Laplace's method, tau by its grid, the choice of factors by summing over models. All
models of up to two of 24 factors are summed; larger ones grow from the most probable smaller ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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
NUM_GROWN = 24  # models of one factor that grow: all pairs of so many factors are summed
NUM_GROWN_LARGER = 16  # models of two factors or more that grow
MIN_SIZE_SHARE = 0.02  # a size of model that holds less than this posterior share ends the search
MAX_NEWTON_STEPS = 50
MAX_MOVE = 3.0  # of any linear predictor in one Newton step [logit]

Model = tuple[int, ...]  # the factors that matter, sorted


@dataclass(frozen=True)
class ModelPosterior:
    """Models with their weights."""

    includes: Flags  # (num_models, num_factors) which factors matter
    weights: Array  # (num_models,) posterior probability, summing to 1
    priors: Array  # (num_models,) prior probability
    means: Array  # (num_models, num_groups) mean linear predictor of each group of runs [logit]
    sds: Array  # (num_models, num_groups) its standard deviation [logit]

    @property
    def probabilities(self) -> Array:
        """(num_factors,) that each matters."""
        return self.weights @ self.includes


def weigh_models(runs: RunFactors, groups: Sequence[Flags], alike: Flags) -> ModelPosterior:
    """Returns the posterior over models, with the mean linear predictor of each group of runs under each model.

    Factors that divide the runs `alike`, (num_factors, num_factors), share: no model has both.
    """
    num_factors = len(runs.columns)
    always = list_always(runs)
    averages = np.array([group / group.sum() for group in groups]).reshape(-1, len(runs.failed))

    def fit(model: Model) -> tuple[float, Array, Array]:
        return fit_model(always, [runs.columns[factor].basis for factor in model], runs.failed, averages)

    parents: list[Model] = [()]
    models, fits = parents, [fit(())]
    newest = scores = log_priors(models, num_factors) + fits[0][0]
    for size in range(min(MAX_FACTORS, num_factors)):
        best = np.argsort(-newest, kind="stable")[: NUM_GROWN if size < 2 else NUM_GROWN_LARGER]
        children = _grow_models([parents[k] for k in best], ~alike)
        if not children:
            break
        fits += [fit(model) for model in children]
        newest = log_priors(children, num_factors) + np.array([fit[0] for fit in fits[-len(children) :]])
        models, parents = models + children, children
        scores = np.concatenate([scores, newest])
        if np.logaddexp.reduce(newest) < np.log(MIN_SIZE_SHARE) + np.logaddexp.reduce(scores):
            break
    includes = np.array([[factor in model for factor in range(num_factors)] for model in models], dtype=bool)
    means, sds = (np.stack([fit[k] for fit in fits]) for k in (1, 2))
    weights, priors = np.exp(scores - np.logaddexp.reduce(scores)), np.exp(log_priors(models, num_factors))
    return ModelPosterior(includes, weights, priors, means, sds)


def prior_probability(num_factors: int) -> float:
    """Returns the probability, before any run, that one of so many factors matters."""
    return min(MAX_PRIOR, EXPECTED_FACTORS / max(num_factors, 1))


def log_priors(models: Sequence[Model], num_factors: int) -> Array:
    """Returns the log prior probability of each model, (num_models,)."""
    sizes = np.array([len(model) for model in models])
    b = 1 / prior_probability(num_factors) - 1
    return betaln(sizes + 1, num_factors - sizes + b) - betaln(1, b)


def _grow_models(parents: Sequence[Model], apart: Flags) -> list[Model]:
    """Returns every model with one factor more than a parent, in a fixed order."""
    found: dict[Model, None] = {}
    for parent in parents:
        for factor in range(len(apart)):
            if factor not in parent and apart[factor, list(parent)].all():
                found[tuple(sorted((*parent, factor)))] = None
    return list(found)


def list_always(runs: RunFactors) -> Array:
    """Returns the columns that every model has, (num_runs, num_always): the intercept, who names no such condition."""
    gaps = [~column.known for column in runs.columns if not column.known.all()]
    unnamed = np.unique(np.array(gaps), axis=0) if gaps else []
    return np.column_stack([np.ones(len(runs.failed)), *unnamed])


def fit_model(always: Array, bases: Sequence[Array], failed: Flags, averages: Array) -> tuple[float, Array, Array]:
    """Returns the log evidence of a model, and mean and deviation of averages of its linear predictor [logit].

    Columns that are `always` there, (num_runs, num_always), have priors of their own; `bases` are (num_runs,
    num_effects) of each factor of the model, `averages` (num_averages, num_runs) the weights of runs in each average.
    """
    design = np.hstack([always, *bases])
    sds = np.tile([INTERCEPT_SD, *[MISSING_SD] * (design.shape[1] - 1)], (len(TAUS), 1))
    sds[:, always.shape[1] :] = TAUS[:, None]
    log_evidence, effects, covariance = integrate_effects(design, failed, sds**-2.0)
    log_evidence = log_evidence + np.log(TAU_WEIGHTS)
    total = np.logaddexp.reduce(log_evidence)
    weights, rows = np.exp(log_evidence - total), averages @ design
    means = effects @ rows.T  # (num_taus, num_averages)
    variances = ((rows @ covariance) * rows).sum(axis=2)
    mean = weights @ means
    return float(total), mean, np.sqrt(weights @ (variances + (means - mean) ** 2))


def integrate_effects(design: Array, failed: Flags, precision: Array) -> tuple[Array, Array, Array]:
    """Integrates effects out of a logistic regression by Laplace's method, for several priors N(0, 1 / precision).

    `design` is (num_runs, num_effects) [1], `precision` (num_priors, num_effects) [1 / logit^2]. Returns per prior the
    log evidence, the most probable effects (num_effects,) and their covariance.
    """

    def curvature(share: Array) -> Array:
        weighted = (share * (1 - share))[:, :, None] * design  # (num_priors, num_runs, num_effects)
        return design.T @ weighted + precision[:, :, None] * np.eye(design.shape[1])

    effects = np.zeros(precision.shape)
    for _ in range(MAX_NEWTON_STEPS):
        share = expit(effects @ design.T)
        gradient = (failed - share) @ design - precision * effects
        step = np.linalg.solve(curvature(share), gradient[..., None])[..., 0]
        move = np.abs(step @ design.T).max(axis=1, keepdims=True)
        effects = effects + step / np.maximum(1.0, move / MAX_MOVE)
        if move.max() < 1e-4:
            break
    predictor = effects @ design.T
    hessian = curvature(expit(predictor))
    log_evidence = -np.logaddexp(0.0, np.where(failed, -predictor, predictor)).sum(axis=1)
    log_evidence += 0.5 * (np.log(precision) - precision * effects**2).sum(axis=1) - 0.5 * np.linalg.slogdet(hessian)[1]
    return log_evidence, effects, np.asarray(np.linalg.inv(hessian), dtype=np.float64)
