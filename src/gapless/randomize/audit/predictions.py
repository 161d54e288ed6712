"""What predicts the logs: the best row anywhere, the best within the ranges, and the band that training sees.

This is the one module of the audit that fits; it asks the room `fit`.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from gapless.core.distribution import Distribution
from gapless.core.interval import normal_quantile
from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Progress
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import draw_windows, shortest_window_s
from gapless.fit.problem import PRIOR_WEIGHT, FitProblem
from gapless.fit.search.config import SEARCH
from gapless.fit.search.structure import build_problem, search_starts, search_structure
from gapless.fit.solution import Solution, summarize_solution
from gapless.fit.solve import descend
from gapless.fit.start_errors import shift_starts
from gapless.signals.track import subtract_readings

MAX_WINDOWS = 32  # that the best row is fitted to
NUM_DESCENTS = 2  # best of those found, from which the first descent begins
WRONG_MODEL_RATIO = 2.5  # to what noise explains: the best row anywhere leaves more than that of some column
BAND_LEVEL = 0.9
MAX_BAND_WINDOWS = 16
NUM_DRAWS = 4000  # that quantiles of normal ranges and shares are read from
TAIL = 0.005  # share of a normal range or a mixture, on each side, that counts as outside


@dataclass(frozen=True)
class TrainingBox:
    """What training draws, per parameter of a space."""

    low: Array  # (num_parameters,) smallest value, without tails; the model's value where it is not varied
    high: Array  # (num_parameters,) largest value
    varied: NDArray[np.bool_]  # (num_parameters,) whether training draws it
    drawn: Array  # (num_draws, num_parameters) rows as training draws them


def make_box(ranges: Distribution, rng: np.random.Generator) -> TrainingBox:
    """Returns what training draws of the parameters of a space."""
    space, drawn = ranges.space, ranges.sample(rng, NUM_DRAWS)
    low, high, varied = space.nominal, space.nominal, np.zeros(len(space), dtype=bool)
    for item in ranges.ranges:
        column = space.index(item.target)
        low[column], high[column], varied[column] = item.low, item.high, True
        if item.kind == "fixed":
            low[column] = high[column] = item.mean
        elif item.kind not in ("uniform", "log-uniform"):  # without its tails
            low[column], high[column] = np.quantile(drawn[:, column], [TAIL, 1 - TAIL])
    return TrainingBox(low, high, varied, drawn)


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


def fit_anywhere(data: ProjectData, rows: Array, rng: np.random.Generator, progress: Progress | None) -> BestFit:
    """Returns the best row within prior bounds: quickly, or as `identify` finds it where that leaves too much.

    The space of the data includes the ranges; `rows` drawn from them, (num_rows, num_parameters), may be near the best.
    """
    report = progress or (lambda label, share: None)
    label, space = "best values anywhere", data.whole
    episodes, window_s = list(range(len(data.tracks))), shortest_window_s(data.project)
    whole = build_problem(data, space, episodes, window_s, rng)
    varied = np.ptp(rows, axis=0) > 0  # where terms are tried, the environment is fitted only if it varies
    always = [not data.terms or p.dimension != "environment" for p in data.space.parameters]
    fitted = tuple(k for k, is_always in enumerate(always) if is_always or varied[k])
    whole = replace(whole.on_windows(draw_windows(whole.windows, rng, MAX_WINDOWS)), free=fitted)
    some = whole.on_windows(draw_windows(whole.windows, rng, SEARCH.max_search_windows)).weighted_at(whole.base)
    starts = [*search_starts(some, rng, SEARCH.num_starts), pick_best_row(some, rows)]
    starts = sorted(starts, key=some.cost)[:NUM_DESCENTS]
    report(label, 0.2)
    some = some.weighted_at(starts[0])
    row = min((descend(some, start, SEARCH.first) for start in starts), key=some.cost)
    row = descend(whole.weighted_at(row), row, SEARCH.last)
    report(label, 0.4)
    if whole.columns_to_noise(row).max() > WRONG_MODEL_RATIO:  # the model is called wrong only after a careful fit
        again = build_problem(data, space, episodes, window_s, rng)
        found = search_structure(again, data, episodes, None, rng, partial(report, "fit"))
        free = tuple(sorted({*found.structure.free, *whole.free}))
        whole, row, window_s = replace(found.problem, free=free), found.structure.row, found.window_s
        row = descend(whole.weighted_at(row), row, SEARCH.last)
    report(label, 0.9)
    problem = whole.weighted_at(row)
    solution = summarize_solution(problem, problem.unit(row))
    report(label, 1.0)
    return BestFit(problem, solution, window_s)


def pick_best_row(problem: FitProblem, rows: Array) -> Array:
    """Returns the row with the least cost, (num_parameters,)."""
    units = np.stack([problem.unit(row) for row in rows])
    return problem.rows(units)[int(np.argmin(np.sum(problem.residuals(units) ** 2, axis=(1, 2))))]


def fit_inside(best: BestFit, box: TrainingBox, rows: Array) -> tuple[Array, float]:
    """Returns the best row that training can draw, and the share by which its squared error exceeds the least.

    The search begins where the quadratic model of the squared error is least within the ranges, and at the best of some
    rows drawn from them, (num_rows, num_parameters).
    """
    problem = best.problem
    unit = minimize_quadratic(best.curvature, best.solution.unit, *best.unit_box(box))
    nearest = np.clip(problem.rows(unit[None])[0], box.low, box.high)
    nearest = np.where(np.isin(np.arange(len(nearest)), problem.free), nearest, box.low)
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
    return found[least], float(squares[1 + least] / max(squares[0], 1e-12)) - 1.0


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


def predict_band(problem: FitProblem, rows: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Returns the share of readings within the band of predictions with rows, and its half width in units of noise.

    Rows are (num_rows, num_parameters); readings and starts have noise. The half width is over that of a band of noise
    alone. Both are per column, (num_measurements,); the share is NaN where nothing was read.
    """
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
    return np.where(count > 0, inside, np.nan), half_width / noise
