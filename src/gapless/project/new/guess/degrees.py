"""Which columns are in degrees, where their names do not say so."""

from collections.abc import Mapping
from dataclasses import replace

import mujoco
import numpy as np

from gapless.project.model import command_unit, index, is_hinge, joint_range
from gapless.project.new.guess.by_motion import Signals
from gapless.project.new.guess.by_name import Guess, NameGuesser, driven_joint
from gapless.project.new.guess.names import RADIANS_PER_DEGREE

GUESSED_DEGREES = "so degrees"
_MAX_RADIANS = 3 * np.pi  # of a joint's range, or of values that need not be degrees
_MAX_RANGE_RATIO = 3.0  # between the ranges of a command and of the position that follows it
_MAX_SLOPE_ERROR = 1.5  # factor between a velocity and the derivative of its position
_MIN_SLOPE_CORRELATION = 0.7


def guess_scales(guesser: NameGuesser, chosen: Mapping[str, Guess], signals: Signals) -> dict[str, Guess]:
    """Returns the guesses with the scale of degrees where values, or columns that belong together, say so."""
    found = dict(chosen)
    for find_clue in (_compare_values, _compare_names, _compare_ranges, _compare_derivative):
        unknown = [guess for guess in found.values() if _is_unknown_angle(guesser, guess)]
        clues = {guess.column: find_clue(guesser, guess, found, signals) for guess in unknown}
        for column, clue in clues.items():
            if clue:
                reason = f"{found[column].reason}; {clue}, {GUESSED_DEGREES}"
                found[column] = replace(found[column], scale=RADIANS_PER_DEGREE, reason=reason)
    return found


def _is_unknown_angle(guesser: NameGuesser, guess: Guess) -> bool:
    """Returns whether a column is an angle whose unit is not known yet."""
    if guesser.names[guess.column].unit or guess.scale != 1:
        return False
    if guess.element == "joint" and guess.quantity in ("position", "velocity"):
        return is_hinge(guesser.model, guess.name)
    return guess.quantity == "command" and command_unit(guesser.model, guess.name) == "rad"


def _compare_values(guesser: NameGuesser, guess: Guess, found: Mapping[str, Guess], signals: Signals) -> str:
    """Values that go beyond 3 pi though the model's range does not are degrees."""
    del found
    limits = _model_limits(guesser.model, guess)
    allowed, peak = max(map(abs, limits), default=np.inf), signals.peaks[guess.column]
    if peak <= _MAX_RADIANS or allowed >= _MAX_RADIANS:
        return ""
    return f"values reach {peak:.4g} though the model allows {allowed:.3g} rad"


def _model_limits(model: mujoco.MjModel, guess: Guess) -> tuple[float, ...]:
    """Returns the smallest and largest value that the model allows; nothing where it has no limits."""
    joint = guess.name if guess.quantity == "position" else ""
    if guess.quantity == "command":
        actuator_id = index(model, "actuator", guess.name)
        if model.actuator_ctrllimited[actuator_id]:
            return tuple(model.actuator_ctrlrange[actuator_id].tolist())
        joint = driven_joint(model, guess.name)
    return (joint_range(model, joint) or ()) if joint else ()


def _compare_names(guesser: NameGuesser, guess: Guess, found: Mapping[str, Guess], signals: Signals) -> str:
    """A column that is named as others which are degrees by value is in degrees too, however little it moves."""
    del signals
    pattern = guesser.names[guess.column].pattern
    for column, other in found.items():
        is_alike = guesser.names[column].pattern == pattern and other.quantity == guess.quantity
        if is_alike and other.scale == RADIANS_PER_DEGREE:
            return f"it is named as {column}, which is in degrees"
    return ""


def _compare_ranges(guesser: NameGuesser, guess: Guess, found: Mapping[str, Guess], signals: Signals) -> str:
    """A position command is in degrees where the position that follows it is, in a like range; and the reverse."""
    if guess.quantity == "velocity":
        return ""
    joint, size = _find_joint(guesser.model, guess), signals.peaks[guess.column]
    for other in found.values():
        if other.quantity not in ("command", "position") or other.scale != RADIANS_PER_DEGREE:
            continue
        peak = signals.peaks[other.column]
        if _find_joint(guesser.model, other) == joint and max(size, peak) <= _MAX_RANGE_RATIO * min(size, peak):
            return f"its range is that of {other.column}, which is in degrees"
    return ""


def _find_joint(model: mujoco.MjModel, guess: Guess) -> str:
    return driven_joint(model, guess.name) if guess.quantity == "command" else guess.name


def _compare_derivative(guesser: NameGuesser, guess: Guess, found: Mapping[str, Guess], signals: Signals) -> str:
    """A velocity is in degrees/s where only then it is the derivative of its position."""
    del guesser
    key = (guess.element, guess.name, "position", "0")
    position = next((other for other in found.values() if other.key == key), None)
    if guess.quantity != "velocity" or position is None:
        return ""
    together, slope = signals.slope(guess.column, position.column)
    ratio = slope * RADIANS_PER_DEGREE / position.scale  # 1 where the velocity is in degrees/s
    is_derivative = together >= _MIN_SLOPE_CORRELATION and 1 / _MAX_SLOPE_ERROR < ratio < _MAX_SLOPE_ERROR
    return f"it is then the derivative of {position.column}" if is_derivative else ""
