"""What a run of a policy looked like, in a few numbers: where it ended, how fast, how shaky, how hard it pushed."""

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class SignatureScale:
    """How raw numbers become a signature: asinh((number - centre) / scale), by nominal simulated runs.

    The inverse hyperbolic sine is the number itself when small, and its logarithm when large: a failure may be
    off by a thousand standard deviations, and twice that is hardly another kind of failure.

    Attributes:
        interval_s: Runs are compared at this interval [s].
        low: (num_commands,) smallest command in nominal runs.
        high: (num_commands,) largest command in nominal runs.
        small: (num_positive,) what is added to positive numbers before their logarithm.
        centre: (num_features,) of nominal runs.
        scale: (num_features,) standard deviation over nominal runs, with a least value.
    """

    interval_s: float
    low: Array
    high: Array
    small: Array
    centre: Array
    scale: Array

    @classmethod
    def from_nominal_runs(cls, episodes: Sequence[Episode], success: Flags) -> "SignatureScale":
        """Returns the scale that runs of the model as written set."""
        if success.sum() >= MIN_SUCCESSES:
            episodes = [episode for episode, won in zip(episodes, success, strict=True) if won]
        interval_s = float(np.median(np.diff(episodes[0].measurements.times_s)))
        commands = np.concatenate([episode.commands.values for episode in episodes])
        measured = np.concatenate([episode.measurements.values for episode in episodes])
        low, high = commands.min(axis=0), commands.max(axis=0)
        places, positive, saturated = _summarize_runs(episodes, interval_s, low, high)
        small = 0.05 * np.median(positive, axis=0) + 1e-12
        raw = np.concatenate([places, np.log(positive + small), saturated], axis=1)
        span, num_signals = np.ptp(measured, axis=0), positive.shape[1] // 2
        min_sd = np.concatenate(
            [
                MIN_SD_PLACE * np.concatenate([span, span, np.ptp(commands, axis=0)]) + 1e-12,
                [MIN_SD_DURATION],
                np.full(num_signals, MIN_SD_SPEED),
                np.full(num_signals, MIN_SD_SHAKE),
                np.full(saturated.shape[1], MIN_SD_SATURATED),
            ]
        )
        return cls(interval_s, low, high, small, raw.mean(axis=0), np.hypot(raw.std(axis=0), min_sd))

    def signatures(self, episodes: Sequence[Episode]) -> Array:
        """Returns one signature per run, (num_runs, num_features) [1]; nominal runs are about 0 with spread 1."""
        places, positive, saturated = _summarize_runs(episodes, self.interval_s, self.low, self.high)
        raw = np.concatenate([places, np.log(positive + self.small), saturated], axis=1)
        return np.arcsinh(np.clip((raw - self.centre) / self.scale, -1e6, 1e6))


def _summarize_runs(
    episodes: Sequence[Episode], interval_s: float, low: Array, high: Array
) -> tuple[Array, Array, Array]:
    """Returns what runs are summarised by, before it is standardised, (num_runs, ...) each.

    Returns:
        Places: where each measurement ended and its mean, the mean of each command.
        Positive numbers: the duration, then the mean speed and the mean absolute second difference of each
        measurement and command, smoothed over `NUM_LAST` samples.
        Shares: how much of the time each command was at a limit.
    """
    margin = NEAR_LIMIT * (high - low)
    places, positive, saturated = list[Array](), list[Array](), list[Array]()
    for episode in episodes:
        measured, commands = _resample(episode.measurements, interval_s), _resample(episode.commands, interval_s)
        signals = _smooth(np.concatenate([measured, commands], axis=1))
        speeds = _mean_size(np.diff(signals, axis=0)) / interval_s
        shakes = _mean_size(np.diff(signals, n=2, axis=0))
        ends = measured[-NUM_LAST:].mean(axis=0)
        places.append(np.concatenate([ends, measured.mean(axis=0), commands.mean(axis=0)]))
        positive.append(np.concatenate([[max(episode.duration_s, interval_s)], speeds, shakes]))
        saturated.append(((commands >= high - margin) | (commands <= low + margin)).mean(axis=0))
    return np.stack(places), np.stack(positive), np.stack(saturated)


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


def _smooth(values: Array) -> Array:
    """Returns running means over `NUM_LAST` samples, so that sensor noise hides less."""
    if len(values) < NUM_LAST:
        return values
    return np.lib.stride_tricks.sliding_window_view(values, NUM_LAST, axis=0).mean(axis=-1)


def _mean_size(values: Array) -> Array:
    return np.abs(values).mean(axis=0) if len(values) else np.zeros(values.shape[1])
