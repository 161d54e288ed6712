"""A lag, which no step from none can tell from a delay: tried by solving.

To first order a lag of t seconds shows what a delay of t seconds shows, 1 / (1 + t s) = exp(-t s) + O(t^2 s^2). Where
the delay is fitted, the slope at no lag therefore says nothing; half of the delay is exchanged for a lag instead, and
both are fitted from there.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gapless.core.signal import Array
from gapless.identify.solver.problem import Problem
from gapless.identify.solver.solve import approach
from gapless.identify.structure import BRIEF, Columns, Structure, convinces, solved_savings, tried_term

LEAST_S = 1e-3  # a lag that is tried where no delay was found [s]


def try_lag(problem: Problem, row: Array, groups: Sequence[Columns], worth: float) -> Structure:
    """Tries the lag among the terms: fitted on one half of the windows, judged on the other, both ways round.

    Costs four brief solves on half of the windows, and one more on all of them where the lag stays.

    Args:
        problem: What to minimise; its free parameters are always fitted.
        row: (num_parameters,) a solution without the lag.
        groups: Columns of each term.
        worth: Least share of the held-out cost that a lag must save.
    """
    targets = problem.predictor.space.targets
    found = [group for group in groups if all(targets[column].endswith("/lag") for column in group)]
    if not found:
        return Structure(problem.free, row, ())
    group = found[0]
    wide = replace(problem, free=tuple(sorted({*problem.free, *group})))
    (saving,) = solved_savings(problem, row, [(group, _exchanged(wide, row, group))])
    kept = convinces(saving, worth)
    tried = (tried_term(problem.predictor.space, group, saving, kept),)
    if not kept:
        return Structure(problem.free, row, tried)
    return Structure(wide.free, approach(wide, _exchanged(wide, row, group), BRIEF), tried)


def _exchanged(problem: Problem, row: Array, lag: Columns) -> Array:
    """Returns a row in which half of each delay of commands has become a lag."""
    row, targets = row.copy(), problem.predictor.space.targets
    late = [k for k in problem.free if targets[k].startswith("actuator/") and targets[k].endswith("/delay")]
    row[list(lag)] = np.maximum(row[list(lag)], max(LEAST_S, 0.5 * float(row[late].sum())))
    row[late] *= 0.5
    return row
