"""Ranges by matching trajectories in the loop: step by step towards worlds that do what reality did.

After SimOpt (Chebotar and others: Closing the sim-to-real loop, ICRA 2019): one joint bell over all parameters; worlds
drawn from it follow the real commands; each is judged by how far its trajectory is from the real one; the bell moves
to the better ones by relative entropy policy search (Peters, Muelling, Altun 2010), at most a given KL divergence at a
time. In the paper new real trajectories are recorded with a newly trained policy between the steps: here all steps are
made on the logs that are there; record more with the new policy (`gapless loop --rounds`) for the next.

Differences: windows restart from measured states instead of whole trajectories, so that unstable robots can be
compared at all; the distance is in units of the noise, weighs absolute and squared error alike, and is flattened
beyond what chance explains; positive parameters vary by factors.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from gapless.core.distribution import Correlation, Range, correlations_of
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.randomize.replay import Replay

WINDOW_S = 1.0
MOST_WINDOWS = 48
NUM_ROWS = 160  # worlds per step
NUM_ROUNDS = 25
KL = 0.7  # how far the bell may move in one step [nat]
FIRST = 0.15  # width of the first bell as a share of each parameter's scaled range
LEAST = 0.005
Progress = Callable[[str, float], None]


def simopt_ranges(
    evidence: ProjectData, seed: int, progress: Progress | None = None
) -> tuple[tuple[Range, ...], tuple[Correlation, ...]]:
    """Returns one bell per parameter of a project, and which of them go together; see the module."""
    rng = np.random.default_rng(seed)
    replay = Replay.of(evidence, WINDOW_S, MOST_WINDOWS, rng)
    mean = np.clip(replay.scaling.unit(replay.space.nominal), 0.05, 0.95)
    covariance = FIRST**2 * np.eye(len(mean))
    for k in range(NUM_ROUNDS):
        unit = np.clip(rng.multivariate_normal(mean, covariance, NUM_ROWS, method="eigh"), 0.0, 1.0)
        weights = reps_weights(distances(replay, unit), KL)
        mean = weights @ unit
        spread = unit - mean
        covariance = (weights[:, None] * spread).T @ spread + LEAST**2 * np.eye(len(mean))
        if progress is not None:
            progress("randomize", (k + 1) / NUM_ROUNDS)
    std = np.sqrt(np.diag(covariance))
    ranges = replay.bells(mean, std, "does what the logs show")
    return ranges, correlations_of(replay.space.targets, covariance / np.outer(std, std))


def distances(replay: Replay, unit: Array) -> Array:
    """Returns how far each row's predictions are from the logs, (num_rows,), per reading; rows in [0, 1]."""
    error = np.abs(replay.errors(replay.scaling.values(unit)))
    both = np.minimum(error, 10.0) + 0.5 * np.minimum(error, 10.0) ** 2
    return np.nanmean(both, axis=(1, 2, 3))


def reps_weights(cost: Array, most_kl: float) -> Array:
    """Returns the weights of samples that cost least on average within a KL divergence of equal weights, (num,).

    w = exp(-cost / eta) / sum, eta > 0 from the dual eta (most_kl + log mean exp(-cost / eta)), which is convex.
    """
    shifted = cost - cost.min()
    scale = max(float(shifted.std()), 1e-12)

    def dual(log_eta: float) -> float:
        eta = scale * np.exp(log_eta)
        return float(eta * (most_kl + np.log(np.mean(np.exp(-shifted / eta)))))

    eta = scale * np.exp(minimize_scalar(dual, bounds=(-12.0, 12.0), method="bounded").x)
    weights = np.exp(-shifted / eta)
    return weights / weights.sum()
