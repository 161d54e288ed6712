"""Ranges by offline likelihood: the distribution under which a few real episodes are most likely.

After DROPO (Tiboni, Arndt, Kyrki: DROPO: Sim-to-real transfer with offline domain randomization, Robotics and
Autonomous Systems 2023): every parameter is a bell; worlds drawn from the bells restart in measured states and follow
the real commands for a while; the real readings are judged by the normal distribution of where those worlds end; mean
and width of each bell are moved by CMA-ES so that the sum of log-likelihoods is greatest.

Differences: the variance that keeps the likelihood finite is the noise of the readings and of the start states, not a
number to be tuned; all candidates share their random numbers, so that they differ in the bells alone; positive
parameters vary by factors (log-normal); bells are cut at the parameter's bounds.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gapless.core.distribution import Range
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.randomize.replay import Replay

WINDOW_S = 0.3  # how long worlds follow the real commands: delays and slow drives must show
MOST_WINDOWS = 24
NUM_DRAWS = 8  # worlds per candidate
NUM_ROUNDS = 160  # of CMA-ES
NUM_CANDIDATES = 24  # in each
LEAST, MOST = 0.003, 0.25  # width of a bell as a share of the parameter's scaled range
Progress = Callable[[str, float], None]


def dropo_ranges(evidence: ProjectData, seed: int, progress: Progress | None = None) -> tuple[Range, ...]:
    """Returns one bell per parameter of a project; see the module."""
    rng = np.random.default_rng(seed)
    replay = Replay.of(evidence, WINDOW_S, MOST_WINDOWS, rng)
    half = rng.standard_normal((NUM_DRAWS // 2, len(replay.space)))
    draws = np.concatenate([half, -half])
    start = np.concatenate([replay.scaling.unit(replay.space.nominal), np.full(len(replay.space), 0.3)])
    options = {"bounds": [0, 1], "seed": seed + 1, "verbose": -9, "maxiter": NUM_ROUNDS, "popsize": NUM_CANDIDATES}
    search = strategy()(np.clip(start, 0.05, 0.95), 0.3, options)
    while not search.stop():
        candidates = [np.asarray(c) for c in search.ask()]
        search.tell(candidates, list(-_likelihoods(replay, np.stack(candidates), draws)))
        if progress is not None:
            progress("randomize", min(1.0, search.countiter / NUM_ROUNDS))
    centre, width = _bells(replay, np.asarray(search.result.xfavorite)[None])
    return replay.bells(centre[0], width[0], "most likely, given the logs")


def strategy() -> Any:
    """Returns the class of CMA-ES; `cma` warns when it is imported that it cannot plot, which nobody asks of it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Could not import matplotlib", UserWarning)
        import cma
    return cma.CMAEvolutionStrategy


def _bells(replay: Replay, candidates: Array) -> tuple[Array, Array]:
    """Returns centres in [0, 1] and widths of candidates' bells, each (num_candidates, num_parameters)."""
    num = len(replay.space)
    return candidates[:, :num], LEAST * (MOST / LEAST) ** candidates[:, num:]


def _likelihoods(replay: Replay, candidates: Array, draws: Array) -> Array:
    """Returns the log-likelihood of the logs under each candidate, (num_candidates,).

    Args:
        replay: The logs.
        candidates: (num_candidates, 2 num_parameters) in [0, 1]: centres, then widths.
        draws: (num_draws, num_parameters) standard normal.
    """
    centre, width = _bells(replay, candidates)
    unit = centre[:, None] + width[:, None] * draws
    rows = replay.scaling.values(np.clip(unit, 0.0, 1.0)).reshape(-1, len(replay.space))
    last = replay.errors(rows)[:, :, -1].reshape(len(candidates), len(draws), len(replay.windows), -1)
    last = np.nan_to_num(last)
    mean = last.mean(axis=1)
    spread = last - mean[:, None]
    covariance = np.einsum("cdwi,cdwj->cwij", spread, spread) / (len(draws) - 1) + np.eye(last.shape[-1])
    weighted = np.linalg.solve(covariance, mean[..., None])[..., 0]
    log_likelihood = -0.5 * (np.sum(mean * weighted, axis=-1) + np.linalg.slogdet(covariance)[1])
    return log_likelihood.sum(axis=-1)
