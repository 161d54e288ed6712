"""How likely a few real runs are under each simulated severity of each dimension.

For a severity s of a dimension d, with n real runs of which k failed:

    log p(real | d, s) = log BetaBinomial(k | n, failures of s) + log DirichletMultinomial(phases | phases of s)
                         + SIGNATURE_TEMPER * log t(mean signature | mean signature of s)

Counts of simulated runs enter as counts, not as rates, so that few simulated runs are not taken for certainty.
p(real | d) is the mean over severities. How far to trust the result is found on simulated runs of this very policy
whose cause is known: see `calibrate_likelihoods`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

from gapless.core.signal import Array, Flags, Indices

SIGNATURE_TEMPER = 0.5  # signature and outcome say partly the same; and no simulation is right in every number
DISCREPANCY = 0.25  # how far signatures of a right model may be from reality's, in nominal standard deviations [1]
DEGREES_OF_FREEDOM = 6.0  # of Student's t: a surprising number does not decide alone
NUM_NEIGHBOURS = 2  # severities with the most similar signatures that show how much lies between
PRIOR_RUNS = 4.0  # runs that a pooled variance counts for beside a group's own
CORRELATION_SHRINK = 0.3  # of correlations between features, towards none
TEMPER_BOUNDS = (0.05, 1.0)
OFFSET_BOUNDS = (-3.0, 3.0)  # [nat]
OFFSET_SD = 1.0  # of the prior of offsets [nat]


@dataclass(frozen=True)
class RunFeatures:
    """What is compared of runs, grouped by severity; real runs are one group."""

    # (num_severities, num_runs, 1 + num_phases): 1 where a run failed, then where it failed in each phase
    outcomes: Array
    signatures: Array  # (num_severities, num_runs, num_features)

    def pick(self, severities: Flags) -> "RunFeatures":
        """Returns the runs of some severities."""
        return RunFeatures(self.outcomes[severities], self.signatures[severities])


@dataclass(frozen=True)
class HypothesisRuns:
    """Simulated runs of one hypothesis, grouped by severity."""

    num_runs: int  # of each severity
    lost: Array  # (num_severities, 1 + num_phases) how many of them failed, and in each phase
    mean: Array  # (num_severities, num_features) of the signature
    mean_var: Array  # (num_severities, num_features) squared standard error of `mean`
    # (num_severities, num_features) squared distance to similar severities: what lies between was not tried
    between: Array
    residuals: Array  # (num_severities, num_runs, num_features) of runs about their severity's mean


def group_runs(runs: RunFeatures, nominal: RunFeatures) -> HypothesisRuns:
    """Returns what simulated runs say about each severity.

    Nominal runs with the same starts and noise serve as control variates: what chance did to them is subtracted, as
    far as it shows in these runs.
    """
    num_runs = runs.signatures.shape[1]
    chance = nominal.signatures - nominal.signatures.mean(axis=(0, 1))
    raw = runs.signatures - runs.signatures.mean(axis=1, keepdims=True)
    slope = (raw * chance).sum(axis=(0, 1)) / np.maximum((chance**2).sum(axis=(0, 1)), 1e-12)
    slope = np.clip(slope, 0.0, 1.0)
    corrected = runs.signatures - slope * chance
    mean = corrected.mean(axis=1)
    residuals = corrected - mean[:, None]
    pooled = PRIOR_RUNS * (residuals**2).mean(axis=(0, 1))
    variance = ((residuals**2).sum(axis=1) + pooled) / (num_runs + PRIOR_RUNS)
    mean_var = variance / num_runs + slope**2 * (chance**2).mean(axis=(0, 1)) / chance[..., 0].size
    between = _neighbour_distance(mean, mean_var)
    return HypothesisRuns(num_runs, runs.outcomes.sum(axis=1), mean, mean_var, between, residuals)


@dataclass(frozen=True)
class SharedStatistics:
    """What all hypotheses share."""

    variance: Array  # (num_features,) of runs about their severity's mean
    precision: Array  # (num_features, num_features) inverse of their correlation
    # (num_features,) a shift of the mean signature that any hypothesis may have by one standard deviation
    nuisance: Array


def pool_statistics(hypotheses: Sequence[HypothesisRuns], nuisance: Array) -> SharedStatistics:
    """Returns what all hypotheses share."""
    pooled = np.concatenate([one.residuals.reshape(-1, len(nuisance)) for one in hypotheses])
    variance = (pooled**2).mean(axis=0)
    scaled = pooled / np.maximum(np.sqrt(variance), 1e-9)
    correlation = (1 - CORRELATION_SHRINK) * (scaled.T @ scaled) / len(scaled)
    np.fill_diagonal(correlation, 1.0)
    return SharedStatistics(variance, np.asarray(np.linalg.inv(correlation), dtype=np.float64), nuisance)


def log_likelihoods(real: RunFeatures, hypotheses: Sequence[HypothesisRuns], shared: SharedStatistics) -> list[Array]:
    """Returns log p(real | severity) of each severity of each hypothesis, (num_severities,) each."""
    (signatures,), count = real.signatures, real.signatures.shape[1]
    own = signatures.var(axis=0, ddof=1) * (count - 1)
    variance = (own + PRIOR_RUNS * shared.variance) / (count - 1 + PRIOR_RUNS)
    found: list[Array] = []
    for one in hypotheses:
        variances = variance / count + one.mean_var + one.between + DISCREPANCY**2
        signature = _log_student(signatures.mean(axis=0) - one.mean, variances, shared)
        found.append(_log_outcomes(real, one) + SIGNATURE_TEMPER * signature)
    return found


def log_ratios(logs: Sequence[Array]) -> Array:
    """Returns log p(real | dimension) - log p(real | nothing wrong), (num_dimensions,), of log likelihoods.

    The first are those of the model as written; p(real | dimension) is the mean over severities.
    """
    means = np.array([logsumexp(log) - np.log(len(log)) for log in logs])
    return means[1:] - means[0]


def calibrate_likelihoods(
    nominal: RunFeatures,
    runs: Sequence[RunFeatures],
    hypotheses: Sequence[HypothesisRuns],
    shared: SharedStatistics,
) -> tuple[float, Array]:
    """Returns temper and offsets under which simulated severities, each left out in turn, name their dimension best.

    `runs` are those of each dimension; `hypotheses` the same, grouped, the model as written first. See
    `fit_calibration`.
    """
    cases, truth = list[Array](), list[int]()
    for label, own in enumerate([nominal, *runs]):
        for here in np.eye(len(own.outcomes), dtype=bool):
            known = list(hypotheses)
            if label:
                known[label] = group_runs(own.pick(~here), nominal.pick(~here))
            cases.append(log_ratios(log_likelihoods(own.pick(here), known, shared)))
            truth.append(label)
    return fit_calibration(np.stack(cases), np.array(truth))


def fit_calibration(ratios: Array, truth: Indices) -> tuple[float, Array]:
    """Returns how log ratios become right as often as they say: temper * ratio + offset, with equal priors.

    Both maximise the mean log probability of the truth. The temper is in `TEMPER_BOUNDS` [1]; offsets are
    (num_dimensions,) [nat]: a dimension with many parameters is tried too sparsely to match any case. Of each case,
    `ratios` are (num_cases, num_dimensions) raw log ratios, and `truth` is 0 for nothing wrong, else 1 + the index.
    """
    num_cases, num_dimensions = ratios.shape

    def cost(values: Array) -> float:
        temper, offsets = values[0], values[1:]
        scores = np.pad(temper * ratios + offsets, ((0, 0), (1, 0)))
        right = scores[np.arange(num_cases), truth]
        return float(np.sum(logsumexp(scores, axis=1) - right) + 0.5 * np.sum(offsets**2) / OFFSET_SD**2)

    start = np.concatenate([[0.5], np.zeros(num_dimensions)])
    bounds = [TEMPER_BOUNDS, *[OFFSET_BOUNDS] * num_dimensions]
    found = minimize(cost, start, method="L-BFGS-B", bounds=bounds).x
    return float(found[0]), found[1:]


def _neighbour_distance(mean: Array, mean_var: Array) -> Array:
    """Returns the mean squared distance to the `NUM_NEIGHBOURS` most similar severities, less what chance adds to it.

    As in a nearest-neighbour density: where severities are few for what they vary, each stands for a wider range.
    """
    if len(mean) <= NUM_NEIGHBOURS:
        return np.zeros_like(mean)
    squared = (mean[:, None] - mean[None]) ** 2
    distance = squared.sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :NUM_NEIGHBOURS]
    apart = np.take_along_axis(squared, nearest[:, :, None], axis=1).mean(axis=1)
    return np.maximum(apart - mean_var - mean_var[nearest].mean(axis=1), 0.0)


def _log_student(difference: Array, variances: Array, shared: SharedStatistics) -> Array:
    """Returns the log density of Student's t up to a constant, (num_severities,).

    Its scale matrix is S + e e', where S has the variances and the shared correlation, and e is the nuisance; inverse
    and determinant of the sum are those of Sherman and Morrison.
    """
    scaled, shift = difference / np.sqrt(variances), shared.nuisance / np.sqrt(variances)
    turned = shift @ shared.precision
    denominator = 1 + (turned * shift).sum(axis=1)
    along = (turned * scaled).sum(axis=1) ** 2 / denominator
    distance = ((scaled @ shared.precision) * scaled).sum(axis=1) - along
    log_scale = 0.5 * (np.log(variances).sum(axis=1) + np.log(denominator))
    power = -0.5 * (DEGREES_OF_FREEDOM + difference.shape[1])
    return power * np.log1p(distance / DEGREES_OF_FREEDOM) - log_scale


def _log_outcomes(real: RunFeatures, one: HypothesisRuns) -> Array:
    """Returns the log probability of how many runs failed, and in which phases, up to a constant, (num_severities,).

    The prior of failures is Jeffreys'. That of phases is half a run each, and one run divided as all runs of the
    hypothesis are.
    """
    failures, *phases = real.outcomes[0].sum(axis=0)
    failed, failed_in = one.lost[:, :1], one.lost[:, 1:]
    either = np.concatenate([failed, one.num_runs - failed], axis=1) + 0.5
    found = _log_dirichlet_multinomial(either, np.array([failures, real.outcomes.shape[1] - failures]))
    if phases:
        prior = 0.5 + failed_in.sum(axis=0) / max(failed_in.sum(), 1e-9)
        found = found + _log_dirichlet_multinomial(failed_in + prior, np.array(phases))
    return found


def _log_dirichlet_multinomial(alpha: Array, counts: Array) -> Array:
    """Returns the log probability of counts (num_kinds,) under each row of alpha, (num_severities, num_kinds)."""
    total = alpha.sum(axis=1)
    return gammaln(total) - gammaln(total + counts.sum()) + (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=1)
