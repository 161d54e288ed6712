"""What names leave open, decided by the order of columns and by which signals move together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from scipy.optimize import linear_sum_assignment

from gapless.core.signal import Array
from gapless.project.model import command_unit, names
from gapless.project.new.guess.by_name import Guess, NameGuesser, driven_joint
from gapless.project.new.guess.names import match_names

MIN_SAMPLES = 20  # fewer say nothing
_MIN_CORRELATION = 0.9  # of signals that are the same thing, but for delay, noise and scale
_MIN_IMPROVEMENT = 0.2  # of correlation, before motion overrules order
_RESPONSES = {
    **dict.fromkeys(("rad", "m"), "position"),
    **dict.fromkeys(("rad/s", "m/s"), "velocity"),
    **dict.fromkeys(("N·m", "N"), "effort"),
}


@dataclass(frozen=True)
class Signals:
    """Signals of one episode, and how far each goes in all of them.

    Attributes:
        times_s: (num_samples,) [s].
        columns: As recorded.
        peaks: Largest finite magnitude of each column, in any log.
    """

    times_s: Array
    columns: Mapping[str, Array]
    peaks: Mapping[str, float]

    def correlation(self, column: str, other: str) -> float:
        """Returns how much two columns move together, in [-1, 1]; 0 where that cannot be said."""
        return _correlate(self._fill_gaps(column), self._fill_gaps(other))

    def slope(self, velocity: str, position: str) -> tuple[float, float]:
        """Returns correlation and slope [1] of a column on the derivative of another; zeros if unknown."""
        rate, speed = self.derivative(position), self._fill_gaps(velocity)
        if rate is None or speed is None:
            return 0.0, 0.0
        together = _correlate(speed, rate)
        return together, together * float(np.std(speed) / np.std(rate)) if together else 0.0

    def is_counter(self, column: str) -> bool:
        """Returns whether a column rises with every sample, as clocks and row numbers do and commands do not."""
        values = self.columns[column][np.isfinite(self.columns[column])]
        return len(values) > 2 and bool(np.all(np.diff(values) > 0))

    def derivative(self, column: str) -> Array | None:
        """Returns the derivative of a column by its time, smoothed over five samples."""
        values = self._fill_gaps(column)
        if values is None:
            return None
        times_s = np.where(np.isfinite(self.times_s), self.times_s, np.interp(*_gaps(self.times_s)))
        spread_s, spread = times_s[4:] - times_s[:-4], values[4:] - values[:-4]
        inner = np.divide(spread, spread_s, out=np.zeros_like(spread), where=spread_s > 0)
        return np.pad(inner, 2, mode="edge")

    def _fill_gaps(self, column: str) -> Array | None:
        """Returns a column with its gaps filled in between; None where too little is there or nothing moves."""
        values = self.columns[column]
        finite = np.isfinite(values)
        if finite.sum() < MIN_SAMPLES or np.ptp(values[finite]) == 0:
            return None
        return np.interp(*_gaps(values))


def pool_signals(episodes: Sequence[tuple[Array, Mapping[str, Array]]]) -> Signals:
    """Returns the signals of the longest episode, with the peaks of all that have the same columns."""
    first = episodes[0][1]
    alike = [episode for episode in episodes if first.keys() <= episode[1].keys()]
    times_s, columns = max(alike, key=lambda episode: len(episode[0]))
    pooled = {name: np.abs(np.concatenate([episode[1][name] for episode in alike])) for name in first}
    peaks = {name: float(np.max(sizes, initial=0.0, where=np.isfinite(sizes))) for name, sizes in pooled.items()}
    return Signals(times_s, {name: columns[name] for name in first}, peaks)


def _gaps(values: Array) -> tuple[Array, Array, Array]:
    """Returns arguments of `numpy.interp` that fill the gaps of some values."""
    finite = np.flatnonzero(np.isfinite(values))
    return np.arange(len(values), dtype=float), finite.astype(float), values[finite]


def _correlate(values: Array | None, others: Array | None) -> float:
    if values is None or others is None or np.std(values) == 0 or np.std(others) == 0:
        return 0.0
    return float(np.corrcoef(values, others)[0, 1])


def find_idle(model: mujoco.MjModel, chosen: Mapping[str, Guess]) -> list[str]:
    """Returns the actuators that no column commands."""
    driven = {guess.name for guess in chosen.values() if guess.quantity == "command"}
    return [name for name in names(model, "actuator") if name not in driven]


def map_by_motion(guesser: NameGuesser, chosen: Mapping[str, Guess], signals: Signals) -> dict[str, Guess]:
    """Maps columns that name a joint but no quantity: the derivative of its position, or what its position follows."""
    positions = {g.name: g.column for g in chosen.values() if g.element == "joint" and g.quantity == "position"}
    taken = {guess.key for guess in chosen.values()}
    found: dict[str, Guess] = {}
    for column, name in guesser.names.items():
        if column in chosen or name.role or guesser.why_ignored(column):
            continue
        for match in match_names(name.rest, list(positions)):
            guess = _guess_by_motion(guesser.model, column, match.name, positions[match.name], signals)
            if guess and guess.key not in taken:
                found[column] = replace(guess, scale=name.scale)
                taken.add(guess.key)
    return found


def _guess_by_motion(model: mujoco.MjModel, column: str, joint: str, position: str, signals: Signals) -> Guess | None:
    together, _ = signals.slope(column, position)
    if together >= _MIN_CORRELATION:
        reason = f"it names joint {joint} and moves as the derivative of {position} (correlation {together:.2f})"
        return Guess(column, "joint", joint, "velocity", 0, 1.0, together, reason)
    together = signals.correlation(column, position)
    servos = [n for n in names(model, "actuator") if driven_joint(model, n) == joint]
    servos = [n for n in servos if _RESPONSES.get(command_unit(model, n)) == "position"]
    if together >= _MIN_CORRELATION and servos:
        reason = f"it names joint {joint}, whose {position} follows it (correlation {together:.2f})"
        return Guess(column, "actuator", servos[0], "command", 0, 1.0, together, reason)
    return None


def map_in_order(guesser: NameGuesser, chosen: Mapping[str, Guess], signals: Signals) -> dict[str, Guess]:
    """Maps columns to actuators that nothing commands, in their order, where there are as many of each."""
    left = [c for c in guesser.names if not (c in chosen or guesser.why_ignored(c) or signals.is_counter(c))]
    named = [column for column in left if guesser.names[column].role == "command"]
    unnamed = [column for column in left if not guesser.names[column].role and not _names_something(guesser, column)]
    idle = find_idle(guesser.model, chosen)
    for columns in (named, unnamed):
        if idle and len(columns) == len(idle):
            reason = "columns and actuators are left in equal number, taken in order"
            return {
                column: Guess(column, "actuator", name, "command", 0, guesser.names[column].scale, 0.5, reason, True)
                for column, name in zip(columns, idle, strict=True)
            }
    return {}


def _names_something(guesser: NameGuesser, column: str) -> bool:
    rest = guesser.names[column].rest
    return any(match_names(rest, guesser.known[kind]) for kind in ("joint", "body") if rest)


def correct_order(model: mujoco.MjModel, chosen: Mapping[str, Guess], signals: Signals) -> dict[str, Guess]:
    """Checks commands that were mapped in order against what then moves; another order is taken if it is clear."""
    ordered = [guess for guess in chosen.values() if guess.in_order and guess.quantity == "command"]
    responses = [_find_response(model, guess.name, chosen) for guess in ordered]
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
            found[guess.column] = replace(guess, name=ordered[place].name, reason=reason)
        elif correlation >= _MIN_CORRELATION:
            found[guess.column] = replace(guess, reason=f"{guess.reason}; {follows}")
    return found


def _find_response(model: mujoco.MjModel, actuator: str, chosen: Mapping[str, Guess]) -> str:
    """Returns the column that follows an actuator's command; empty where none is mapped."""
    key = ("joint", driven_joint(model, actuator), _RESPONSES.get(command_unit(model, actuator), ""), "0")
    return next((guess.column for guess in chosen.values() if guess.key == key), "")
