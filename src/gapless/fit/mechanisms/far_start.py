"""Where a search begins if the model as written is far from anything that explains the logs.

A model whose servos are all ten times too stiff is far from any good fit, and slopes there lead nowhere: so all values
of a kind are moved together first (all stiffnesses, all masses, the delay), by an evolution strategy (CMA-ES: Hansen,
2016) whose few numbers do not grow with the joints. From there everything is fitted, on short windows first: errors in
them grow less, and few of their minima are wrong ones.
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from gapless.core.signal import Array
from gapless.fit.evolution import load_cma_es
from gapless.fit.mechanisms.linear import score_windows
from gapless.fit.mechanisms.problem import MechanismProblem
from gapless.fit.problem import FitProblem
from gapless.fit.slopes import MEDIUM_STEP
from gapless.fit.solve import descend
from gapless.sim.targets.target import split_target

MAX_WINDOWS = 8  # on which kinds are moved
NUM_GENERATIONS, NUM_DRAWS = 60, 14  # of the evolution strategy
START_SD = 0.25  # of its first draws, as a share of each kind's range
DRIVE_KINDS = ("mass", "armature", "damping")  # that are moved besides what `auto` proposes: a robot may be far heavier
SHARES = (0.5, 1.0)  # of the windows on which everything is fitted, one after the other
NUM_WEIGHINGS = 3  # times that errors are weighed anew at each length


def search_kinds(problem: MechanismProblem, proposed: Collection[str], seed: int) -> Array:
    """Returns the point that explains a few windows best if all values of each kind are off alike."""
    kinds = _group_kinds(problem, proposed)
    if not kinds:
        return np.zeros(len(problem.typical))
    kinds += [[]] * (len(kinds) == 1)  # the strategy needs two numbers
    few = np.zeros(len(problem.windows), dtype=np.bool_)
    few[np.linspace(0, len(few) - 1, min(len(few), MAX_WINDOWS)).astype(np.intp)] = True
    some, written = problem.keep_windows(few), problem.written_unit
    centre = np.array([written[columns].mean() if columns else 0.5 for columns in kinds])
    options = {"bounds": [0.0, 1.0], "popsize": NUM_DRAWS, "seed": seed + 1, "verbose": -9, "maxiter": NUM_GENERATIONS}
    search = load_cma_es()(np.clip(centre, 0.01, 0.99), START_SD, options)
    while not search.stop():
        draws = np.array(search.ask())
        points = _move_kinds(problem, kinds, draws - centre)
        search.tell(list(draws), (-score_windows(some.mean_squares(some.residuals(points))).sum(axis=1)).tolist())
    return _move_kinds(problem, kinds, np.array(search.result.xbest)[None] - centre)[0]


def _group_kinds(problem: MechanismProblem, proposed: Collection[str]) -> list[list[int]]:
    """Returns the entries of each kind of value; offsets, which may have either sign, stay where they are."""
    found: dict[tuple[str, str], list[int]] = {}
    for k, parameter in enumerate(problem.candidates.space.parameters):
        parts = split_target(parameter.target)
        is_offset = parameter.low < 0 < parameter.high
        if not is_offset and (parameter.target in proposed or parts.field in DRIVE_KINDS):
            found.setdefault((parts.kind, parts.field), []).append(k)
    return list(found.values())


def _move_kinds(problem: MechanismProblem, kinds: list[list[int]], shifts: Array) -> Array:
    """Returns (num_shifts, num_entries) points in which all values of each kind are shifted alike, within bounds."""
    points = np.zeros((len(shifts), len(problem.typical)))
    for number, columns in enumerate(kinds):
        points[:, columns] = shifts[:, [number]]
    return np.clip(points, *problem.bounds)


def fit_everything(problem: MechanismProblem, point: Array) -> Array:
    """Returns the point near another one at which everything together fits best, a finer time step left out."""
    whole = replace(problem.fit, free=tuple(range(len(problem.candidates.space))), starts=None)
    row = problem.rows(point[None])[0]
    for share in SHARES:
        some = _shorten(whole, max(2, round(share * whole.windows.num_steps)))
        for _ in range(NUM_WEIGHINGS):
            row = descend(some.weighted_at(row), row, ((MEDIUM_STEP, 2),))
    return np.clip(problem.point_of(row), *problem.bounds)


def _shorten(problem: FitProblem, num_steps: int) -> FitProblem:
    """Returns the problem on the first steps of its windows."""
    windows = problem.windows
    commands, measured = windows.commands[:, :num_steps], windows.measured[:, : num_steps + 1]
    return replace(problem, windows=replace(windows, commands=commands, measured=measured))
