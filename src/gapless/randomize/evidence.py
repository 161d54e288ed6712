"""Ranges about a fit, as wide as what it leaves open and what it does not explain."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from gapless.core.dimensions import Dimension
from gapless.core.distribution import Correlation, Range, correlations_of
from gapless.core.interval import normal_quantile
from gapless.core.results import FittedParameter
from gapless.core.signal import Array


@dataclass(frozen=True)
class EvidenceConfig:
    """How wide ranges about a fit are; all set by hand (docs/how-to/randomize.md)."""

    min_std_of_value: float = 0.1  # smallest standard deviation, as a share of the value: no fit is more certain
    min_std_of_prior: float = 0.01  # the same as a share of the prior range, for values that may be 0
    open_half_width: float = 0.15  # about the model's value, where the logs do not identify it; share of the prior
    max_widening: float = 5.0  # for what is unexplained: wider ranges do not contain what the model lacks
    min_joint_correlation: float = 0.7  # correlation from which two parameters count as identified together
    cut_stds: float = 2.0  # ranges end this many standard deviations from the fit


CONFIG = EvidenceConfig()


@dataclass(frozen=True)
class _ParameterEstimate:
    """A fitted parameter in the coordinate in which it varies evenly: its logarithm if it is never 0."""

    parameter: FittedParameter
    value: float
    std: float
    prior_low: float
    prior_high: float
    run_std: float  # between runs, where each has its own value; 0 where all share one

    @classmethod
    def of(cls, p: FittedParameter) -> "_ParameterEstimate":
        value, low, high, prior_low, prior_high = (
            _to_coordinate(v, p) for v in (p.value, p.low, p.high, p.prior_low, p.prior_high)
        )
        std = max(high - value, value - low, 0.0) / normal_quantile((1 + p.level) / 2)
        spread = float(np.arcsinh(p.spread / p.value)) if p.prior_low > 0 else p.spread  # half of v (e^s - e^-s)
        if len(p.by_run) > 1:  # wider than the spread of few runs, so that 95 % of new runs are inside (Student's t)
            spread *= float(student.ppf(0.975, len(p.by_run) - 1)) / normal_quantile(0.975)
        return cls(p, value, std, prior_low, prior_high, spread)

    @property
    def prior_width(self) -> float:
        return self.prior_high - self.prior_low

    @property
    def fit_std(self) -> float:
        """That of the fit; at most that of the open range where the logs do not identify it."""
        most = CONFIG.open_half_width * self.prior_width / CONFIG.cut_stds
        return self.std if self.parameter.identifiable else min(self.std, most)

    @property
    def min_std(self) -> float:
        """The smallest standard deviation to train with."""
        if self.parameter.prior_low > 0:
            return CONFIG.min_std_of_value
        return max(CONFIG.min_std_of_value * abs(self.value), CONFIG.min_std_of_prior * self.prior_width)

    def normal_range(self, std: float, widening: float) -> Range:
        """Returns a normal or log-normal range about the fitted value."""
        p, reason = self.parameter, f"fitted, widened {widening:.1f} times for what is unexplained"
        if p.by_run and self.run_std > 0.0:
            unit = "" if p.unit == "1" else f" {p.unit}"
            reason = f"each run has its own: {len(p.by_run)} runs differ by {p.spread:.3g}{unit} (standard deviation)"
        elif std <= self.min_std * (1 + 1e-9):
            by_value = p.prior_low > 0 or CONFIG.min_std_of_value * abs(self.value) >= self.min_std
            share, whole = (CONFIG.min_std_of_value, "value") if by_value else (CONFIG.min_std_of_prior, "prior range")
            reason = f"fitted, at least {100 * share:.0f} % of the {whole}"
        low = max(self.prior_low, self.value - CONFIG.cut_stds * std)
        high = min(self.prior_high, self.value + CONFIG.cut_stds * std)
        kind = "log-normal" if p.prior_low > 0 else "normal"
        low, mean, high = sorted((self._from_coordinate(low), p.value, self._from_coordinate(high)))  # despite rounding
        return Range(p.target, kind, low, high, mean, std, reason)

    def open_range(self) -> Range:
        """Returns an even range about the model's value, for what the logs do not identify.

        The fitted interval narrows it, but not the interval of a mean over runs: later runs lie beside it.
        """
        p, half = self.parameter, CONFIG.open_half_width * self.prior_width
        nominal = min(max(_to_coordinate(p.nominal, p), self.prior_low), self.prior_high)
        low, high = max(self.prior_low, nominal - half), min(self.prior_high, nominal + half)
        inner_low, inner_high = max(low, _to_coordinate(p.low, p)), min(high, _to_coordinate(p.high, p))
        if not p.by_run and inner_low < inner_high:
            low, high = inner_low, inner_high
        low, high = self._from_coordinate(low), self._from_coordinate(high)
        kind = "log-uniform" if p.prior_low > 0 else "uniform"
        reason = "these logs do not identify it: what they leave open"
        return Range(p.target, kind, low, high, (low + high) / 2, reason=reason)

    def _from_coordinate(self, value: float) -> float:
        return float(np.exp(value)) if self.parameter.prior_low > 0 else value


def evidence_ranges(
    parameters: Sequence[FittedParameter],
    unexplained: float,
    samples: Array | None = None,
    dimensions: Collection[Dimension] | None = None,
) -> tuple[tuple[Range, ...], tuple[Correlation, ...]]:
    """Returns the ranges of fitted parameters, and which of them are correlated.

    What the logs identify becomes normal about its fitted value. Its covariance is that of the fit times the square of
    what is unexplained (see `EvidenceConfig`), with a smallest variance for each parameter, independently. So two
    parameters of which only the ratio is known vary together, as in the fit. Per-run parameters also get the variance
    between runs.

    `unexplained` is the ratio of residual to noise that the fit left, at least 1; `samples` are those of its posterior,
    (num_samples, num_parameters), for correlations. Parameters of other than some `dimensions` are fixed at their
    fitted values, and what is correlated with them narrows as in the fit.
    """
    widening = min(unexplained, CONFIG.max_widening)
    estimates = [_ParameterEstimate.of(p) for p in parameters]
    matrix = _correlation_matrix(estimates, samples)
    joint = np.flatnonzero(np.any(np.abs(matrix - np.eye(len(matrix))) > CONFIG.min_joint_correlation, axis=1))
    normal = [k for k, p in enumerate(parameters) if p.identifiable or k in joint]
    std = np.array([estimates[k].fit_std for k in normal])
    run_std = np.array([estimates[k].run_std for k in normal])
    std *= np.where(run_std > 0, 1.0, widening)  # the spread of runs already says how certain their mean is
    covariance = matrix[np.ix_(normal, normal)] * np.outer(std, std) + np.diag(run_std**2)
    is_fixed = np.array([dimensions is not None and p.dimension not in dimensions for p in parameters], dtype=bool)
    covariance = _condition(covariance, is_fixed[normal])
    min_std = np.array([estimates[k].min_std for k in normal])
    covariance += np.diag(np.maximum(0.0, min_std**2 - np.diag(covariance)))
    total = np.sqrt(np.diag(covariance))
    ranges = [estimate.open_range() for estimate in estimates]
    for place, k in enumerate(normal):
        ranges[k] = estimates[k].normal_range(float(total[place]), widening)
    for k, p in enumerate(parameters):
        if is_fixed[k]:
            reason = "its dimension does not take part in the gap: as fitted"
            ranges[k] = Range(p.target, "fixed", p.value, p.value, p.value, reason=reason)
    free = [place for place, k in enumerate(normal) if not is_fixed[k]]
    targets = [parameters[normal[place]].target for place in free]
    return tuple(ranges), correlations_of(targets, (covariance / np.outer(total, total))[np.ix_(free, free)])


def _condition(covariance: Array, known: NDArray[np.bool_]) -> Array:
    """Returns the covariance of normal values when some are known: C_uu - C_uk C_kk^-1 C_ku; theirs stays as it is."""
    if not known.any():
        return covariance
    cross = covariance[np.ix_(~known, known)]
    found = covariance.copy()
    found[np.ix_(~known, ~known)] -= cross @ np.linalg.pinv(covariance[np.ix_(known, known)]) @ cross.T
    return found


def _correlation_matrix(estimates: list[_ParameterEstimate], samples: Array | None) -> Array:
    """Returns the correlations of a fit's samples, each in its coordinate, (num_parameters, num_parameters)."""
    if samples is None or len(estimates) < 2:
        return np.eye(len(estimates))
    by_factor = np.array([e.parameter.prior_low > 0 for e in estimates])
    values = np.where(by_factor, np.log(np.where(by_factor, samples, 1.0)), samples)
    spread = values.std(axis=0)
    centred = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    matrix = centred.T @ centred / len(values)
    np.fill_diagonal(matrix, 1.0)
    return matrix


def _to_coordinate(value: float, parameter: FittedParameter) -> float:
    return float(np.log(value)) if parameter.prior_low > 0 else value
