"""Where slopes hardly lead: a lag for a delay, play for friction, more of all forces; tried by moving and solving.

A lag of t seconds shows to first order what a delay of t seconds shows, 1 / (1 + t s) = exp(-t s) + O(t^2 s^2). Play in
a servo's gear makes it rest wherever it is within the play, as friction does within F / kp either way; and play is zero
at a corner, where half of all slopes are lost. Where delay and friction are fitted, the slope at no lag and at no play
therefore says nothing; half of the one is exchanged for the other instead, and both are fitted from there.

A slow servo moves alike with twice its stiffness, damping and friction; only its inertia tells, as a little less delay.
Slopes lead along such a valley so slowly that a fit ends wherever it began. So all forces are multiplied, the rest is
fitted again, and the best is kept. In the end they are multiplied once more: if the fit then ends elsewhere and is as
good, slopes have promised too much, and intervals are made to hold both ends.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gapless.core.signal import Array
from gapless.fit.problem import FitProblem
from gapless.fit.search.config import SEARCH
from gapless.fit.search.terms import (
    Columns,
    Structure,
    convinces,
    solve_for_savings,
    training_saving,
    tried_term,
)
from gapless.fit.slopes import FINE_STEP, MEDIUM_STEP, fine_slopes
from gapless.fit.solution import Solution, summarize_solution
from gapless.fit.solve import Schedule, descend, follow_slopes
from gapless.sim.targets import driven_joint, force_per_command
from gapless.sim.targets.target import split_target

_FORCES = ("/kp", "/kd", "/frictionloss", "/damping", "/gain")


def try_lag(problem: FitProblem, structure: Structure, groups: Sequence[Columns]) -> Structure:
    """Tries the lag among the terms in exchange for half of each delay; see `_try_exchange`."""
    lag = next(iter(groups_ending_in(problem, groups, "/lag")), ())
    now = replace(problem, free=structure.free)
    starts = [with_lag(now, structure.row, lag, share) for share in SEARCH.lag_shares]
    return _try_exchange(now, structure, lag, starts, SEARCH.min_lag_saving, MEDIUM_STEP)


def try_play(problem: FitProblem, structure: Structure, groups: Sequence[Columns]) -> Structure:
    """Tries play in all gears at once, in exchange for a share of each friction; see `_try_exchange`."""
    gears = tuple(sorted(column for group in groups_ending_in(problem, groups, "/backlash") for column in group))
    starts = [with_play(problem, structure.row, gears, share) for share in SEARCH.play_shares]
    return _try_exchange(problem, structure, gears, starts, SEARCH.min_term_saving, FINE_STEP)


def groups_ending_in(problem: FitProblem, groups: Sequence[Columns], *endings: str) -> list[Columns]:
    """Returns the groups all of whose targets end in one of the endings."""
    targets = problem.predictor.space.targets
    return [group for group in groups if all(targets[column].endswith(endings) for column in group)]


def with_lag(problem: FitProblem, row: Array, lag: Columns, share: float) -> Array:
    """Returns a row in which a share of each delay of commands that is fitted has become a lag."""
    row, targets = row.copy(), problem.predictor.space.targets
    late = [k for k in problem.free if targets[k].startswith("actuator/") and targets[k].endswith("/delay")]
    row[list(lag)] = np.maximum(row[list(lag)], max(SEARCH.min_lag_s, share * float(row[late].sum())))
    row[late] *= 1.0 - share
    return row


def with_play(problem: FitProblem, row: Array, gears: Columns, share: float) -> Array:
    """Returns a row in which a share of the friction of each servo has become play, as wide as that friction held."""
    row, space, model = row.copy(), problem.predictor.space, problem.predictor.blueprint.model
    for column in gears:
        joint = split_target(space.targets[column]).name
        servo = next(a for a in range(model.nu) if driven_joint(model, a) == model.joint(joint).id)
        stiffness, friction = f"actuator/{model.actuator(servo).name}/kp", f"joint/{joint}/frictionloss"
        kp = row[space.index(stiffness)] if stiffness in space.targets else force_per_command(model, servo)
        rubs = [space.index(friction)] if friction in space.targets else []
        held = 2.0 * share * float(row[rubs].sum()) / max(kp, 1e-9)
        row[column] = min(max(row[column], SEARCH.min_play * space.high[column], held), space.high[column])
        row[rubs] *= 1.0 - share
    return row


def _try_exchange(
    problem: FitProblem, structure: Structure, group: Columns, starts: Sequence[Array], worth: float, step: float
) -> Structure:
    """Tries one exchange: fitted on one half of the windows, judged on the other, both ways round.

    Costs one brief solve on all windows for each start; and four on half of them, unless the first promise too little.

    Args:
        problem: What to minimise.
        structure: What is fitted in any case, solved without the term.
        group: Columns of the term; none where there is nothing to try.
        starts: Rows after the exchange; the one that leads to the least cost counts.
        worth: Least share of the held-out cost that the term must save.
        step: Finite-difference step of the slopes that solves on halves follow.
    """
    if not group:
        return structure
    row = structure.row
    now = replace(problem, free=structure.free).weighted_at(row)
    wide = now.with_free(group)
    ends = [descend(wide, start, SEARCH.first_look) for start in starts] if len(starts) > 1 else list(starts)
    end = descend(wide, min(ends, key=wide.cost), SEARCH.brief)
    saving = training_saving(now, wide.cost(end), now.cost(row))
    if saving.share > SEARCH.min_swap_promise * worth:
        saving = solve_for_savings(now, row, {group: end}, step)[group]
    kept = convinces(saving, worth, SEARCH.min_swap_score)
    tried = (tried_term(now.predictor.space, group, saving, kept),)
    return Structure(*((wide.free, end) if kept else (now.free, row)), tried).after(structure)


def fit_force_scale(problem: FitProblem, row: Array, *, near: bool = False) -> Array:
    """Returns a row whose forces have the scale that these windows are predicted best with; the same without servos.

    It begins at a solution, as far as slopes lead. Where the scale is nearly right, small factors are tried, along
    slopes that are measured once.
    """
    forces = _force_columns(problem)
    if not forces:
        return row
    judge = problem.weighted_at(row)
    best, tries = judge.cost(row), SEARCH.near_factors if near else SEARCH.far_factors
    slopes = fine_slopes(judge, row) if near else None
    for _ in range(SEARCH.max_force_rounds):
        starts = [_scale_columns(judge, row, forces, factor) for factor in tries]
        rows = [
            descend(judge, start, SEARCH.brief) if slopes is None else follow_slopes(judge, start, slopes)
            for start in starts
        ]
        costs = [judge.cost(found) for found in rows]
        least = int(np.argmin(costs))
        if costs[least] >= best:
            break
        best, row, tries = costs[least], rows[least], (tries[least],)  # the better one again, as long as it helps
    return row


def widen_by_force_scale(
    problem: FitProblem, row: Array, slopes: Array, schedule: Schedule, others: Sequence[Array] = ()
) -> Solution:
    """Returns a solution whose intervals hold where fits end that begin with other forces, as far as they are as good.

    A fit that ends a step s away, in units of the range, at a sum of squares that is higher by d, says that the
    variance along s is |s|^2 / d; where slopes promise less, that much is added. If an end is lower, the fit goes on
    from there, by `schedule`. The problem is that at `row`, where a fit has ended, with its `fine_slopes`. `others` are
    further rows to compare with in the same way, such as fits without a term; their squares count less by what
    errors in a piece go together.
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
    for other in others:
        step, promised, seen = _compare_ends(problem, other, unit, known, lowest)
        seen = max(1.0, seen / inflation)
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
