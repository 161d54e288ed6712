"""The scale of all forces, which servos hardly show: tried at several values.

A slow servo moves alike with twice its stiffness, damping and friction; only its inertia tells, as a little less delay.
Slopes lead along such a valley so slowly that a fit ends wherever it began. So all forces are multiplied, the rest is
fitted again, and the best is kept. In the end they are multiplied once more: if the fit then ends elsewhere and is as
good, slopes have promised too much, and intervals are made to hold both ends.
"""

from dataclasses import replace

import numpy as np

from gapless.core.signal import Array
from gapless.fit.problem import FitProblem
from gapless.fit.search.config import SEARCH
from gapless.fit.slopes import fine_slopes
from gapless.fit.solution import Solution, summarize_solution
from gapless.fit.solve import Schedule, descend, follow_slopes

_FORCES = ("/kp", "/kd", "/frictionloss", "/damping", "/gain")


def fit_force_scale(problem: FitProblem, row: Array, *, near: bool = False) -> Array:
    """Returns a row whose forces have the scale that these windows are predicted best with; the same without servos.

    Args:
        problem: What to minimise.
        row: (num_parameters,) a solution, as far as slopes lead.
        near: Whether the scale is nearly right: then small factors are tried, along slopes that are measured once.
    """
    forces = _force_columns(problem)
    if not forces:
        return row
    judge = problem.weighted_at(row)
    best, tries = judge.cost(row), SEARCH.near_factors if near else SEARCH.far_factors
    slopes = fine_slopes(judge, row) if near else None
    for _ in range(SEARCH.max_force_rounds):
        starts = [_scale_columns(judge, row, forces, factor) for factor in tries]
        if slopes is None:
            rows = [descend(judge, start, SEARCH.brief) for start in starts]
        else:
            rows = [follow_slopes(judge, start, slopes) for start in starts]
        costs = [judge.cost(found) for found in rows]
        least = int(np.argmin(costs))
        if costs[least] >= best:
            break
        best, row, tries = costs[least], rows[least], (tries[least],)  # the better one again, as long as it helps
    return row


def widen_by_force_scale(problem: FitProblem, row: Array, slopes: Array, schedule: Schedule) -> Solution:
    """Returns a solution whose intervals hold where fits end that begin with other forces, as far as they are as good.

    A fit that ends a step s away, in units of the range, at a sum of squares that is higher by d, says that the
    variance along s is |s|^2 / d; where slopes promise less, that much is added. If an end is lower, the fit goes on
    from there.

    Args:
        problem: What was solved, with errors of the start states discounted as they show there.
        row: (num_parameters,) where a fit has ended.
        slopes: Of its residuals there; see `fine_slopes`.
        schedule: Of a further solve, from an end that is lower than where the fit has ended.
    """
    forces = _force_columns(problem)
    starts = [_scale_columns(problem, row, forces, factor) for factor in SEARCH.near_factors] if forces else []
    rows = [row, *(follow_slopes(problem, start, slopes) for start in starts)]
    squares = [_sum_of_squares(problem, problem.unit(end)) for end in rows]
    inflation = problem.error_inflation(problem.residuals(problem.unit(row)[None])[0])
    if min(squares) < squares[0] - SEARCH.min_force_gain * inflation:
        row = descend(problem, rows[int(np.argmin(squares))], schedule)
    unit = problem.unit(row)
    solution, lowest = summarize_solution(problem, unit), _sum_of_squares(problem, unit)
    covariance = solution.covariance.copy()
    known = solution.information + np.diag(problem.prior**2)
    for end in rows:
        step, promised, seen = _compare_ends(problem, end, unit, known, lowest)
        if seen < promised:  # slopes that are measured there may lead back
            step, promised, seen = _compare_ends(problem, descend(problem, end, SEARCH.polish), unit, known, lowest)
        if seen < promised:
            covariance += np.outer(step, step) * (1.0 / seen - 1.0 / promised)
    return replace(solution, covariance=covariance)


def _compare_ends(
    problem: FitProblem, end: Array, unit: Array, known: Array, lowest: float
) -> tuple[Array, float, float]:
    """Returns the step from a solution to another end, and by how much squares rise: as slopes promise, and as seen."""
    step = problem.unit(end) - unit
    rise = _sum_of_squares(problem, problem.unit(end)) - lowest
    return step, float(step @ known @ step), max(1.0, rise)


def _sum_of_squares(problem: FitProblem, unit: Array) -> float:
    """Returns the sum of squares that a solver minimises, the pull of the prior included."""
    pull = problem.prior * (unit - problem.unit(problem.base))
    return float(np.sum(problem.residuals(unit[None]) ** 2) + np.sum(pull**2))


def _force_columns(problem: FitProblem) -> list[int]:
    """Returns the columns of all forces that are fitted, where servos' are among them."""
    targets = problem.predictor.space.targets
    forces = [k for k in problem.free if targets[k].endswith(_FORCES)]
    return forces if any(targets[k].endswith("/kp") for k in forces) else []


def _scale_columns(problem: FitProblem, row: Array, columns: list[int], factor: float) -> Array:
    """Returns a row with some columns multiplied, within bounds."""
    moved, space = row.copy(), problem.predictor.space
    moved[columns] = np.clip(factor * moved[columns], space.low[columns], space.high[columns])
    return moved
