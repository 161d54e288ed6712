"""The verb `measure`: how far is simulation from reality?"""

from dataclasses import replace
from pathlib import Path

import numpy as np

import gapless
from gapless.core.interval import Interval, wilson
from gapless.core.protocols import Progress
from gapless.core.provenance import Provenance
from gapless.core.results import ColumnError, EvaluateResult, MeasureResult
from gapless.core.signal import Array
from gapless.data.stored_results import artefact_ids, load_stored_result, store_result_if_possible
from gapless.fit.data import ProjectData, read_project_data
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows, cut_windows
from gapless.fit.summary import example_traces, measure_horizons
from gapless.project.fingerprint import fingerprint
from gapless.signals.track import subtract_readings
from gapless.sim.blueprint import EMPTY_SPACE
from gapless.sim.ranges import read_fit

WINDOW_S = 0.3
MAX_WINDOWS_AT_ONCE = 256  # between two reports of progress


def measure(
    directory: str | Path,
    *,
    fit: str | Path | None = None,
    window_s: float = WINDOW_S,
    where: str | None = None,
    progress: Progress | None = None,
) -> MeasureResult:
    """Compares predictions that restart from the measured state every window with what was measured.

    Args:
        directory: The project folder.
        fit: JSON that `identify` wrote; None for the model as written.
        window_s: Length of the windows [s]; 0 for one prediction per episode.
        where: SQL condition on the view `episodes` of runs to use, such as `site = 'lab'`; None for all.
        progress: Called with what is being done and how far it is, in [0, 1].

    Raises:
        InputError: If the project, its logs or the fit cannot be used.
    """
    evidence = read_project_data(directory, with_unlogged=True, where=where, purpose="test", progress=progress)
    space, row = (EMPTY_SPACE, np.zeros(0)) if fit is None else read_fit(fit, evidence.blueprint)
    windows = cut_windows(evidence.project, evidence.tracks, window_s)
    predictor = Predictor(evidence.blueprint, space)
    predicted = _predict(predictor, windows, row, progress)
    rows = row[None] if fit is None else np.stack([space.nominal, row])
    horizons = measure_horizons(evidence, range(len(evidence.tracks)), predictor.predict, rows, progress)
    as_written: dict[str, ColumnError] = {}
    if fit is not None:
        model = Predictor(evidence.blueprint, EMPTY_SPACE)
        as_written = compute_column_errors(evidence, windows, _predict(model, windows, np.zeros(0), progress))
    result = MeasureResult(
        inputs=evidence.ids[: len(evidence.episodes)],
        window_s=window_s,
        num_windows=len(windows),
        columns=compute_column_errors(evidence, windows, predicted),
        success=find_success_rates(evidence),
        traces=example_traces(evidence, windows, {"model" if fit is None else "fitted": predicted}),
        as_written=as_written,
        notes=(*evidence.notes, *evidence.assumptions),
        horizons=horizons,
    )
    config = {"project": fingerprint(evidence.project), "window_s": window_s, "fitted": fit is not None}
    provenance = Provenance("measure", gapless.__version__, (*evidence.ids, *artefact_ids(fit)), config)
    return replace(result, id=store_result_if_possible(evidence.catalogue, result, provenance))


def _predict(predictor: Predictor, windows: Windows, row: Array, progress: Progress | None) -> Array:
    """Returns predicted measurements, (num_windows, num_steps + 1, num_measurements), some windows at a time."""
    predicted = windows.measured.copy()
    for first in range(0, len(windows), MAX_WINDOWS_AT_ONCE):
        some = np.arange(first, min(first + MAX_WINDOWS_AT_ONCE, len(windows)))
        predicted[some] = predictor.predict(windows.pick(some), row[None])[0]
        if progress is not None:
            progress("predicting", (some[-1] + 1) / len(windows))
    return predicted


def compute_column_errors(evidence: ProjectData, windows: Windows, predicted: Array) -> dict[str, ColumnError]:
    """Returns the error of each column over all windows.

    The lag solves predicted - measured = lag * slope of the prediction, by least squares.
    """
    project = evidence.project
    error = subtract_readings(project, predicted, windows.measured)[:, 1:]
    slope = np.gradient(predicted, 1.0 / project.rate_hz, axis=1)[:, 1:]
    found: dict[str, ColumnError] = {}
    for k, item in enumerate(project.measurements):
        column, rate = error[..., k], slope[..., k]
        known = np.isfinite(column)
        if not known.any():
            found[item.column] = ColumnError(None, None, None, None, item.unit)
            continue
        spread = float(np.nanstd(windows.measured[:, 1:, k]))
        rmse = float(np.sqrt(np.mean(column[known] ** 2)))
        power = float(np.sum(rate[known] ** 2))
        lag_s = float(np.sum(column[known] * rate[known]) / power) if power > 0 else None
        nrmse = rmse / spread if spread > 0 else None
        found[item.column] = ColumnError(rmse, nrmse, float(np.mean(column[known])), lag_s, item.unit)
    return found


def find_success_rates(evidence: ProjectData) -> dict[str, Interval]:
    """Returns success rates where outcomes are known: of the logs, and of the newest trials in simulation."""
    found: dict[str, Interval] = {}
    for row in reversed(evidence.catalogue.artefacts("evaluate")):
        result = load_stored_result(evidence.catalogue, row.id)
        if isinstance(result, EvaluateResult) and result.where == "simulation":
            found["simulation"] = result.success
            break
    real = [episode.outcome for episode in evidence.runs if episode.outcome is not None]
    if real:
        found["reality"] = wilson(real.count("success"), len(real))
    return found
