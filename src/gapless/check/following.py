"""Do joints follow the commands of their position servos? Evidence that needs no model, and that anyone can check."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.signal import correlate

from gapless.check.findings import Mistake
from gapless.check.units import wrong_unit
from gapless.core.signal import Array, Indices
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject
from gapless.sim.targets import driven_joint, is_position_servo

EARLIEST_S, LATEST_S = -0.3, 0.6  # how much later a reading may come than its command
FOLLOWS = 0.8  # correlation from which on a joint follows a command
STRANGER = 0.5  # correlation below which it does not
LEADS = 0.25  # a negative lag must leave this share of the variance that the best other lag leaves, or less

MAX_SHARE_LEFT = 0.5  # of the variance that is left if commands are targets, for them to be increments
MAX_TARGET_WEIGHT = 0.4  # b in command = a travel + b position: 1 of a target, however slowly it is reached, else 0


@dataclass(frozen=True)
class Increment:
    """A kind of command that is no target of a position servo.

    The limits were set on 41 sets of logs, 38 motions of a real arm of six servos and the bundled examples: as logged
    the correlations are at most 0.65 and 0.72; with targets replaced by increments most are 0.9 to 1.

    Attributes:
        name: What it is.
        sign: What the reading does with it.
        remedy: What to do.
        min_correlation: Of the reading with what follows from the command.
        min_slope: How far the reading goes, at least, per what follows from the command.
        max_slope: The same, at most.
    """

    name: str
    sign: str
    remedy: str
    min_correlation: float
    min_slope: float
    max_slope: float


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


@dataclass(frozen=True)
class Pair:
    """A servo's command beside the reading of the joint that it drives: their columns, and command per joint travel."""

    command: int
    reading: int
    gear: float


@dataclass(frozen=True)
class Following:
    """How every reading follows every command of a position servo, over all logs.

    Attributes:
        pairs: The servos whose joints are measured and move.
        with_it: (num_pairs, num_pairs) [1] largest correlation of reading i with command j, at any lag >= 0.
        against: (num_pairs, num_pairs) [1] smallest.
        slope: (num_pairs, num_pairs) reading i per command j at the first of these, in joint units.
        lead_s: (num_pairs,) how much earlier each reading comes than its own command [s]; 0 where it does not.
    """

    pairs: tuple[Pair, ...]
    with_it: Array
    against: Array
    slope: Array
    lead_s: Array


def find_following(blueprint: CompiledProject, tracks: Sequence[Track]) -> Following:
    """Returns how readings follow commands; joints that do not move enough to tell are left out.

    A reading is compared with the command some rows earlier, reading = slope * command + const, over all logs
    together, the means taken out log by log.
    """
    rate_hz = blueprint.project.rate_hz
    lags = np.arange(round(EARLIEST_S * rate_hz), round(LATEST_S * rate_hz) + 1)
    long = [track for track in tracks if len(track.measured) > 2 * len(lags)]
    pairs = tuple(pair for pair in servo_pairs(blueprint) if long and _moves(pair, long))
    with_it, against, slope = np.zeros((3, len(pairs), len(pairs)))
    lead_s = np.zeros(len(pairs))
    for i, reader in enumerate(pairs):
        for j, sender in enumerate(pairs):
            correlation, slopes = _regress(reader, sender, long, lags)
            causal = np.where(lags >= 0, correlation, np.nan)
            best = int(np.nanargmax(causal))
            with_it[i, j], against[i, j], slope[i, j] = causal[best], np.nanmin(causal), slopes[best]
            if i == j:
                lead_s[i] = _lead(correlation, lags) / rate_hz
    return Following(pairs, with_it, against, slope, lead_s)


def followed(following: Following) -> set[int]:
    """Returns the columns of readings that follow their own command as they should: no mistake in them."""
    return {
        pair.reading
        for k, pair in enumerate(following.pairs)
        if following.with_it[k, k] > FOLLOWS and 0.3 < following.slope[k, k] < 3
    }


