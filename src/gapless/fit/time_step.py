"""The robot knows no time step: what the model's own does to its predictions is not blamed on parameters.

A model steps by milliseconds, and a delay or a stiffness makes up for what that does. So it is taken out: a prediction
with a far finer step differs by d from one with the model's own, the fit is to the readings less d, and d is found
anew where the fit arrives (deferred correction: the solver's many predictions keep the coarse step). The values are
then those of the robot. They suit the model's own step a little less; where it would show in predictions, they are left
as they suit that step.
"""

from dataclasses import dataclass, replace

import numpy as np

from gapless.core.signal import Array
from gapless.fit.prediction.predict import Predictor
from gapless.fit.problem import FitProblem
from gapless.fit.solve import follow_slopes
from gapless.signals.track import subtract_readings
from gapless.sim.blueprint import with_finer_step

FINER = 8  # how much finer a time step tells what the model's own does
NUM_ROUNDS = 2  # of measuring the time-step error and fitting without it
MAX_COST_RATIO = 1.25  # by how much the cost under the model's own step may grow: an eighth of the error


@dataclass(frozen=True)
class TimeStepCorrection:
    """Where a fit without the effect of the time step arrives, and the problem that this solves."""

    problem: FitProblem  # with the effect of the time step taken out of the readings, or as it was
    row: Array  # (num_parameters,) its solution
    finer: Predictor  # predicts with a far finer step
    left: float  # share of the step's effect that is left in the values: all, or what the finer step has of its own


def remove_time_step_error(
    problem: FitProblem, row: Array, slopes: Array, may_cost: float = MAX_COST_RATIO
) -> TimeStepCorrection:
    """Returns the solution without the effect of the time step; as it was where predictions would be worse for it.

    The problem is that at its solution `row`, start errors discounted as they show there, with its `fine_slopes`.
    `may_cost` is by how much the cost under the model's own step may grow.
    """
    fine = with_finer_time_step(problem.predictor)
    without, found = problem, row
    for _ in range(NUM_ROUNDS):
        without = replace(subtract_time_step_error(problem, fine, found), starts=problem.starts)
        found = follow_slopes(without, found, slopes)
    if problem.cost(found) > may_cost * problem.cost(row):
        return TimeStepCorrection(problem, row, fine, 1.0)
    return TimeStepCorrection(without, found, fine, 1.0 / FINER)


def with_finer_time_step(predictor: Predictor) -> Predictor:
    """Returns a predictor with a far finer time step."""
    return Predictor(with_finer_step(predictor.blueprint, FINER), predictor.space)


def subtract_time_step_error(problem: FitProblem, fine: Predictor, row: Array) -> FitProblem:
    """Returns the problem with what the model's time step does under a row taken out of the readings.

    `fine` is from `with_finer_time_step`; the row should be near the solution.
    """
    windows = problem.windows
    coarse, shown = (one.predict(windows, row[None])[0] for one in (problem.predictor, fine))
    effect = subtract_readings(problem.predictor.blueprint.project, shown, coarse)
    return problem.on_windows(replace(windows, measured=windows.measured - np.nan_to_num(effect)))
