"""Checks for rows of a log that cannot be used: servos that stand still, joints that do not respond to motors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from gapless.check.findings import Drive, UnusableRows, find_runs, list_drives, list_measured_servos
from gapless.check.skill import MIN_MOTION_TO_NOISE, ModelTolerance, find_moving_windows, line_noise, measure_skill
from gapless.core.signal import Array, Flags, Indices
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows, cut_windows
from gapless.signals.track import Track, spread_indices
from gapless.sim.blueprint import CompiledProject

SPANS_S = (0.5, 2.0)  # over which travels are compared
MAX_DELAY_S = 0.3  # how much later a reading may follow
MOVING_SHARE = 0.3  # a reading that travels this share of its command follows it
STILL_SHARE = 0.05  # and at this share it stands still
MIN_TRAVEL_TO_DISTANCE = 3.0  # travel of a command over its usual distance from the reading, for it to be large
MIN_STRETCH_S = 0.5
LIMIT_MARGIN = 0.02  # share of a joint's range from its end, where it may stand


def find_standstills(blueprint: CompiledProject, tracks: Sequence[Track]) -> list[UnusableRows]:
    """Returns the rows in which a servo's command travels far and the reading of its joint does not follow.

    Friction and play let a reading stand while the command moves a little; so the command must travel
    `MIN_TRAVEL_TO_DISTANCE` times as far as it usually is away from the reading. A joint at the end of its range may
    stand.
    """
    found: list[UnusableRows] = []
    for pair in list_measured_servos(blueprint):
        distance = _usual_distance(blueprint, tracks, pair)
        for index, track in enumerate(tracks):
            still = np.zeros(len(track.measured), dtype=np.bool_)
            for span_s in SPANS_S:
                still |= _find_still_rows(blueprint, track, pair, distance, round(span_s * blueprint.project.rate_hz))
            found += _describe_standstills(blueprint, index, track, pair, still)
    return found


def _find_still_rows(blueprint: CompiledProject, track: Track, pair: Drive, distance: float, span: int) -> Flags:
    """Returns the rows of all spans over which the command travels far and the reading does not."""
    sent, read, free = _measure_travels(blueprint, track, pair, span)
    noise = float(track.noise[pair.reading])
    large = sent > max(MIN_TRAVEL_TO_DISTANCE * distance, 20 * noise)
    begins = free & large & (read < np.maximum(STILL_SHARE * sent, 4 * noise))
    still = np.zeros(len(begins), dtype=np.bool_)
    for first, end in find_runs(begins):
        still[first : end + span] = True
    return still


def _measure_travels(blueprint: CompiledProject, track: Track, pair: Drive, span: int) -> tuple[Array, Array, Flags]:
    """Returns per row how far the command travels over a span, how far the reading does, and whether it is free to."""
    low, high = blueprint.command_limits()
    command = np.clip(track.commands[:, pair.command], low[pair.command], high[pair.command]) / pair.gear
    reading = track.smooth[:, pair.reading]
    joint = blueprint.model.joint(pair.joint)
    free = np.ones(len(reading), dtype=np.bool_)
    if joint.limited[0]:
        margin = LIMIT_MARGIN * (joint.range[1] - joint.range[0])
        free = (reading > joint.range[0] + margin) & (reading < joint.range[1] - margin)
    delay = round(MAX_DELAY_S * blueprint.project.rate_hz)
    return _range_ahead(command, span), _range_ahead(reading, span + delay), free


def _range_ahead(values: Array, span: int) -> Array:
    """Returns the largest minus the smallest value from each row on, over a span of rows."""
    size = span + 1
    ahead = {"size": size, "origin": -(size // 2), "mode": "nearest"}  # from each row on; the last value goes on
    return maximum_filter1d(values, **ahead) - minimum_filter1d(values, **ahead)


def _usual_distance(blueprint: CompiledProject, tracks: Sequence[Track], pair: Drive) -> float:
    """Returns how far a command usually is from the reading while this follows, a constant offset left out."""
    span = max(2, round(SPANS_S[0] * blueprint.project.rate_hz))
    distances: list[Array] = []
    for track in tracks:
        sent, read, _ = _measure_travels(blueprint, track, pair, span)
        distance = track.commands[:, pair.command] / pair.gear - track.smooth[:, pair.reading]
        distances.append(np.abs(distance - np.median(distance))[(read > MOVING_SHARE * sent) & (sent > 0)])
    every = np.concatenate(distances) if distances else np.zeros(0)
    return float(np.percentile(every, 75)) if len(every) else 0.0


def _describe_standstills(
    blueprint: CompiledProject, index: int, track: Track, pair: Drive, still: Flags
) -> Iterator[UnusableRows]:
    unit, min_rows = blueprint.project.measurements[pair.reading].unit, MIN_STRETCH_S * blueprint.project.rate_hz
    for begin, end in find_runs(still):
        first, stop = _extend(track.smooth[:, pair.reading], begin, end, 4 * float(track.noise[pair.reading]))
        sent, read = np.ptp(track.commands[first:stop, pair.command]), track.measured[first:stop, pair.reading]
        if stop - first >= min_rows:
            frozen = len(np.unique(read[np.isfinite(read)])) <= 1
            why = "did the sensor freeze?" if frozen else "was it stalled, or its drive off?"
            text = f"{pair.reading_name} stands still while {pair.command_name} travels {sent:.3g} {unit}: {why}"
            yield UnusableRows(index, first, stop, pair.reading_name, text)


def _extend(reading: Array, first: int, end: int, margin: float) -> tuple[int, int]:
    """Returns the run of rows about a stretch in which a reading stays within a margin of where it stands."""
    near = np.abs(reading - np.median(reading[first:end])) <= margin
    return next(((a, b) for a, b in find_runs(near) if a <= (first + end) // 2 < b), (first, end))


@dataclass(frozen=True)
class ResponseConfig:
    """Limits of this check, set on the bundled examples and on real logs (tests/recovery/test_bad_input.py)."""

    window_s: float = 0.1  # length of a window [s]
    min_steps: int = 4  # control intervals of a window, at least
    silent_response: float = 0.2  # share of the usual response, below which there is none
    weak_response: float = 0.5  # share of it, below which there hardly is one
    min_windows: int = 3  # windows of a stretch
    max_chance_stretches: float = 0.01  # how many stretches may be expected by chance
    reliable_response: float = 0.3  # share of the usual response that three of four other windows must reach
    never_share: float = 0.15  # share of the effect of commands that a joint may move if it responds to none
    num_tolerance_windows: int = 24  # windows to choose gain, drag and delay by


LIMITS = ResponseConfig()


@dataclass(frozen=True)
class Responses:
    """How one joint responds to its motor, per window."""

    windows: Windows  # the windows, log by log
    size: Array  # (num_windows,) the response [1]; NaN where the command would not show
    rest: Array  # (num_windows,) distance from the motion without commands, as a share of the effect of commands [1]
    effort: Array  # (num_windows,) largest size of the command
    usual: float  # the response that most windows with clear commands reach [1]

    def find_silent_runs(self) -> list[tuple[int, int]]:
        """Returns the runs of windows without a response, (first window, last window).

        The command must be as large as what moves the joint elsewhere, else it may be friction; the model must be
        good enough for other windows to respond; and so many silent ones in a row must be no chance. A run is extended
        over neighbours that hardly respond.
        """
        responding = self.effort[self.size > LIMITS.weak_response * self.usual]
        min_effort = float(np.median(responding)) if len(responding) else 0.0
        candidates: list[tuple[Indices, int, int]] = []
        others = np.isfinite(self.size)
        for track in np.unique(self.windows.track):
            places = np.flatnonzero((self.windows.track == track) & np.isfinite(self.size))
            for first, end in find_runs(self._is_silent(places)):
                run = places[first:end]
                large = end - first >= LIMITS.min_windows and self.effort[run].max() >= min_effort
                if large and not self._responds_weakly(run):
                    candidates.append((places, first, end))
                    others[run] = False
        if not others.any() or np.percentile(self.size[others], 25) < LIMITS.reliable_response * self.usual:
            return []
        chance = (self._is_silent(np.flatnonzero(others)).sum() + 1) / (others.sum() + 2)
        limit = LIMITS.max_chance_stretches
        found = [one for one in candidates if others.sum() * chance ** (one[2] - one[1]) < limit]
        return list(dict.fromkeys(self._extend(*one) for one in found))

    def _is_silent(self, places: Indices) -> Flags:
        """Tells in which windows the motion is as if nothing were commanded."""
        small = np.abs(self.size[places]) < LIMITS.silent_response * self.usual
        return small & (self.rest[places] < LIMITS.weak_response * self.usual)

    def _responds_weakly(self, run: Indices) -> bool:
        """Tells whether a run responds, little but always alike: an inertia that is wrong, not a drive that is off."""
        mean, error = float(np.mean(self.size[run])), float(np.std(self.size[run])) / np.sqrt(len(run))
        silent = LIMITS.silent_response * self.usual
        return abs(mean) > min(0.5 * silent, max(4 * error, 0.1 * silent))

    def _extend(self, places: Indices, first: int, end: int) -> tuple[int, int]:
        weak = find_runs(self.size[places] < LIMITS.weak_response * self.usual)
        begin, stop = next((a, b) for a, b in weak if a <= first < b)
        return int(places[begin]), int(places[max(stop, end) - 1])


def find_unresponsive_rows(
    blueprint: CompiledProject, tracks: Sequence[Track], tolerance: ModelTolerance
) -> list[UnusableRows]:
    """Returns rows in which joints do not respond to motors; `find_standstills` looks at servos."""
    found: list[UnusableRows] = []
    predictor = Predictor(blueprint, tolerance.space)
    for drive in list_drives(blueprint):
        constant = all(np.ptp(track.commands[:, drive.command]) == 0 for track in tracks)
        if constant or drive.is_servo or drive.reading < 0:
            continue
        responses = _measure_responses(predictor, tolerance, tracks, drive.command, drive.reading)
        if responses is not None:
            found += _describe_silence(responses, drive.reading_name, drive.command_name)
    return found


def _measure_responses(
    predictor: Predictor, tolerance: ModelTolerance, tracks: Sequence[Track], command: int, column: int
) -> Responses | None:
    """Returns how a measured joint responds to a motor; None where commands do not show in its readings."""
    project = predictor.blueprint.project
    step_s = 1 / project.rate_hz
    windows = cut_windows(project, tracks, max(LIMITS.window_s, LIMITS.min_steps * step_s), from_first_row=True)
    longer = cut_windows(project, tracks, max(3 * LIMITS.window_s, 2 * LIMITS.min_steps * step_s))
    moving = find_moving_windows(project, longer, [column])
    if not len(windows) or not len(moving):
        return None
    rows = tolerance.grid()[:-1]
    some = longer.pick(moving[spread_indices(len(moving), LIMITS.num_tolerance_windows)])
    row = rows[measure_skill(predictor, rows, [some])[0].best_row[column]][None]
    without = replace(windows, commands=windows.commands.copy(), history=windows.history.copy())
    without.commands[..., command], without.history[..., command] = 0.0, 0.0
    driven, free = (predictor.predict(each, row)[0, :, 1:, column] for each in (windows, without))
    known = np.isfinite(windows.measured[:, 1:, column])
    effect = np.where(known, driven - free, 0.0)
    motion = np.where(known, windows.measured[:, 1:, column] - free, 0.0)
    power = np.sum(effect**2, axis=1)
    clear = power > known.sum(axis=1) * (MIN_MOTION_TO_NOISE * line_noise(project, windows)[column]) ** 2
    if clear.sum() < LIMITS.min_windows:
        return None
    divisor = np.where(power > 0, power, 1.0)
    size = np.where(clear & (power > 0), np.sum(motion * effect, axis=1) / divisor, np.nan)
    rest = np.sqrt(np.sum(motion**2, axis=1) / divisor)
    effort = np.abs(windows.commands[:, :, command]).max(axis=1)
    return Responses(windows, size, rest, effort, float(np.nanpercentile(size, 75)))


def _describe_silence(responses: Responses, reading: str, command: str) -> list[UnusableRows]:
    """Returns the rows of silent windows; windows in which a command would not show neither make nor break a run."""
    windows = responses.windows
    text = f"{reading} does not respond to {command}: was the drive off, or the joint blocked?"
    found = responses.find_silent_runs()
    rest = responses.rest[np.isfinite(responses.size)]
    if np.mean(rest < LIMITS.never_share) > 0.9:  # in nearly every window as if nothing were commanded
        logs = [np.flatnonzero(windows.track == track) for track in np.unique(windows.track)]
        found = [(int(places[0]), int(places[-1])) for places in logs]
    firsts, tracks = windows.first_row.tolist(), windows.track.tolist()
    return [UnusableRows(tracks[a], firsts[a], firsts[b] + windows.num_steps, reading, text) for a, b in found]
