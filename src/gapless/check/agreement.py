"""Checks that need no prediction and that anyone can verify: velocities and positions, positions and servos."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.signal import correlate

from gapless.check.findings import Drive, Finding, list_measured_servos, name_wrong_unit
from gapless.core.signal import Array, Indices
from gapless.project.records import Project
from gapless.signals.track import Track, quaternion_columns
from gapless.sim.blueprint import CompiledProject
from gapless.sim.measurements import body_rate

SAME_MOTION_CORRELATION = 0.8  # above, a column is the rate of a position, but for sign and unit
OTHER_MOTION_CORRELATION = 0.4  # below, it is not
MIN_SLOPE_TO_ERROR = 5.0  # of the position's slopes to their standard error, to compare at all
MAX_SIZE_RATIO = 2.0  # by which a velocity may differ in size from the position's slope: filters do that
MIN_SAMPLES = 20
_RATE_OF = {"position": "velocity", "x": "vx", "y": "vy", "z": "vz"}


def find_rate_contradictions(project: Project, tracks: Sequence[Track]) -> list[Finding]:
    """Returns columns that cannot be position and velocity of the same thing, as mapped."""
    places = {(item.element, item.name, item.quantity): k for k, item in enumerate(project.measurements)}
    found: list[Finding] = []
    for (element, name, quantity), one in places.items():
        other = places.get((element, name, _RATE_OF.get(quantity, "")))
        if other is not None:
            slopes = [np.where(np.isfinite(t.measured[:, one]), t.slope[:, one], np.nan) for t in tracks]
            errors = [t.slope_sd[one] for t in tracks]
            found += _compare_rates(project, project.measurements[one].column, other, tracks, slopes, errors)
    for columns in quaternion_columns(project):
        body = project.measurements[columns[0]].name
        for axis, quantity in enumerate(("wx", "wy", "wz") if len(columns) == 4 else ()):
            other = places.get(("body", body, quantity))
            if other is not None:
                slopes = [body_rate(t.smooth[:, columns], t.slope[:, columns])[:, axis] for t in tracks]
                errors = [2 * float(np.linalg.norm(t.slope_sd[columns])) for t in tracks]
                found += _compare_rates(project, f"{body}'s quaternion", other, tracks, slopes, errors)
    return found


def _compare_rates(
    project: Project,
    origin: str,
    column: int,
    tracks: Sequence[Track],
    slopes: Sequence[Array],
    errors: Sequence[float],
) -> list[Finding]:
    """Returns that a column is not the rate of what has these slopes in the tracks, with these errors, if it is not."""
    velocity, slope = np.concatenate([track.measured[:, column] for track in tracks]), np.concatenate(slopes)
    known = np.isfinite(velocity) & np.isfinite(slope)
    error = np.repeat(errors, [len(one) for one in slopes])[known]
    velocity, slope = velocity[known], slope[known]
    noise = float(np.sqrt(np.mean(error**2))) if known.any() else 0.0
    if len(slope) < MIN_SAMPLES or np.std(slope) < MIN_SLOPE_TO_ERROR * noise or not np.std(velocity) > 0:
        return []
    item = project.measurements[column]
    names = (item.column, origin)
    correlation, ratio = float(np.corrcoef(slope, velocity)[0, 1]), float(np.std(velocity) / np.std(slope))
    why = f"{item.column} is not the rate of {origin} (correlation {correlation:.2f}, {ratio:.3g} times its size)"
    if correlation < -SAME_MOTION_CORRELATION:
        return [Finding(names, f"{why}: one of them has the wrong sign; set scale: -1 there")]
    if correlation > SAME_MOTION_CORRELATION and not 1 / MAX_SIZE_RATIO < ratio < MAX_SIZE_RATIO:
        unit = name_wrong_unit(item.unit, ratio)
        hint = f"one of them is in {unit}" if unit else "look at their units"
        return [Finding(names, f"{why}: {hint}; set its scale")]
    if abs(correlation) < OTHER_MOTION_CORRELATION:
        return [Finding(names, f"{why}: is one of them another's column? correct gapless.yaml")]
    return []


MIN_LAG_S, MAX_LAG_S = -0.3, 0.6  # how much later a reading may come than its command
FOLLOWS_CORRELATION = 0.8  # above, a reading follows a command
UNRELATED_CORRELATION = 0.5  # below, it does not
MAX_LEAD_VARIANCE = 0.25  # share of the variance that the best lag >= 0 leaves, for a negative lag to be believed
MIN_MOTION_TO_NOISE = 10.0  # of a reading, to be compared at all


@dataclass(frozen=True)
class Following:
    """How every reading follows every command of a position servo, over all logs."""

    pairs: tuple[Drive, ...]  # the servos whose joints are measured and move
    max_correlation: Array  # (num_pairs, num_pairs) [1] largest of reading i with command j, at any lag >= 0
    min_correlation: Array  # (num_pairs, num_pairs) [1] smallest
    slope: Array  # (num_pairs, num_pairs) reading i per command j at the largest correlation, in joint units
    lead_s: Array  # (num_pairs,) how much earlier each reading comes than its own command [s]; 0 where it does not

    @property
    def sound_readings(self) -> set[int]:
        """Columns of readings that follow their own command as they should: nothing is wrong with them."""
        return {
            pair.reading
            for k, pair in enumerate(self.pairs)
            if self.max_correlation[k, k] > FOLLOWS_CORRELATION and 0.3 < self.slope[k, k] < 3
        }


def measure_following(blueprint: CompiledProject, tracks: Sequence[Track]) -> Following:
    """Returns how readings follow commands; joints that hardly move are left out.

    A reading is compared with the command some rows earlier, reading = slope * command + const, over all logs
    together, the means taken out log by log.
    """
    rate_hz = blueprint.project.rate_hz
    lags = np.arange(round(MIN_LAG_S * rate_hz), round(MAX_LAG_S * rate_hz) + 1)
    long = [track for track in tracks if len(track.measured) > 2 * len(lags)]
    pairs = tuple(pair for pair in list_measured_servos(blueprint) if long and _moves_clearly(pair, long))
    largest, smallest, slope = np.zeros((3, len(pairs), len(pairs)))
    lead_s = np.zeros(len(pairs))
    for i, reader in enumerate(pairs):
        for j, sender in enumerate(pairs):
            correlation, slopes = regress_on_command(reader.reading, sender, long, lags)
            causal = np.where(lags >= 0, correlation, np.nan)
            best = int(np.nanargmax(causal))
            largest[i, j], smallest[i, j], slope[i, j] = causal[best], np.nanmin(causal), slopes[best]
            if i == j and np.max(correlation) > causal[best]:  # does a negative lag leave far less unexplained?
                lead = int(np.argmax(correlation))
                if 1 - correlation[lead] ** 2 < MAX_LEAD_VARIANCE * (1 - causal[best] ** 2):
                    lead_s[i] = -lags[lead] / rate_hz
    return Following(pairs, largest, smallest, slope, lead_s)


def find_following_faults(blueprint: CompiledProject, following: Following) -> list[Finding]:
    """Returns wrong signs, units, places and clocks that show in how readings follow commands."""
    found: list[Finding] = []
    for k, pair in enumerate(following.pairs):
        own, least, slope = (m[k, k] for m in (following.max_correlation, following.min_correlation, following.slope))
        reading, command = columns = pair.reading_name, pair.command_name
        unit = name_wrong_unit(blueprint.project.measurements[pair.reading].unit, slope)
        if own < UNRELATED_CORRELATION and least < -FOLLOWS_CORRELATION:
            why = f"correlation {least:.2f}, at no delay better than {own:.2f} the other way"
            text = f"{reading} moves against its command {command} ({why}): one of them has the wrong sign"
            found.append(Finding(columns, f"{text}; set scale: -1 there"))
        elif own > FOLLOWS_CORRELATION and unit:
            why = f"{reading} moves {slope:.3g} times as far as its command {command}"
            found.append(Finding(columns, f"{why}: one of them is in {unit}; set its scale"))
        elif own < UNRELATED_CORRELATION:
            found += _find_other_command(following, k)
    return found + _find_clock_fault(following)


def _find_other_command(following: Following, k: int) -> list[Finding]:
    """Returns that a reading follows another joint's command, if it does."""
    correlation = following.max_correlation
    best = int(np.argmax(correlation[k]))
    if best == k or correlation[k, best] < FOLLOWS_CORRELATION:
        return []
    own, other = following.pairs[k], following.pairs[best]
    why = f"correlation {correlation[k, best]:.2f}, with its own {own.command_name} {correlation[k, k]:.2f}"
    text = f"{own.reading_name} follows {other.command_name} ({why})"
    if correlation[best, k] > FOLLOWS_CORRELATION and correlation[best, best] < UNRELATED_CORRELATION:
        if best < k:
            return []  # reported already, the other way round
        columns = (own.reading_name, other.reading_name, own.command_name, other.command_name)
        swapped = f"{own.reading_name} and {other.reading_name} are swapped, or their commands are"
        text = f"{text}, and {other.reading_name} follows {own.command_name}: {swapped}; swap them in gapless.yaml"
        return [Finding(columns, text)]
    columns = (own.reading_name, other.command_name)
    return [Finding(columns, f"{text}: is it another joint's column? correct gapless.yaml")]


