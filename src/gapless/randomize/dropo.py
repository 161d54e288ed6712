"""Ranges by offline likelihood: the distribution under which a few real episodes are most likely.

After DROPO (Tiboni, Arndt, Kyrki: DROPO: Sim-to-real transfer with offline domain randomization, Robotics and
Autonomous Systems 2023): every parameter is normal; worlds drawn from these distributions restart in measured states
and follow the real commands for a while; the likelihood of the real readings is that of the normal distribution of
where those worlds end; CMA-ES moves mean and width of each parameter to the greatest sum of log-likelihoods.

Differences: the variance that keeps the likelihood finite is the noise of the readings and of the start states, not a
number to be tuned; all candidates share their random numbers, so that they differ in their distributions alone;
positive parameters vary by factors (log-normal); distributions are cut at the parameter's bounds.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapless.core.distribution import Correlation, Range
from gapless.core.signal import Array
from gapless.fit.data import Progress, ProjectData
from gapless.randomize.replay import Replay


@dataclass(frozen=True)
class DropoConfig:
    """How DROPO searches."""

    window_s: float = 0.3  # how long worlds follow the real commands [s]: delays and slow drives must show
    max_windows: int = 24  # windows of the logs that are used
    num_draws: int = 8  # worlds per candidate; even
    num_rounds: int = 160  # rounds of CMA-ES
    num_candidates: int = 24  # candidates in each round
    min_width: float = 0.003  # smallest standard deviation, as a share of the parameter's scaled range
    max_width: float = 0.25  # largest one


CONFIG = DropoConfig()


def dropo_ranges(
    data: ProjectData, seed: int, progress: Progress | None = None
) -> tuple[tuple[Range, ...], tuple[Correlation, ...]]:
    """Returns one normal or log-normal range per parameter of a project, and no correlations; see the module."""
    rng = np.random.default_rng(seed)
    replay = Replay.of(data, CONFIG.window_s, CONFIG.max_windows, rng)
    num = len(replay.space)
    half = rng.standard_normal((CONFIG.num_draws // 2, num))
    draws = np.concatenate([half, -half])
    start = np.concatenate([replay.scaling.unit(replay.space.nominal), np.full(num, 0.3)])
    options = {"bounds": [0, 1], "seed": seed + 1, "verbose": -9}
    options |= {"maxiter": CONFIG.num_rounds, "popsize": CONFIG.num_candidates}
    search = load_cma_es()(np.clip(start, 0.05, 0.95), 0.3, options)
    while not search.stop():
        candidates = [np.asarray(c) for c in search.ask()]
        search.tell(candidates, list(-_log_likelihoods(replay, np.stack(candidates), draws)))
        if progress is not None:
            progress("randomize", min(1.0, search.countiter / CONFIG.num_rounds))
    centre, width = _split_candidates(np.asarray(search.result.xfavorite)[None])
    return replay.normal_ranges(centre[0], width[0], "most likely, given the logs"), ()


def load_cma_es() -> Any:
    """Returns the class of CMA-ES; silences the warning of `cma` at its import that it cannot plot."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Could not import matplotlib", UserWarning)
        import cma
    return cma.CMAEvolutionStrategy


def _split_candidates(candidates: Array) -> tuple[Array, Array]:
    """Returns centres in [0, 1] and widths of candidates, each (num_candidates, num_parameters)."""
    centre, width = np.split(candidates, 2, axis=1)
    return centre, CONFIG.min_width * (CONFIG.max_width / CONFIG.min_width) ** width


def _log_likelihoods(replay: Replay, candidates: Array, draws: Array) -> Array:
    """Returns the log-likelihood of the logs under each candidate, (num_candidates,).

    Args:
        replay: The logs.
        candidates: (num_candidates, 2 num_parameters) in [0, 1]: centres, then widths.
        draws: (num_draws, num_parameters) standard normal.
    """
    centre, width = _split_candidates(candidates)
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
