"""What is wrong, and what it is instead: values of mechanisms, with intervals."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.results import CauseMechanism
from gapless.core.signal import Array
from gapless.diagnose.hypotheses.mechanisms import Mechanism
from gapless.diagnose.hypotheses.problem import DiagnosisProblem
from gapless.diagnose.hypotheses.search import SetFit
from gapless.fit.slopes import FINE_STEP
from gapless.fit.solve import Schedule, solve_least_squares
from gapless.fit.summary import describe_parameters
from gapless.fit.time_step import with_finer_time_step

MIN_PROBABILITY = 0.1  # of a mechanism that is named
SCHEDULE: Schedule = ((FINE_STEP, 3),)  # from the middle of the fits to both halves


def describe_mechanisms(
    problem: DiagnosisProblem, fits: Sequence[SetFit], weights: Array
) -> dict[Dimension, tuple[CauseMechanism, ...]]:
    """Returns dimension -> its probable mechanisms, each with its value in the likeliest set that holds it.

    A finer time step has no value. Of per-run parameters the value is the mean of the runs, with the widest interval.

    Args:
        problem: The windows.
        fits: The sets that were fitted.
        weights: (num_fits,) probability of each.
    """
    chance: dict[Mechanism, float] = {}
    for fit, weight in zip(fits, weights, strict=True):
        for mechanism in fit.mechanisms:
            chance[mechanism] = chance.get(mechanism, 0.0) + float(weight)
    order = np.argsort(-weights, kind="stable")
    found: dict[Dimension, list[CauseMechanism]] = {}
    solved: dict[int, dict[str, CauseMechanism]] = {}
    for mechanism in sorted(chance, key=lambda each: -chance[each]):
        if chance[mechanism] < MIN_PROBABILITY or mechanism.dimension == "numerics":
            continue
        number = int(next(k for k in order if mechanism in fits[k].mechanisms))
        if number not in solved:
            solved[number] = _solve_values(problem, fits[number])
        for target in mechanism.targets:
            named = replace(solved[number][target], probability=min(chance[mechanism], 1.0))
            found.setdefault(mechanism.dimension, []).append(named)
    return {dimension: tuple(named) for dimension, named in found.items()}


def _solve_values(problem: DiagnosisProblem, fit: SetFit) -> dict[str, CauseMechanism]:
    """Returns target -> its value with an interval, all mechanisms of a set fitted to all windows together."""
    entries = sorted(e for m in fit.mechanisms for e in m.entries if m.dimension != "numerics")
    with_finer_step = any(mechanism.dimension == "numerics" for mechanism in fit.mechanisms)
    predictor = problem.fit.predictor
    predictor = with_finer_time_step(predictor) if with_finer_step else predictor
    free = replace(problem.fit, free=tuple(entries), predictor=predictor, starts=None)
    row = problem.rows(fit.point[None])[0]
    solution = solve_least_squares(free.weighted_at(row), row, SCHEDULE)
    values: dict[str, list[CauseMechanism]] = {}
    for p in describe_parameters(free.space, solution):
        one = CauseMechanism(p.target, p.value, p.low, p.high, p.unit, 0.0, p.nominal)
        values.setdefault(p.target, []).append(one)
    return {target: _merge_runs(runs) for target, runs in values.items()}


def _merge_runs(runs: Sequence[CauseMechanism]) -> CauseMechanism:
    mean = float(np.mean([run.value for run in runs]))
    return replace(runs[0], value=mean, low=min(run.low for run in runs), high=max(run.high for run in runs))
