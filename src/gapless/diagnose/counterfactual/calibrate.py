"""How far to trust likelihoods of runs, found on simulated runs of this very policy whose cause is known."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from gapless.core.signal import Array, Indices
from gapless.diagnose.counterfactual.likelihood import (
    Common,
    Observed,
    Severities,
    group,
    log_likelihoods,
    log_mean,
)

TEMPER_BOUNDS = (0.05, 1.0)
OFFSET_SPREAD = 1.0  # prior standard deviation of offsets [nat]


@dataclass(frozen=True)
class Calibration:
    """How raw log ratios become log ratios that can be believed: temper * raw + offset.

    Attributes:
        temper: In `TEMPER_BOUNDS` [1].
        offsets: (num_dimensions,) [nat]: a dimension with many parameters is tried too thinly to match any case.
    """

    temper: float
    offsets: Array

    def apply(self, raw: Array) -> Array:
        """Returns log ratios against nothing wrong, (..., num_dimensions) [nat]."""
        return self.temper * raw + self.offsets


def calibrate(
    nominal: Observed,
    seen: Sequence[Observed],
    rows: Sequence[Array],
    groups: Sequence[Severities],
    common: Common,
    per_severity: int,
) -> Calibration:
    """Returns the calibration under which simulated severities, each left out in turn, name their own dimension best.

    Args:
        nominal: Runs of the model as written.
        seen: Runs of each dimension.
        rows: Per dimension, (num_severities, num_parameters).
        groups: The same, grouped: the model as written first.
        common: What the groups share.
        per_severity: Runs of each severity.
    """
    cases: list[Array] = []
    truth: list[int] = []
    for label, runs in enumerate([nominal, *seen]):
        for k in range(len(runs.failed) // per_severity):
            inside = np.arange(k * per_severity, (k + 1) * per_severity)
            known = list(groups)
            if label:
                known[label] = _without(runs, nominal, rows[label - 1], k, per_severity)
            logs = log_likelihoods(runs.pick(inside), known, common)
            cases.append(np.array([log_mean(log) for log in logs]))
            truth.append(label)
    table = np.stack(cases)
    return fit_calibration(table[:, 1:] - table[:, :1], np.array(truth))


def _without(runs: Observed, nominal: Observed, rows: Array, severity: int, per_severity: int) -> Severities:
    kept = np.flatnonzero(np.arange(len(runs.failed)) // per_severity != severity)
    return group(runs.pick(kept), nominal.pick(kept), np.delete(rows, severity, axis=0), per_severity)


def fit_calibration(ratios: Array, truth: Indices) -> Calibration:
    """Returns temper and offsets that maximise the mean log probability of the truth, with equal priors.

    Args:
        ratios: (num_cases, num_dimensions) raw log ratios.
        truth: (num_cases,) 0 for nothing wrong, else 1 + the dimension's index.
    """
    num_dimensions = ratios.shape[1]
    right = np.eye(num_dimensions + 1)[truth]

    def loss(values: Array) -> tuple[float, Array]:
        offsets = values[1:]
        scores = np.pad(values[0] * ratios + offsets, ((0, 0), (1, 0)))
        total = np.logaddexp.reduce(scores, axis=1)
        cost = float((total - (scores * right).sum(axis=1)).sum() + 0.5 * (offsets**2).sum() / OFFSET_SPREAD**2)
        excess = (np.exp(scores - total[:, None]) - right)[:, 1:]
        slope = excess.sum(axis=0) + offsets / OFFSET_SPREAD**2
        return cost, np.concatenate([[(excess * ratios).sum()], slope])

    start = np.concatenate([[0.5], np.zeros(num_dimensions)])
    bounds = [TEMPER_BOUNDS, *[(-3.0, 3.0)] * num_dimensions]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Calibration(float(found[0]), found[1:])
