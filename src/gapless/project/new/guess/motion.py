"""What names leave open, settled by the order of columns and by what moves with what."""

from collections.abc import Mapping
from dataclasses import replace

import mujoco
import numpy as np
from scipy.optimize import linear_sum_assignment

from gapless.project.model import command_unit, names
from gapless.project.new.guess.candidates import Guess, NameGuesser, driven_joint
from gapless.project.new.guess.match import match_names
from gapless.project.new.guess.signals import Signals

_MIN_CORRELATION = 0.9  # of signals that are the same thing, but for delay, noise and scale
_MIN_GAIN = 0.2  # of correlation, before motion overrules order
_RESPONSES = {
    "rad": "position",
    "m": "position",
    "rad/s": "velocity",
    "m/s": "velocity",
    "N·m": "effort",
    "N": "effort",
}


def find_idle(model: mujoco.MjModel, chosen: Mapping[str, Guess]) -> list[str]:
    """Returns the actuators that no column commands."""
    driven = {guess.name for guess in chosen.values() if guess.quantity == "command"}
    return [name for name in names(model, "actuator") if name not in driven]


def settle_by_motion(guesser: NameGuesser, chosen: Mapping[str, Guess], signals: Signals) -> dict[str, Guess]:
    """Maps columns that name a joint but no quantity: the derivative of its position, or what its position follows."""
    positions = {g.name: g.column for g in chosen.values() if g.element == "joint" and g.quantity == "position"}
    taken = {guess.key for guess in chosen.values()}
    found: dict[str, Guess] = {}
    for column, name in guesser.names.items():
        if column in chosen or name.role or guesser.why_ignored(column):
            continue
        for match in match_names(name.rest, list(positions)):
            guess = _settle(guesser.model, column, match.name, positions[match.name], signals)
            if guess and guess.key not in taken:
                found[column] = replace(guess, scale=name.scale)
                taken.add(guess.key)
    return found


def _settle(model: mujoco.MjModel, column: str, joint: str, position: str, signals: Signals) -> Guess | None:
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


def command_in_order(guesser: NameGuesser, chosen: Mapping[str, Guess], signals: Signals) -> dict[str, Guess]:
    """Maps columns to actuators that nothing commands, in their order, where there are as many of each."""
    left = [c for c in guesser.names if not (c in chosen or guesser.why_ignored(c) or signals.is_counter(c))]
    spoken = [column for column in left if guesser.names[column].role == "command"]
    unnamed = [column for column in left if not guesser.names[column].role and not _names_something(guesser, column)]
    idle = find_idle(guesser.model, chosen)
    for columns in (spoken, unnamed):
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


def order_by_motion(model: mujoco.MjModel, chosen: Mapping[str, Guess], signals: Signals) -> dict[str, Guess]:
    """Checks commands that were mapped in order against what then moves; another order is taken if it is clear."""
    ordered = [guess for guess in chosen.values() if guess.in_order and guess.quantity == "command"]
    responses = [_find_response(model, guess.name, chosen) for guess in ordered]
    if len(ordered) < 2 or not all(responses):
        return {}
    together = np.array([[signals.correlation(g.column, response) for response in responses] for g in ordered])
    places = linear_sum_assignment(together, maximize=True)[1]
    best, given = together[np.arange(len(ordered)), places], np.diag(together)
    moved = places != np.arange(len(ordered))
    if moved.any() and not (np.all(best[moved] >= _MIN_CORRELATION) and np.all((best - given)[moved] >= _MIN_GAIN)):
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
