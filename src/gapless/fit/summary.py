"""From a solution to what people read: intervals, combinations, errors, traces; and why logs cannot be fitted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.protocols import Progress
from gapless.core.results import ColumnHorizon, FitErrors, FittedParameter, HorizonErrors, Trace
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.prediction.windows import Windows, cut_windows
from gapless.fit.problem import FitProblem
from gapless.fit.solution import AT_BOUND, Solution
from gapless.signals.track import subtract_readings

Predict = Callable[[Windows, Array], Array]  # what rows predict of windows; see `Predictor.predict`
INTERVAL_LEVEL = 0.95
HORIZONS_S = (0.1, 0.5, 1.0)  # of predictions, besides that of the project and whole runs
MAX_HORIZON_WINDOWS = 200  # of each, spread evenly: root mean squares are then off by chance by 5 % of themselves
MIN_WINDOWS = 8  # that a fit needs
MAX_TRACE_SAMPLES = 240
MAX_COMBINATIONS = 6
MAX_IDENTIFIABLE_SD = 0.1  # a parameter is determined if its standard deviation is below this share of its range


def describe_parameters(space: ParameterSpace, solution: Solution) -> tuple[FittedParameter, ...]:
    """Returns each parameter with its interval, clipped to its bounds."""
    half, scaling = solution.half_width(INTERVAL_LEVEL), Scaling.of(space)
    values = scaling.values(solution.unit)
    lows, highs = (scaling.values(np.clip(solution.unit + sign * half, 0.0, 1.0)) for sign in (-1, 1))
    found: list[FittedParameter] = []
    for k, parameter in enumerate(space.parameters):
        identifiable = bool(np.sqrt(solution.covariance[k, k]) < MAX_IDENTIFIABLE_SD)
        beyond = solution.unit[k] < AT_BOUND or solution.unit[k] > 1 - AT_BOUND
        physical = parameter.low == 0.0 and solution.unit[k] < AT_BOUND  # no friction, no delay: a value, not a limit
        physical |= parameter.target.endswith("/creep")  # as soft as the engine's friction, or not at all
        interval = float(values[k]), float(lows[k]), float(highs[k])
        found.append(describe_parameter(parameter, interval, identifiable, bool(beyond and not physical)))
    return tuple(found)


def describe_parameter(
    parameter: Parameter, interval: tuple[float, float, float], identifiable: bool, at_bound: bool = False
) -> FittedParameter:
    """Returns the record of a parameter with its interval: value, low, high."""
    about = parameter.target, parameter.dimension, parameter.unit, parameter.nominal
    bounds = parameter.low, parameter.high
    return FittedParameter(*about, *interval, INTERVAL_LEVEL, identifiable, at_bound, *bounds)


def determined_combinations(space: ParameterSpace, solution: Solution) -> tuple[str, ...]:
    """Returns the directions that are determined although the parameters in them are not, one by one.

    Eigenvectors of the information about the undetermined parameters (the determined ones marginalised) whose
    standard deviation is below `MAX_IDENTIFIABLE_SD`, in units of each parameter's range.
    """
    loose = [k for k in range(len(space)) if np.sqrt(solution.covariance[k, k]) >= MAX_IDENTIFIABLE_SD]
    if len(loose) < 2:
        return ()
    covariance = solution.covariance[np.ix_(loose, loose)]
    slopes = Scaling.of(space).slope(solution.unit)
    values, vectors = np.linalg.eigh(covariance)
    found: list[str] = []
    for variance, vector in zip(values, vectors.T, strict=True):
        heavy = [int(k) for k in np.argsort(-np.abs(vector)) if abs(vector[k]) > 0.25]
        if np.sqrt(max(variance, 0.0)) < MAX_IDENTIFIABLE_SD and len(heavy) > 1:
            factors = np.sign(vector[heavy[0]]) * vector / slopes[loose]
            terms = [f"{factors[k]:+.3g}*{space.targets[loose[k]]}" for k in heavy]
            found.append("only " + " ".join(terms).lstrip("+") + " is determined")
    return tuple(found[:MAX_COMBINATIONS])


def measure_fit_errors(problem: FitProblem, names: Sequence[str], row: Array, predict: Predict) -> FitErrors:
    """Returns the errors of a problem's windows before and after a fit, as `predict` has them."""
    if not len(problem.windows):
        return FitErrors(tuple(names), {}, None, None, None)
    project, shown = problem.predictor.blueprint.project, predict(problem.windows, np.stack([problem.base, row]))
    error = subtract_readings(project, shown, problem.windows.measured[None])[:, :, 1:]
    rms = np.sqrt(np.nanmean(error**2, axis=(1, 2)))
    columns = project.measurement_names
    noise = problem.windows.noise
    weighted = np.sqrt(np.nanmean((error / noise) ** 2, axis=(1, 2, 3)))
    return FitErrors(
        tuple(names),
        {name: {"before": float(rms[0, k]), "after": float(rms[1, k])} for k, name in enumerate(columns)},
        float(weighted[0]),
        float(weighted[1]),
        problem.to_noise(row),
    )


