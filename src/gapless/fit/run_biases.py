"""Zeros that are set anew for each run: biases of readings become per-run parameters where the logs call for it.

Encoders that count from wherever the robot rests when it is switched on have another zero in every log. One bias for
all then makes each log push friction, centres and gains its own way. Whether runs need biases of their own is decided
on windows that took no part: one Gauss-Newton step is fitted to every other window of each run, with one bias for all
and with one for each run, and the squares that it is to leave on the windows between are compared.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.prediction.predict import Predictor
from gapless.fit.problem import FitProblem, flatten_outliers
from gapless.fit.search.structure import StructureResult
from gapless.fit.slopes import fine_slopes

MIN_RUNS = 3  # that biases are compared between
MIN_SAVING = 0.1  # least share of the squares on windows between that biases of their own must save; by judgement


def free_biases_of_runs(
    data: ProjectData, found: StructureResult, fitted: Sequence[int]
) -> tuple[ProjectData, StructureResult]:
    """Returns the logs and where the last solve begins, each run with biases of its own if the logs call for it.

    Costs one prediction per fitted parameter.
    """
    problem, row = replace(found.problem, free=found.structure.free), found.structure.row
    biases = _bias_columns(data, problem)
    if len(fitted) < MIN_RUNS or not biases or measure_run_bias_saving(problem, row, biases) < MIN_SAVING:
        return data, found
    targets = {problem.space.targets[k] for k in biases}
    own = tuple(replace(p, per="episode") if p.target in targets else p for p in data.space.parameters)
    data = replace(data, space=ParameterSpace(own).for_runs(range(len(data.tracks))))
    return data, _in_space(found, data.whole, fitted)


def _bias_columns(data: ProjectData, problem: FitProblem) -> list[int]:
    """Returns the free parameters that are biases, those of terms left out; none where runs have them already."""
    listed = {p.target for p in data.space.parameters if p.run is None}
    targets = enumerate(problem.space.targets)
    return [k for k, t in targets if t in listed and t.startswith("measurement/") and t.endswith("/bias")]


def measure_run_bias_saving(problem: FitProblem, row: Array, biases: Sequence[int]) -> float:
    """Returns the share of squares on windows between that biases of each run would save; `biases` are free columns."""
    problem = problem.weighted_at(row)
    unit, track = problem.unit(row), problem.windows.track
    slopes, residual = fine_slopes(problem, row), flatten_outliers(problem.plain_residuals(unit[None]))[0]
    prior, pull = problem.prior, problem.unit(problem.base) - unit
    runs = np.unique(track)
    of_run = [np.where((track == run)[:, None, None], slopes[:, :, list(biases)], 0.0) for run in runs]
    wide = np.concatenate([slopes, *of_run], axis=2)  # a bias of all, and how far each run is from it
    ties = np.concatenate([prior, np.tile(prior[list(biases)], len(runs))])
    pulls = np.concatenate([pull, np.zeros(len(ties) - len(pull))])
    odd = _every_other_window(track)
    left = np.zeros(2)
    for fit, judge in ((odd, ~odd), (~odd, odd)):
        for k, (jacobian, tie, way) in enumerate(((slopes, prior, pull), (wide, ties, pulls))):
            step = _gauss_newton_step(jacobian[fit], residual[fit], tie, way)
            left[k] += float(np.sum((residual[judge] + jacobian[judge] @ step) ** 2))
    return 1.0 - left[1] / max(left[0], 1e-12)


def _every_other_window(track: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Returns every other window of each run."""
    rank = np.zeros(len(track), dtype=np.intp)
    for run in np.unique(track):
        rank[track == run] = np.arange(np.count_nonzero(track == run))
    return rank % 2 == 1


def _gauss_newton_step(jacobian: Array, residual: Array, prior: Array, pull: Array) -> Array:
    """Returns the step that leaves the least squares, the prior's included."""
    flat = jacobian.reshape(-1, jacobian.shape[2])
    matrix, target = flat.T @ flat + np.diag(prior**2), -flat.T @ residual.ravel() + prior**2 * pull
    return np.asarray(np.linalg.solve(matrix, target), dtype=np.float64)


def _in_space(found: StructureResult, space: ParameterSpace, fitted: Sequence[int]) -> StructureResult:
    """Returns where the last solve begins in a space in which runs have columns of their own."""
    problem, old = found.problem, found.problem.predictor.space
    place = [old.index(parameter.target) for parameter in space.parameters]
    was_free, was_held = set(found.structure.free), set(found.held)
    here = [k for k, p in enumerate(space.parameters) if p.run is None or p.run in fitted]
    free = tuple(k for k in here if place[k] in was_free)
    coupling = problem.coupling
    if coupling is not None:
        coupling = replace(coupling, parameters=coupling.parameters[place])
    predictor = Predictor(problem.predictor.blueprint, space)
    problem = replace(problem, predictor=predictor, base=problem.base[place], coupling=coupling, free=free)
    structure = replace(found.structure, free=free, row=found.structure.row[place])
    held = tuple(k for k, column in enumerate(place) if column in was_held)
    return replace(found, problem=problem, structure=structure, held=held)
