"""Looks for a place to start from without any slopes: kinds of parameters move together.

A model whose servos are all fifty times too stiff is far from any good fit, and slopes there lead nowhere. In the space
of kinds (all stiffnesses together, all frictions together, the delay) a few hundred draws find the right region,
however many joints there are.
"""

import numpy as np

from gapless.core.signal import Array
from gapless.fit.problem import FitProblem
from gapless.sim.targets.target import split_target

NUM_TRIES, NUM_ROUNDS = 64, 3  # of draws
NUM_BEST = 8  # best draws that the next ones are drawn around
MIN_DISTANCE = 0.25  # of the range of some kind: draws that far from each other may lie in different valleys
MIN_SPREAD = 0.03  # of the next draws, as a share of the range


def search_starts(problem: FitProblem, rng: np.random.Generator, num_found: int) -> Array:
    """Returns the best whole rows found, the best first, (at most num_found, num_parameters).

    Kinds are drawn from their bounds, half of them kept as written, then nearer. Rows that are returned lie apart:
    which of some valleys is the deepest shows only at their bottoms.
    """
    problem = problem if problem.starts else problem.with_starts_at(problem.base)
    centre, kinds = problem.unit(problem.base), _group_kinds(problem)
    if not kinds:
        return problem.base[None]
    written = np.array([centre[columns].mean() for columns in kinds])
    draws = np.where(rng.random((NUM_TRIES, len(kinds))) < 0.5, written, rng.random((NUM_TRIES, len(kinds))))
    every, costs = np.zeros((0, len(kinds))), np.zeros(0)
    for _ in range(NUM_ROUNDS):
        found = 0.5 * np.sum(problem.residuals(_move_kinds(draws, centre, kinds)) ** 2, axis=(1, 2))
        every, costs = np.concatenate([every, draws]), np.concatenate([costs, found])
        best = every[np.argsort(costs)[:NUM_BEST]]
        about = best[rng.integers(0, len(best), NUM_TRIES // 2)]
        spread = 0.7 * best.std(axis=0) + MIN_SPREAD
        draws = np.clip(about + spread * rng.standard_normal(about.shape), 0.0, 1.0)
    return problem.rows(_move_kinds(_pick_distant(every[np.argsort(costs)], num_found), centre, kinds))


def _pick_distant(draws: Array, count: int) -> Array:
    """Returns the first of some draws, and those after it that lie apart from all before, `count` at most."""
    found = draws[:1]
    for draw in draws[1:]:
        if len(found) < count and np.abs(found - draw).max(axis=1).min() > MIN_DISTANCE:
            found = np.concatenate([found, draw[None]])
    return found


def _group_kinds(problem: FitProblem) -> list[list[int]]:
    """Returns the free parameters of each kind; offsets, which may have either sign, stay where they are."""
    found: dict[tuple[str, str], list[int]] = {}
    for k, parameter in enumerate(problem.space.parameters):
        if not parameter.low < 0 < parameter.high:
            parts = split_target(parameter.target)
            found.setdefault((parts.kind, parts.field), []).append(k)
    return list(found.values())


def _move_kinds(draws: Array, centre: Array, kinds: list[list[int]]) -> Array:
    """Returns (num_draws, num_free) units in which all parameters of a kind have the value of its draw."""
    units = np.tile(centre, (len(draws), 1))
    for number, columns in enumerate(kinds):
        units[:, columns] = draws[:, [number]]
    return units
