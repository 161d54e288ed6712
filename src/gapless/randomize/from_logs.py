"""Ranges from logs without a fit, by the methods of others: `simopt` and `dropo`. Both restart from measured states.

SimOpt (Chebotar and others: Closing the sim-to-real loop, ICRA 2019) matches trajectories: one joint normal
distribution over all parameters; worlds drawn from it follow the real commands; the cost of each is how far its
trajectory is from the real one; the distribution moves to the better ones by relative entropy policy search (Peters,
Muelling, Altun 2010), at most a given KL divergence at a time. Here all steps use the logs that are there, instead of
new ones after each; record more with the new policy (`gapless loop --rounds`). Windows restart from measured states
instead of whole trajectories, so that unstable robots can be compared at all; the distance is in units of the noise,
weighs absolute and squared error alike, and is flattened beyond what chance explains.

DROPO (Tiboni, Arndt, Kyrki: DROPO: Sim-to-real transfer with offline domain randomization, Robotics and Autonomous
Systems 2023) maximises a likelihood: every parameter is normal; worlds drawn from these distributions follow the real
commands for a while; the likelihood of the real readings is that of the normal distribution of where those worlds end;
CMA-ES moves mean and width of each parameter to the greatest sum of log-likelihoods. Here the variance that keeps the
likelihood finite is the noise of the readings and of the start states, not a number to be tuned; all candidates share
their random numbers, so that they differ in their distributions alone.

In both, positive parameters vary by factors (log-normal), and distributions are cut at the parameter's bounds.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from gapless.core.distribution import Correlation, Range, correlations_of
from gapless.core.errors import InputError
from gapless.core.protocols import Progress
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.evolution import load_cma_es
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows, cut_windows
from gapless.signals.track import subtract_readings

MAX_ERROR_STDS = 1e3  # an error of a diverged prediction counts as this many standard deviations


@dataclass(frozen=True)
class Replay:
    """Windows of real logs, what predicts them under rows, and the parameters as numbers in [0, 1]."""

    predictor: Predictor
    windows: Windows
    scaling: Scaling

    @classmethod
    def of(cls, data: ProjectData, window_s: float, max_windows: int, rng: np.random.Generator) -> "Replay":
        """Cuts a project's logs into windows, at most so many of them; InputError if no log is long enough."""
        windows = cut_windows(data.project, data.tracks, window_s)
        if not len(windows):
            raise InputError(f"no log holds {window_s:g} s without a gap: record longer ones")
        if len(windows) > max_windows:
            windows = windows.pick(np.sort(rng.choice(len(windows), max_windows, replace=False)))
        return cls(Predictor(data.blueprint, data.space), windows, Scaling.of(data.space))

    def errors(self, rows: Array) -> Array:
        """Returns prediction minus reading, (num_rows, num_windows, num_steps, num_measurements), in units of noise.

        That is the noise of the reading, of the start, and of its slope carried through the window. What was not
        measured is NaN; what diverged counts as `MAX_ERROR_STDS`.
        """
        windows, project = self.windows, self.predictor.blueprint.project
        length_s = windows.num_steps / project.rate_hz
        sigma = np.sqrt(windows.noise**2 + windows.start_sd**2 + (length_s * windows.slope_sd) ** 2)
        predicted = self.predictor.predict(windows, rows)
        error = subtract_readings(project, predicted, windows.measured[None])[:, :, 1:] / sigma
        error = np.clip(np.nan_to_num(error, nan=MAX_ERROR_STDS), -MAX_ERROR_STDS, MAX_ERROR_STDS)
        return np.where(np.isfinite(windows.measured[:, 1:]), error, np.nan)

    def normal_ranges(self, centre: Array, width: Array, reason: str) -> tuple[Range, ...]:
        """Returns a normal range per parameter, cut at two widths and at the parameter's bounds.

        Centres are in [0, 1], widths are shares of the scaled ranges, each (num_parameters,). Widths are carried over
        by the slope of the scale; what is never 0 is log-normal.
        """
        unit = np.clip(np.stack([centre - 2 * width, centre, centre + 2 * width]), 0.0, 1.0)
        space = self.predictor.space
        low, mean, high = np.clip(self.scaling.values(unit), space.low, space.high).tolist()
        std = (width * self.scaling.slope(unit[1])).tolist()
        found: list[Range] = []
        for k, p in enumerate(space.parameters):
            kind, spread = ("log-normal", std[k] / mean[k]) if p.low > 0 else ("normal", std[k])
            found.append(Range(p.target, kind, low[k], high[k], mean[k], spread, reason))
        return tuple(found)


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


