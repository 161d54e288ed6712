"""The scale of all forces, which servos hardly show: tried at several values.

A slow servo moves alike with twice its stiffness, damping and friction; only its inertia tells, as a little less delay.
Slopes lead along such a valley so slowly that a fit ends wherever it began. So all forces are multiplied, the rest is
fitted again, and the best is kept.
"""

import numpy as np

from gapless.core.signal import Array
from gapless.identify.solver.problem import Problem
from gapless.identify.solver.solve import approach
from gapless.identify.structure import BRIEF

FACTORS = (0.6, 1.6)
MAX_ROUNDS = 4
_FORCES = ("/kp", "/kd", "/frictionloss", "/damping", "/gain")


def rescaled(problem: Problem, row: Array) -> Array:
    """Returns a row whose forces have the scale that these windows are predicted best with; the same without servos.

    Args:
        problem: What to minimise.
        row: (num_parameters,) a solution, as far as slopes lead.
    """
    targets = problem.predictor.space.targets
    forces = [k for k in problem.free if targets[k].endswith(_FORCES)]
    if not any(targets[k].endswith("/kp") for k in forces):
        return row
    judge = problem.reweighted(row)
    best, tries = judge.cost(row), FACTORS
    for _ in range(MAX_ROUNDS):
        rows = [approach(judge, _times(judge, row, forces, factor), BRIEF) for factor in tries]
        costs = [judge.cost(found) for found in rows]
        least = int(np.argmin(costs))
        if costs[least] >= best:
            break
        best, row, tries = costs[least], rows[least], (tries[least],)
    return row


def _times(problem: Problem, row: Array, columns: list[int], factor: float) -> Array:
    """Returns a row with some columns multiplied, within bounds."""
    moved, space = row.copy(), problem.predictor.space
    moved[columns] = np.clip(factor * moved[columns], space.low[columns], space.high[columns])
    return moved