def _find_clock_fault(following: Following) -> list[Finding]:
    """Returns that readings come before their commands, if most of those that follow at all do."""
    leads_s = following.lead_s[np.diag(following.max_correlation) > UNRELATED_CORRELATION]
    if not len(leads_s) or np.mean(leads_s > 0) <= 0.5:
        return []
    size = f"about {1000 * float(np.median(leads_s[leads_s > 0])):.0f} ms"
    text = f"readings are stamped {size} earlier than the commands that cause them"
    readings = tuple(pair.reading_name for pair in following.pairs)
    return [Finding(readings, f"{text}: shift the time stamps of one of them")]


def _moves_clearly(pair: Drive, tracks: Sequence[Track]) -> bool:
    command = np.mean([np.var(track.commands[:, pair.command]) for track in tracks])
    reading = np.sqrt(np.mean([np.var(track.smooth[:, pair.reading]) for track in tracks]))
    return bool(command > 0 and reading > MIN_MOTION_TO_NOISE * np.mean([t.noise[pair.reading] for t in tracks]))


def regress_on_command(reading: int, sender: Drive, tracks: Sequence[Track], lags: Indices) -> tuple[Array, Array]:
    """Returns correlation and slope of a reading with a servo's command at each lag in rows, (num_lags,) each."""
    sums = np.zeros((3, len(lags)))
    first, last = max(0, -int(lags[0])), max(0, int(lags[-1]))
    for track in tracks:
        read = track.smooth[last : len(track.measured) - first, reading]
        read = read - read.mean()
        sent = track.commands[:, sender.command] / sender.gear
        sent = sent - sent.mean()
        product = correlate(sent, read, mode="valid")[::-1]  # the largest lag is the earliest command
        sums_of = np.cumsum(np.pad([sent, sent**2], ((0, 0), (1, 0))), axis=1)
        total, squares = (sums_of[:, len(read) :] - sums_of[:, : -len(read)])[:, ::-1]
        sums += product, np.full(len(lags), read @ read), np.maximum(squares - total**2 / len(read), 0.0)
    product, read2, sent2 = sums
    return product / np.sqrt(np.maximum(read2 * sent2, 1e-300)), product / np.maximum(sent2, 1e-300)


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


