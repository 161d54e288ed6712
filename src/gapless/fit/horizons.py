"""How far predictions are off by how long they run: 0.1, 0.5 and 1 s, the horizon of the project, whole runs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gapless.core.protocols import Progress
from gapless.core.results import ColumnHorizon, HorizonErrors
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows, cut_windows
from gapless.signals.track import subtract_readings

HORIZONS_S = (0.1, 0.5, 1.0)
MAX_WINDOWS = 200  # of each horizon, spread evenly: root mean squares are then off by chance by 5 % of themselves


def measure_horizons(
    data: ProjectData, episodes: Sequence[int], predictor: Predictor, rows: Array, progress: Progress | None = None
) -> tuple[HorizonErrors, ...]:
    """Returns the errors of some episodes by horizon, the whole runs last.

    Every prediction restarts from the measured state at the start of its window. Horizons that no run is longer than
    are left out.

    Args:
        data: The logs.
        episodes: Which of them.
        predictor: Predicts under rows of its space.
        rows: (1 or 2, num_parameters) the model as written, and the fit if there is one.
        progress: Called with what is being done and how far it is, in [0, 1].
    """
    tracks = [data.tracks[k] for k in episodes]
    longest_s = max((len(track.measured) - 1 for track in tracks), default=0) / data.project.rate_hz
    asked = [each for each in sorted({*HORIZONS_S, data.project.horizon_s}) if each < longest_s]
    found: list[HorizonErrors] = []
    for number, horizon_s in enumerate((*asked, None)):
        windows = cut_windows(data.project, tracks, horizon_s or 0.0)
        chosen = np.unique(np.linspace(0, len(windows) - 1, min(len(windows), MAX_WINDOWS)).astype(np.intp))
        windows = windows.pick(chosen)
        if len(windows):
            of_data = np.array(list(episodes), dtype=np.intp)[windows.track]  # runs may have values of their own
            shown = predictor.predict(replace(windows, track=of_data), rows)
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
    columns = {
        item.column: ColumnHorizon(
            item.unit,
            float(windows.noise[k]),
            float(motion[k]),
            float(rms[0, k]),
            float(rms[1, k]) if len(rms) > 1 else None,
        )
        for k, item in enumerate(project.measurements)
    }
    in_noise = np.sqrt(np.nanmean((rms / windows.noise) ** 2, axis=1))
    return HorizonErrors(
        horizon_s, len(windows), columns, float(in_noise[0]), float(in_noise[1]) if len(rms) > 1 else None
    )


def _root_mean_square(values: Array) -> Array:
    """Returns the root mean square over windows and times, (num_rows, num_measurements); NaN where none is known."""
    known = np.isfinite(values)
    total = np.sum(np.where(known, values, 0.0) ** 2, axis=(1, 2))
    count = known.sum(axis=(1, 2))
    return np.sqrt(np.where(count > 0, total / np.maximum(count, 1), np.nan))