SIMOPT = SimoptConfig()


def simopt_ranges(
    data: ProjectData, seed: int, progress: Progress | None = None
) -> tuple[tuple[Range, ...], tuple[Correlation, ...]]:
    """Returns one normal or log-normal range per parameter of a project, and their correlations; see the module."""
    rng = np.random.default_rng(seed)
    replay = Replay.of(data, SIMOPT.window_s, SIMOPT.max_windows, rng)
    mean = np.clip(replay.scaling.unit(data.space.nominal), 0.05, 0.95)
    covariance = SIMOPT.first_width**2 * np.eye(len(mean))
    for k in range(SIMOPT.num_rounds):
        unit = np.clip(rng.multivariate_normal(mean, covariance, SIMOPT.num_rows, method="eigh"), 0.0, 1.0)
        error = np.minimum(np.abs(replay.errors(replay.scaling.values(unit))), 10.0)
        weights = reps_weights(np.nanmean(error + 0.5 * error**2, axis=(1, 2, 3)), SIMOPT.max_kl)
        mean = weights @ unit
        spread = unit - mean
        covariance = (weights[:, None] * spread).T @ spread + SIMOPT.min_width**2 * np.eye(len(mean))
        if progress is not None:
            progress("randomize", (k + 1) / SIMOPT.num_rounds)
    std = np.sqrt(np.diag(covariance))
    ranges = replay.normal_ranges(mean, std, "does what the logs show")
    return ranges, correlations_of(data.space.targets, covariance / np.outer(std, std))


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


DROPO = DropoConfig()


def dropo_ranges(
    data: ProjectData, seed: int, progress: Progress | None = None
) -> tuple[tuple[Range, ...], tuple[Correlation, ...]]:
    """Returns one normal or log-normal range per parameter of a project, and no correlations; see the module."""
    rng = np.random.default_rng(seed)
    replay = Replay.of(data, DROPO.window_s, DROPO.max_windows, rng)
    num = len(data.space)
    half = rng.standard_normal((DROPO.num_draws // 2, num))
    draws = np.concatenate([half, -half])
    start = np.concatenate([replay.scaling.unit(data.space.nominal), np.full(num, 0.3)])
    options = {"bounds": [0, 1], "seed": seed + 1, "verbose": -9}
    options |= {"maxiter": DROPO.num_rounds, "popsize": DROPO.num_candidates}
    search = load_cma_es()(np.clip(start, 0.05, 0.95), 0.3, options)
    while not search.stop():
        candidates = [np.asarray(c) for c in search.ask()]
        search.tell(candidates, list(-_log_likelihoods(replay, np.stack(candidates), draws)))
        if progress is not None:
            progress("randomize", min(1.0, search.countiter / DROPO.num_rounds))
    centre, width = _split_candidates(np.asarray(search.result.xfavorite)[None])
    return replay.normal_ranges(centre[0], width[0], "most likely, given the logs"), ()


def _split_candidates(candidates: Array) -> tuple[Array, Array]:
    """Returns centres in [0, 1] and widths of candidates, each (num_candidates, num_parameters)."""
    centre, width = np.split(candidates, 2, axis=1)
    return centre, DROPO.min_width * (DROPO.max_width / DROPO.min_width) ** width


def _log_likelihoods(replay: Replay, candidates: Array, draws: Array) -> Array:
    """Returns the log-likelihood of the logs under each candidate, (num_candidates,).

    Candidates are (num_candidates, 2 num_parameters) in [0, 1]: centres, then widths; draws are standard normal.
    """
    centre, width = _split_candidates(candidates)
    unit = centre[:, None] + width[:, None] * draws
    rows = replay.scaling.values(np.clip(unit, 0.0, 1.0)).reshape(-1, draws.shape[1])
    last = replay.errors(rows)[:, :, -1].reshape(len(candidates), len(draws), len(replay.windows), -1)
    last = np.nan_to_num(last)
    mean = last.mean(axis=1)
    spread = last - mean[:, None]
    covariance = np.einsum("cdwi,cdwj->cwij", spread, spread) / (len(draws) - 1) + np.eye(last.shape[-1])
    weighted = np.linalg.solve(covariance, mean[..., None])[..., 0]
    log_likelihood = -0.5 * (np.sum(mean * weighted, axis=-1) + np.linalg.slogdet(covariance)[1])
    return log_likelihood.sum(axis=-1)
