"""How likely a few real runs are under each simulated severity of each dimension.

For a severity s of a dimension d, with n real runs of which k failed:

    log p(real | d, s) = log BetaBinomial(k | n, failures of s) + log DirichletMultinomial(phases | phases of s)
                         + SIGNATURE_TEMPER * log t(mean signature | mean signature of s)

Counts of simulated runs enter as counts, not as rates, so that few simulated runs are not taken for certainty.
Severities that are near each other share their runs. p(real | d) is the mean over severities. The result is tempered
once more by how well it does on simulated cases: see `calibration`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, gammaln

from gapless.core.signal import Array, Flags, Indices

SIGNATURE_TEMPER = 0.5  # signature and outcome say partly the same; and no simulation is right in every number
DISCREPANCY = 0.25  # how far signatures of a right model may be from reality's, in nominal standard deviations [1]
DEGREES_OF_FREEDOM = 6.0  # of Student's t: a surprising number does not decide alone
NEAR_SD = 0.25  # severities this far apart, in standard deviations of what was drawn, share runs with weight 0.6 [1]
NUM_NEIGHBOURS = 2  # severities with the most similar signatures that show how much lies between
PRIOR_RUNS = 4.0  # runs that a pooled variance counts for beside a group's own
CORRELATION_SHRINK = 0.3  # of correlations between features, towards none


@dataclass(frozen=True)
class RunFeatures:
    """What is compared of some runs.

    Attributes:
        failed: (num_runs,) bool.
        phases: (num_runs,) phase of failure; "" where it did not fail or nobody said.
        signatures: (num_runs, num_features).
    """

    failed: Flags
    phases: tuple[str, ...]
    signatures: Array

    def pick(self, index: Indices) -> "RunFeatures":
        """Returns some of the runs."""
        return RunFeatures(self.failed[index], tuple(self.phases[k] for k in index), self.signatures[index])

    @property
    def phase_names(self) -> list[str]:
        """The phases in which some run failed, sorted."""
        return sorted({name for name in self.phases if name})

    def failed_in(self, name: str) -> Flags:
        """Returns which runs failed in a phase, (num_runs,)."""
        return np.array([phase == name for phase in self.phases])


@dataclass(frozen=True)
class HypothesisRuns:
    """Simulated runs of one hypothesis, grouped by severity.

    Attributes:
        failures: (num_severities,) failed runs, those of near severities included by weight.
        successes: (num_severities,) the others.
        phases: Phase -> (num_severities,) runs that failed in it.
        mean: (num_severities, num_features) of the signature.
        mean_var: (num_severities, num_features) squared standard error of `mean`.
        between: (num_severities, num_features) squared distance to similar severities: what lies between was not tried.
        residuals: (num_runs, num_features) of runs about their severity's mean.
    """

    failures: Array
    successes: Array
    phases: Mapping[str, Array]
    mean: Array
    mean_var: Array
    between: Array
    residuals: Array


def group_runs(runs: RunFeatures, nominal: RunFeatures, rows: Array, per_severity: int) -> HypothesisRuns:
    """Returns simulated runs grouped by severity.

    Nominal runs with the same starts and noise serve as control variates: what chance did to them is subtracted, as
    far as it shows in these runs.

    Args:
        runs: The runs, `per_severity` in a row for each severity.
        nominal: Runs of the model as written, with the same starts and noise.
        rows: (num_severities, num_parameters) parameters of each severity.
        per_severity: Runs of each severity.
    """

    def average(values: Array | Flags) -> Array:
        """Returns the mean of each severity's runs, (num_severities, ...)."""
        return values.reshape(-1, per_severity, *values.shape[1:]).mean(axis=1)

    weights = _near_weights(rows)
    shares = weights / weights.sum(axis=1, keepdims=True)
    chance = nominal.signatures - nominal.signatures.mean(axis=0)
    raw = runs.signatures - np.repeat(shares @ average(runs.signatures), per_severity, axis=0)
    slope = np.clip((raw * chance).sum(axis=0) / np.maximum((chance**2).sum(axis=0), 1e-12), 0.0, 1.0)
    corrected = runs.signatures - slope * chance
    mean = shares @ average(corrected)
    residuals = corrected - np.repeat(mean, per_severity, axis=0)
    num_near = per_severity / (shares**2).sum(axis=1, keepdims=True)
    local = num_near * (shares @ average(residuals**2))
    variance = (local + PRIOR_RUNS * (residuals**2).mean(axis=0)) / (num_near + PRIOR_RUNS)
    mean_var = variance / num_near + slope**2 * (chance**2).mean(axis=0) / len(chance)
    failures = per_severity * weights @ average(runs.failed)
    total = per_severity * weights.sum(axis=1)
    phases = {name: per_severity * weights @ average(runs.failed_in(name)) for name in runs.phase_names}
    between = _neighbour_distance(mean, mean_var)
    return HypothesisRuns(failures, total - failures, phases, mean, mean_var, between, residuals)


