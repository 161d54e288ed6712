"""The rows that predict the logs best: anywhere, and within the ranges."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import lsq_linear

from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.prediction.lengths import shortest_window_s
from gapless.fit.prediction.predict import Predictor
from gapless.fit.problem import PRIOR_WEIGHT, FitProblem
from gapless.fit.search.structure import (
    FIRST_SCHEDULE,
    LAST_SCHEDULE,
    SEARCH_WINDOWS,
    STARTS,
    build_problem,
    draw_windows,
    search_structure,
)
from gapless.fit.search.terms import BRIEF_SCHEDULE
from gapless.fit.solution import Solution, summarize_solution
from gapless.fit.solve import Progress, descend
from gapless.fit.start_search import search_starts
from gapless.randomize.audit.ranges import Box

MOST_WINDOWS = 32
LEAST_STARTS = 2  # of those found, from which the first solve begins
WRONG = 2.5  # times what noise explains: the best row anywhere leaves that much of some column


@dataclass(frozen=True)
class Explained:
    """What predicts the logs best.

    Attributes:
        problem: Windows and weights; errors of starts discounted as they show under the best row.
        solution: The best row anywhere within prior bounds, and how sure it is.
        window_s: Length of the windows [s].
    """

    problem: FitProblem
    solution: Solution
    window_s: float

    @property
    def curvature(self) -> Array:
        """Half of it is how fast the sum of squares grows about the best row, (num_free, num_free)."""
        return self.solution.information + PRIOR_WEIGHT**2 * np.eye(len(self.solution.unit))


@dataclass(frozen=True)
class Inside:
    """The best row within the ranges, beside the best anywhere.

    Attributes:
        row: (num_parameters,).
        growth: Share by which the squared error is larger than that of the best row anywhere [1].
    """

    row: Array
    growth: float


def explain(
    evidence: ProjectData, space: ParameterSpace, tries: Array, rng: np.random.Generator, progress: Progress | None
) -> Explained:
    """Returns the best row within prior bounds: quickly, or as `identify` finds it where that leaves too much.

    Args:
        evidence: The logs; its space holds the ranges.
        space: All parameters of the evidence.
        tries: (num_rows, num_parameters) rows that may be near the best: drawn from the ranges.
        rng: Draws windows and starts.
        progress: Called with what is being done and how far it is, in [0, 1].
    """
    episodes, window_s = list(range(len(evidence.tracks))), shortest_window_s(evidence.project)
    whole = build_problem(evidence, space, episodes, window_s, rng)
    whole = replace(whole.on(draw_windows(whole.windows, rng, MOST_WINDOWS)), free=_always(evidence, tries))
    look = whole.on(draw_windows(whole.windows, rng, SEARCH_WINDOWS)).reweighted(whole.base)
    starts = sorted([*search_starts(look, rng, num_found=STARTS), best_of(look, tries)], key=look.cost)[:LEAST_STARTS]
    _tell(progress, 0.2)
    judge = look.reweighted(starts[0])
    row = min((descend(judge, start, FIRST_SCHEDULE) for start in starts), key=judge.cost)
    row = descend(whole.reweighted(row), row, LAST_SCHEDULE)
    _tell(progress, 0.4)
    if whole.columns_to_noise(row).max() > WRONG:  # nothing is called wrong before it was fitted with care
        whole_again = build_problem(evidence, space, episodes, window_s, rng)
        found = search_structure(whole_again, evidence, episodes, None, rng, progress)
        free = tuple(sorted({*found.structure.free, *whole.free}))
        whole, row, window_s = replace(found.problem, free=free), found.structure.row, found.window_s
        row = descend(whole.reweighted(row), row, LAST_SCHEDULE)
    _tell(progress, 0.9)
    problem = whole.reweighted(row)
    solution = summarize_solution(problem, problem.unit(row))
    _tell(progress, 1.0)
    return Explained(problem, solution, window_s)


def best_of(problem: FitProblem, rows: Array) -> Array:
    """Returns the row with the least cost, (num_parameters,)."""
    units = np.stack([problem.unit(row) for row in rows])
    return problem.rows(units)[int(np.argmin(np.sum(problem.residuals(units) ** 2, axis=(1, 2))))]


def best_inside(explained: Explained, box: Box, tries: Array) -> Inside:
    """Returns the best row that training can draw, and how much worse it is than the best anywhere.

    It is looked for from where the squared error about the best row, as far as it is a parabola, is least within the
    ranges, and from the best of some rows drawn from them.

    Args:
        explained: The best row anywhere.
        box: What training draws.
        tries: (num_rows, num_parameters) rows drawn from the ranges.
    """
    problem = explained.problem
    judge = replace(problem, free=tuple(range(len(problem.base))))
    nearest = nearest_inside(explained, box)
    inside = _kept_inside(problem, box, nearest)
    rows = [nearest]
    if inside.free and not np.allclose(problem.unit(nearest), explained.solution.unit, atol=1e-6):
        some = inside.part(np.arange(len(inside.windows)) % 3 == 0)
        starts = [nearest, best_of(some, np.clip(tries, box.low, box.high))]
        rows += [descend(inside.at(start), start, BRIEF_SCHEDULE) for start in starts]
    units = np.stack([judge.unit(row) for row in (explained.solution.row, *rows)])
    squares = np.sum(judge.residuals(units) ** 2, axis=(1, 2))
    least = int(np.argmin(squares[1:]))
    return Inside(rows[least], float(squares[1 + least] / max(squares[0], 1e-12)) - 1.0)


def nearest_inside(explained: Explained, box: Box) -> Array:
    """Returns the whole row within the ranges where the parabola of the squared error is least, (num_parameters,)."""
    problem, solution = explained.problem, explained.solution
    low, high = (problem.unit(end) for end in (box.low, box.high))
    unit = least_within(explained.curvature, solution.unit, low, high)
    row = problem.rows(unit[None])[0]
    rest = np.ones(len(row), dtype=bool)
    rest[list(problem.free)] = False
    return np.where(rest, box.low, np.clip(row, box.low, box.high))


def least_within(curvature: Array, centre: Array, low: Array, high: Array) -> Array:
    """Returns x in [low, high] with the least (x - centre)^T C (x - centre), (num_free,)."""
    factor = np.linalg.cholesky(curvature).T
    bounds = low - 1e-9, np.maximum(high, low) + 1e-9
    return np.clip(lsq_linear(factor, factor @ centre, bounds, method="bvls").x, low, np.maximum(high, low))


def _kept_inside(problem: FitProblem, box: Box, row: Array) -> FitProblem:
    """Returns the problem with bounds that are those of the ranges; what is not varied, or hardly, is as in the row."""
    parameters, free = list(problem.predictor.space.parameters), list[int]()
    for k, p in enumerate(parameters):
        if box.varied[k] and box.high[k] - box.low[k] > 1e-9 * (p.high - p.low):
            parameters[k] = replace(p, low=float(box.low[k]), high=float(box.high[k]))
            free.append(k)
    predictor = Predictor(problem.predictor.blueprint, ParameterSpace(tuple(parameters)))
    return replace(problem, predictor=predictor, free=tuple(free), base=row)


def _always(evidence: ProjectData, tries: Array) -> tuple[int, ...]:
    """Returns the columns that are always fitted: not how the robot stands, unless terms are not tried or it varies."""
    varied = np.ptp(tries, axis=0) > 0
    return tuple(
        k
        for k, p in enumerate(evidence.space.parameters)
        if not evidence.terms or p.dimension != "environment" or varied[k]
    )


def _tell(progress: Progress | None, done: float) -> None:
    if progress is not None:
        progress("best values anywhere", done)