def unfollowed(blueprint: CompiledProject, following: Following) -> list[Mistake]:
    """Returns mistakes that show in how readings follow commands."""
    project, found = blueprint.project, list[Mistake]()
    reads = [project.measurements[pair.reading].column for pair in following.pairs]
    sends = [project.commands[pair.command].column for pair in following.pairs]
    for k, pair in enumerate(following.pairs):
        own, columns, slope = following.with_it[k, k], (reads[k], sends[k]), following.slope[k, k]
        unit = wrong_unit(project.measurements[pair.reading].unit, slope)
        if own < STRANGER and following.against[k, k] < -FOLLOWS:
            why = f"correlation {following.against[k, k]:.2f}, at no delay better than {own:.2f} the other way"
            text = f"{reads[k]} moves against its command {sends[k]} ({why}): one of them has the wrong sign"
            found.append(Mistake(columns, f"{text}; set scale: -1 there"))
        elif own > FOLLOWS and unit:
            why = f"{reads[k]} moves {slope:.3g} times as far as its command {sends[k]}"
            found.append(Mistake(columns, f"{why}: one of them is in {unit}; set its scale"))
        elif own < STRANGER:
            found += _stranger(following, k, reads, sends)
    return found + _leading(following, reads)


def find_increments(blueprint: CompiledProject, following: Following, tracks: Sequence[Track]) -> list[Mistake]:
    """Returns that commands of position servos are increments, not targets, if they are: one mistake per kind."""
    project, rate_hz = blueprint.project, blueprint.project.rate_hz
    found: dict[Increment, list[tuple[str, str]]] = {}
    for k, pair in enumerate(following.pairs):
        own, command = float(following.with_it[k, k]), project.commands[pair.command].column
        kind, correlation = _classify_increment(rate_hz, pair, own, tracks)
        if kind is not None:
            reading = project.measurements[pair.reading].column
            why = f"{reading} {kind.sign} (correlation {correlation:.2f}; with {command} as a target {own:.2f})"
            found.setdefault(kind, []).append(
                (command, f"{why}; {kind.remedy.format(command=command, reading=reading)}")
            )
    mistakes: list[Mistake] = []
    for kind, entries in found.items():
        commands, whys = zip(*entries, strict=True)
        more = f", and so do {', '.join(commands[1:])}" if commands[1:] else ""
        text = f"{commands[0]} looks like {kind.name}{more}, but is mapped to a position servo: {whys[0]}"
        mistakes.append(Mistake(commands, text, prevents_fit=True))
    return mistakes


def _classify_increment(
    rate_hz: float, pair: Pair, own: float, tracks: Sequence[Track]
) -> tuple[Increment | None, float]:
    """Returns which kind of increment a command is, with the correlation that shows it; None if it may be a target.

    Args:
        rate_hz: Of the tracks.
        pair: The command and the reading.
        own: Largest correlation of the reading with the command as a target.
        tracks: The logs.
    """
    lags = np.arange(max(1, round(LATEST_S * rate_hz)) + 1)
    long = [track for track in tracks if len(track.measured) > 2 * len(lags)]
    travelled, per_row, target_weight = max(_fit_travel(pair, long, int(lag)) for lag in lags[1:])
    summed = [replace(track, commands=np.cumsum(track.commands, axis=0)) for track in long]
    follows, per_sum = max(zip(*_regress(pair, pair, summed, lags), strict=True))
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


def _fit_travel(pair: Pair, tracks: Sequence[Track], lag: int) -> tuple[float, float, float]:
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
    both, size = float(sent @ travel), float(sent @ sent)
    return both / np.sqrt(max(size * float(travel @ travel), 1e-300)), both / max(lag * size, 1e-300), float(weights[1])


