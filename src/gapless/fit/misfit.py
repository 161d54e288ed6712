"""Intervals where the model is wrong: how far values move with which part of the logs counts.

What a model lacks does not average out. Noise moves a value by less and less the more is recorded; a missing effect
moves it to wherever the parts of the logs that show the effect pull. Where residuals are far above noise, an interval
therefore also holds

- what another choice of runs would give: the bootstrap of whole runs to first order, in closed form. With g_r the pull
  of run r at the solution and H the information of all, resampled runs vary by H^-1 (sum g_r g_r^T) H^-1;
- what other windows give: fits to the same logs on windows of other lengths, which weigh a missing effect otherwise;
- what the rest of the model gives that shows nearly alike: a lag for a delay (`hold_without_lag`).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gapless.core.signal import Array
from gapless.fit.problem import PRIOR_WEIGHT, FitProblem, robust_bend, robust_pull
from gapless.fit.solution import Solution
from gapless.fit.solve import follow_slopes

MIN_NOISE_RATIO = 1.5  # residuals to noise from which on the model is taken to lack something; by judgement
MAX_CHANCE = 2.0  # standard deviations by which fits may differ by chance


def widen_by_misfit(problem: FitProblem, solution: Solution, row: Array, others: Sequence[Array]) -> Solution:
    """Returns a solution whose intervals hold what the misfit allows; see the module.

    The problem is that of the solution; `row` is the fit on its windows, `others` are fits on windows of other lengths.
    """
    unit, variance = problem.unit(row), np.diag(solution.covariance)
    grown = np.maximum(1.0, np.diag(resample_runs(problem, solution)) / np.maximum(variance, 1e-300))
    covariance = solution.covariance * np.sqrt(np.outer(grown, grown))
    moves = np.stack([problem.unit(other) - unit for other in others]) if others else np.zeros((0, len(unit)))
    beyond = np.sign(moves) * np.sqrt(np.maximum(0.0, moves**2 - MAX_CHANCE**2 * variance))
    return replace(solution, covariance=covariance + beyond.T @ beyond / max(1, len(beyond)))


def resample_runs(problem: FitProblem, solution: Solution) -> Array:
    """Returns the covariance of a solution under resampled runs, (num_free, num_free); 0 without slopes or runs."""
    runs, track = np.unique(problem.windows.track, return_inverse=True)
    if solution.slopes is None or len(runs) < 2:
        return np.zeros_like(solution.covariance)
    residual, slopes = problem.plain_residuals(solution.unit[None])[0], solution.slopes
    pulls = np.einsum("wri,wr->wi", slopes, robust_pull(residual))
    information = np.einsum("wri,wr,wrj->ij", slopes, robust_bend(residual), slopes, optimize=True)
    of_run = np.stack([pulls[track.ravel() == run].sum(axis=0) for run in range(len(runs))])
    known = information + PRIOR_WEIGHT**2 * np.eye(slopes.shape[2])
    moves: Array = np.asarray(np.linalg.solve(known, of_run.T), dtype=np.float64).T
    return moves.T @ moves * len(runs) / (len(runs) - 1)


def hold_without_lag(problem: FitProblem, row: Array, slopes: Array) -> Array | None:
    """Returns the fit with every lag of commands given back to their delay; None where not both are fitted.

    A lag of t seconds shows to first order what a delay of t seconds shows. `slopes` are those at `row`, where a fit
    has ended.
    """
    targets = problem.predictor.space.targets
    commands = [k for k in problem.free if targets[k].startswith("actuator/")]
    lags = [k for k in commands if targets[k].endswith("/lag")]
    delays = [k for k in commands if targets[k].endswith("/delay")]
    if not lags or not delays or not row[lags].any():
        return None
    start, base = row.copy(), problem.base.copy()
    start[delays] = np.minimum(row[delays] + row[lags].max(), problem.predictor.space.high[delays])
    start[lags] = base[lags] = 0.0
    kept = [place for place, column in enumerate(problem.free) if column not in lags]
    fixed = replace(problem, free=tuple(problem.free[k] for k in kept), base=base)
    return follow_slopes(fixed, start, slopes[:, :, kept])
