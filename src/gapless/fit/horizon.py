"""The last solve, on windows as long as predictions must hold.

Short windows find the valley: errors in them grow little, and few minima are wrong ones. What matters after a second,
though, is a small part of what they show: friction that is a little off, an inertia that makes up for another. So the
fit goes on from the short ones' solution on longer and longer windows, up to the project's horizon. Errors of the start
states count for more there; they are discounted as they show under each new solution (see `fit.start_errors`), which is
the same as solving for the start of every window along with the parameters (multiple shooting: Bock, 1984).

Which length is kept is decided by predictions of runs that were not fitted, from their measured states, over half of
the horizon and over all of it: where the model lacks something, longer is not always better.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.prediction.windows import Windows, cut_windows, draw_windows, max_num_windows
from gapless.fit.problem import FitProblem
from gapless.fit.slopes import FINE_STEP, MEDIUM_STEP
from gapless.fit.solve import Schedule, descend
from gapless.signals.track import subtract_readings

GROWTH = 2.0  # of the windows from one solve to the next: each begins near its end
SCHEDULE: Schedule = ((MEDIUM_STEP, 2), (FINE_STEP, 2))  # of each solve
MIN_WINDOWS = 12  # of a length that is fitted
MAX_JUDGED = 80  # windows of the horizon that judge: root mean squares are then off by chance by 8 % of themselves
MIN_GAIN = 0.01  # share of the error that longer windows must save
JUDGED_SHARES = (0.5, 1.0)  # of the horizon, over which errors are compared


@dataclass(frozen=True)
class HorizonFit:
    """A solution on windows of one length."""

    problem: FitProblem  # on these windows
    row: Array  # (num_parameters,) its solution
    window_s: float  # length of the windows [s]
    error: float = 1.0  # at the horizon, as a share of the first solution's [1]


def horizon_lengths(window_s: float, horizon_s: float) -> tuple[float, ...]:
    """Returns the lengths of windows to solve on after `window_s`, the horizon last [s]; none where it is that."""
    if window_s > horizon_s * (1.0 + 1e-9):
        return (horizon_s,)
    found: list[float] = []
    while window_s < horizon_s * (1.0 - 1e-9):
        window_s *= GROWTH
        found.append(window_s if window_s * GROWTH**0.5 < horizon_s else horizon_s)
        window_s = found[-1]
    return tuple(found)


def solve_up_to_horizon(
    first: HorizonFit,
    data: ProjectData,
    fitted: Sequence[int],
    held: Sequence[int],
    rng: np.random.Generator,
    around: Sequence[int] = (),
) -> list[HorizonFit]:
    """Returns the first solution and those on windows of growing length, each with its error at the horizon.

    The last is solved once more with the columns of `around` free: how the robot stands shows late, and windows that
    are short enough for a search say little of it. Fits with values of their own for each run are judged on the runs
    that they were fitted to.
    """
    horizon_s, problem, found = data.project.horizon_s, first.problem, [first]
    for length_s in horizon_lengths(first.window_s, horizon_s):
        windows = _cut_episodes(data, fitted, length_s)
        if len(windows) < MIN_WINDOWS:
            break
        longer = problem.on_windows(draw_windows(windows, rng, max_num_windows(length_s, problem.predictor.space)))
        end = found[-1].row
        end = descend(longer.weighted_at(end), end, SCHEDULE)
        found.append(HorizonFit(longer, end, length_s))
    more = sorted({*found[-1].problem.free, *around})
    if len(more) > len(found[-1].problem.free):
        wide, end = replace(found[-1].problem, free=tuple(more)), found[-1].row
        found.append(HorizonFit(wide, descend(wide.weighted_at(end), end, SCHEDULE), found[-1].window_s))
    own = any(parameter.run is not None for parameter in problem.predictor.space.parameters)
    windows = _cut_episodes(data, held if held and not own else fitted, horizon_s)
    errors = compare_at_horizon(problem, windows, np.stack([each.row for each in found]))
    return [replace(each, error=float(error)) for each, error in zip(found, errors, strict=True)]


def choose_length(fits: Sequence[HorizonFit]) -> HorizonFit:
    """Returns the solution with the least error at the horizon; the first unless another saves `MIN_GAIN`."""
    best = min(fits, key=lambda each: each.error)
    return best if best.error < (1.0 - MIN_GAIN) * fits[0].error else fits[0]


def compare_at_horizon(problem: FitProblem, windows: Windows, rows: Array) -> Array:
    """Returns the errors of rows over windows as shares of the first row's, (num_rows,).

    The geometric mean over columns, and over `JUDGED_SHARES` of the windows, of root mean squares; what noise alone
    would show is not counted as an error.
    """
    if not len(windows):
        return np.ones(len(rows))
    chosen = np.unique(np.linspace(0, len(windows) - 1, min(len(windows), MAX_JUDGED)).astype(np.intp))
    windows = windows.pick(chosen)
    shown = problem.predictor.predict(windows, rows)
    error = subtract_readings(problem.predictor.blueprint.project, shown, windows.measured[None])[:, :, 1:]
    logs: list[Array] = []
    for share in JUDGED_SHARES:
        part = error[:, :, : max(1, round(share * windows.num_steps))]
        square = np.nan_to_num(np.nanmean(part**2, axis=(1, 2)), posinf=1e12)
        logs.append(0.5 * np.log(np.maximum(square, windows.noise**2)))
    total = np.mean(np.concatenate(logs, axis=1), axis=1)
    return np.exp(total - total[0])


def _cut_episodes(data: ProjectData, episodes: Sequence[int], window_s: float) -> Windows:
    """Returns windows of some episodes, each with the index of its run among all."""
    windows = cut_windows(data.project, [data.tracks[k] for k in episodes], window_s)
    return replace(windows, track=np.array(list(episodes), dtype=np.intp)[windows.track])