def _stranger(following: Following, k: int, reads: Sequence[str], sends: Sequence[str]) -> list[Mistake]:
    """Returns that a reading follows another joint's command, if it does."""
    best = int(np.argmax(following.with_it[k]))
    if best == k or following.with_it[k, best] < FOLLOWS:
        return []
    why = f"correlation {following.with_it[k, best]:.2f}, with its own {sends[k]} {following.with_it[k, k]:.2f}"
    text = f"{reads[k]} follows {sends[best]} ({why})"
    if following.with_it[best, k] > FOLLOWS and following.with_it[best, best] < STRANGER:
        if best < k:
            return []  # said already, the other way round
        columns = (reads[k], reads[best], sends[k], sends[best])
        swapped = f"{reads[best]} follows {sends[k]}: {reads[k]} and {reads[best]} are swapped, or their commands are"
        return [Mistake(columns, f"{text}, and {swapped}; swap them in gapless.yaml")]
    return [Mistake((reads[k], sends[best]), f"{text}: is it another joint's column? correct gapless.yaml")]


def _leading(following: Following, reads: Sequence[str]) -> list[Mistake]:
    """Returns that readings come before their commands, if most of those that follow at all do."""
    leads_s = following.lead_s[np.diag(following.with_it) > STRANGER]
    if not len(leads_s) or np.mean(leads_s > 0) <= 0.5:
        return []
    size = f"about {1000 * float(np.median(leads_s[leads_s > 0])):.0f} ms"
    text = f"readings are stamped {size} earlier than the commands that cause them"
    return [Mistake(tuple(reads), f"{text}: shift the time stamps of one of them")]


def _lead(correlation: Array, lags: Indices) -> int:
    """Returns by how many rows a reading leads its command; 0 unless that leaves far less unexplained."""
    best = int(np.argmax(correlation))
    causal = float(np.max(correlation[lags >= 0]))
    left, otherwise = 1 - correlation[best] ** 2, 1 - causal**2
    return int(-lags[best]) if lags[best] < 0 and left < LEADS * otherwise else 0


def servo_pairs(blueprint: CompiledProject) -> list[Pair]:
    """Returns the position servos whose joints are measured."""
    model, found = blueprint.model, list[Pair]()
    for command, actuator in enumerate(blueprint.actuator_ids):
        joint = driven_joint(model, actuator)
        if joint is None or not is_position_servo(model, actuator):
            continue
        for reading, item in enumerate(blueprint.project.measurements):
            if (item.element, item.quantity, item.name) == ("joint", "position", model.joint(joint).name):
                found.append(Pair(command, reading, float(model.actuator_gear[actuator, 0]) or 1.0))
    return found


def _moves(pair: Pair, tracks: Sequence[Track]) -> bool:
    """Tells whether the command moves, and the reading clearly more than its noise."""
    command = np.mean([np.var(track.commands[:, pair.command]) for track in tracks])
    reading = np.sqrt(np.mean([np.var(track.smooth[:, pair.reading]) for track in tracks]))
    return bool(command > 0 and reading > 10 * np.mean([track.noise[pair.reading] for track in tracks]))


def _regress(reader: Pair, sender: Pair, tracks: Sequence[Track], lags: Indices) -> tuple[Array, Array]:
    """Returns correlation and slope of a reading with a command at each lag, (num_lags,) each."""
    sums = np.zeros((3, len(lags)))
    first, last = max(0, -int(lags[0])), max(0, int(lags[-1]))
    for track in tracks:
        stop = len(track.measured) - first
        read = track.smooth[last:stop, reader.reading]
        read = read - read.mean()
        sent = track.commands[:, sender.command] / sender.gear
        sent = sent - sent.mean()
        both = correlate(sent, read, mode="valid")[::-1]  # the largest lag is the earliest command
        total, squares = (_moving_sums(values, len(read))[::-1] for values in (sent, sent**2))
        sums += both, np.full(len(lags), read @ read), np.maximum(squares - total**2 / len(read), 0.0)
    both, read2, sent2 = sums
    return both / np.sqrt(np.maximum(read2 * sent2, 1e-300)), both / np.maximum(sent2, 1e-300)


def _moving_sums(values: Array, count: int) -> Array:
    """Returns the sum of every `count` values in a row."""
    sums = np.cumsum(np.concatenate([[0.0], values]))
    return sums[count:] - sums[:-count]
