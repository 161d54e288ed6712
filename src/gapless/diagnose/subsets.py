"""Held-out losses of fits with only some dimensions free: the raw material of a diagnosis."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array
from gapless.identify.fit import limited, make_problem
from gapless.identify.solver.problem import Problem
from gapless.identify.solver.search import search
from gapless.identify.solver.solve import COARSE, MEDIUM, Solution, solve
from gapless.sim.blueprint import finer
from gapless.sim.evidence import Evidence
from gapless.sim.prediction.predict import Predictor

Progress = Callable[[str, float], None]
WINDOW_S = 0.3
MAX_WINDOWS = 64


@dataclass(frozen=True)
class Losses:
    """Mean robust loss of each held-out window, (num_windows,), under different fits.

    Attributes:
        none: The model as written.
        alone: Dimension -> only its parameters fitted.
        without: Dimension -> all parameters fitted but its own.
        full: All parameters fitted.
        noise_before: Ratio of residual to noise with the model as written [1].
        noise_after: The same with all parameters fitted [1].
    """

    none: Array
    alone: dict[Dimension, Array]
    without: dict[Dimension, Array]
    full: Array
    noise_before: float
    noise_after: float


def fit_subsets(evidence: Evidence, rng: np.random.Generator, progress: Progress | None) -> Losses:
    """Fits all dimensions, each alone, and all but each; judges every fit on held-out windows."""
    fitted, held = evidence.split(())
    space = evidence.space
    problem = replace(
        _some(make_problem(evidence, space, fitted, WINDOW_S, rng), rng).reweighted(space.nominal), starts=None
    )
    judged = _some(make_problem(evidence, space, held or fitted, WINDOW_S, rng), rng)
    judged = replace(judged, sigma=problem.sigma)
    done, total = 0, 1 + 2 * len(space.dimensions)

    def fit(free: ParameterSpace, start: Array | None) -> Solution:
        nonlocal done
        part = replace(problem, free=tuple(space.index(target) for target in free.targets))
        solution = _fit_briefly(part, rng) if start is None else solve(part, start, ((MEDIUM, 4),))
        done += 1
        if progress is not None:
            progress("diagnose", done / total)
        return solution

    full = fit(space, None)
    alone = {d: fit(space.of(d), None) for d in space.dimensions}
    without = {}
    for dimension in space.dimensions:
        rest = space.of(*(d for d in space.dimensions if d != dimension))
        start = np.where([p.dimension == dimension for p in space.parameters], space.nominal, full.row)
        without[dimension] = fit(rest, start).row if len(rest) else space.nominal
    judged = judged.at(full.row)
    losses = Losses(
        none=window_losses(judged, space.nominal),
        alone={d: window_losses(judged, solution.row) for d, solution in alone.items()},
        without={d: window_losses(judged, row) for d, row in without.items()},
        full=window_losses(judged, full.row),
        noise_before=judged.to_noise(space.nominal),
        noise_after=judged.to_noise(full.row),
    )
    losses.alone["numerics"] = _numerics(evidence, judged)
    return losses


def _fit_briefly(problem: Problem, rng: np.random.Generator) -> Solution:
    """Solves from the model as written, and from a search without slopes where that finds better."""
    solution = solve(problem, problem.base, ((COARSE, 3), (MEDIUM, 4)))
    row, judge = search(problem, rng, num_tries=24), problem.at(solution.row)
    return solution if judge.cost(row) >= judge.cost(solution.row) else solve(problem, row, ((MEDIUM, 4),))


def window_losses(problem: Problem, row: Array) -> Array:
    """Returns the mean robust loss of each window under a row, (num_windows,)."""
    known = np.isfinite(problem.windows.measured[:, 1:]).sum(axis=(1, 2))
    return np.sum(problem.residuals(problem.unit(row)[None])[0] ** 2, axis=1) / np.maximum(known, 1)


def _numerics(evidence: Evidence, judged: Problem) -> Array:
    """Returns the losses of the model as written with a time step four times smaller."""
    fine = Predictor(finer(evidence.blueprint, 4), evidence.space)
    return window_losses(replace(judged, predictor=fine), evidence.space.nominal)


def _some(problem: Problem, rng: np.random.Generator) -> Problem:
    return problem.on(limited(problem.windows, rng, MAX_WINDOWS))


def bootstrap(losses: Sequence[Array], rng: np.random.Generator, num_draws: int = 400) -> Array:
    """Returns means of each loss over windows drawn with replacement, (num_draws, num_losses)."""
    table = np.stack(losses, axis=1)
    index = rng.integers(0, len(table), (num_draws, len(table)))
    return table[index].mean(axis=1)
