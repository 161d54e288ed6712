"""What predicts the logs: the best row anywhere, the best within the ranges, and the band that training sees.

This is the one module of the audit that fits; it asks the room `fit`.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import lsq_linear

from gapless.core.interval import normal_quantile
from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.prediction.lengths import shortest_window_s
from gapless.fit.prediction.predict import Predictor
from gapless.fit.problem import PRIOR_WEIGHT, FitProblem
from gapless.fit.search.config import SEARCH
from gapless.fit.search.structure import (
    build_problem,
    draw_windows,
    search_structure,
)
from gapless.fit.solution import Solution, summarize_solution
from gapless.fit.solve import Progress, descend
from gapless.fit.start_errors import shift_starts
from gapless.fit.start_search import search_starts
from gapless.randomize.audit.ranges import TrainingBox
from gapless.signals.track import subtract_readings

MAX_WINDOWS = 32  # that the best row is fitted to
NUM_DESCENTS = 2  # best of those found, from which the first descent begins
WRONG_MODEL_RATIO = 2.5  # to what noise explains: the best row anywhere leaves more than that of some column
BAND_LEVEL = 0.9
MAX_BAND_WINDOWS = 16


@dataclass(frozen=True)
class BestFit:
    """What predicts the logs best."""

    problem: FitProblem  # windows and weights; errors of starts discounted as they show under the best row
    solution: Solution  # the best row anywhere within prior bounds, and how certain it is
    window_s: float  # length of the windows [s]

    @property
    def curvature(self) -> Array:
        """Half of it is how fast the sum of squares grows about the best row, (num_free, num_free)."""
        return self.solution.information + PRIOR_WEIGHT**2 * np.eye(len(self.solution.unit))

    def unit_box(self, box: TrainingBox) -> tuple[Array, Array]:
        """Returns the ends of the ranges of the free parameters, in the solver's units, each (num_free,)."""
        low, high = self.problem.unit(box.low), self.problem.unit(box.high)
        return low, np.maximum(low, high)


@dataclass(frozen=True)
class InsideFit:
    """The best row within the ranges, and the share by which its squared error exceeds that of the best anywhere."""

    row: Array
    growth: float


@dataclass(frozen=True)
class PredictionBand:
    """A band of predictions, per column."""

    coverage: Array  # (num_measurements,) share of the readings within it; NaN where nothing was read
    to_noise: Array  # (num_measurements,) half its width over that of a band of noise alone


def fit_anywhere(data: ProjectData, rows: Array, rng: np.random.Generator, progress: Progress | None) -> BestFit:
    """Returns the best row within prior bounds: quickly, or as `identify` finds it where that leaves too much.

    Args:
        data: The logs; its space includes the ranges.
        rows: (num_rows, num_parameters) rows drawn from the ranges, which may be near the best.
        rng: Draws windows and starts.
        progress: Called with what is being done and how far it is, in [0, 1].
    """
    report = progress or (lambda label, share: None)
    label, space = "best values anywhere", data.whole
    episodes, window_s = list(range(len(data.tracks))), shortest_window_s(data.project)
    whole = build_problem(data, space, episodes, window_s, rng)
    whole = replace(whole.on_windows(draw_windows(whole.windows, rng, MAX_WINDOWS)), free=_list_fitted(data, rows))
    some = whole.on_windows(draw_windows(whole.windows, rng, SEARCH.max_search_windows)).weighted_at(whole.base)
    starts = [*search_starts(some, rng, num_found=SEARCH.num_starts), pick_best_row(some, rows)]
    starts = sorted(starts, key=some.cost)[:NUM_DESCENTS]
    report(label, 0.2)
    some = some.weighted_at(starts[0])
    row = min((descend(some, start, SEARCH.first) for start in starts), key=some.cost)
    row = descend(whole.weighted_at(row), row, SEARCH.last)
    report(label, 0.4)
    if whole.columns_to_noise(row).max() > WRONG_MODEL_RATIO:  # the model is called wrong only after a careful fit
        again = build_problem(data, space, episodes, window_s, rng)
        found = search_structure(again, data, episodes, None, rng, progress)
        free = tuple(sorted({*found.structure.free, *whole.free}))
        whole, row, window_s = replace(found.problem, free=free), found.structure.row, found.window_s
        row = descend(whole.weighted_at(row), row, SEARCH.last)
    report(label, 0.9)
    problem = whole.weighted_at(row)
    solution = summarize_solution(problem, problem.unit(row))
    report(label, 1.0)
    return BestFit(problem, solution, window_s)


def _list_fitted(data: ProjectData, rows: Array) -> tuple[int, ...]:
    """Returns the columns that are always fitted: without the environment, unless terms are not tried or it varies."""
    varied = np.ptp(rows, axis=0) > 0
    parameters = enumerate(data.space.parameters)
    return tuple(k for k, p in parameters if not data.terms or p.dimension != "environment" or varied[k])