def find_refusal(evidence: ProjectData, problem: FitProblem, window_s: float) -> str | None:
    """Returns why these logs cannot be fitted at all, or None."""
    if len(problem.windows) < MIN_WINDOWS:
        return (
            f"only {len(problem.windows)} of at least {MIN_WINDOWS} windows of {window_s:g} s to fit: record more than "
            f"{MIN_WINDOWS * window_s:.1f} s in which every mapped column is present"
        )
    if not len(evidence.space):
        return "no parameter to fit: list some under `parameters` in gapless.yaml"
    moves = problem.windows.measured.reshape(-1, problem.windows.measured.shape[-1])
    still = np.nanstd(moves, axis=0) < 3 * problem.windows.noise
    if still.all():
        return "nothing moves in these logs by more than the noise: record a motion"
    return None


def example_traces(data: ProjectData, windows: Windows, predicted: Mapping[str, Array]) -> tuple[Trace, ...]:
    """Returns the first windows of the first episode, one trace per column; a NaN stands between windows."""
    if not len(windows):
        return ()
    rows = np.flatnonzero(windows.track == windows.track[0])
    rows = rows[: max(1, MAX_TRACE_SAMPLES // (windows.num_steps + 1))]
    times_s = (windows.first_row[rows, None] + np.arange(windows.num_steps + 1)) / data.project.rate_hz
    name = data.episodes[int(windows.track[0])].name
    found: list[Trace] = []
    for k, item in enumerate(data.project.measurements):
        curves = {label: _join_windows(values[rows, :, k]) for label, values in predicted.items()}
        measured = _join_windows(windows.measured[rows, :, k])
        found.append(Trace(name, item.column, item.unit, _join_windows(times_s), measured, curves))
    return tuple(found)


def _join_windows(values: Array) -> tuple[float, ...]:
    """Returns windows one after the other, a NaN between them so that lines break there."""
    broken = np.concatenate([values, np.full((len(values), 1), np.nan)], axis=1)
    return tuple(float(value) for value in broken.ravel())


def measure_horizons(
    data: ProjectData, episodes: Sequence[int], predict: Predict, rows: Array, progress: Progress | None = None
) -> tuple[HorizonErrors, ...]:
    """Returns how far predictions of some episodes are off by how long they run, the whole runs last.

    Every prediction restarts from the measured state at the start of its window. Horizons that no run is longer than
    are left out. The rows are (1 or 2, num_parameters): the model as written, and the fit if there is one.
    """
    tracks = [data.tracks[k] for k in episodes]
    longest_s = max((len(track.measured) - 1 for track in tracks), default=0) / data.project.rate_hz
    asked = [each for each in sorted({*HORIZONS_S, data.project.horizon_s}) if each < longest_s]
    found: list[HorizonErrors] = []
    for number, horizon_s in enumerate((*asked, None)):
        windows = cut_windows(data.project, tracks, horizon_s or 0.0)
        chosen = np.unique(np.linspace(0, len(windows) - 1, min(len(windows), MAX_HORIZON_WINDOWS)).astype(np.intp))
        windows = windows.pick(chosen)
        if len(windows):
            of_data = np.array(list(episodes), dtype=np.intp)[windows.track]  # runs may have values of their own
            shown = predict(replace(windows, track=of_data), rows)
            found.append(_compare_readings(data, windows, shown, horizon_s))
        if progress is not None:
            progress("predicting further", (number + 1) / (len(asked) + 1))
    return tuple(found)


def _compare_readings(data: ProjectData, windows: Windows, predicted: Array, horizon_s: float | None) -> HorizonErrors:
    """Returns the errors of predictions, (num_rows, num_windows, num_steps + 1, num_measurements)."""
    project = data.project
    error = subtract_readings(project, predicted, windows.measured[None])[:, :, 1:]
    start = np.broadcast_to(windows.start[:, None], windows.measured.shape)
    moved = subtract_readings(project, windows.measured, start)
    rms = _root_mean_square(error)
    motion = _root_mean_square(moved[None, :, 1:])[0]
    in_noise = np.sqrt(np.nanmean((rms / windows.noise) ** 2, axis=1))
    before, *after = in_noise.tolist()
    columns: dict[str, ColumnHorizon] = {}
    for k, item in enumerate(project.measurements):
        fitted = float(rms[1, k]) if after else None
        sizes = float(windows.noise[k]), float(motion[k]), float(rms[0, k])
        columns[item.column] = ColumnHorizon(item.unit, *sizes, fitted)
    return HorizonErrors(horizon_s, len(windows), columns, before, after[0] if after else None)


def _root_mean_square(values: Array) -> Array:
    """Returns the root mean square over windows and times, (num_rows, num_measurements); NaN where none is known."""
    known = np.isfinite(values)
    total = np.sum(np.where(known, values, 0.0) ** 2, axis=(1, 2))
    count = known.sum(axis=(1, 2))
    return np.sqrt(np.where(count > 0, total / np.maximum(count, 1), np.nan))
