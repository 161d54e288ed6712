"""Spread across repeated real trials beside the simulation's: is the simulation too certain?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from gapless.core.episode import Episode
from gapless.core.interval import Interval
from gapless.core.signal import Array
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import cut_windows
from gapless.project.records import Project
from gapless.signals.track import Track, make_track, subtract_readings
from gapless.sim.blueprint import EMPTY_SPACE, compile_project

SAME_COMMAND = 1e-6  # commands of repeats differ by no more, in model units
SAME_START = 4.0  # starts of repeats differ by no more standard deviations of the noise of a difference,
SAME_PLACE = 0.02  # or by no more than this share of what the column spans: noise may be understated [1]
NUM_FIRST = 3  # rows whose mean is the start
SAME_LENGTH = 0.9  # the shortest of repeats has at least this share of the longest [1]
TOO_CERTAIN = 1.25  # ratio of real to simulated spread from which a simulation is called too certain
MIN_ROWS = 10


@dataclass(frozen=True)
class Spread:
    """How much repeated real trials differ, beside what the simulation makes of their starts and noise.

    Attributes:
        ratios: Column -> real standard deviation over simulated one [1]; together the intervals hold at their level.
        num_repeats: Trials that repeat another.
        too_certain: Whether some column's spread is surely more than `TOO_CERTAIN` times the simulation's.
        sentence: The same in words.
    """

    ratios: dict[str, Interval]
    num_repeats: int
    too_certain: bool
    sentence: str


def compare_spread(project: Project, episodes: Sequence[Episode], level: float = 0.95) -> Spread | None:
    """Returns how real spread compares with simulated, or None where no trial repeats another.

    Repeats are trials with equal commands whose starts differ by little more than noise. Each is run in the model
    as written from its own measured start; simulated variance is that of these runs, plus that of the stated noise
    (where none is stated: of what the readings themselves show).

    Args:
        project: The project.
        episodes: Real trials, as the logs have them.
        level: Of the intervals, all columns together.
    """
    tracks = [make_track(project, episode) for episode in episodes]
    groups = find_repeats(tracks)
    if not groups:
        return None
    predictor = Predictor(compile_project(project), EMPTY_SPACE)
    pairs = [_deviations(project, predictor, group) for group in groups]
    each = 1 - (1 - level) / len(project.measurements)
    ratios = {
        name: variance_ratio([real[..., k] for real, _ in pairs], [sim[..., k] for _, sim in pairs], each, level)
        for k, name in enumerate(project.measurement_names)
    }
    num_repeats = sum(len(group) for group in groups)
    worst = max(ratios, key=lambda name: ratios[name].low)
    too_certain = ratios[worst].low > TOO_CERTAIN
    stated = all(item.noise is not None for item in project.measurements)
    return Spread(ratios, num_repeats, too_certain, _sentence(worst, ratios[worst], num_repeats, too_certain, stated))


def find_repeats(tracks: Sequence[Track]) -> list[list[Track]]:
    """Returns groups of two or more tracks that repeat each other, in the order they came."""
    groups: list[list[Track]] = []
    for track in tracks:
        if len(track.measured) < MIN_ROWS:
            continue
        home = next((group for group in groups if _repeats(group[0], track)), None)
        if home is None:
            groups.append([track])
        else:
            home.append(track)
    return [group for group in groups if len(group) > 1]


def _repeats(one: Track, other: Track) -> bool:
    count = min(len(one.commands), len(other.commands))
    if count < SAME_LENGTH * max(len(one.commands), len(other.commands)):
        return False
    if np.abs(one.commands[:count] - other.commands[:count]).max(initial=0.0) > SAME_COMMAND:
        return False
    apart = np.abs(one.smooth[:NUM_FIRST].mean(axis=0) - other.smooth[:NUM_FIRST].mean(axis=0))
    span = np.nanmax(one.smooth, axis=0) - np.nanmin(one.smooth, axis=0)
    allowed = np.maximum(SAME_START * np.hypot(one.noise, other.noise), SAME_PLACE * span)
    return bool(np.all(apart <= allowed))


def _deviations(project: Project, predictor: Predictor, group: Sequence[Track]) -> tuple[Array, Array]:
    """Returns real deviations from the mean of repeats, and simulated variances.

    Returns:
        (num_repeats, num_rows, num_measurements), scaled so that their mean square is the variance; and
        (num_rows, num_measurements).
    """
    windows = cut_windows(project, group, 0.0)
    shown = predictor.predict(windows, np.zeros((1, 0)))[0]
    count = min(len(track.measured) for track in group)
    unbias = np.sqrt(len(group) / (len(group) - 1))
    real = np.stack([track.measured[:count] for track in group])
    noise = np.mean([track.noise**2 for track in group], axis=0)
    simulated = _centred(project, shown[:, :count]) * unbias
    return _centred(project, real) * unbias, (simulated**2).mean(axis=0) + noise


def _centred(project: Project, values: Array) -> Array:
    apart = subtract_readings(project, values, np.broadcast_to(values[:1], values.shape))
    return apart - apart.mean(axis=0)


def variance_ratio(real: Sequence[Array], simulated: Sequence[Array], each: float, level: float) -> Interval:
    """Returns the ratio of real to simulated standard deviation of one column.

    Deviations are divided by the simulated standard deviation of their moment; their mean square times its degrees
    of freedom is taken as chi-squared. Neighbouring moments deviate together, so that a trial of T rows counts as
    T / (1 + 2 sum of squared autocorrelations), and at least as one.

    Args:
        real: Per group of repeats, (num_repeats, num_rows) deviations; NaN where missing.
        simulated: Per group, (num_rows,) variances.
        each: Level of this interval.
        level: Level to report, of all columns together.
    """
    total = free = 0.0
    num_trials = 0
    for deviation, variance in zip(real, simulated, strict=True):
        scaled = deviation / np.sqrt(np.maximum(variance, 1e-300))
        known = np.isfinite(scaled)
        if not known.any():
            continue
        own = (len(scaled) - 1) * max(1.0, known.sum(axis=1).mean() / _memory(scaled))
        total += own * float(np.mean(scaled[known] ** 2))
        free += own
        num_trials += len(scaled)
    if not free:
        return Interval(float("nan"), 0.0, float("inf"), level, 0, "chi-squared")
    low, high = total / chi2.ppf([(1 + each) / 2, (1 - each) / 2], free)
    value = float(np.sqrt(total / free))
    return Interval(value, float(np.sqrt(low)), float(np.sqrt(high)), level, num_trials, "chi-squared")


def _memory(scaled: Array) -> float:
    """Returns over how many rows squares of deviations are alike: 1 + 2 sum of squared autocorrelations."""
    filled = np.where(np.isfinite(scaled), scaled, 0.0)
    power = float((filled**2).sum())
    found = 1.0
    for lag in range(1, scaled.shape[1] // 2):
        alike = float((filled[:, lag:] * filled[:, :-lag]).sum()) / max(power, 1e-300)
        if alike < 0.05:
            break
        found += 2 * alike**2
    return found


def _sentence(column: str, ratio: Interval, num_repeats: int, too_certain: bool, stated: bool) -> str:
    size = f"{ratio.value:.1f} times [{ratio.low:.1f}, {ratio.high:.1f}] what the simulation gives them"
    text = f"{num_repeats} repeated trials spread by {size} in {column}"
    text += ": the simulation is too certain" if too_certain else ": the simulation is not shown to be too certain"
    return text if stated else f"{text} (noise partly estimated from the readings: the project does not state all)"