def pick_best_row(problem: FitProblem, rows: Array) -> Array:
    """Returns the row with the least cost, (num_parameters,)."""
    units = np.stack([problem.unit(row) for row in rows])
    return problem.rows(units)[int(np.argmin(np.sum(problem.residuals(units) ** 2, axis=(1, 2))))]


def fit_inside(best: BestFit, box: TrainingBox, rows: Array) -> InsideFit:
    """Returns the best row that training can draw, and how much worse it is than the best anywhere.

    The search begins where the quadratic model of the squared error is least within the ranges, and at the best of some
    rows drawn from them, (num_rows, num_parameters).
    """
    problem = best.problem
    nearest = _find_nearest_inside(best, box)
    inside = _bound_problem(problem, box, nearest)
    found = [nearest]
    if inside.free and not np.allclose(problem.unit(nearest), best.solution.unit, atol=1e-6):
        third = inside.keep_windows(np.arange(len(inside.windows)) % 3 == 0)
        starts = [nearest, pick_best_row(third, np.clip(rows, box.low, box.high))]
        found += [descend(inside.with_starts_at(start), start, SEARCH.brief) for start in starts]
    all_free = replace(problem, free=tuple(range(len(problem.base))))
    units = np.stack([all_free.unit(row) for row in (best.solution.row, *found)])
    squares = np.sum(all_free.residuals(units) ** 2, axis=(1, 2))
    least = int(np.argmin(squares[1:]))
    return InsideFit(found[least], float(squares[1 + least] / max(squares[0], 1e-12)) - 1.0)


def _find_nearest_inside(best: BestFit, box: TrainingBox) -> Array:
    """Returns the row within the ranges where the quadratic model of the squared error is least, (num_parameters,)."""
    unit = minimize_quadratic(best.curvature, best.solution.unit, *best.unit_box(box))
    row = np.clip(best.problem.rows(unit[None])[0], box.low, box.high)
    free = np.isin(np.arange(len(row)), best.problem.free)
    return np.where(free, row, box.low)


def minimize_quadratic(curvature: Array, centre: Array, low: Array, high: Array) -> Array:
    """Returns x in [low, high] with the least (x - centre)^T C (x - centre), (num_free,)."""
    factor = np.linalg.cholesky(curvature).T
    solved = lsq_linear(factor, factor @ centre, (low - 1e-9, high + 1e-9), method="bvls")
    return np.clip(solved.x, low, high)


def _bound_problem(problem: FitProblem, box: TrainingBox, row: Array) -> FitProblem:
    """Returns the problem with the ranges as bounds; what is not varied, or hardly, is as in the row."""
    parameters, free = list(problem.predictor.space.parameters), list[int]()
    for k, p in enumerate(parameters):
        if box.varied[k] and box.high[k] - box.low[k] > 1e-9 * (p.high - p.low):
            parameters[k] = replace(p, low=float(box.low[k]), high=float(box.high[k]))
            free.append(k)
    predictor = Predictor(problem.predictor.blueprint, ParameterSpace(tuple(parameters)))
    return replace(problem, predictor=predictor, free=tuple(free), base=row)


def predict_band(problem: FitProblem, rows: Array, rng: np.random.Generator) -> PredictionBand:
    """Returns the band of predictions with rows (num_rows, num_parameters), with noise in readings and starts."""
    windows = problem.windows
    if len(windows) > MAX_BAND_WINDOWS:
        windows = windows.pick(np.linspace(0, len(windows) - 1, MAX_BAND_WINDOWS).round().astype(np.intp))
    num_rows, num_windows = len(rows), len(windows)
    repeated = windows.pick(np.tile(np.arange(num_windows), num_rows))
    value, slope = (sd * rng.standard_normal((len(repeated), len(sd))) for sd in (windows.start_sd, windows.slope_sd))
    pairs = np.stack([np.repeat(np.arange(num_rows), num_windows), np.arange(len(repeated))], axis=1)
    predicted = problem.predictor.predict_pairs(shift_starts(repeated, value, slope), rows, pairs)[:, 1:]
    predicted = predicted.reshape(num_rows, num_windows, *predicted.shape[1:])
    project = problem.predictor.blueprint.project
    error = subtract_readings(project, predicted, windows.measured[None, :, 1:])  # so that angles do not wrap
    error = error + windows.noise * rng.standard_normal(error.shape)
    low, high = np.quantile(error, [(1 - BAND_LEVEL) / 2, (1 + BAND_LEVEL) / 2], axis=0)
    known = np.isfinite(low)
    count = known.sum(axis=(0, 1))
    inside = ((low <= 0) & (high >= 0) & known).sum(axis=(0, 1)) / np.maximum(count, 1)
    half_width = np.where(known, high - low, 0.0).sum(axis=(0, 1)) / np.maximum(count, 1) / 2
    noise = normal_quantile((1 + BAND_LEVEL) / 2) * windows.noise
    return PredictionBand(np.where(count > 0, inside, np.nan), half_width / noise)
