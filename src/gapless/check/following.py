"""Check: joints must follow the commands of their position servos. It needs no prediction, and anyone can verify it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.signal import correlate

from gapless.check.columns import ServoPair, list_servo_pairs, name_wrong_unit
from gapless.check.findings import Finding
from gapless.core.signal import Array, Indices
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject

MIN_LAG_S, MAX_LAG_S = -0.3, 0.6  # how much later a reading may come than its command
FOLLOWS_CORRELATION = 0.8  # above, a reading follows a command
UNRELATED_CORRELATION = 0.5  # below, it does not
MAX_LEAD_VARIANCE = 0.25  # share of the variance that the best lag >= 0 leaves, for a negative lag to be believed
MIN_MOTION_TO_NOISE = 10.0  # of a reading, to be compared at all


@dataclass(frozen=True)
class Following:
    """How every reading follows every command of a position servo, over all logs."""

    pairs: tuple[ServoPair, ...]  # the servos whose joints are measured and move
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
    pairs = tuple(pair for pair in list_servo_pairs(blueprint) if long and _moves(pair, long))
    largest, smallest, slope = np.zeros((3, len(pairs), len(pairs)))
    lead_s = np.zeros(len(pairs))
    for i, reader in enumerate(pairs):
        for j, sender in enumerate(pairs):
            correlation, slopes = regress_on_command(reader.reading, sender, long, lags)
            causal = np.where(lags >= 0, correlation, np.nan)
            best = int(np.nanargmax(causal))
            largest[i, j], smallest[i, j], slope[i, j] = causal[best], np.nanmin(causal), slopes[best]
            if (
                i == j and np.max(correlation) > causal[best]
            ):  # at a negative lag: does that leave far less unexplained?
                lead = int(np.argmax(correlation))
                if 1 - correlation[lead] ** 2 < MAX_LEAD_VARIANCE * (1 - causal[best] ** 2):
                    lead_s[i] = -lags[lead] / rate_hz
    return Following(pairs, largest, smallest, slope, lead_s)


def find_following_faults(blueprint: CompiledProject, following: Following) -> list[Finding]:
    """Returns wrong signs, units, places and clocks that show in how readings follow commands."""
    project, found = blueprint.project, list[Finding]()
    readings = [project.measurements[pair.reading].column for pair in following.pairs]
    commands = [project.commands[pair.command].column for pair in following.pairs]
    for k, pair in enumerate(following.pairs):
        own, least, slope = (m[k, k] for m in (following.max_correlation, following.min_correlation, following.slope))
        reading, command = columns = readings[k], commands[k]
        unit = name_wrong_unit(project.measurements[pair.reading].unit, slope)
        if own < UNRELATED_CORRELATION and least < -FOLLOWS_CORRELATION:
            why = f"correlation {least:.2f}, at no delay better than {own:.2f} the other way"
            text = f"{reading} moves against its command {command} ({why}): one of them has the wrong sign"
            found.append(Finding(columns, f"{text}; set scale: -1 there"))
        elif own > FOLLOWS_CORRELATION and unit:
            why = f"{reading} moves {slope:.3g} times as far as its command {command}"
            found.append(Finding(columns, f"{why}: one of them is in {unit}; set its scale"))
        elif own < UNRELATED_CORRELATION:
            found += _find_other_command(following, k, readings, commands)
    return found + _find_clock_fault(following, readings)


def _find_other_command(
    following: Following, k: int, readings: Sequence[str], commands: Sequence[str]
) -> list[Finding]:
    """Returns that a reading follows another joint's command, if it does."""
    correlation = following.max_correlation
    best = int(np.argmax(correlation[k]))
    if best == k or correlation[k, best] < FOLLOWS_CORRELATION:
        return []
    why = f"correlation {correlation[k, best]:.2f}, with its own {commands[k]} {correlation[k, k]:.2f}"
    text = f"{readings[k]} follows {commands[best]} ({why})"
    if correlation[best, k] > FOLLOWS_CORRELATION and correlation[best, best] < UNRELATED_CORRELATION:
        if best < k:
            return []  # reported already, the other way round
        columns = (readings[k], readings[best], commands[k], commands[best])
        swapped = f"{readings[k]} and {readings[best]} are swapped, or their commands are"
        text = f"{text}, and {readings[best]} follows {commands[k]}: {swapped}; swap them in gapless.yaml"
        return [Finding(columns, text)]
    return [Finding((readings[k], commands[best]), f"{text}: is it another joint's column? correct gapless.yaml")]


def _find_clock_fault(following: Following, readings: Sequence[str]) -> list[Finding]:
    """Returns that readings come before their commands, if most of those that follow at all do."""
    leads_s = following.lead_s[np.diag(following.max_correlation) > UNRELATED_CORRELATION]
    if not len(leads_s) or np.mean(leads_s > 0) <= 0.5:
        return []
    size = f"about {1000 * float(np.median(leads_s[leads_s > 0])):.0f} ms"
    text = f"readings are stamped {size} earlier than the commands that cause them"
    return [Finding(tuple(readings), f"{text}: shift the time stamps of one of them")]


def _moves(pair: ServoPair, tracks: Sequence[Track]) -> bool:
    """Tells whether the command moves, and the reading clearly more than its noise."""
    command = np.mean([np.var(track.commands[:, pair.command]) for track in tracks])
    reading = np.sqrt(np.mean([np.var(track.smooth[:, pair.reading]) for track in tracks]))
    noise = np.mean([track.noise[pair.reading] for track in tracks])
    return bool(command > 0 and reading > MIN_MOTION_TO_NOISE * noise)


def regress_on_command(reading: int, sender: ServoPair, tracks: Sequence[Track], lags: Indices) -> tuple[Array, Array]:
    """Returns correlation and slope of a reading with a servo's command at each lag in rows, (num_lags,) each."""
    sums = np.zeros((3, len(lags)))
    first, last = max(0, -int(lags[0])), max(0, int(lags[-1]))
    for track in tracks:
        read = track.smooth[last : len(track.measured) - first, reading]
        read = read - read.mean()
        sent = track.commands[:, sender.command] / sender.gear
        sent = sent - sent.mean()
        product = correlate(sent, read, mode="valid")[::-1]  # the largest lag is the earliest command
        total, squares = (_sum_moving(values, len(read))[::-1] for values in (sent, sent**2))
        sums += product, np.full(len(lags), read @ read), np.maximum(squares - total**2 / len(read), 0.0)
    product, read2, sent2 = sums
    return product / np.sqrt(np.maximum(read2 * sent2, 1e-300)), product / np.maximum(sent2, 1e-300)


def _sum_moving(values: Array, count: int) -> Array:
    """Returns the sum of every `count` values in a row."""
    sums = np.cumsum(np.concatenate([[0.0], values]))
    return sums[count:] - sums[:-count]