@dataclass(frozen=True)
class SharedStatistics:
    """What all hypotheses share.

    Attributes:
        variance: (num_features,) of runs about their severity's mean.
        precision: (num_features, num_features) inverse of their correlation.
        phases: Every phase in which some simulated run failed.
        nuisance: (num_features,) a shift of the mean signature that any hypothesis may have by one standard deviation.
    """

    variance: Array
    precision: Array
    phases: tuple[str, ...]
    nuisance: Array


def pool_statistics(hypotheses: Sequence[HypothesisRuns], nuisance: Array) -> SharedStatistics:
    """Returns what all hypotheses share; see `SharedStatistics` for the nuisance."""
    pooled = np.concatenate([one.residuals for one in hypotheses])
    names = tuple(sorted({name for one in hypotheses for name in one.phases}))
    scaled = pooled / np.maximum(np.sqrt((pooled**2).mean(axis=0)), 1e-9)
    correlation = (1 - CORRELATION_SHRINK) * (scaled.T @ scaled) / len(scaled)
    np.fill_diagonal(correlation, 1.0)
    precision: Array = np.linalg.inv(correlation).astype(np.float64)
    return SharedStatistics((pooled**2).mean(axis=0), precision, names, nuisance)


def log_likelihoods(real: RunFeatures, hypotheses: Sequence[HypothesisRuns], shared: SharedStatistics) -> list[Array]:
    """Returns log p(real | severity) of each severity of each hypothesis, (num_severities,) each."""
    count = len(real.failed)
    own = real.signatures.var(axis=0, ddof=1) * (count - 1)
    variance = (own + PRIOR_RUNS * shared.variance) / (count - 1 + PRIOR_RUNS)
    mean = real.signatures.mean(axis=0)
    names = sorted({*shared.phases, *real.phase_names})
    found: list[Array] = []
    for one in hypotheses:
        variances = variance / count + one.mean_var + one.between + DISCREPANCY**2
        signature = _log_student(mean - one.mean, variances, shared)
        found.append(_log_failures(real, one) + _log_phases(real, one, names) + SIGNATURE_TEMPER * signature)
    return found


def log_mean(values: Array) -> float:
    """Returns log(mean(exp(values)))."""
    return float(np.logaddexp.reduce(values) - np.log(len(values)))


def _near_weights(rows: Array) -> Array:
    """Returns how much each severity's runs count for each other, (num_severities, num_severities) in (0, 1]."""
    spread = rows.std(axis=0)
    used = spread > 1e-12 * np.maximum(1.0, np.abs(rows).max(axis=0))
    if not used.any():
        return np.ones((len(rows), len(rows)))
    scaled = rows[:, used] / spread[used]
    squared = ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2)
    return np.exp(-0.5 * squared / NEAR_SD**2)


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


def _log_failures(real: RunFeatures, one: HypothesisRuns) -> Array:
    """Returns the log beta-binomial of the failure count, with Jeffreys' prior, up to a constant."""
    lost = float(real.failed.sum())
    won = len(real.failed) - lost
    a, b = one.failures + 0.5, one.successes + 0.5
    return betaln(a + lost, b + won) - betaln(a, b)


def _log_phases(real: RunFeatures, one: HypothesisRuns, names: Sequence[str]) -> Array:
    """Returns the log Dirichlet-multinomial of the phases of failure, up to a constant.

    The prior is half a run per phase, and one run divided as all runs of the hypothesis are.
    """
    if len(names) < 2:
        return np.zeros(len(one.failures))
    counts = np.stack([one.phases.get(name, np.zeros(len(one.failures))) for name in names], axis=1)
    alpha = counts + 0.5 + counts.sum(axis=0) / max(counts.sum(), 1e-9)
    seen = np.array([real.phases.count(name) for name in names], dtype=float)
    total = alpha.sum(axis=1)
    return gammaln(total) - gammaln(total + seen.sum()) + (gammaln(alpha + seen) - gammaln(alpha)).sum(axis=1)
