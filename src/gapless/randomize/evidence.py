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
    between runs. All of this is in the coordinate in which a parameter varies evenly: its logarithm if it is never 0.

    `unexplained` is the ratio of residual to noise that the fit left, at least 1; `samples` are those of its posterior,
    (num_samples, num_parameters), for correlations. Parameters of other than some `dimensions` are fixed at their
    fitted values, and what is correlated with them narrows as in the fit.
    """
    widening = min(unexplained, CONFIG.max_widening)
    matrix = _correlation_matrix(parameters, samples)
    is_joint = np.any(np.abs(matrix - np.eye(len(matrix))) > CONFIG.min_joint_correlation, axis=1)
    is_normal = np.array([p.identifiable for p in parameters], dtype=bool) | is_joint
    is_fixed = np.array([dimensions is not None and p.dimension not in dimensions for p in parameters], dtype=bool)
    run_std = np.array([_find_run_std(p) for p in parameters])
    std = np.array([_find_fit_std(p) for p in parameters])
    std *= np.where(run_std > 0, 1.0, widening)  # the spread of runs already says how certain their mean is
    covariance = _condition(matrix * np.outer(std, std) + np.diag(run_std**2), is_fixed & is_normal)
    min_std = np.array([_find_min_std(p)[0] for p in parameters])
    covariance += np.diag(np.maximum(0.0, min_std**2 - np.diag(covariance)))
    total = np.sqrt(np.diag(covariance))
    ranges: list[Range] = []
    for k, p in enumerate(parameters):
        if is_fixed[k]:
            reason = "its dimension does not take part in the gap: as fitted"
            ranges.append(Range(p.target, "fixed", p.value, p.value, p.value, reason=reason))
        else:
            ranges.append(_normal_range(p, float(total[k]), widening) if is_normal[k] else _open_range(p))
    free = [k for k in range(len(parameters)) if is_normal[k] and not is_fixed[k]]
    correlations = (covariance / np.outer(total, total))[np.ix_(free, free)]
    return tuple(ranges), correlations_of([parameters[k].target for k in free], correlations)


def _find_fit_std(p: FittedParameter) -> float:
    """Returns the standard deviation of a fit; at most that of the open range where the logs do not identify it."""
    value, low, high, prior_low, prior_high = _to_coordinate(p, p.value, p.low, p.high, p.prior_low, p.prior_high)
    std = max(high - value, value - low, 0.0) / normal_quantile((1 + p.level) / 2)
    return std if p.identifiable else min(std, CONFIG.open_half_width * (prior_high - prior_low) / CONFIG.cut_stds)


def _find_run_std(p: FittedParameter) -> float:
    """Returns the standard deviation between runs, where each has its own value; 0 where all share one."""
    spread = float(np.arcsinh(p.spread / p.value)) if p.prior_low > 0 else p.spread  # half of v (e^s - e^-s)
    if len(p.by_run) > 1:  # wider than the spread of few runs, so that 95 % of new runs are inside (Student's t)
        spread *= float(student.ppf(0.975, len(p.by_run) - 1)) / normal_quantile(0.975)
    return spread


def _find_min_std(p: FittedParameter) -> tuple[float, str]:
    """Returns the smallest standard deviation to train with, and of what it is which share."""
    of_value = CONFIG.min_std_of_value * (1.0 if p.prior_low > 0 else abs(p.value))
    of_prior = 0.0 if p.prior_low > 0 else CONFIG.min_std_of_prior * (p.prior_high - p.prior_low)
    if of_value >= of_prior:
        return of_value, f"{100 * CONFIG.min_std_of_value:.0f} % of the value"
    return of_prior, f"{100 * CONFIG.min_std_of_prior:.0f} % of the prior range"


def _normal_range(p: FittedParameter, std: float, widening: float) -> Range:
    """Returns a normal or log-normal range about the fitted value."""
    (min_std, share), reason = _find_min_std(p), f"fitted, widened {widening:.1f} times for what is unexplained"
    if p.by_run and p.spread > 0.0:
        unit = "" if p.unit == "1" else f" {p.unit}"
        reason = f"each run has its own: {len(p.by_run)} runs differ by {p.spread:.3g}{unit} (standard deviation)"
    elif std <= min_std * (1 + 1e-9):
        reason = f"fitted, at least {share}"
    value, prior_low, prior_high = _to_coordinate(p, p.value, p.prior_low, p.prior_high)
    reach = CONFIG.cut_stds * std
    low, high = _from_coordinate(p, max(prior_low, value - reach), min(prior_high, value + reach))
    low, mean, high = sorted((low, p.value, high))  # despite rounding
    return Range(p.target, "log-normal" if p.prior_low > 0 else "normal", low, high, mean, std, reason)


def _open_range(p: FittedParameter) -> Range:
    """Returns an even range about the model's value, for what the logs do not identify.

    The fitted interval narrows it, but not the interval of a mean over runs: later runs lie beside it.
    """
    nominal, low, high, prior_low, prior_high = _to_coordinate(p, p.nominal, p.low, p.high, p.prior_low, p.prior_high)
    half, nominal = CONFIG.open_half_width * (prior_high - prior_low), min(max(nominal, prior_low), prior_high)
    ends = max(prior_low, nominal - half), min(prior_high, nominal + half)
    inner = max(ends[0], low), min(ends[1], high)
    low, high = _from_coordinate(p, *(inner if not p.by_run and inner[0] < inner[1] else ends))
    reason = "these logs do not identify it: what they leave open"
    return Range(p.target, "log-uniform" if p.prior_low > 0 else "uniform", low, high, (low + high) / 2, reason=reason)


def _condition(covariance: Array, known: NDArray[np.bool_]) -> Array:
    """Returns the covariance of normal values when some are known: C_uu - C_uk C_kk^-1 C_ku; theirs stays as it is."""
    cross = covariance[np.ix_(~known, known)]
    found = covariance.copy()
    found[np.ix_(~known, ~known)] -= cross @ np.linalg.pinv(covariance[np.ix_(known, known)]) @ cross.T
    return found


def _correlation_matrix(parameters: Sequence[FittedParameter], samples: Array | None) -> Array:
    """Returns the correlations of a fit's samples, each in its coordinate, (num_parameters, num_parameters)."""
    if samples is None or len(parameters) < 2:
        return np.eye(len(parameters))
    values = np.stack([_to_coordinate(p, *samples[:, k]) for k, p in enumerate(parameters)], axis=1)
    spread = values.std(axis=0)
    centred = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    matrix = centred.T @ centred / len(values)
    np.fill_diagonal(matrix, 1.0)
    return matrix


def _to_coordinate(p: FittedParameter, *values: float) -> list[float]:
    return np.log(values).tolist() if p.prior_low > 0 else list(values)


def _from_coordinate(p: FittedParameter, *values: float) -> list[float]:
    return np.exp(values).tolist() if p.prior_low > 0 else list(values)
