"""How far to trust likelihoods of runs, found on simulated runs of this very policy whose cause is known."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from gapless.core.signal import Array, Indices
from gapless.diagnose.counterfactual.likelihood import (
    HypothesisRuns,
    RunFeatures,
    SharedStatistics,
    group_runs,
    log_likelihoods,
    log_mean,
)

TEMPER_BOUNDS = (0.05, 1.0)
OFFSET_BOUNDS = (-3.0, 3.0)  # [nat]
OFFSET_SD = 1.0  # of the prior of offsets [nat]


class LikelihoodCalibration(NamedTuple):
    """How raw log ratios become log ratios that are right as often as they say: temper * raw + offset.

    Attributes:
        temper: In `TEMPER_BOUNDS` [1].
        offsets: (num_dimensions,) [nat]: a dimension with many parameters is tried too sparsely to match any case.
    """

    temper: float
    offsets: Array


def calibrate_likelihoods(
    nominal: RunFeatures,
    runs: Sequence[RunFeatures],
    rows: Sequence[Array],
    hypotheses: Sequence[HypothesisRuns],
    shared: SharedStatistics,
    per_severity: int,
) -> LikelihoodCalibration:
    """Returns the calibration under which simulated severities, each left out in turn, name their own dimension best.

    Args:
        nominal: Runs of the model as written.
        runs: Runs of each dimension.
        rows: Per dimension, (num_severities, num_parameters).
        hypotheses: The same, grouped: the model as written first.
        shared: What the hypotheses share.
        per_severity: Runs of each severity.
    """
    cases: list[Array] = []
    truth: list[int] = []
    for label, own in enumerate([nominal, *runs]):
        severity = np.arange(len(own.failed)) // per_severity
        for k in range(severity[-1] + 1):
            known = list(hypotheses)
            if label:
                rest = np.flatnonzero(severity != k)
                left = np.delete(rows[label - 1], k, axis=0)
                known[label] = group_runs(own.pick(rest), nominal.pick(rest), left, per_severity)
            logs = log_likelihoods(own.pick(np.flatnonzero(severity == k)), known, shared)
            cases.append(np.array([log_mean(log) for log in logs]))
            truth.append(label)
    table = np.stack(cases)
    return fit_calibration(table[:, 1:] - table[:, :1], np.array(truth))


def fit_calibration(ratios: Array, truth: Indices) -> LikelihoodCalibration:
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
        cost = float((total - (scores * right).sum(axis=1)).sum() + 0.5 * (offsets**2).sum() / OFFSET_SD**2)
        excess = (np.exp(scores - total[:, None]) - right)[:, 1:]
        slope = excess.sum(axis=0) + offsets / OFFSET_SD**2
        return cost, np.concatenate([[(excess * ratios).sum()], slope])

    start = np.concatenate([[0.5], np.zeros(num_dimensions)])
    bounds = [TEMPER_BOUNDS, *[OFFSET_BOUNDS] * num_dimensions]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return LikelihoodCalibration(float(found[0]), found[1:])
