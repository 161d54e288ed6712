"""Stretches of predictions beside what was measured, for plots."""

from collections.abc import Mapping

import numpy as np

from gapless.core.results import Trace
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.prediction.windows import Windows

MAX_TRACE_SAMPLES = 240


def example_traces(evidence: ProjectData, windows: Windows, predicted: Mapping[str, Array]) -> tuple[Trace, ...]:
    """Returns the first windows of the first episode, one trace per column; a NaN stands between windows."""
    if not len(windows):
        return ()
    rows = np.flatnonzero(windows.track == windows.track[0])
    rows = rows[: max(1, MAX_TRACE_SAMPLES // (windows.num_steps + 1))]
    times_s = (windows.first_row[rows, None] + np.arange(windows.num_steps + 1)) / evidence.project.rate_hz
    name = evidence.episodes[int(windows.track[0])].name
    found: list[Trace] = []
    for k, item in enumerate(evidence.project.measurements):
        curves = {label: _broken(values[rows, :, k]) for label, values in predicted.items()}
        measured = _broken(windows.measured[rows, :, k])
        found.append(Trace(name, item.column, item.unit, _broken(times_s), measured, curves))
    return tuple(found)


def _broken(values: Array) -> tuple[float, ...]:
    """Returns windows one after the other, a NaN between them so that lines break there."""
    broken = np.concatenate([values, np.full((len(values), 1), np.nan)], axis=1)
    return tuple(float(value) for value in broken.ravel())
