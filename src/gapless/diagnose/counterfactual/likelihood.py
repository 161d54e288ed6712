"""How likely a few real runs are under each simulated severity of each dimension.

For a severity s of a dimension d, with n real runs of which k failed:

    log p(real | d, s) = log BetaBinomial(k | n, failures of s) + log DirichletMultinomial(phases | phases of s)
                         + TEMPER * log t(mean signature | mean signature of s)

Counts of simulated runs enter as counts, not as rates, so that few simulated runs are not taken for certainty.
Severities that are near each other lend each other their runs. p(real | d) is the mean over severities. What comes of
it is tempered once more by how well it does on simulated cases: see `calibrate`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, gammaln

from gapless.core.signal import Array, Flags, Indices

TEMPER = 0.5  # signature and outcome tell partly the same; and no simulation is right in every number
DISCREPANCY = 0.25  # how far signatures of a right model may be from reality's, in nominal standard deviations [1]
FREEDOM = 6.0  # degrees of freedom of Student's t: a surprising number does not decide alone
NEAR = 0.25  # severities this far apart, in standard deviations of what was drawn, lend each other 60 % weight [1]
NUM_ALIKE = 2  # severities with the most alike signatures that tell how much lies between
PRIOR_RUNS = 4.0  # runs that a pooled variance counts as beside a group's own
CORRELATION_SHRINK = 0.3  # of correlations between features, towards none


@dataclass(frozen=True)
class Observed:
    """What is compared of some runs.

    Attributes:
        failed: (num_runs,) bool.
        phases: (num_runs,) phase of failure; "" where it did not fail or nobody said.
        signatures: (num_runs, num_features).
    """

    failed: Flags
    phases: tuple[str, ...]
    signatures: Array

    def pick(self, index: Indices) -> "Observed":
        """Returns some of the runs."""
        return Observed(self.failed[index], tuple(self.phases[k] for k in index), self.signatures[index])


@dataclass(frozen=True)
class Severities:
    """Simulated runs of one hypothesis, grouped by severity.

    Attributes:
        failures: (num_severities,) failed runs, those of near severities included by weight.
        successes: (num_severities,) the others.
        phases: Phase -> (num_severities,) runs that failed in it.
        mean: (num_severities, num_features) of the signature.
        mean_var: (num_severities, num_features) squared standard error of `mean`.
        between: (num_severities, num_features) squared distance to severities alike: what lies between them was
            not tried.
        residuals: (num_runs, num_features) of runs about their severity's mean.
    """

    failures: Array
    successes: Array
    phases: Mapping[str, Array]
    mean: Array
    mean_var: Array
    between: Array
    residuals: Array


def group(runs: Observed, nominal: Observed, rows: Array, per_severity: int) -> Severities:
    """Returns simulated runs grouped by severity.

    Nominal runs with the same starts and noise serve as control variates: what they happened to do otherwise than
    usual is taken off, as far as it shows in these runs.

    Args:
        runs: The runs, `per_severity` in a row for each severity.
        nominal: Runs of the model as written, with the same starts and noise.
        rows: (num_severities, num_parameters) parameters of each severity.
        per_severity: Runs of each severity.
    """
    weights = _nearness(rows)
    lent = weights / weights.sum(axis=1, keepdims=True)
    luck = nominal.signatures - nominal.signatures.mean(axis=0)
    raw = runs.signatures - _spread_out(lent @ _by_severity(runs.signatures, per_severity), per_severity)
    slope = np.clip((raw * luck).sum(axis=0) / np.maximum((luck**2).sum(axis=0), 1e-12), 0.0, 1.0)
    fair = runs.signatures - slope * luck
    mean = lent @ _by_severity(fair, per_severity)
    residuals = fair - _spread_out(mean, per_severity)
    local = lent @ _by_severity(residuals**2, per_severity)
    num_near = per_severity / (lent**2).sum(axis=1, keepdims=True)
    variance = (num_near * local + PRIOR_RUNS * (residuals**2).mean(axis=0)) / (num_near + PRIOR_RUNS)
    luck_var = slope**2 * (luck**2).mean(axis=0) / len(luck)
    failures = per_severity * weights @ _by_severity(runs.failed, per_severity)
    total = per_severity * weights.sum(axis=1)
    names = sorted({name for name in runs.phases if name})
    phases = {
        name: per_severity * weights @ _by_severity(np.array([phase == name for phase in runs.phases]), per_severity)
        for name in names
    }
    mean_var = variance / num_near + luck_var
    return Severities(failures, total - failures, phases, mean, mean_var, _between(mean, mean_var), residuals)


@dataclass(frozen=True)
class Common:
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


def common_of(hypotheses: Sequence[Severities], nuisance: Array) -> Common:
    """Returns what all hypotheses share; see `Common` for the nuisance."""
    pooled = np.concatenate([one.residuals for one in hypotheses])
    names = tuple(sorted({name for one in hypotheses for name in one.phases}))
    precision: Array = np.linalg.inv(_correlation(pooled)).astype(np.float64)
    return Common((pooled**2).mean(axis=0), precision, names, nuisance)


def log_likelihoods(real: Observed, hypotheses: Sequence[Severities], common: Common) -> list[Array]:
    """Returns log p(real | severity) of each severity of each hypothesis, (num_severities,) each."""
    count = len(real.failed)
    own = real.signatures.var(axis=0, ddof=1) * (count - 1)
    variance = (own + PRIOR_RUNS * common.variance) / (count - 1 + PRIOR_RUNS)
    mean = real.signatures.mean(axis=0)
    names = sorted({*common.phases, *(name for name in real.phases if name)})
    found: list[Array] = []
    for one in hypotheses:
        wide = variance / count + one.mean_var + one.between + DISCREPANCY**2
        look = _log_student(mean - one.mean, wide, common)
        found.append(_log_counts(real, one) + _log_phases(real, one, names) + TEMPER * look)
    return found


def log_mean(values: Array) -> float:
    """Returns log(mean(exp(values)))."""
    return float(np.logaddexp.reduce(values) - np.log(len(values)))


def _nearness(rows: Array) -> Array:
    """Returns how much each severity's runs count for each other, (num_severities, num_severities) in (0, 1]."""
    spread = rows.std(axis=0)
    used = spread > 1e-12 * np.maximum(1.0, np.abs(rows).max(axis=0))
    if not used.any():
        return np.ones((len(rows), len(rows)))
    scaled = rows[:, used] / spread[used]
    squared = ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2)
    return np.exp(-0.5 * squared / NEAR**2)


