"""How sure a fit is, all told: what `identify` reports where a fit has ended, and what `excite` predicts of one."""

from collections.abc import Sequence
from dataclasses import dataclass

from gapless.core.signal import Array
from gapless.fit.misfit import hold_without_lag
from gapless.fit.problem import FitProblem
from gapless.fit.search.config import SEARCH
from gapless.fit.search.flat_directions import widen_by_force_scale
from gapless.fit.slopes import fine_slopes
from gapless.fit.solution import Solution, widen_intervals
from gapless.fit.time_step import remove_time_step_error


@dataclass(frozen=True)
class JudgedFit:
    """Where a fit ends without the time-step error, and how sure it is of that."""

    problem: FitProblem  # with the time-step error taken out of the readings
    solution: Solution  # its intervals allow for errors in what was not fitted


def judge_solution(problem: FitProblem, row: Array, held: Sequence[int]) -> JudgedFit:
    """Returns the fit without the time-step error; its intervals allow for errors in what was not fitted.

    The problem is that at `row`, (num_parameters,), where its fit has ended. `held` are columns of values that were
    not fitted; see `widen_intervals`.
    """
    slopes = fine_slopes(problem, row)
    corrected = remove_time_step_error(problem, row, slopes)
    without_lag = hold_without_lag(corrected.problem, corrected.row, slopes)
    others = [] if without_lag is None else [without_lag]
    solution = widen_by_force_scale(corrected.problem, corrected.row, slopes, SEARCH.last, others)
    solution = widen_intervals(corrected.problem, solution, held, corrected.finer, corrected.left)
    return JudgedFit(corrected.problem, solution)
