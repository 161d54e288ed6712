"""What the name of a column says, and which name of the model it resembles."""

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapless.core.words import split_words

RADIANS_PER_DEGREE = float(np.pi / 180)
SAME_NAME = 0.95  # score from which two names are the same but for words that do not distinguish elements
MIN_SCORE = 0.6  # of a name that is considered at all
_MIN_WORD_LIKENESS = 0.72  # of two words, 1 for the same: 'sholder' is 'shoulder', 'left' is not 'lift'
_ABBREVIATION_LIKENESS = 0.8  # of 'elb' and 'elbow'


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMMAND_WORDS = _word_set(
    "cmd cmds command commands commanded ctrl control u des desired ref reference target targets action actions "
    "setpoint setpoints sp goal goals"
)
MEASURED_WORDS = _word_set("measured meas actual feedback state states observation observations obs")
QUANTITY_WORDS = {
    **dict.fromkeys(("q", "pos", "position", "positions", "angle", "angles", "qpos", "theta"), "position"),
    **dict.fromkeys(("dq", "qd", "vel", "velocity", "velocities", "qvel", "speed", "speeds", "omega"), "velocity"),
    **dict.fromkeys(("tau", "effort", "efforts", "torque", "torques", "trq"), "effort"),
}
UNIT_SCALES = {
    **dict.fromkeys(("deg", "degs", "degree", "degrees"), RADIANS_PER_DEGREE),
    **dict.fromkeys(("rad", "radians", "m", "nm", "n", "s", "sec"), 1.0),
    **{"mm": 1e-3, "rpm": 2 * float(np.pi) / 60},
}
FILLER_WORDS = _word_set("joint joints robot raw motor motors data value values k") | MEASURED_WORDS
POSE_WORDS = _word_set(
    "pose odom odometry tf transform translation base link footprint mocap vicon optitrack world map"
)
TURN_WORDS = _word_set("orientation quaternion quat rotation")
_STAMP_WORDS = _word_set("header stamp seq timestamp nanosec nsecs")
_ROW_WORDS = _word_set("frame episode task index id count counter step iteration next done reward success time")
_OTHER_QUANTITIES = _word_set(
    "error errors err acc accel acceleration accelerations jerk current currents temperature temp covariance cov "
    "battery twist linear angular"
)
_DISTINGUISHING_WORDS = _word_set("left right front rear upper lower x y z roll pitch yaw pan tilt lift")


@dataclass(frozen=True)
class ColumnName:
    """What the words of a column's name say."""

    column: str  # the name
    words: tuple[str, ...]  # all its words
    role: str  # `command`, `position`, `velocity`, `effort`, or nothing
    role_word: str  # the word that says so
    quantity: str  # of what the command is, where the name says it: position, velocity, effort, or nothing
    unit: str  # the word of the unit, or nothing
    rest: tuple[str, ...]  # the words that may name an element of the model

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

    def why_ignored(self, model_words: frozenset[str]) -> str:
        """Returns why the column cannot be a signal of the robot; empty where it can."""
        words = set(self.words) - model_words
        if words & _STAMP_WORDS or (self.words and set(self.words) <= _ROW_WORDS):
            return "it stamps or counts rows"
        others = sorted(words & _OTHER_QUANTITIES)
        return f"'{others[0]}' is neither a command nor a position, velocity or effort" if others else ""


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
    known = {*COMMAND_WORDS, *QUANTITY_WORDS, *FILLER_WORDS}
    rest = [word for k, word in enumerate(words) if word not in known and not (k and word in UNIT_SCALES)]
    role = "command" if is_command else quantity
    return ColumnName(column, tuple(words), role, role_word, quantity, unit, tuple(rest))


def must_agree(word: str) -> bool:
    """Returns whether a word distinguishes elements of a robot, so that a similar word is not enough."""
    return word.isdecimal() or word in _DISTINGUISHING_WORDS


@dataclass(frozen=True)
class Match:
    """A name that a column may stand for; `score` in [0, 1] says how sure, `reason` why."""

    name: str
    score: float
    reason: str


def match_names(rest: Sequence[str], known: Sequence[str]) -> list[Match]:
    """Returns which of the known names the words of a column may stand for; `rest` says neither role nor unit."""
    if not rest:
        return [Match(known[0], 0.8, "there is one only")] if len(known) == 1 else []
    by_name = {name: [w for w in split_words(name) if w not in FILLER_WORDS] or split_words(name) for name in known}
    shared = set.intersection(*(set(words) for words in by_name.values())) if len(known) > 1 else set()
    found: list[Match] = []
    for name, words in by_name.items():
        score, reason = _compare(list(rest), words)
        if score < SAME_NAME and (short := [word for word in words if word not in shared]):
            shorter, short_reason = _compare([word for word in rest if word not in shared], short)
            score, reason = (0.96, short_reason) if shorter >= SAME_NAME else (score, reason)
        if score >= MIN_SCORE:
            found.append(Match(name, score, reason))
    return found


def _compare(asked: list[str], known: list[str]) -> tuple[float, str]:
    """Returns how well the words of a column agree with those of a name, in [0, 1], and in what."""
    if sorted(asked) == sorted(known) or "".join(asked) == "".join(known):
        return 1.0 if asked == known else 0.98, "the names agree"
    extra = list((Counter(asked) - Counter(known)).elements())
    lacking = list((Counter(known) - Counter(asked)).elements())
    if not lacking:
        return max(0.92 - 0.04 * len(extra), 0.65), f"its name is in it, beside '{' '.join(extra)}'"
    if not extra:
        return max(0.85 - 0.05 * len(lacking), 0.65), f"it is short for {'_'.join(known)}"
    if any(map(must_agree, [*extra, *lacking])) or len(extra) != len(lacking):
        return 0.0, ""
    scores = [max(_compare_words(word, other) for other in lacking) for word in extra]
    if min(scores) < _MIN_WORD_LIKENESS:
        return 0.0, ""
    return 0.85 * sum(scores) / len(scores), f"'{' '.join(extra)}' is like '{' '.join(lacking)}'"


def _compare_words(word: str, other: str) -> float:
    short, long = sorted((word, other), key=len)
    if len(short) >= 2 and long.startswith(short):
        return _ABBREVIATION_LIKENESS
    return difflib.SequenceMatcher(None, word, other).ratio()