TARGET = "log the target itself"
INCREMENTS = (  # the slopes of the last are in 1/s: the target is reached in 10 ms to 1 s
    Increment(
        "steps of the target from row to row",
        "follows its running sum",
        f"{TARGET}: {{reading}} at the start + the running sum of {{command}}",
        *(0.9, 0.5, 2.0),
    ),
    Increment(
        "the velocity of the target",
        "follows its integral",
        f"{TARGET}, or have a velocity actuator in the model",
        *(0.9, 0.5, 2.0),
    ),
    Increment(
        "the target minus the position",
        "travels with it",
        f"{TARGET}: {{command}} + {{reading}}, row by row",
        *(0.8, 1.0, 100.0),
    ),
)


def find_increments(blueprint: CompiledProject, following: Following, tracks: Sequence[Track]) -> list[Finding]:
    """Returns that commands of position servos are increments, not targets, if they are: one finding per kind."""
    found: dict[Increment, list[tuple[str, str]]] = {}
    for k, pair in enumerate(following.pairs):
        own, command, reading = float(following.max_correlation[k, k]), pair.command_name, pair.reading_name
        kind, correlation = _classify_command(blueprint.project.rate_hz, pair, own, tracks)
        if kind is not None:
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
    rate_hz: float, pair: Drive, own: float, tracks: Sequence[Track]
) -> tuple[Increment | None, float]:
    """Returns which kind of increment a command is, with the correlation that shows it; None if it may be a target.

    `own` is the largest correlation of the reading with the command as a target.
    """
    lags = np.arange(max(1, round(MAX_LAG_S * rate_hz)) + 1)
    long = [track for track in tracks if len(track.measured) > 2 * len(lags)]
    travelled, per_row, target_weight = max(_fit_travel(pair, long, int(lag)) for lag in lags[1:])
    summed = [replace(track, commands=np.cumsum(track.commands, axis=0)) for track in long]
    follows, per_sum = max(zip(*regress_on_command(pair.reading, pair, summed, lags), strict=True))
    shown = ((follows, per_sum), (follows, per_sum * rate_hz), (travelled, per_row * rate_hz))
    possible = [
        (float(correlation), kind)
        for kind, (correlation, slope) in zip(INCREMENTS, shown, strict=True)
        if correlation > kind.min_correlation and kind.min_slope < slope < kind.max_slope
        if 1 - correlation**2 < MAX_SHARE_LEFT * (1 - own**2)
    ]
    if not possible or abs(target_weight) > MAX_TARGET_WEIGHT:
        return None, 0.0
    correlation, kind = max(possible, key=lambda entry: entry[0])
    return kind, correlation


def _fit_travel(pair: Drive, tracks: Sequence[Track], lag: int) -> tuple[float, float, float]:
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
