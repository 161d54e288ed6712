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
    found = {c: _check_values(guesser, guess, signals) for c, guess in chosen.items()}
    found = {c: _check_pattern(guesser, guess, found) for c, guess in found.items()}
    found = {c: _check_joint(guesser, guess, found, signals) for c, guess in found.items()}
    return {c: _check_derivative(guesser, guess, found, signals) for c, guess in found.items()}


def _is_unknown_angle(guesser: NameGuesser, guess: Guess) -> bool:
    """Returns whether a column is an angle whose unit is not known yet."""
    if guesser.names[guess.column].unit or guess.scale != 1:
        return False
    if guess.element == "joint" and guess.quantity in ("position", "velocity"):
        return is_hinge(guesser.model, guess.name)
    return guess.quantity == "command" and command_unit(guesser.model, guess.name) == "rad"


def _set_degrees(guess: Guess, why: str) -> Guess:
    return replace(guess, scale=RADIANS_PER_DEGREE, reason=f"{guess.reason}; {why}, {GUESSED_DEGREES}")


def _check_values(guesser: NameGuesser, guess: Guess, signals: Signals) -> Guess:
    """Adds the scale of degrees where values go beyond 3 pi though the model's range does not."""
    limits = _model_limits(guesser.model, guess)
    if limits is None or not _is_unknown_angle(guesser, guess):
        return guess
    allowed, peak = max(abs(limits[0]), abs(limits[1])), signals.peaks[guess.column]
    if peak <= _MAX_RADIANS or allowed >= _MAX_RADIANS:
        return guess
    return _set_degrees(guess, f"values reach {peak:.4g} though the model allows {allowed:.3g} rad")


def _model_limits(model: mujoco.MjModel, guess: Guess) -> tuple[float, float] | None:
    if guess.element == "joint" and guess.quantity == "position":
        return joint_range(model, guess.name)
    if guess.quantity != "command":
        return None
    actuator_id = index(model, "actuator", guess.name)
    if model.actuator_ctrllimited[actuator_id]:
        return float(model.actuator_ctrlrange[actuator_id, 0]), float(model.actuator_ctrlrange[actuator_id, 1])
    joint = driven_joint(model, guess.name)
    return joint_range(model, joint) if joint else None


def _check_pattern(guesser: NameGuesser, guess: Guess, found: Mapping[str, Guess]) -> Guess:
    """A column that is named as others which are degrees by value is in degrees too, however little it moves."""
    pattern = guesser.names[guess.column].pattern
    alike = [g for c, g in found.items() if guesser.names[c].pattern == pattern and g.quantity == guess.quantity]
    degrees = [g.column for g in alike if g.scale == RADIANS_PER_DEGREE]
    if not degrees or not _is_unknown_angle(guesser, guess):
        return guess
    return _set_degrees(guess, f"it is named as {degrees[0]}, which is in degrees")


def _check_joint(guesser: NameGuesser, guess: Guess, found: Mapping[str, Guess], signals: Signals) -> Guess:
    """A position command is in degrees where the position that follows it is, in a like range; and the reverse."""
    if not _is_unknown_angle(guesser, guess) or guess.quantity == "velocity":
        return guess
    joint = driven_joint(guesser.model, guess.name) if guess.quantity == "command" else guess.name
    for other in found.values():
        if other.quantity not in ("command", "position") or other.scale != RADIANS_PER_DEGREE:
            continue
        theirs = driven_joint(guesser.model, other.name) if other.quantity == "command" else other.name
        mine, peak = signals.peaks[guess.column], signals.peaks[other.column]
        if theirs == joint and max(mine, peak) <= _MAX_RANGE_RATIO * min(mine, peak):
            return _set_degrees(guess, f"its range is that of {other.column}, which is in degrees")
    return guess


def _check_derivative(guesser: NameGuesser, guess: Guess, found: Mapping[str, Guess], signals: Signals) -> Guess:
    """A velocity is in degrees/s where only then it is the derivative of its position."""
    if guess.quantity != "velocity" or not _is_unknown_angle(guesser, guess):
        return guess
    key = (guess.element, guess.name, "position", "0")
    position = next((other for other in found.values() if other.key == key), None)
    if position is None:
        return guess
    together, slope = signals.slope(guess.column, position.column)
    if together < _MIN_SLOPE_CORRELATION:
        return guess
    ratio = slope * RADIANS_PER_DEGREE / position.scale  # 1 where the velocity is in degrees/s
    if not 1 / _MAX_SLOPE_ERROR < ratio < _MAX_SLOPE_ERROR:
        return guess
    return _set_degrees(guess, f"it is then the derivative of {position.column}")
