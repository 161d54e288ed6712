"""What names leave open, decided by the order of columns and by what their signals do: meanings, and degrees."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from scipy.optimize import linear_sum_assignment

from gapless.core.results import Note
from gapless.core.signal import Array
from gapless.project.model import command_unit, index, is_hinge, joint_range, measurement_unit, names
from gapless.project.new.guess import Guess, NameGuesser, assign_columns, driven_joint
from gapless.project.new.names import RADIANS_PER_DEGREE, match_names
from gapless.project.records import CommandMap, MeasurementMap

GUESSED_DEGREES = "so degrees"
MIN_SAMPLES = 20  # fewer say nothing
_MIN_CORRELATION = 0.9  # of signals that are the same thing, but for delay, noise and scale
_MIN_IMPROVEMENT = 0.2  # of correlation, before motion overrules order
_RESPONSES = {  # unit of a command -> what follows it
    **{"rad": "position", "rad/s": "velocity", "N·m": "effort"},
    **{"m": "position", "m/s": "velocity", "N": "effort"},
}
_MAX_RADIANS = 3 * np.pi  # of a joint's range, or of values that need not be degrees
_MAX_RANGE_RATIO = 3.0  # between the ranges of a command and of the position that follows it
_MAX_SLOPE_ERROR = 1.5  # factor between a velocity and the derivative of its position
_MIN_SLOPE_CORRELATION = 0.7


@dataclass(frozen=True)
class Signals:
    """Signals of one episode, and how far each goes in all of them."""

    times_s: Array  # (num_samples,) [s]
    columns: Mapping[str, Array]  # as recorded
    peaks: Mapping[str, float]  # largest finite magnitude of each column, in any log

    @classmethod
    def pool(cls, episodes: Sequence[tuple[Array, Mapping[str, Array]]]) -> "Signals":
        """Returns the signals of the longest episode, with the peaks of all that have the same columns."""
        first = episodes[0][1]
        alike = [episode for episode in episodes if first.keys() <= episode[1].keys()]
        times_s, columns = max(alike, key=lambda episode: len(episode[0]))
        pooled = {name: np.abs(np.concatenate([episode[1][name] for episode in alike])) for name in first}
        peaks = {name: float(np.max(sizes, initial=0.0, where=np.isfinite(sizes))) for name, sizes in pooled.items()}
        return cls(times_s, {name: columns[name] for name in first}, peaks)

    def correlation(self, column: str, other: str) -> float:
        """Returns how much two columns move together, in [-1, 1]; 0 where that cannot be said."""
        return _correlate(self._fill_gaps(column), self._fill_gaps(other))

    def slope(self, velocity: str, position: str) -> tuple[float, float]:
        """Returns correlation and slope [1] of a column on the derivative of another over 5 samples; 0 if unknown."""
        speed, values = self._fill_gaps(velocity), self._fill_gaps(position)
        if speed is None or values is None:
            return 0.0, 0.0
        times_s = _interpolate_gaps(self.times_s)
        spread_s, spread = times_s[4:] - times_s[:-4], values[4:] - values[:-4]
        rate = np.pad(np.divide(spread, spread_s, out=np.zeros_like(spread), where=spread_s > 0), 2, mode="edge")
        together = _correlate(speed, rate)
        return together, together * float(np.std(speed) / np.std(rate)) if together else 0.0

    def is_counter(self, column: str) -> bool:
        """Returns whether a column rises with every sample, as clocks and row numbers do and commands do not."""
        values = self.columns[column][np.isfinite(self.columns[column])]
        return len(values) > 2 and bool(np.all(np.diff(values) > 0))

    def _fill_gaps(self, column: str) -> Array | None:
        """Returns a column with its gaps filled in between; None where too little is there or nothing moves."""
        known = self.columns[column][np.isfinite(self.columns[column])]
        return _interpolate_gaps(self.columns[column]) if len(known) >= MIN_SAMPLES and np.ptp(known) else None


def _interpolate_gaps(values: Array) -> Array:
    finite = np.flatnonzero(np.isfinite(values))
    return np.interp(np.arange(len(values)), finite, values[finite])


def _correlate(values: Array | None, others: Array | None) -> float:
    if values is None or others is None or np.std(values) == 0 or np.std(others) == 0:
        return 0.0
    return float(np.corrcoef(values, others)[0, 1])


def guess_columns(
    model: mujoco.MjModel, signals: Signals
) -> tuple[tuple[CommandMap, ...], tuple[MeasurementMap, ...], tuple[Note, ...]]:
    """Returns commands, measurements, and a note for every column on what was guessed and why."""
    guesser = NameGuesser(model, list(signals.columns))
    chosen, reasons = choose_guesses(guesser, signals)
    commands: list[CommandMap] = []
    measurements: list[MeasurementMap] = []
    notes: list[Note] = []
    for column in signals.columns:
        g = chosen.get(column)
        if g is None:
            ignored = guesser.names[column].why_ignored(guesser.words)
            why = reasons.get(column) or ignored or "no name in the model is like it"
            notes.append(Note("info", column, f"not mapped: {why}; add it to gapless.yaml if needed"))
            continue
        if g.quantity == "command":
            commands.append(CommandMap(column, g.name, g.scale, unit=command_unit(model, g.name)))
        else:
            unit = measurement_unit(model, g.element, g.name, g.quantity)
            measurements.append(MeasurementMap(column, g.element, g.name, g.quantity, g.axis, g.scale, unit=unit))
        scale = f" with scale {g.scale:.6g}" if g.scale != 1 else ""
        notes.append(Note("info", column, f"guessed: {g.what}{scale}, as {g.reason}; correct it if wrong"))
    text = "no column commands it, so that simulation leaves it alone: add its column to gapless.yaml"
    notes += [Note("warning", f"actuator {name}", text) for name in _find_idle(model, chosen)]
    return tuple(commands), tuple(measurements), tuple(notes)


def choose_guesses(guesser: NameGuesser, signals: Signals) -> tuple[dict[str, Guess], dict[str, str]]:
    """Returns column -> what it seems to be; and, for columns with guesses of which none was taken, why.

    A guess is `in_order` where nothing but the order of columns says so.
    """
    chosen, reasons = assign_columns({column: guesser.guess(column) for column in signals.columns})
    chosen |= _map_in_order(guesser, chosen, signals)
    chosen |= _correct_order(guesser.model, chosen, signals)
    _Degrees(guesser, chosen, signals).set_scales()
    return chosen, reasons


def _find_idle(model: mujoco.MjModel, chosen: Mapping[str, Guess]) -> list[str]:
    """Returns the actuators that no column commands."""
    driven = {guess.name for guess in chosen.values() if guess.quantity == "command"}
    return [name for name in names(model, "actuator") if name not in driven]


def _map_in_order(guesser: NameGuesser, chosen: Mapping[str, Guess], signals: Signals) -> dict[str, Guess]:
    """Maps columns to actuators that nothing commands, in their order, where there are as many of each."""
    found = {c: n for c, n in guesser.names.items() if c not in chosen and not n.why_ignored(guesser.words)}
    left = {column: name for column, name in found.items() if not signals.is_counter(column)}
    named = [column for column, name in left.items() if name.role == "command"]
    unnamed = [column for column, name in left.items() if not (name.role or _names_something(guesser, name.rest))]
    idle = _find_idle(guesser.model, chosen)
    for columns in (named, unnamed):
        if idle and len(columns) == len(idle):
            reason = "columns and actuators are left in equal number, taken in order"
            return {
                column: Guess(column, "actuator", name, "command", 0, guesser.names[column].scale, 0.5, reason, True)
                for column, name in zip(columns, idle, strict=True)
            }
    return {}


def _names_something(guesser: NameGuesser, rest: Sequence[str]) -> bool:
    return bool(rest) and any(match_names(rest, guesser.known[kind]) for kind in ("joint", "body"))


def _correct_order(model: mujoco.MjModel, chosen: Mapping[str, Guess], signals: Signals) -> dict[str, Guess]:
    """Checks commands that were mapped in order against what then moves; another order is taken if it is clear."""
    ordered = [guess for guess in chosen.values() if guess.in_order and guess.quantity == "command"]
    by_meaning = {guess.what: guess.column for guess in chosen.values()}
    quantities = [_RESPONSES.get(command_unit(model, guess.name), "") for guess in ordered]
    joints = [driven_joint(model, guess.name) for guess in ordered]
    responses = [by_meaning.get(f"joint {joint} {what}", "") for joint, what in zip(joints, quantities, strict=True)]
    if len(ordered) < 2 or not all(responses):
        return {}
    together = np.array([[signals.correlation(g.column, response) for response in responses] for g in ordered])
    places = linear_sum_assignment(together, maximize=True)[1]
    best, given = together[np.arange(len(ordered)), places], np.diag(together)
    moved = places != np.arange(len(ordered))
    is_clear = (best >= _MIN_CORRELATION) & (best - given >= _MIN_IMPROVEMENT)
    if not np.all(is_clear[moved]):
        return {}
    found: dict[str, Guess] = {}
    for guess, place, correlation, is_moved in zip(ordered, places, best, moved, strict=True):
        follows = f"{responses[place]} follows it (correlation {correlation:.2f})"
        if is_moved:
            reason = f"{follows}, though by order it would be {guess.name}"
            found[guess.column] = replace(guess, name=ordered[place].name, reason=reason, in_order=False)
        elif correlation >= _MIN_CORRELATION:
            found[guess.column] = replace(guess, reason=f"{guess.reason}; {follows}", in_order=False)
    return found


@dataclass(frozen=True)
class _Degrees:
    """Finds which columns are in degrees, where their names do not say so; each method returns a clue, or nothing."""

    guesser: NameGuesser
    found: dict[str, Guess]  # column -> guess; the scale of those in degrees is set here
    signals: Signals

    def set_scales(self) -> None:
        """Sets the scale of degrees where values, or columns that belong together, say so."""
        for find_clue in (self._compare_values, self._compare_names, self._compare_ranges, self._compare_derivative):
            clues = {guess: find_clue(guess) for guess in self.found.values() if self._is_unknown_angle(guess)}
            for guess, clue in clues.items():
                if clue:
                    reason = f"{guess.reason}; {clue}, {GUESSED_DEGREES}"
                    self.found[guess.column] = replace(guess, scale=RADIANS_PER_DEGREE, reason=reason)

    def _is_unknown_angle(self, guess: Guess) -> bool:
        """Returns whether a column is an angle whose unit is not known yet."""
        if self.guesser.names[guess.column].unit or guess.scale != 1:
            return False
        if guess.element == "joint" and guess.quantity in ("position", "velocity"):
            return is_hinge(self.guesser.model, guess.name)
        return guess.quantity == "command" and command_unit(self.guesser.model, guess.name) == "rad"

    def _compare_values(self, guess: Guess) -> str:
        """Values that go beyond 3 pi though the model's range does not are degrees."""
        model, limits = self.guesser.model, None
        actuator_id = index(model, "actuator", guess.name) if guess.quantity == "command" else -1
        if actuator_id >= 0 and model.actuator_ctrllimited[actuator_id]:
            limits = model.actuator_ctrlrange[actuator_id].tolist()
        elif guess.quantity != "velocity" and (joint := self._find_joint(guess)):
            limits = joint_range(model, joint)
        allowed, peak = max(map(abs, limits or ()), default=np.inf), self.signals.peaks[guess.column]
        is_degrees = peak > _MAX_RADIANS and allowed < _MAX_RADIANS
        return f"values reach {peak:.4g} though the model allows {allowed:.3g} rad" if is_degrees else ""

    def _compare_names(self, guess: Guess) -> str:
        """A column that is named as others which are degrees by value is in degrees too, however little it moves."""
        pattern = self.guesser.names[guess.column].pattern
        for column in self._in_degrees((guess.quantity,)):
            if self.guesser.names[column].pattern == pattern:
                return f"it is named as {column}, which is in degrees"
        return ""

    def _compare_ranges(self, guess: Guess) -> str:
        """A position command is in degrees where the position that follows it is, in a like range; and the reverse."""
        size = self.signals.peaks[guess.column]
        for column, other in self._in_degrees(("command", "position")).items():
            peak = self.signals.peaks[column]
            alike = max(size, peak) <= _MAX_RANGE_RATIO * min(size, peak)
            if guess.quantity != "velocity" and alike and self._find_joint(other) == self._find_joint(guess):
                return f"its range is that of {column}, which is in degrees"
        return ""

    def _compare_derivative(self, guess: Guess) -> str:
        """A velocity is in degrees/s where only then it is the derivative of its position."""
        meaning = f"{guess.element} {guess.name} position"
        position = next((other for other in self.found.values() if other.what == meaning), None)
        if guess.quantity != "velocity" or position is None:
            return ""
        together, slope = self.signals.slope(guess.column, position.column)
        ratio = slope * RADIANS_PER_DEGREE / position.scale  # 1 where the velocity is in degrees/s
        is_derivative = together >= _MIN_SLOPE_CORRELATION and 1 / _MAX_SLOPE_ERROR < ratio < _MAX_SLOPE_ERROR
        return f"it is then the derivative of {position.column}" if is_derivative else ""

    def _in_degrees(self, quantities: Sequence[str]) -> dict[str, Guess]:
        """Returns the columns of some quantities that are in degrees."""
        known = self.found.items()
        return {c: g for c, g in known if g.quantity in quantities and g.scale == RADIANS_PER_DEGREE}

    def _find_joint(self, guess: Guess) -> str:
        return driven_joint(self.guesser.model, guess.name) if guess.quantity == "command" else guess.name
