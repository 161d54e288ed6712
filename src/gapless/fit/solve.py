"""Bounded least squares on the batch: every finite-difference column goes through one call."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy.optimize import lsq_linear

from gapless.core.protocols import Progress
from gapless.core.signal import Array
from gapless.fit.problem import FitProblem, flatten_outliers
from gapless.fit.slopes import FINE_STEP, MEDIUM_STEP, slopes_ahead
from gapless.fit.solution import Solution, summarize_solution

DAMPINGS = (1e-6, 1e-3, 1e-2, 0.1, 0.4, 1.5, 6.0)  # of steps, as shares of the Hessian's diagonal
FIRST_DAMPING = 2  # place in `DAMPINGS` of the first that is tried
MAX_STEPS_PER_SLOPE = 3
MIN_COARSE_GAIN = 1e-3  # share of the sum of squares: with coarse slopes an iteration that saves less is the last
MIN_FINE_GAIN = 0.02  # of the sum of squares, with fine ones: it moves no parameter by over 0.15 standard errors
Schedule = Sequence[tuple[float, int]]


def solve_least_squares(
    problem: FitProblem,
    start: Array,
    schedule: Schedule = ((MEDIUM_STEP, 6), (FINE_STEP, 6)),
    progress: Progress | None = None,
) -> Solution:
    """Minimises the problem from a whole row.

    It is run once per entry of the schedule, each time from where it was.

    Args:
        problem: What to minimise; if errors of its start states are discounted, as they show under `start`.
        start: (num_parameters,) whole row to begin at.
        schedule: (finite-difference step as a share of the range, iterations at most) of each run.
        progress: Called with how far it is, in [0, 1].
    """
    return summarize_solution(*_descended(problem, start, schedule, progress))


def descend(problem: FitProblem, start: Array, schedule: Schedule, progress: Progress | None = None) -> Array:
    """Returns the whole row that `solve_least_squares` arrives at, and spares what it takes to say how sure that is."""
    problem, unit = _descended(problem, start, schedule, progress)
    return problem.rows(unit[None])[0]


def _descended(
    problem: FitProblem, start: Array, schedule: Schedule, progress: Progress | None
) -> tuple[FitProblem, Array]:
    """Returns the free parameters in [0, 1] after all runs, and the problem as the last of them saw it.

    Errors of the start states are discounted as they show where each run begins.
    """
    unit = np.clip(problem.unit(start), 0.0, 1.0)
    for k, (step, max_iterations) in enumerate(schedule):
        part = partial_progress(progress, k / len(schedule), 1 / len(schedule))
        report = None if part is None else partial(part, "fit")
        if k or problem.starts is None:
            problem = problem.at(problem.rows(unit[None])[0])
        unit = _minimise(problem, unit, step, max_iterations, report)
        problem.notice(unit)
    if progress is not None:
        progress("fit", 1.0)
    return problem, unit


def partial_progress(progress: Progress | None, begin: float, share: float) -> Progress | None:
    """Returns a progress that fills a part of another one."""
    if progress is None:
        return None
    return lambda label, done: progress(label, begin + share * done)


def _minimise(
    problem: FitProblem,
    unit: Array,
    step: float,
    max_iterations: int,
    report: Callable[[float], None] | None,
) -> Array:
    """Minimises by damped Gauss-Newton steps (Levenberg and Marquardt) and returns where it arrives.

    An iteration measures the slopes once and then takes several steps, each the best of a few dampings. Between them
    the slopes follow what the steps did to the residuals (Broyden, 1965), which costs no prediction.
    """
    centre, prior = problem.unit(problem.base), problem.prior

    def stack(weighted: Array, units: Array) -> Array:
        values = flatten_outliers(problem.discount(weighted)).reshape(len(units), -1)
        return np.concatenate([values, prior * (units - centre)], axis=1)

    weighted = problem.weighted_errors(unit[None])
    residual = stack(weighted, unit[None])[0]
    damping = FIRST_DAMPING
    for iteration in range(max_iterations):
        before = float(np.sum(residual**2))
        least_gain = MIN_COARSE_GAIN * before if step > FINE_STEP else MIN_FINE_GAIN
        slopes = slopes_ahead(problem, unit, weighted[0], step)
        jacobian = np.concatenate([slopes.reshape(-1, len(unit)), np.diag(prior)])
        for _ in range(MAX_STEPS_PER_SLOPE):
            dampings = [k for k in (damping - 1, damping, damping + 2) if 0 <= k < len(DAMPINGS)]
            tries = np.clip(unit + damped_steps(jacobian, residual, unit, [DAMPINGS[k] for k in dampings]), 0.0, 1.0)
            weighted_tries = problem.weighted_errors(tries)
            outcomes = stack(weighted_tries, tries)
            squares = np.sum(outcomes**2, axis=1)
            best = int(np.argmin(squares))
            gain = float(np.sum(residual**2) - squares[best])
            if gain <= 0.0:
                if dampings[-1] == len(DAMPINGS) - 1:
                    break
                damping = min(damping + 3, len(DAMPINGS) - 1)
                continue
            move = tries[best] - unit
            unexpected = outcomes[best] - residual - jacobian @ move
            jacobian += np.outer(unexpected, move) / max(float(move @ move), 1e-12)
            unit, residual, weighted = tries[best], outcomes[best], weighted_tries[best : best + 1]
            damping = dampings[best]
            problem.notice(unit)
            if gain < least_gain:
                break
        if report is not None:
            report((iteration + 1) / max_iterations)
        if before - float(np.sum(residual**2)) < least_gain:
            break
    return unit


def damped_steps(jacobian: Array, residual: Array, unit: Array, dampings: Sequence[float] = DAMPINGS) -> Array:
    """Returns the step of each damping that stays within bounds, (num_dampings, num_free)."""
    hessian, gradient = jacobian.T @ jacobian, jacobian.T @ residual
    scale = np.maximum(np.diag(hessian), 1e-9 * np.diag(hessian).max() + 1e-12)
    return np.stack([_bounded(hessian + np.diag(damping * scale), gradient, -unit, 1.0 - unit) for damping in dampings])


def _bounded(hessian: Array, gradient: Array, low: Array, high: Array) -> Array:
    """Returns the minimiser of x^T H x / 2 + g^T x within bounds."""
    factor = np.linalg.cholesky(hessian)
    return lsq_linear(factor.T, -np.linalg.solve(factor, gradient), (low - 1e-9, high + 1e-9), method="bvls").x
