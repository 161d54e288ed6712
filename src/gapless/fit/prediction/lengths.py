"""How long prediction windows may be.

A window starts at a measured state, which is uncertain. Where that uncertainty dies out, as in an arm that servos hold,
longer windows show more: friction that holds, slow creep, sag. Where it grows, as in a pendulum, longer windows show
ever more of the start's error, and fitting it teaches wrong things. So windows grow as long as, at their end, the
start's uncertainty is below the noise of the readings.
"""

import numpy as np

from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import cut_windows
from gapless.fit.start_errors import start_effects
from gapless.project.records import Project

LENGTHS_S = (0.1, 0.2, 0.3, 0.6, 1.2, 2.4)
DRIVEN_S = 0.3  # least length where commands need time to show [s]
MIN_ROWS = 12  # of a window
NUM_WINDOWS = 12
MAX_START_EFFECT = 0.6  # what a start's uncertainty may do at the end of windows, in units of noise
MAX_SIMULATED_S = 48.0  # windows of all lengths come to about this much
SIMULATED_PER_RUN_S = 8.0  # and where runs have values of their own, to this much of each


def shortest_window_s(project: Project) -> float:
    """Returns the length of the windows that a fit begins with [s].

    Where nothing is commanded they are short: a thing that tumbles and hits turns a small error of its start into a
    large one with every impact, and one impact is all that a window needs.
    """
    if project.commands:
        return DRIVEN_S
    return max(LENGTHS_S[0], MIN_ROWS / project.rate_hz)


def max_num_windows(window_s: float, space: ParameterSpace) -> int:
    """Returns how many windows of a length are fitted at most."""
    num_runs = len({p.run for p in space.parameters if p.run is not None})
    return max(24, round(max(MAX_SIMULATED_S, SIMULATED_PER_RUN_S * num_runs) / window_s)) if window_s > 0 else 24


def choose_window_s(
    evidence: ProjectData, predictor: Predictor, episodes: list[int], row: Array, rng: np.random.Generator
) -> float:
    """Returns the longest of `LENGTHS_S`, from `shortest_window_s` on, at whose end starts are surer than readings."""
    tracks, chosen = [evidence.tracks[k] for k in episodes], shortest_window_s(evidence.project)
    for length_s in (length_s for length_s in LENGTHS_S if length_s > chosen):
        windows = cut_windows(evidence.project, tracks, length_s)
        if len(windows) < NUM_WINDOWS:
            break
        windows = windows.pick(np.sort(rng.choice(len(windows), NUM_WINDOWS, replace=False)))
        last = start_effects(predictor, windows, row, windows.noise)[:, :, -1]
        if np.sqrt(np.nanmean(np.sum(last**2, axis=0), axis=0)).max() > MAX_START_EFFECT:
            break
        chosen = length_s
    return chosen
