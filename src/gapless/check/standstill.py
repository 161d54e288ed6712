"""Check: readings that stand still where their servo's command travels: a stalled servo, or a frozen sensor."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from gapless.check.columns import ServoPair, list_servo_pairs
from gapless.check.findings import UnusableRows, find_runs
from gapless.core.signal import Array, Flags
from gapless.signals.track import Track
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
    for pair in list_servo_pairs(blueprint):
        distance = _usual_distance(blueprint, tracks, pair)
        for index, track in enumerate(tracks):
            still = np.zeros(len(track.measured), dtype=np.bool_)
            for span_s in SPANS_S:
                still |= _find_still_rows(blueprint, track, pair, distance, round(span_s * blueprint.project.rate_hz))
            found += _describe_stretches(blueprint, index, track, pair, still)
    return found


def _find_still_rows(blueprint: CompiledProject, track: Track, pair: ServoPair, distance: float, span: int) -> Flags:
    """Returns the rows of all spans over which the command travels far and the reading does not."""
    sent, read, free = _measure_travels(blueprint, track, pair, span)
    noise = float(track.noise[pair.reading])
    large = sent > max(MIN_TRAVEL_TO_DISTANCE * distance, 20 * noise)
    begins = free & large & (read < np.maximum(STILL_SHARE * sent, 4 * noise))
    still = np.zeros(len(begins), dtype=np.bool_)
    for first, end in find_runs(begins):
        still[first : end + span] = True
    return still


def _measure_travels(
    blueprint: CompiledProject, track: Track, pair: ServoPair, span: int
) -> tuple[Array, Array, Flags]:
    """Returns per row how far the command travels over a span, how far the reading does, and whether it is free to."""
    low, high = blueprint.command_limits()
    command = np.clip(track.commands[:, pair.command], low[pair.command], high[pair.command]) / pair.gear
    reading = track.smooth[:, pair.reading]
    joint = blueprint.model.joint(blueprint.project.measurements[pair.reading].name)
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


def _usual_distance(blueprint: CompiledProject, tracks: Sequence[Track], pair: ServoPair) -> float:
    """Returns how far a command usually is from the reading while this follows, a constant offset left out."""
    span = max(2, round(SPANS_S[0] * blueprint.project.rate_hz))
    distances: list[Array] = []
    for track in tracks:
        sent, read, _ = _measure_travels(blueprint, track, pair, span)
        distance = track.commands[:, pair.command] / pair.gear - track.smooth[:, pair.reading]
        distances.append(np.abs(distance - np.median(distance))[(read > MOVING_SHARE * sent) & (sent > 0)])
    every = np.concatenate(distances) if distances else np.zeros(0)
    return float(np.percentile(every, 75)) if len(every) else 0.0


def _describe_stretches(
    blueprint: CompiledProject, index: int, track: Track, pair: ServoPair, still: Flags
) -> Iterator[UnusableRows]:
    project = blueprint.project
    item, command = project.measurements[pair.reading], project.commands[pair.command].column
    for begin, end in find_runs(still):
        first, stop = _extend(track.smooth[:, pair.reading], begin, end, 4 * float(track.noise[pair.reading]))
        sent, read = np.ptp(track.commands[first:stop, pair.command]), track.measured[first:stop, pair.reading]
        if stop - first >= MIN_STRETCH_S * project.rate_hz:
            frozen = len(np.unique(read[np.isfinite(read)])) <= 1
            why = "did the sensor freeze?" if frozen else "was it stalled, or its drive off?"
            text = f"{item.column} stands still while {command} travels {sent:.3g} {item.unit}: {why}"
            yield UnusableRows(index, first, stop, item.column, text)


def _extend(reading: Array, first: int, end: int, margin: float) -> tuple[int, int]:
    """Returns the run of rows about a stretch in which a reading stays within a margin of where it stands."""
    near = np.abs(reading - np.median(reading[first:end])) <= margin
    return next(((a, b) for a, b in find_runs(near) if a <= (first + end) // 2 < b), (first, end))
