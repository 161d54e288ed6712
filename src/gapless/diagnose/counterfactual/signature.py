"""What a run of a policy looked like, in a few numbers: where it ended, how fast, how shaky, how hard it pushed."""

from collections.abc import Callable, Sequence

import numpy as np

from gapless.core.episode import Episode
from gapless.core.signal import Array, Flags, TimeSeries

NUM_LAST = 3  # samples that make up where a run ended, and over which signals are smoothed
NEAR_LIMIT = 0.01  # a command counts as saturated within this share of the span of nominal commands [1]
MIN_SUCCESSES = 8  # nominal runs are standardised by the successful ones if there are this many
# Standard deviations of nominal runs are taken as at least these.
MIN_SD_PLACE = 0.02  # of places, as a share of the column's span in nominal runs [1]
MIN_SD_DURATION = 0.1  # of logarithms of durations [1]
MIN_SD_SPEED = 0.2  # of logarithms of mean speeds [1]
MIN_SD_SHAKE = 0.5  # of logarithms of second differences: stated noise is often off by half, which policies amplify
MIN_SD_SATURATED = 0.02  # of shares of time at a limit [1]

MakeSignatures = Callable[[Sequence[Episode]], Array]  # episodes -> (num_runs, num_features) [1]


def fit_signature(nominal: Sequence[Episode], success: Flags) -> MakeSignatures:
    """Returns what makes signatures of runs: numbers that are about 0 with spread 1 for runs of the model as written.

    A number becomes asinh((number - centre) / scale), with centre and scale of nominal runs. The inverse hyperbolic
    sine is the number itself when small, and its logarithm when large: a failure may be off by a thousand standard
    deviations, and twice that is hardly another kind of failure. `success` says which nominal runs succeeded.
    """
    if success.sum() >= MIN_SUCCESSES:
        nominal = [episode for episode, won in zip(nominal, success, strict=True) if won]
    interval_s = float(np.median(np.diff(nominal[0].measurements.times_s)))
    commands = np.concatenate([episode.commands.values for episode in nominal])
    limits = commands.min(axis=0), commands.max(axis=0)

    def summarize(episodes: Sequence[Episode]) -> list[Array]:
        parts = zip(*(_summarize_run(episode, interval_s, *limits) for episode in episodes), strict=True)
        return [np.stack(part) for part in parts]

    small = 0.05 * np.median(summarize(nominal)[1], axis=0) + 1e-12

    def list_numbers(episodes: Sequence[Episode]) -> Array:
        places, positive, saturated = summarize(episodes)
        return np.concatenate([places, np.log(positive + small), saturated], axis=1)

    span = np.ptp(np.concatenate([episode.measurements.values for episode in nominal]), axis=0)
    num_commands = commands.shape[1]
    num_signals = len(span) + num_commands
    min_sd = np.concatenate(
        [
            MIN_SD_PLACE * np.concatenate([span, span, np.ptp(commands, axis=0)]) + 1e-12,
            [MIN_SD_DURATION],
            np.full(num_signals, MIN_SD_SPEED),
            np.full(num_signals, MIN_SD_SHAKE),
            np.full(num_commands, MIN_SD_SATURATED),
        ]
    )
    numbers = list_numbers(nominal)
    centre, scale = numbers.mean(axis=0), np.hypot(numbers.std(axis=0), min_sd)
    return lambda episodes: np.arcsinh(np.clip((list_numbers(episodes) - centre) / scale, -1e6, 1e6))


def _summarize_run(episode: Episode, interval_s: float, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Returns the numbers of a run, sampled at an interval, beside the least and greatest nominal commands.

    Returns:
        Places: where each measurement ended and its mean, the mean of each command.
        Positive numbers: the duration, then the mean speed and the mean absolute second difference of each
        measurement and command, smoothed over `NUM_LAST` samples so that sensor noise hides less.
        Shares: how much of the time each command was at a limit.
    """
    measured, commands = _resample(episode.measurements, interval_s), _resample(episode.commands, interval_s)
    signals = np.concatenate([measured, commands], axis=1)
    width = min(NUM_LAST, len(signals))
    smooth = np.lib.stride_tricks.sliding_window_view(signals, width, axis=0).mean(axis=-1)
    speeds, shakes = (
        np.abs(np.diff(smooth, n=order, axis=0)).sum(axis=0) / max(1, len(smooth) - order) for order in (1, 2)
    )
    margin = NEAR_LIMIT * (high - low)
    return (
        np.concatenate([measured[-NUM_LAST:].mean(axis=0), measured.mean(axis=0), commands.mean(axis=0)]),
        np.concatenate([[max(episode.duration_s, interval_s)], speeds / interval_s, shakes]),
        ((commands >= high - margin) | (commands <= low + margin)).mean(axis=0),
    )


def _resample(series: TimeSeries, interval_s: float) -> Array:
    """Returns a series at even times, gaps bridged; a column without any reading is 0; unstable readings are cut."""
    count = int(series.duration_s / interval_s + 1e-6) + 1
    times_s = series.times_s[0] + interval_s * np.arange(count)
    out = np.zeros((count, len(series.names)))
    for k in range(len(series.names)):
        known = np.isfinite(series.values[:, k])
        if known.any():
            out[:, k] = np.interp(times_s, series.times_s[known], series.values[known, k])
    return np.clip(out, -1e9, 1e9)
