"""Readings that stand still where they should move: a stalled servo, or a sensor that froze."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from gapless.check.findings import Stretch, runs
from gapless.check.following import Pair, servo_pairs
from gapless.core.signal import Array, Flags
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject

SPANS_S = (0.5, 2.0)  # over which travels are compared
LATE_S = 0.3  # how much later a reading may follow
MOVES = 0.3  # a reading that travels this share of its command follows it
STANDS = 0.05  # and at this share it stands still
LARGE = 3.0  # a command is large where it travels this many times the usual distance from command to reading
SHORTEST_S = 0.5  # of a stretch
AT_LIMIT = 0.02  # share of a joint's range from its end


def standing(blueprint: CompiledProject, tracks: Sequence[Track]) -> list[Stretch]:
    """Returns the stretches in which a servo's command travels far and the reading of its joint does not follow.

    Friction and play let a reading stand while the command moves a little; so the command must travel `LARGE` times
    as far as it usually is away from the reading. A joint at the end of its range may stand.
    """
    found: list[Stretch] = []
    for pair in servo_pairs(blueprint):
        usual = _usual(blueprint, tracks, pair)
        for index, track in enumerate(tracks):
            still = np.zeros(len(track.measured), dtype=np.bool_)
            for span_s in SPANS_S:
                still |= _stands(blueprint, track, pair, usual, round(span_s * blueprint.project.rate_hz))
            found += _stretches(blueprint, track, (index, pair), still)
    return found


def _stands(blueprint: CompiledProject, track: Track, pair: Pair, usual: float, span: int) -> Flags:
    """Returns the rows of all spans over which the command travels far and the reading does not."""
    sent, read, free = _travels(blueprint, track, pair, span)
    noise = float(track.noise[pair.reading])
    begins = free & (sent > max(LARGE * usual, 20 * noise)) & (read < np.maximum(STANDS * sent, 4 * noise))
    still = np.zeros(len(begins), dtype=np.bool_)
    for first, end in runs(begins):
        still[first : end + span] = True
    return still


def _travels(blueprint: CompiledProject, track: Track, pair: Pair, span: int) -> tuple[Array, Array, Flags]:
    """Returns per row how far the command travels over a span, how far the reading does, and whether it is free to."""
    model, late = blueprint.model, round(LATE_S * blueprint.project.rate_hz)
    low, high = blueprint.command_limits()
    command = np.clip(track.commands[:, pair.command], low[pair.command], high[pair.command]) / pair.gear
    reading = track.smooth[:, pair.reading]
    joint = model.joint(blueprint.project.measurements[pair.reading].name)
    free = np.ones(len(reading), dtype=np.bool_)
    if joint.limited[0]:
        room = AT_LIMIT * (joint.range[1] - joint.range[0])
        free = (reading > joint.range[0] + room) & (reading < joint.range[1] - room)
    return _travel(command, span, 0), _travel(reading, span, late), free


def _travel(values: Array, span: int, late: int) -> Array:
    """Returns the largest minus the smallest value from each row on, over a span and what may come late."""
    size = span + late + 1
    ahead = {"size": size, "origin": -(size // 2), "mode": "nearest"}  # from each row on; the last value goes on
    return maximum_filter1d(values, **ahead) - minimum_filter1d(values, **ahead)


def _usual(blueprint: CompiledProject, tracks: Sequence[Track], pair: Pair) -> float:
    """Returns how far a command usually is from the reading while this follows, a constant offset left out."""
    span = max(2, round(SPANS_S[0] * blueprint.project.rate_hz))
    away: list[Array] = []
    for track in tracks:
        sent, read, _ = _travels(blueprint, track, pair, span)
        distance = track.commands[:, pair.command] / pair.gear - track.smooth[:, pair.reading]
        away.append(np.abs(distance - np.median(distance))[(read > MOVES * sent) & (sent > 0)])
    every = np.concatenate(away) if away else np.zeros(0)
    return float(np.percentile(every, 75)) if len(every) else 0.0


def _stretches(blueprint: CompiledProject, track: Track, where: tuple[int, Pair], still: Flags) -> Iterator[Stretch]:
    (index, pair), project = where, blueprint.project
    item, command = project.measurements[pair.reading], project.commands[pair.command].column
    room = 4 * float(track.noise[pair.reading])
    for begin, end in runs(still):
        first, stop = _extended(track.smooth[:, pair.reading], begin, end, room)
        sent, read = np.ptp(track.commands[first:stop, pair.command]), track.measured[first:stop, pair.reading]
        if stop - first >= SHORTEST_S * project.rate_hz:
            frozen = len(np.unique(read[np.isfinite(read)])) <= 1
            why = "did the sensor freeze?" if frozen else "was it stalled, or its drive off?"
            text = f"{item.column} stands still while {command} travels {sent:.3g} {item.unit}: {why}"
            yield Stretch(index, first, stop, item.column, text)


def _extended(reading: Array, first: int, end: int, room: float) -> tuple[int, int]:
    """Returns the run of rows about a stretch in which a reading stays where it stands."""
    near = np.abs(reading - np.median(reading[first:end])) <= room
    return next(((a, b) for a, b in runs(near) if a <= (first + end) // 2 < b), (first, end))