def _between(mean: Array, mean_var: Array) -> Array:
    """Returns the mean squared distance to the `NUM_ALIKE` most alike severities, less what chance makes of it.

    As in a nearest-neighbour density: where severities are few for what they vary, each stands for a wider room.
    """
    if len(mean) <= NUM_ALIKE:
        return np.zeros_like(mean)
    squared = (mean[:, None] - mean[None]) ** 2
    distance = squared.sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    alike = np.argsort(distance, axis=1, kind="stable")[:, :NUM_ALIKE]
    apart = np.take_along_axis(squared, alike[:, :, None], axis=1).mean(axis=1)
    return np.maximum(apart - mean_var - mean_var[alike].mean(axis=1), 0.0)


def _by_severity(values: Array | Flags, per_severity: int) -> Array:
    """Returns the mean of each severity's runs, (num_severities, ...)."""
    return values.reshape(-1, per_severity, *values.shape[1:]).mean(axis=1)


def _spread_out(values: Array, per_severity: int) -> Array:
    return np.repeat(values, per_severity, axis=0)


def _correlation(residuals: Array) -> Array:
    scaled = residuals / np.maximum(np.sqrt((residuals**2).mean(axis=0)), 1e-9)
    raw = scaled.T @ scaled / len(scaled)
    shrunk = (1 - CORRELATION_SHRINK) * raw
    np.fill_diagonal(shrunk, 1.0)
    return shrunk


def _log_student(apart: Array, wide: Array, common: Common) -> Array:
    """Returns the log density of Student's t up to a constant, (num_severities,).

    Its scale matrix is S + e e', where S has variances `wide` and the common correlation, and e is the nuisance;
    inverse and determinant of the sum are those of Sherman and Morrison.
    """
    scaled, shift = apart / np.sqrt(wide), common.nuisance / np.sqrt(wide)
    turned = shift @ common.precision
    room = 1 + (turned * shift).sum(axis=1)
    distance = ((scaled @ common.precision) * scaled).sum(axis=1) - (turned * scaled).sum(axis=1) ** 2 / room
    log_scale = 0.5 * (np.log(wide).sum(axis=1) + np.log(room))
    return -0.5 * (FREEDOM + apart.shape[1]) * np.log1p(distance / FREEDOM) - log_scale


def _log_counts(real: Observed, one: Severities) -> Array:
    """Returns the log beta-binomial of the failure count, with Jeffreys' prior, up to a constant."""
    lost = float(real.failed.sum())
    won = len(real.failed) - lost
    a, b = one.failures + 0.5, one.successes + 0.5
    return betaln(a + lost, b + won) - betaln(a, b)


def _log_phases(real: Observed, one: Severities, names: Sequence[str]) -> Array:
    """Returns the log Dirichlet-multinomial of the phases of failure, up to a constant.

    The prior is half a run per phase, and one run shared as all severities of the hypothesis share theirs.
    """
    if len(names) < 2:
        return np.zeros(len(one.failures))
    counts = np.stack([one.phases.get(name, np.zeros(len(one.failures))) for name in names], axis=1)
    prior = 0.5 + counts.sum(axis=0) / max(counts.sum(), 1e-9)
    alpha = counts + prior
    seen = np.array([real.phases.count(name) for name in names], dtype=float)
    total = alpha.sum(axis=1)
    return gammaln(total) - gammaln(total + seen.sum()) + (gammaln(alpha + seen) - gammaln(alpha)).sum(axis=1)
