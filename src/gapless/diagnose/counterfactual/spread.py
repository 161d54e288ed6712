"""Spread across repeated real trials beside the simulation's: is the simulation too certain?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from gapless.core.interval import Interval
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows, cut_windows
from gapless.signals.track import Track, subtract_readings
from gapless.sim.blueprint import EMPTY_SPACE

MAX_COMMAND_DIFFERENCE = 1e-6  # between repeats, in model units
MAX_START_DIFFERENCE_SD = 4.0  # between repeats, in standard deviations of the noise of a difference,
MAX_START_DIFFERENCE = 0.02  # or as a share of what the column spans: noise may be understated [1]
NUM_START_ROWS = 3  # whose mean is the start
MIN_LENGTH_RATIO = 0.9  # of the shortest repeat to the longest [1]
MIN_ROWS = 10  # that are usable in all repeats
LEVEL = 0.95  # at which the intervals of all columns hold together
TOO_CERTAIN = 1.25  # ratio of real to simulated spread from which a simulation is called too certain


@dataclass(frozen=True)
class SpreadComparison:
    """How much repeated real trials differ, beside what the simulation makes of their starts and noise."""

    # column -> real standard deviation over simulated one [1]; together the intervals hold at their level
    ratios: dict[str, Interval]
    sentence: str  # the same in words


def compare_spread(data: ProjectData) -> SpreadComparison | None:
    """Returns how real spread compares with simulated, or None where no trial repeats another.

    Repeats are trials with equal commands whose starts differ by little more than noise. Each is run in the model
    as written from its own measured start; simulated variance is that of these runs, plus that of the stated noise
    (where none is stated: of what the readings themselves show). It ends before the first row that is unusable in any
    of the repeats.
    """
    project = data.project
    groups = find_repeats(data.tracks)
    if not groups:
        return None
    predictor = Predictor(data.blueprint, EMPTY_SPACE)
    windows = [cut_windows(project, group, 0.0) for group in groups]
    deviations = [_scale_deviations(predictor, some) for some in windows if len(some) > 1]
    ratios = {
        name: estimate_spread_ratio([some[..., k] for some in deviations], len(project.measurements))
        for k, name in enumerate(project.measurement_names)
    }
    worst = max(ratios, key=lambda name: ratios[name].low)
    ratio = ratios[worst]
    size = f"{ratio.value:.1f} times [{ratio.low:.1f}, {ratio.high:.1f}] what the simulation gives them"
    text = f"{sum(map(len, groups))} repeated trials spread by {size} in {worst}: the simulation is "
    text += "too certain" if ratio.low > TOO_CERTAIN else "not shown to be too certain"
    if any(item.noise is None for item in project.measurements):
        text += " (noise partly estimated from the readings: the project does not state all)"
    return SpreadComparison(ratios, text)


def find_repeats(tracks: Sequence[Track]) -> list[list[Track]]:
    """Returns groups of two or more tracks that repeat each other, in the order they came.

    All tracks of a group have the same usable rows: those that are usable in each of them.
    """
    groups: list[list[Track]] = []
    for track in tracks:
        group = next((group for group in groups if _is_repeat(group[0], track)), None)
        if group is None:
            groups.append([track])
        else:
            group.append(track)
    return [_share_usable_rows(group) for group in groups if len(group) > 1]


def _is_repeat(one: Track, other: Track) -> bool:
    count = min(len(one.commands), len(other.commands))
    usable = one.usable[:count] & other.usable[:count]
    if usable.sum() < MIN_ROWS or count < MIN_LENGTH_RATIO * max(len(one.commands), len(other.commands)):
        return False
    if np.abs(one.commands[:count] - other.commands[:count])[usable].max(initial=0.0) > MAX_COMMAND_DIFFERENCE:
        return False
    rows = int(np.argmax(usable)) + np.arange(NUM_START_ROWS)
    apart = np.abs(one.smooth[rows].mean(axis=0) - other.smooth[rows].mean(axis=0))
    moves = one.smooth[:count][usable]
    span = np.nanmax(moves, axis=0) - np.nanmin(moves, axis=0)
    allowed = np.maximum(MAX_START_DIFFERENCE_SD * np.hypot(one.noise, other.noise), MAX_START_DIFFERENCE * span)
    return bool(np.all(apart <= allowed))


def _share_usable_rows(group: Sequence[Track]) -> list[Track]:
    count = min(len(track.usable) for track in group)
    common = np.all([track.usable[:count] for track in group], axis=0)
    return [replace(track, usable=np.append(common, np.zeros(len(track.usable) - count, bool))) for track in group]


def _scale_deviations(predictor: Predictor, windows: Windows) -> Array:
    """Returns deviations of real repeats from their mean, in standard deviations that the simulation has there.

    (num_repeats, num_rows, num_measurements) [1], scaled so that their mean square is the ratio of variances; NaN where
    unknown.
    """
    simulated = predictor.predict(windows, np.zeros((1, 0)))[0]
    found: list[Array] = []
    for values in (windows.measured, simulated):
        apart = subtract_readings(predictor.blueprint.project, values, np.broadcast_to(values[:1], values.shape))
        found.append((apart - apart.mean(axis=0)) * np.sqrt(len(windows) / (len(windows) - 1)))
    variance = (found[1] ** 2).mean(axis=0) + windows.noise**2
    return found[0] / np.sqrt(np.maximum(variance, 1e-300))


def estimate_spread_ratio(deviations: Sequence[Array], num_columns: int = 1) -> Interval:
    """Returns the ratio of real to simulated standard deviation of one column.

    The mean square of deviations times its degrees of freedom is taken as chi-squared. Neighbouring moments deviate
    together, so that a trial of T rows counts as T / (1 + 2 sum of squared autocorrelations), and at least as one. With
    several columns each interval is wider, so that all hold together at `LEVEL` (Bonferroni). Deviations are, per group
    of repeats, (num_repeats, num_rows) in simulated standard deviations, NaN where missing.
    """
    total, degrees, num_trials = 0.0, 0.0, 0
    for scaled in deviations:
        known = np.isfinite(scaled)
        if known.any():
            own = (len(scaled) - 1) * max(1.0, known.sum(axis=1).mean() / _correlation_length(scaled))
            total += own * float(np.mean(scaled[known] ** 2))
            degrees += own
            num_trials += len(scaled)
    if not degrees:
        return Interval(float("nan"), 0.0, float("inf"), LEVEL, 0, "chi-squared")
    tail = (1 - LEVEL) / num_columns / 2
    value, low, high = np.sqrt(total / np.array([degrees, *chi2.ppf([1 - tail, tail], degrees)])).tolist()
    return Interval(value, low, high, LEVEL, num_trials, "chi-squared")


def _correlation_length(scaled: Array) -> float:
    """Returns over how many rows squares of deviations are correlated: 1 + 2 sum of squared autocorrelations."""
    filled = np.where(np.isfinite(scaled), scaled, 0.0)
    power = max(float((filled**2).sum()), 1e-300)
    found = 1.0
    for lag in range(1, scaled.shape[1] // 2):
        correlation = float((filled[:, lag:] * filled[:, :-lag]).sum()) / power
        if correlation < 0.05:
            break
        found += 2 * correlation**2
    return found
