"""Per-run parameters, such as a person's grip: their mean over the runs, and their spread between runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gapless.core.parameters import ParameterSpace
from gapless.core.results import FittedParameter
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.fit.problem import FitProblem
from gapless.fit.solution import Solution
from gapless.fit.solve import Schedule, descend
from gapless.fit.summary import MAX_IDENTIFIABLE_SD, describe_parameters

MIN_MEAN_BIAS = 2.0  # standard errors by which the mean bias of runs must differ from what is written, to be believed


@dataclass(frozen=True)
class PerRunSolution:
    """A solution in which every target stands once."""

    space: ParameterSpace  # the parameters
    solution: Solution  # their values; of per-run parameters, the mean. Its row is one of the whole space, likewise
    # (num_parameters,) standard deviation between runs, in steps of `solution.unit`; 0 where one is shared
    spread: Array
    # (num_parameters,) whether the logs determine it: a per-run parameter, if all runs together do
    told: NDArray[np.bool_]
    own: dict[str, dict[int, float]]  # target -> run -> its own value

    def describe(self, names: Sequence[str]) -> tuple[FittedParameter, ...]:
        """Returns the parameters with their intervals and what lies between runs; `names` are those of all runs."""
        parameters = describe_parameters(self.space, self.solution)
        unit, scaling = self.solution.unit, Scaling.of(self.space)
        ends = [scaling.values(np.clip(unit + sign * self.spread, 0.0, 1.0)) for sign in (-1, 1)]
        wide = (ends[1] - ends[0]) / 2
        own = [{names[run]: value for run, value in self.own.get(p.target, {}).items()} for p in parameters]
        return tuple(
            replace(p, identifiable=bool(self.told[k]), spread=float(wide[k]), by_run=own[k]) if own[k] else p
            for k, p in enumerate(parameters)
        )


def summarize_runs(problem: FitProblem, solution: Solution) -> PerRunSolution:
    """Returns a solution with the runs' own values as one: their mean, and how far they lie apart.

    With values u_r known to s_r, weights are 1 / (s_r^2 + s^2) for the median s: a run that tells little counts little,
    none that tells much rules. The spread is the weighted standard deviation: errors of single runs are in it, as s_r
    of few windows with effects that the model lacks is too rough to take them out. Zeros that scatter about the one
    that is written tell nothing of the next run's: the bias then stays as written.
    """
    space, shared = problem.space, problem.space.shared
    if all(p.run is None for p in space.parameters):
        told = np.sqrt(np.diag(solution.covariance)) < MAX_IDENTIFIABLE_SD
        return PerRunSolution(space, solution, np.zeros(len(space)), told, {})
    weights, spread, told = np.zeros((len(shared), len(space))), np.zeros(len(shared)), np.zeros(len(shared), bool)
    own: dict[str, dict[int, float]] = {}
    values = Scaling.of(space).values(solution.unit)
    for row, parameter in enumerate(shared.parameters):
        columns = [k for k, p in enumerate(space.parameters) if p.target == parameter.target]
        variance = np.diag(solution.covariance)[columns]
        told[row] = 1.0 / np.sqrt(np.sum(1.0 / variance)) < MAX_IDENTIFIABLE_SD
        weight = 1.0 / (variance + np.median(variance))
        weights[row, columns] = weight / weight.sum()
        if parameter.per == "episode":
            spread[row] = _weighted_sd(solution.unit[columns], weights[row, columns])
            own[parameter.target] = {int(space.parameters[k].run or 0): float(values[k]) for k in columns}
    unit, covariance = weights @ solution.unit, weights @ solution.covariance @ weights.T
    of_mean = spread**2 * np.sum(weights**2, axis=1)
    covariance += np.diag(np.maximum(0.0, of_mean - np.diag(covariance)))
    written = Scaling.of(shared).unit(shared.nominal)
    zeros = np.array([p.per == "episode" and p.target.endswith("/bias") for p in shared.parameters])
    zeros &= (unit - written) ** 2 < MIN_MEAN_BIAS**2 * np.diag(covariance)
    covariance += np.diag(np.where(zeros, (unit - written) ** 2, 0.0))
    unit = np.where(zeros, written, unit)
    whole = problem.predictor.space
    known = {p.target: solution.row[k] for k, p in enumerate(whole.parameters)}  # held, or fitted
    known |= dict(zip(shared.targets, Scaling.of(shared).values(unit), strict=True))
    row = np.array([known[target] for target in whole.shared.targets])
    information = np.asarray(np.linalg.pinv(covariance), dtype=np.float64)
    return PerRunSolution(shared, Solution(row, unit, covariance, information, solution.cost), spread, told, own)


def _weighted_sd(values: Array, weights: Array) -> float:
    """Returns the standard deviation between some values under weights that sum to 1; 0 for one value."""
    left = 1.0 - float(np.sum(weights**2))
    mean = float(weights @ values)
    return float(np.sqrt(weights @ (values - mean) ** 2 / left)) if left > 1e-9 else 0.0


def fit_own_values(problem: FitProblem, row: Array, mean: PerRunSolution, schedule: Schedule) -> Array:
    """Returns a row in which the runs of a problem have their own values, fitted there; the same where none has.

    The runs took no part in the fit, whose row is given; theirs begin at what runs have in the mean.
    """
    runs = set(problem.windows.track.tolist())
    mine = tuple(k for k, p in enumerate(problem.predictor.space.parameters) if p.run in runs)
    if not mine:
        return row
    fitted = dict(zip(mean.space.targets, Scaling.of(mean.space).values(mean.solution.unit), strict=True))
    row = row.copy()
    for k in mine:
        row[k] = fitted.get(problem.predictor.space.parameters[k].target, row[k])
    now = replace(problem, free=mine, base=row)
    for _ in range(2):  # columns are weighted by their errors, which are large at first
        row = descend(now.weighted_at(row), row, schedule)
    return row
