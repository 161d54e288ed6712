"""Terms that no step from none can tell from what is fitted already: tried by exchanging and solving.

A lag of t seconds shows to first order what a delay of t seconds shows, 1 / (1 + t s) = exp(-t s) + O(t^2 s^2). Play in
a servo's gear makes it rest wherever it is within the play, as friction does within F / kp either way; and play is zero
at a corner, where half of all slopes are lost. Where delay and friction are fitted, the slope at no lag and at no play
therefore says nothing; half of the one is exchanged for the other instead, and both are fitted from there.
"""

from collections.abc import Callable, Sequence
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
from gapless.fit.slopes import FINE_STEP, MEDIUM_STEP
from gapless.fit.solve import descend
from gapless.sim.targets import driven_joint, force_per_command
from gapless.sim.targets.target import split_target

Swap = Callable[[FitProblem, Array, Sequence[Columns], float], Structure]


def try_lag(problem: FitProblem, row: Array, groups: Sequence[Columns], worth: float) -> Structure:
    """Tries the lag among the terms in exchange for half of each delay; see `_try_exchange`."""
    lag = next(iter(groups_ending_in(problem, groups, "/lag")), ())
    return _try_exchange(
        problem, row, lag, [with_lag(problem, row, lag, share) for share in SEARCH.lag_shares], worth, MEDIUM_STEP
    )


def try_play(problem: FitProblem, row: Array, groups: Sequence[Columns], worth: float) -> Structure:
    """Tries play in all gears at once, in exchange for a share of each friction; see `_try_exchange`."""
    gears = tuple(sorted(column for group in groups_ending_in(problem, groups, "/backlash") for column in group))
    return _try_exchange(
        problem,
        row,
        gears,
        [with_play(problem, row, gears, share) for share in SEARCH.play_shares],
        worth,
        FINE_STEP,
    )


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
    problem: FitProblem, row: Array, group: Columns, starts: Sequence[Array], worth: float, step: float
) -> Structure:
    """Tries one exchange: fitted on one half of the windows, judged on the other, both ways round.

    Costs one brief solve on all windows for each start; and four on half of them, unless the first promise too little.

    Args:
        problem: What to minimise; its free parameters are always fitted.
        row: (num_parameters,) a solution without the term.
        group: Columns of the term; none where there is nothing to try.
        starts: Rows after the exchange; the one that leads to the least cost counts.
        worth: Least share of the held-out cost that the term must save.
        step: Finite-difference step of the slopes that solves on halves follow.
    """
    if not group:
        return Structure(problem.free, row, ())
    wide = replace(problem, free=tuple(sorted({*problem.free, *group})))
    ends = [descend(wide, start, SEARCH.first_look) for start in starts] if len(starts) > 1 else list(starts)
    end = descend(wide, min(ends, key=wide.cost), SEARCH.brief)
    saving = training_saving(problem, wide.cost(end), problem.cost(row))
    if saving.share > SEARCH.min_swap_promise * worth:
        (saving,) = solve_for_savings(problem, row, [(group, end)], step)
    kept = convinces(saving, worth, SEARCH.min_swap_score)
    tried = (tried_term(problem.predictor.space, group, saving, kept),)
    return Structure(wide.free, end, tried) if kept else Structure(problem.free, row, tried)
