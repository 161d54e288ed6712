"""Bounded least squares on the batch: every finite-difference column goes through one call."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy.optimize import lsq_linear

from gapless.core.signal import Array
from gapless.fit.problem import FitProblem, flatten_outliers
from gapless.fit.slopes import FINE_STEP, MEDIUM_STEP, slopes_ahead
from gapless.fit.solution import Solution, summarize_solution

DAMPINGS = (1e-6, 1e-3, 1e-2, 0.1, 0.4, 1.5, 6.0)  # of steps, as shares of the Hessian's diagonal
ENOUGH = 1e-3  # share of the cost: with coarse slopes an iteration that saves less is the last
LITTLE = 0.02  # of the sum of squares, with fine ones: it moves no parameter by more than 0.15 standard errors
Progress = Callable[[str, float], None]
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
    """Minimises by Gauss-Newton steps, damped as far as real evaluations ask for (Levenberg and Marquardt).

    An iteration is two batched calls: all columns of the Jacobian, then the steps of all dampings; the best of these
    is taken.
    """
    centre, prior = problem.unit(problem.base), problem.prior

    def stacked(weighted: Array, units: Array) -> Array:
        values = flatten_outliers(problem.discount(weighted)).reshape(len(units), -1)
        return np.concatenate([values, prior * (units - centre)], axis=1)

    weighted = problem.weighted_errors(unit[None])
    residual = stacked(weighted, unit[None])[0]
    for iteration in range(max_iterations):
        slopes = slopes_ahead(problem, unit, weighted[0], step)
        jacobian = np.concatenate([slopes.reshape(-1, len(unit)), np.diag(prior)])
        tries = unit + damped_steps(jacobian, residual, unit)
        tried = problem.weighted_errors(tries)
        outcomes = stacked(tried, tries)
        best = int(np.argmin(np.sum(outcomes**2, axis=1)))
        gain = 1.0 - float(np.sum(outcomes[best] ** 2) / np.sum(residual**2))
        if gain > 0:
            unit, residual, weighted = np.clip(tries[best], 0.0, 1.0), outcomes[best], tried[best : best + 1]
            problem.notice(unit)
        if report is not None:
            report((iteration + 1) / max_iterations)
        if gain * np.sum(residual**2) < (ENOUGH * np.sum(residual**2) if step > FINE_STEP else LITTLE):
            break
    return unit


def damped_steps(jacobian: Array, residual: Array, unit: Array) -> Array:
    """Returns the steps of all dampings that stay within bounds, (num_dampings, num_free)."""
    hessian, gradient = jacobian.T @ jacobian, jacobian.T @ residual
    scale = np.maximum(np.diag(hessian), 1e-9 * np.diag(hessian).max() + 1e-12)
    return np.stack([_bounded(hessian + np.diag(damping * scale), gradient, -unit, 1.0 - unit) for damping in DAMPINGS])


def _bounded(hessian: Array, gradient: Array, low: Array, high: Array) -> Array:
    """Returns the minimiser of x^T H x / 2 + g^T x within bounds."""
    factor = np.linalg.cholesky(hessian)
    return lsq_linear(factor.T, -np.linalg.solve(factor, gradient), (low - 1e-9, high + 1e-9), method="bvls").x
