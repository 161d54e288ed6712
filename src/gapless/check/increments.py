"""Check: commands of position servos must be targets, not increments, as data sets for policies often have them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.check.columns import ServoPair
from gapless.check.findings import Finding
from gapless.check.following import MAX_LAG_S, Following, regress_on_command
from gapless.core.signal import Array
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject

MAX_SHARE_LEFT = 0.5  # of the variance that is left if commands are targets, for them to be increments
MAX_TARGET_WEIGHT = 0.4  # b in command = a travel + b position: 1 of a target, however slowly it is reached, else 0


@dataclass(frozen=True)
class Increment:
    """A kind of command that is no target of a position servo.

    The limits were set on 41 sets of logs, 38 motions of a real arm of six servos and the bundled examples: as logged
    the correlations are at most 0.65 and 0.72; with targets replaced by increments most are 0.9 to 1.
    """

    name: str  # what it is
    sign: str  # what the reading does with it
    remedy: str  # what to do
    min_correlation: float  # of the reading with what follows from the command
    min_slope: float  # how far the reading goes, at least, per what follows from the command
    max_slope: float  # the same, at most


DISTANCE = Increment(
    "the target minus the position",
    "travels with it",
    "log the target itself: {command} + {reading}, row by row",
    *(0.8, 1.0, 100.0),  # [1/s]: the target is reached in 10 ms to 1 s
)
STEP = Increment(
    "steps of the target from row to row",
    "follows its running sum",
    "log the target itself: {reading} at the start + the running sum of {command}",
    *(0.9, 0.5, 2.0),
)
VELOCITY = Increment(
    "the velocity of the target",
    "follows its integral",
    "log the target itself, or have a velocity actuator in the model",
    *(0.9, 0.5, 2.0),
)


def find_increments(blueprint: CompiledProject, following: Following, tracks: Sequence[Track]) -> list[Finding]:
    """Returns that commands of position servos are increments, not targets, if they are: one finding per kind."""
    project, rate_hz = blueprint.project, blueprint.project.rate_hz
    found: dict[Increment, list[tuple[str, str]]] = {}
    for k, pair in enumerate(following.pairs):
        own, command = float(following.max_correlation[k, k]), project.commands[pair.command].column
        kind, correlation = _classify_command(rate_hz, pair, own, tracks)
        if kind is not None:
            reading = project.measurements[pair.reading].column
            why = f"{reading} {kind.sign} (correlation {correlation:.2f}; with {command} as a target {own:.2f})"
            remedy = kind.remedy.format(command=command, reading=reading)
            found.setdefault(kind, []).append((command, f"{why}; {remedy}"))
    findings: list[Finding] = []
    for kind, entries in found.items():
        commands, whys = zip(*entries, strict=True)
        more = f", and so do {', '.join(commands[1:])}" if commands[1:] else ""
        text = f"{commands[0]} looks like {kind.name}{more}, but is mapped to a position servo: {whys[0]}"
        findings.append(Finding(commands, text, prevents_fit=True))
    return findings


def _classify_command(
    rate_hz: float, pair: ServoPair, own: float, tracks: Sequence[Track]
) -> tuple[Increment | None, float]:
    """Returns which kind of increment a command is, with the correlation that shows it; None if it may be a target.

    Args:
        rate_hz: Of the tracks.
        pair: The command and the reading.
        own: Largest correlation of the reading with the command as a target.
        tracks: The logs.
    """
    lags = np.arange(max(1, round(MAX_LAG_S * rate_hz)) + 1)
    long = [track for track in tracks if len(track.measured) > 2 * len(lags)]
    travelled, per_row, target_weight = max(_fit_travel(pair, long, int(lag)) for lag in lags[1:])
    summed = [replace(track, commands=np.cumsum(track.commands, axis=0)) for track in long]
    follows, per_sum = max(zip(*regress_on_command(pair.reading, pair, summed, lags), strict=True))
    shown = ((STEP, follows, per_sum), (VELOCITY, follows, per_sum * rate_hz), (DISTANCE, travelled, per_row * rate_hz))
    possible = [
        (float(correlation), kind)
        for kind, correlation, slope in shown
        if correlation > kind.min_correlation and kind.min_slope < slope < kind.max_slope
        if 1 - correlation**2 < MAX_SHARE_LEFT * (1 - own**2)
    ]
    if not possible or abs(target_weight) > MAX_TARGET_WEIGHT:
        return None, 0.0
    correlation, kind = max(possible, key=lambda entry: entry[0])
    return kind, correlation


def _fit_travel(pair: ServoPair, tracks: Sequence[Track], lag: int) -> tuple[float, float, float]:
    """Returns how a reading travels from each row on over a lag, beside the command there.

    These are the correlation with the command, the travel per row and per command, and b in
    command = a travel + b position.
    """
    parts: list[Array] = []
    for track in tracks:
        read, sent = track.smooth[:, pair.reading], track.commands[:-lag, pair.command] / pair.gear
        part = np.stack([sent, read[lag:] - read[:-lag], read[lag:]])
        parts.append(part - part.mean(axis=1, keepdims=True))
    sent, travel, position = np.concatenate(parts, axis=1)
    weights = np.linalg.lstsq(np.stack([travel, position], axis=1), sent)[0]
    product, size = float(sent @ travel), float(sent @ sent)
    correlation = product / np.sqrt(max(size * float(travel @ travel), 1e-300))
    return correlation, product / max(lag * size, 1e-300), float(weights[1])
