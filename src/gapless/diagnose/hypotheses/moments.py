"""The stretches of the logs that speak most for each cause."""

from collections.abc import Sequence

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.results import TellingMoment
from gapless.diagnose.hypotheses.frame import Frame
from gapless.diagnose.hypotheses.trials import Trial

PER_CAUSE = 3


def telling_moments(
    frame: Frame, trials: Sequence[Trial], best: Trial, causes: Sequence[Dimension]
) -> tuple[TellingMoment, ...]:
    """Returns, for each cause in the best set, the windows whose prediction it mends most."""
    return tuple(moment for cause in causes if cause in best.subset for moment in _of(frame, trials, best, cause))


def _of(frame: Frame, trials: Sequence[Trial], best: Trial, cause: Dimension) -> list[TellingMoment]:
    rest = [trial for trial in trials if set(trial.subset) <= set(best.subset) - {cause}]
    without = max(rest, key=lambda trial: trial.total)
    gain = np.log(without.levels) - np.log(best.levels)
    project, windows = frame.evidence.project, frame.windows
    found: list[TellingMoment] = []
    for window in np.argsort(-gain.max(axis=1), kind="stable")[:PER_CAUSE]:
        column = int(np.argmax(gain[window]))
        if gain[window, column] < np.log(2.0):
            break
        found.append(
            TellingMoment(
                frame.evidence.episodes[int(windows.track[window])].name,
                float(windows.first_row[window] / project.rate_hz),
                float(windows.num_steps / project.rate_hz),
                project.measurement_names[column],
                cause,
                float(np.sqrt(without.levels[window, column] - 1.0)),
                float(np.sqrt(best.levels[window, column] - 1.0)),
            )
        )
    return found
