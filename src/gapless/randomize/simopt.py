"""Ranges by matching trajectories: step by step towards worlds that do what reality did.

After SimOpt (Chebotar and others: Closing the sim-to-real loop, ICRA 2019): one joint normal distribution over all
parameters; worlds drawn from it follow the real commands; the cost of each is how far its trajectory is from the real
one; the distribution moves to the better ones by relative entropy policy search (Peters, Muelling, Altun 2010), at most
a given KL divergence at a time. The paper records new real trajectories with a newly trained policy between the steps:
here all steps use the logs that are there; record more with the new policy (`gapless loop --rounds`) for the next.

Differences: windows restart from measured states instead of whole trajectories, so that unstable robots can be
compared at all; the distance is in units of the noise, weighs absolute and squared error alike, and is flattened
beyond what chance explains; positive parameters vary by factors.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from gapless.core.distribution import Correlation, Range, correlations_of
from gapless.core.signal import Array
from gapless.fit.data import Progress, ProjectData
from gapless.randomize.replay import Replay


@dataclass(frozen=True)
class SimoptConfig:
    """How SimOpt searches."""

    window_s: float = 1.0  # length of the windows [s]
    max_windows: int = 48  # windows of the logs that are used
    num_rows: int = 160  # worlds per round
    num_rounds: int = 25  # rounds
    max_kl: float = 0.7  # how far the distribution may move in one round [nat]
    first_width: float = 0.15  # standard deviation in the first round, as a share of each parameter's scaled range
    min_width: float = 0.005  # smallest one


CONFIG = SimoptConfig()


def simopt_ranges(
    data: ProjectData, seed: int, progress: Progress | None = None
) -> tuple[tuple[Range, ...], tuple[Correlation, ...]]:
    """Returns one normal or log-normal range per parameter of a project, and their correlations; see the module."""
    rng = np.random.default_rng(seed)
    replay = Replay.of(data, CONFIG.window_s, CONFIG.max_windows, rng)
    mean = np.clip(replay.scaling.unit(replay.space.nominal), 0.05, 0.95)
    covariance = CONFIG.first_width**2 * np.eye(len(mean))
    for k in range(CONFIG.num_rounds):
        unit = np.clip(rng.multivariate_normal(mean, covariance, CONFIG.num_rows, method="eigh"), 0.0, 1.0)
        weights = reps_weights(_distances(replay, unit), CONFIG.max_kl)
        mean = weights @ unit
        spread = unit - mean
        covariance = (weights[:, None] * spread).T @ spread + CONFIG.min_width**2 * np.eye(len(mean))
        if progress is not None:
            progress("randomize", (k + 1) / CONFIG.num_rounds)
    std = np.sqrt(np.diag(covariance))
    ranges = replay.normal_ranges(mean, std, "does what the logs show")
    return ranges, correlations_of(replay.space.targets, covariance / np.outer(std, std))


def _distances(replay: Replay, unit: Array) -> Array:
    """Returns how far each row's predictions are from the logs, (num_rows,), per reading; rows in [0, 1]."""
    error = np.minimum(np.abs(replay.errors(replay.scaling.values(unit))), 10.0)
    return np.nanmean(error + 0.5 * error**2, axis=(1, 2, 3))


def reps_weights(cost: Array, max_kl: float) -> Array:
    """Returns the weights of samples that cost least on average within a KL divergence of equal weights, (num,).

    w = exp(-cost / eta) / sum, eta > 0 from the dual eta (max_kl + log mean exp(-cost / eta)), which is convex.
    """
    shifted = cost - cost.min()
    scale = max(float(shifted.std()), 1e-12)

    def dual(log_eta: float) -> float:
        eta = scale * np.exp(log_eta)
        return float(eta * (max_kl + np.log(np.mean(np.exp(-shifted / eta)))))

    eta = scale * np.exp(minimize_scalar(dual, bounds=(-12.0, 12.0), method="bounded").x)
    weights = np.exp(-shifted / eta)
    return weights / weights.sum()
