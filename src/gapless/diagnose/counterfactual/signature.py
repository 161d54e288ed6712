"""What a run of a policy looked like, in a few numbers: where it ended, how fast, how shaky, how hard it pushed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapless.core.episode import Episode
from gapless.core.signal import Array, Flags, TimeSeries

LAST = 3  # samples that make up where a run ended, and over which signals are smoothed
NEAR_LIMIT = 0.01  # a command counts as saturated within this share of the span of nominal commands [1]
MIN_SUCCESSES = 8  # nominal runs are standardised by the successful ones if there are this many
# Differences below these are of no interest, however regular nominal runs are.
FLOOR_VALUE = 0.02  # of places, as a share of the column's span in nominal runs [1]
FLOOR_DURATION = 0.1  # of logarithms of durations [1]
FLOOR_SPEED = 0.2  # of logarithms of mean speeds [1]
FLOOR_SHAKE = 0.5  # of logarithms of second differences: stated noise is often off by half, and policies amplify it [1]
FLOOR_SHARE = 0.02  # of shares of time at a limit [1]


@dataclass(frozen=True)
class Standard:
    """How raw numbers become a signature: asinh((number - centre) / scale), by nominal simulated runs.

    The inverse hyperbolic sine is the number itself when small, and its logarithm when large: a failure may be
    off by a thousand standard deviations, and twice that is hardly another kind of failure.

    Attributes:
        interval_s: Runs are compared at this interval [s].
        low: (num_commands,) smallest command in nominal runs.
        high: (num_commands,) largest command in nominal runs.
        small: (num_positive,) what is added to positive numbers before their logarithm.
        centre: (num_features,) of nominal runs.
        scale: (num_features,) standard deviation over nominal runs, floored.
    """

    interval_s: float
    low: Array
    high: Array
    small: Array
    centre: Array
    scale: Array

    @classmethod
    def of(cls, episodes: Sequence[Episode], success: Flags) -> "Standard":
        """Returns the standard that nominal simulated runs set."""
        if success.sum() >= MIN_SUCCESSES:
            episodes = [episode for episode, won in zip(episodes, success, strict=True) if won]
        interval_s = float(np.median(np.diff(episodes[0].measurements.times_s)))
        commands = np.concatenate([episode.commands.values for episode in episodes])
        measured = np.concatenate([episode.measurements.values for episode in episodes])
        low, high = commands.min(axis=0), commands.max(axis=0)
        parts = [_numbers(episode, interval_s, low, high) for episode in episodes]
        places, positive, shares = (np.stack(part) for part in zip(*parts, strict=True))
        small = 0.05 * np.median(positive, axis=0) + 1e-12
        raw = np.concatenate([places, np.log(positive + small), shares], axis=1)
        span = np.ptp(measured, axis=0), np.ptp(commands, axis=0)
        floor = np.concatenate(
            [
                FLOOR_VALUE * np.concatenate([span[0], span[0], span[1]]) + 1e-12,
                [FLOOR_DURATION],
                np.full(positive.shape[1] // 2, FLOOR_SPEED),
                np.full(positive.shape[1] // 2, FLOOR_SHAKE),
                np.full(shares.shape[1], FLOOR_SHARE),
            ]
        )
        scale = np.hypot(raw.std(axis=0), floor)
        return cls(interval_s, low, high, small, raw.mean(axis=0), scale)

    def signatures(self, episodes: Sequence[Episode]) -> Array:
        """Returns one signature per run, (num_runs, num_features) [1]; nominal runs are about 0 with spread 1."""
        parts = [_numbers(episode, self.interval_s, self.low, self.high) for episode in episodes]
        places, positive, shares = (np.stack(part) for part in zip(*parts, strict=True))
        raw = np.concatenate([places, np.log(positive + self.small), shares], axis=1)
        return np.arcsinh(np.clip((raw - self.centre) / self.scale, -1e6, 1e6))


def _numbers(episode: Episode, interval_s: float, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Returns what a run is summarised by, before it is standardised.

    Returns:
        Places: where each measurement ended and its mean, the mean of each command.
        Positive numbers: the duration, then the mean speed and the mean absolute second difference of each
        measurement and command, smoothed over `LAST` samples.
        Shares: how much of the time each command was at a limit.
    """
    measured, commands = _even(episode.measurements, interval_s), _even(episode.commands, interval_s)
    margin = NEAR_LIMIT * (high - low)
    at_limit = (commands >= high - margin) | (commands <= low + margin)
    signals = _smoothed(np.concatenate([measured, commands], axis=1))
    places = [measured[-LAST:].mean(axis=0), measured.mean(axis=0), commands.mean(axis=0)]
    positive = [
        np.array([max(episode.duration_s, interval_s)]),
        _mean_size(np.diff(signals, axis=0)) / interval_s,
        _mean_size(np.diff(signals, n=2, axis=0)),
    ]
    return np.concatenate(places), np.concatenate(positive), at_limit.mean(axis=0)


def _even(series: TimeSeries, interval_s: float) -> Array:
    """Returns a series at even times, gaps bridged; a column without any reading is 0; unstable readings are cut."""
    count = int(series.duration_s / interval_s + 1e-6) + 1
    times_s = series.times_s[0] + interval_s * np.arange(count)
    out = np.zeros((count, len(series.names)))
    for k in range(len(series.names)):
        known = np.isfinite(series.values[:, k])
        if known.any():
            out[:, k] = np.interp(times_s, series.times_s[known], series.values[known, k])
    return np.clip(out, -1e9, 1e9)


def _smoothed(values: Array) -> Array:
    """Returns running means over `LAST` samples, so that sensor noise hides less."""
    if len(values) < LAST:
        return values
    return np.mean([values[k : len(values) - LAST + 1 + k] for k in range(LAST)], axis=0)


def _mean_size(values: Array) -> Array:
    return np.abs(values).mean(axis=0) if len(values) else np.zeros(values.shape[1])
