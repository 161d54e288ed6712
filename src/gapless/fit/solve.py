"""Bounded least squares on the batch: every finite-difference column goes through one call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from gapless.core.signal import Array
from gapless.fit.problem import FitProblem, flatten_outliers, robust_pull
from gapless.fit.slopes import FINE_STEP, MEDIUM_STEP, slopes_ahead
from gapless.fit.solution import Solution, summarize_solution

Schedule = Sequence[tuple[float, int]]
Report = Callable[[float], None]  # called with how far something is, in [0, 1]


@dataclass(frozen=True)
class SolverConfig:
    """Numbers of the solver."""

    # of steps, as shares of the Hessian's diagonal
    dampings: tuple[float, ...] = (1e-6, 1e-3, 1e-2, 0.1, 0.4, 1.5, 6.0)
    first_damping: int = 2  # place in `dampings` of the first that is tried
    max_steps_per_slope: int = 3  # steps along slopes until they are measured anew
    max_steps_along_known: int = 8  # where slopes are known already
    # share of the sum of squares: with coarse slopes an iteration that saves less is the last
    min_coarse_gain: float = 1e-3
    # of the sum of squares, with fine slopes, times `error_inflation`: less than that moves no parameter by over 0.15
    # standard errors
    min_fine_gain: float = 0.02


SOLVER = SolverConfig()


def ignore_progress(done: float) -> None:
    """Tells nobody how far something is."""


def report_part(report: Report, begin: float, share: float) -> Report:
    """Returns a report that fills a part of another one."""
    return lambda done: report(begin + share * done)


def solve_least_squares(
    problem: FitProblem, start: Array, schedule: Schedule = ((MEDIUM_STEP, 6), (FINE_STEP, 6))
) -> Solution:
    """Minimises the problem as `descend` does, and says how sure the solution is."""
    return summarize_solution(*_run_schedule(problem, start, schedule, ignore_progress))


def descend(problem: FitProblem, start: Array, schedule: Schedule, report: Report = ignore_progress) -> Array:
    """Returns the whole row at which the problem is least, as far as a schedule leads.

    Args:
        problem: What to minimise; if errors of its start states are discounted, as they show under `start`.
        start: (num_parameters,) whole row to begin at.
        schedule: (finite-difference step as a share of the range, iterations at most) of each run; each begins where
            the one before has ended.
        report: Called with how far it is.
    """
    problem, unit = _run_schedule(problem, start, schedule, report)
    return problem.rows(unit[None])[0]


def _run_schedule(problem: FitProblem, start: Array, schedule: Schedule, report: Report) -> tuple[FitProblem, Array]:
    """Returns the free parameters in [0, 1] after all runs, and the problem as the last of them saw it.

    Each run takes damped Gauss-Newton steps (Levenberg and Marquardt): an iteration measures the slopes once and then
    takes several steps along them; see `_Descent.follow`. Errors of the start states are discounted as they show where
    the run begins.
    """
    unit = problem.unit(start)
    for k, (step, max_iterations) in enumerate(schedule):
        if k or problem.starts is None:
            problem = problem.with_starts_at(problem.rows(unit[None])[0])
        descent = _Descent(problem, unit)
        for iteration in range(max_iterations):
            before = descent.square
            least_gain = SOLVER.min_coarse_gain * before if step > FINE_STEP else descent.min_fine_gain
            slopes = slopes_ahead(problem, descent.unit, descent.weighted, step)
            descent.follow(slopes, SOLVER.max_steps_per_slope, least_gain)
            report((k + (iteration + 1) / max_iterations) / len(schedule))
            if before - descent.square < least_gain:
                break
        unit = descent.unit
        problem.report_row(unit)
    report(1.0)
    return problem, unit


def follow_slopes(problem: FitProblem, start: Array, slopes: Array) -> Array:
    """Returns the whole row that steps along known slopes lead to: for a problem that is nearly solved.

    It costs three predictions a step, where measuring slopes anew costs one per parameter. The slopes, (num_windows,
    num_per_window, num_free), are those of robust residuals nearby.
    """
    problem = problem if problem.starts is not None else problem.with_starts_at(start)
    descent = _Descent(problem, problem.unit(start))
    descent.follow(slopes, SOLVER.max_steps_along_known, descent.min_fine_gain)
    return problem.rows(descent.unit[None])[0]


class _Descent:
    """A solve under way: free parameters in [0, 1], weighted errors there, and the residuals that are squared."""

    def __init__(self, problem: FitProblem, unit: Array) -> None:
        self.problem, self.unit, self.damping = problem, unit, SOLVER.first_damping
        self._centre, self._prior = problem.unit(problem.base), problem.prior
        self.weighted = problem.weighted_errors(unit[None])[0]
        self.residual = self._stack(self.weighted[None], unit[None])[0]

    @property
    def square(self) -> float:
        """The sum of squares."""
        return float(np.sum(self.residual**2))

    @property
    def min_fine_gain(self) -> float:
        """What a step must gain to move some parameter by a visible part of its interval; see `SolverConfig`."""
        plain = self.problem.discount(self.weighted[None])[0]
        return SOLVER.min_fine_gain * self.problem.error_inflation(robust_pull(plain))

    def follow(self, slopes: Array, max_steps: int, least_gain: float) -> None:
        """Takes steps, each the best of a few dampings, until one gains too little.

        Between them the slopes follow what the steps did to the residuals (Broyden, 1965), which costs no prediction.
        """
        problem = self.problem
        jacobian = np.concatenate([slopes.reshape(-1, len(self.unit)), np.diag(self._prior)])
        for _ in range(max_steps):
            places = sorted(
                {int(np.clip(k, 0, len(SOLVER.dampings) - 1)) for k in (self.damping - 1, self.damping + 1)}
            )
            steps = _damped_steps(jacobian, self.residual, self.unit, [SOLVER.dampings[k] for k in places])
            tries = np.clip(self.unit + steps, 0.0, 1.0)
            weighted = problem.weighted_errors(tries)
            outcomes = self._stack(weighted, tries)
            squares = np.sum(outcomes**2, axis=1)
            best = int(np.argmin(squares))
            gain = self.square - float(squares[best])
            if gain <= 0.0:
                if places[-1] == len(SOLVER.dampings) - 1:
                    return
                self.damping = min(self.damping + 3, len(SOLVER.dampings) - 1)
                continue
            move = tries[best] - self.unit
            unexpected = outcomes[best] - self.residual - jacobian @ move
            jacobian += np.outer(unexpected, move) / max(float(move @ move), 1e-12)
            self.unit, self.residual, self.weighted = tries[best], outcomes[best], weighted[best]
            self.damping = places[best]
            problem.report_row(self.unit)
            if gain < least_gain:
                return

    def _stack(self, weighted: Array, units: Array) -> Array:
        """Returns robust residuals of some rows, and the pull of the prior on each parameter."""
        values = flatten_outliers(self.problem.discount(weighted)).reshape(len(units), -1)
        return np.concatenate([values, self._prior * (units - self._centre)], axis=1)


def _damped_steps(jacobian: Array, residual: Array, unit: Array, dampings: Sequence[float]) -> Array:
    """Returns the step of each damping that stays within bounds, (num_dampings, num_free).

    With H the damped Hessian and g the gradient, it minimises x^T H x / 2 + g^T x.
    """
    hessian, gradient = jacobian.T @ jacobian, jacobian.T @ residual
    scale = np.maximum(np.diag(hessian), 1e-9 * np.diag(hessian).max() + 1e-12)
    bounds = (-unit - 1e-9, 1.0 - unit + 1e-9)
    factors = [np.linalg.cholesky(hessian + np.diag(damping * scale)) for damping in dampings]
    return np.stack([lsq_linear(f.T, -np.linalg.solve(f, gradient), bounds, method="bvls").x for f in factors])
