"""A logistic model of failure, and which factors it needs.

logit P(run i fails) = base + sum over factors f that matter of exposure_f[i] · effect_f.
Which values of a factor are exposed is part of the model (`exposures`). Priors are mixtures: mostly what real gaps look
like (`USUAL`: few everyday failures, many where the cause acts), sometimes anything (`ANY`).
A factor matters with probability rho ~ Beta(1, 1 / prior - 1), prior = EXPECTED_FACTORS / num_factors, at most
MAX_PRIOR: however many conditions a log names, the same number is expected to matter, and once one does, others may.
That is the correction for many comparisons (J. G. Scott and J. O. Berger, 2010).
Effects are integrated out by Laplace's method, the choice of factors and exposures by summing over models. All models
of one factor are summed; larger ones grow from the most probable smaller ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, expit

from gapless.core.signal import Array, Flags
from gapless.diagnose.outcomes.exposures import Exposure, list_exposures
from gapless.diagnose.outcomes.factors import RunFactors

EXPECTED_FACTORS = 0.55  # that matter, whatever their number: as many false alarms as before, tuning split
MAX_PRIOR = 0.2  # largest prior probability that one factor matters, where there are only one or two
# Priors (mean, sd) [logit], of the kinds USUAL and ANY. Set on the tuning split of `benchmarks/diagnose.py`.
KIND_SHARES = np.array([0.9, 0.1])
BASE = np.array([(-1.6, 0.8), (0.0, 2.0)])  # of unexposed runs: 8 to 31 % fail; anything
EVEN = np.array([(-0.7, 0.9), (0.0, 2.0)])  # of all runs, where no values are known to be bad: 17 to 55 %; anything
EFFECT = np.array([(2.2, 0.7), (0.0, 1.5)])  # of exposure: multiplies the odds by 4.5 to 18; anything, either way
OWN_EFFECT = np.array([(0.0, 1.5), (0.0, 1.5)])  # of each value, where all differ
MISSING = np.array([(0.0, 2.0), (0.0, 2.0)])  # of runs that do not name a condition
MIN_SILENT = 0.2  # share of runs that do not name a condition, from which not naming it may itself go with failing
MAX_FACTORS = 6  # of one model
NUM_GROWN = 6  # models that grow
NUM_ADDED = 2  # exposures of each factor, the most probable alone, that they grow by
MIN_SIZE_SHARE = 0.02  # a size of model that holds less than this posterior share ends the search
MAX_NEWTON_STEPS = 50
MAX_MOVE = 3.0  # of any linear predictor in one Newton step [logit]

Model = tuple[int, ...]  # indices of exposures, of different factors, sorted


@dataclass(frozen=True)
class ModelPosterior:
    """Models with their weights."""

    exposures: tuple[Exposure, ...]  # of all factors
    models: tuple[Model, ...]  # the exposures that matter in each model
    includes: Flags  # (num_models, num_factors) which factors matter
    weights: Array  # (num_models,) posterior probability, summing to 1
    priors: Array  # (num_models,) prior probability
    shares: Array  # (num_models,) part of it that is the choice of exposures, given the factors
    means: Array  # (num_models, num_groups) mean linear predictor of each group of runs [logit]
    sds: Array  # (num_models, num_groups) its standard deviation [logit]
    attributable: Array  # (num_exposures, num_runs) share of each run's chance to fail that is due to this one alone

    @property
    def probabilities(self) -> Array:
        """(num_factors,) that each matters."""
        return self.weights @ self.includes


@dataclass(frozen=True)
class _Fit:
    """A model with its effects integrated out."""

    log_evidence: float  # [nat]
    means: Array  # (num_averages,) mean of each average of the linear predictor [logit]
    sds: Array  # (num_averages,) its standard deviation [logit]
    base: float  # linear predictor of unexposed runs [logit]
    predictor: Array  # (num_runs,) that of each run [logit]


def weigh_models(runs: RunFactors, groups: Sequence[Flags], alike: Flags) -> ModelPosterior:
    """Returns the posterior over models, with the mean linear predictor of each group of runs under each model.

    Factors that divide the runs `alike`, (num_factors, num_factors), share: no model has both.
    """
    num_factors, always = len(runs.columns), list_always(runs)
    exposures = list_exposures(runs.columns)
    averages = np.array([group / group.sum() for group in groups]).reshape(-1, len(runs.failed))

    def fit(model: Model) -> _Fit:
        return fit_model(always, [exposures[k] for k in model], runs.failed, averages)

    def log_shares(some: Sequence[Model]) -> Array:
        return np.array([sum(np.log(exposures[k].share) for k in model) for model in some], dtype=np.float64)

    singles: list[Model] = [(k,) for k in range(len(exposures))]
    models: list[Model] = [(), *singles]
    fits = [fit(model) for model in models]
    scores = log_priors(models, num_factors) + log_shares(models) + np.array([one.log_evidence for one in fits])
    added = _list_added(exposures, scores[1:])
    parents, newest = singles, scores[1:]
    for _ in range(1, min(MAX_FACTORS, num_factors)):
        best = np.argsort(-newest, kind="stable")[:NUM_GROWN]
        parents = _grow_models([parents[k] for k in best], added, exposures, ~alike)
        if not parents:
            break
        grown = [fit(model) for model in parents]
        newest = log_priors(parents, num_factors) + log_shares(parents) + np.array([g.log_evidence for g in grown])
        models, fits, scores = models + parents, fits + grown, np.concatenate([scores, newest])
        if np.logaddexp.reduce(newest) < np.log(MIN_SIZE_SHARE) + np.logaddexp.reduce(scores):
            break
    factors = [{exposures[k].factor for k in model} for model in models]
    includes = np.array([[factor in some for factor in range(num_factors)] for some in factors], dtype=bool)
    alone = fits[1 : 1 + len(exposures)]
    return ModelPosterior(
        exposures=tuple(exposures),
        models=tuple(models),
        includes=includes,
        weights=np.exp(scores - np.logaddexp.reduce(scores)),
        priors=np.exp(log_priors(models, num_factors) + log_shares(models)),
        shares=np.exp(log_shares(models)),
        means=np.stack([one.means for one in fits]),
        sds=np.stack([one.sds for one in fits]),
        attributable=np.stack([np.maximum(1 - expit(one.base) / expit(one.predictor), 0.0) for one in alone]),
    )


def prior_probability(num_factors: int) -> float:
    """Returns the probability, before any run, that one of so many factors matters."""
    return min(MAX_PRIOR, EXPECTED_FACTORS / max(num_factors, 1))


def log_priors(models: Sequence[Model], num_factors: int) -> Array:
    """Returns the log prior probability of the factors of each model, (num_models,)."""
    sizes = np.array([len(model) for model in models])
    b = 1 / prior_probability(num_factors) - 1
    return betaln(sizes + 1, num_factors - sizes + b) - betaln(1, b)


def _list_added(exposures: Sequence[Exposure], scores: Array) -> list[int]:
    """Returns the exposures that models grow by: the most probable of each factor."""
    order, found, number = np.argsort(-scores, kind="stable"), list[int](), dict[int, int]()
    for k in order:
        factor = exposures[k].factor
        number[factor] = number.get(factor, 0) + 1
        if number[factor] <= NUM_ADDED:
            found.append(int(k))
    return sorted(found)


def _grow_models(
    parents: Sequence[Model], added: Sequence[int], exposures: Sequence[Exposure], apart: Flags
) -> list[Model]:
    """Returns every model with one factor more than a parent, in a fixed order."""
    found: dict[Model, None] = {}
    for parent in parents:
        held = [exposures[k].factor for k in parent]
        for k in added:
            if exposures[k].factor not in held and apart[exposures[k].factor, held].all():
                found[tuple(sorted((*parent, k)))] = None
    return list(found)


def list_always(runs: RunFactors) -> Array:
    """Returns the columns that every model has, (num_runs, num_always): the base, who names no such condition."""
    gaps = [~column.known for column in runs.columns if np.mean(~column.known) >= MIN_SILENT]
    unnamed = np.unique(np.array(gaps), axis=0) if gaps else []
    return np.column_stack([np.ones(len(runs.failed)), *unnamed])


def fit_model(always: Array, exposures: Sequence[Exposure], failed: Flags, averages: Array) -> _Fit:
    """Returns a model integrated over its effects and both kinds of priors.

    `always` are (num_runs, num_always) columns that every model has, `averages` (num_averages, num_runs) the weights of
    runs in each average of the linear predictor.
    """
    design = np.hstack([always, *(exposure.basis for exposure in exposures)])
    priors = [BASE if any(exposure.raises for exposure in exposures) else EVEN, *[MISSING] * (always.shape[1] - 1)]
    for exposure in exposures:
        priors += [EFFECT if exposure.raises else OWN_EFFECT] * exposure.basis.shape[1]
    means, sds = np.stack(priors, axis=1).transpose(2, 0, 1)  # (num_kinds, num_effects) each
    log_evidence, effects, covariance = integrate_effects(design, failed, means, sds**-2.0)
    log_evidence = log_evidence + np.log(KIND_SHARES)
    total = np.logaddexp.reduce(log_evidence)
    weights, rows = np.exp(log_evidence - total), averages @ design
    values = effects @ rows.T  # (num_kinds, num_averages)
    variances = ((rows @ covariance) * rows).sum(axis=2)
    mean = weights @ values
    deviation = np.sqrt(weights @ (variances + (values - mean) ** 2))
    return _Fit(float(total), mean, deviation, float(weights @ effects[:, 0]), weights @ effects @ design.T)


def integrate_effects(design: Array, failed: Flags, means: Array, precision: Array) -> tuple[Array, Array, Array]:
    """Integrates effects out of a logistic regression by Laplace's method, for several priors N(means, 1 / precision).

    `design` is (num_runs, num_effects) [1], `means` (num_priors, num_effects) [logit], `precision` likewise [1 /
    logit^2]. Returns per prior the log evidence, the most probable effects (num_effects,) and their covariance.
    """

    def curvature(share: Array) -> Array:
        weighted = (share * (1 - share))[:, :, None] * design  # (num_priors, num_runs, num_effects)
        return design.T @ weighted + precision[:, :, None] * np.eye(design.shape[1])

    effects = means
    for _ in range(MAX_NEWTON_STEPS):
        share = expit(effects @ design.T)
        gradient = (failed - share) @ design - precision * (effects - means)
        step = np.linalg.solve(curvature(share), gradient[..., None])[..., 0]
        move = np.abs(step @ design.T).max(axis=1, keepdims=True)
        effects = effects + step / np.maximum(1.0, move / MAX_MOVE)
        if move.max() < 1e-4:
            break
    predictor = effects @ design.T
    hessian = curvature(expit(predictor))
    log_evidence = -np.logaddexp(0.0, np.where(failed, -predictor, predictor)).sum(axis=1)
    misfit = precision * (effects - means) ** 2
    log_evidence += 0.5 * (np.log(precision) - misfit).sum(axis=1) - 0.5 * np.linalg.slogdet(hessian)[1]
    return log_evidence, effects, np.asarray(np.linalg.inv(hessian), dtype=np.float64)
