"""The words of names in logs and models: how a name is split, and what its words say."""

import re
from dataclasses import dataclass

import numpy as np

RADIANS_PER_DEGREE = float(np.pi / 180)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMMAND_WORDS = _words(
    "cmd cmds command commands commanded ctrl control u des desired ref reference target targets action actions "
    "setpoint setpoints goal goals"
)
MEASURED_WORDS = _words("measured meas actual feedback state states observation observations obs")
QUANTITY_WORDS = {
    **dict.fromkeys(_words("q pos position positions angle angles qpos theta"), "position"),
    **dict.fromkeys(_words("dq qd vel velocity velocities qvel speed speeds omega"), "velocity"),
    **dict.fromkeys(_words("tau effort efforts torque torques trq"), "effort"),
}
UNIT_SCALES = {
    **dict.fromkeys(_words("deg degs degree degrees"), RADIANS_PER_DEGREE),
    **dict.fromkeys(_words("rad radians m nm n s sec"), 1.0),
    "mm": 1e-3,
    "rpm": 2 * float(np.pi) / 60,
}
FILLER_WORDS = _words("joint joints robot raw motor motors data value values k") | MEASURED_WORDS
POSE_WORDS = _words("pose odom odometry tf transform translation base link footprint mocap vicon optitrack world map")
TURN_WORDS = _words("orientation quaternion quat rotation")
_STAMP_WORDS = _words("header stamp seq timestamp nanosec nsecs")
_ROW_WORDS = _words("frame episode task index id count counter step iteration next done reward success time")
_OTHER_QUANTITIES = _words(
    "error errors err acc accel acceleration accelerations jerk current currents temperature temp covariance cov "
    "battery twist linear angular"
)
_SIDES = {
    **{"l": "left", "r": "right", "back": "rear", "hind": "rear"},
    **{"fl": "front left", "fr": "front right", "rl": "rear left", "rr": "rear right"},
    **{"lf": "front left", "rf": "front right", "lh": "rear left", "rh": "rear right"},
}
_DISTINCT = _words("left right front rear upper lower x y z roll pitch yaw pan tilt lift")


@dataclass(frozen=True)
class ColumnName:
    """What the words of a column's name say.

    Attributes:
        column: The name.
        words: All its words.
        role: `command`, `position`, `velocity`, `effort`, or nothing.
        role_word: The word that says so.
        quantity: Of what the command is, where the name says it: position, velocity, effort, or nothing.
        unit: The word of the unit, or nothing.
        rest: The words that may name an element of the model.
    """

    column: str
    words: tuple[str, ...]
    role: str
    role_word: str
    quantity: str
    unit: str
    rest: tuple[str, ...]

    @property
    def scale(self) -> float:
        """Model units per column unit, as far as the name says."""
        return UNIT_SCALES.get(self.unit, 1.0)

    @property
    def is_measured(self) -> bool:
        """Whether the name says that this was measured, of whatever quantity."""
        return any(word in MEASURED_WORDS for word in self.words)

    @property
    def pattern(self) -> tuple[str, ...]:
        """The words that columns of one kind share: all but those that may name an element."""
        return tuple(word for word in self.words if word not in self.rest)

    @property
    def number(self) -> int | None:
        """The number, where nothing else names an element: 3 of `data[3]`."""
        return int(self.rest[0]) if len(self.rest) == 1 and self.rest[0].isdecimal() else None


def split_words(name: str) -> list[str]:
    """Splits a name into lower-case words and numbers: `q2_deg` -> q, 2, deg; `kFLHip` -> k, front, left, hip."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    words = [word.lower() for word in re.findall(r"[^\W\d_]+|\d+", apart)]
    return [each for word in words for each in _SIDES.get(word, word).split()]


def read_name(column: str) -> ColumnName:
    """Returns what a column's name says by itself, without the model."""
    words = split_words(column)
    units = [word for word in words[1:] if word in UNIT_SCALES]
    unit = max(units, key=lambda word: UNIT_SCALES[word] != 1, default="")
    commands = [k for k, word in enumerate(words) if word in COMMAND_WORDS]
    measured = [k for k, word in enumerate(words) if word in MEASURED_WORDS]
    quantities = [word for word in words if word in QUANTITY_WORDS]
    quantity = QUANTITY_WORDS[quantities[-1]] if quantities else ""
    is_command = bool(commands) and max(commands) > max(measured, default=-1)  # `control/state.position` is measured
    role_word = words[commands[-1]] if is_command else quantities[-1] if quantities else ""
    said = {*COMMAND_WORDS, *QUANTITY_WORDS, *FILLER_WORDS}
    rest = [word for k, word in enumerate(words) if word not in said and not (k and word in UNIT_SCALES)]
    role = "command" if is_command else quantity
    return ColumnName(column, tuple(words), role, role_word, quantity, unit, tuple(rest))


def must_agree(word: str) -> bool:
    """Returns whether a word tells elements of a robot apart, so that no likeness stands in for it."""
    return word.isdecimal() or word in _DISTINCT


def why_ignored(name: ColumnName, model_words: frozenset[str]) -> str:
    """Returns why a column cannot be a signal of the robot; empty where it can."""
    words = set(name.words) - model_words
    if words & _STAMP_WORDS or (name.words and set(name.words) <= _ROW_WORDS):
        return "it stamps or counts rows"
    if others := sorted(words & _OTHER_QUANTITIES):
        return f"'{others[0]}' is neither a command nor a position, velocity or effort"
    return ""
