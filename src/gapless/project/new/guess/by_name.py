"""What each column may be, by its name alone."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import mujoco

from gapless.project.model import QUANTITIES, command_unit, index, names
from gapless.project.new.guess.names import (
    POSE_WORDS,
    SAME_NAME,
    TURN_WORDS,
    ColumnName,
    Match,
    match_names,
    must_agree,
    read_name,
    split_words,
    why_ignored,
)
from gapless.project.records import Element

_ONE_NUMBER = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
_MEASURED_BONUS = 0.05  # on the score of a measurement whose name says that it was measured
_COMMAND_UNITS = {"position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "effort": ("N·m", "N")}


@dataclass(frozen=True)
class Guess:
    """What one column seems to be; `score` in [0, 1] says how sure, `reason` why.

    `in_order` is true where only the order of columns and of the model's elements says so.
    """

    column: str
    element: Element
    name: str
    quantity: str
    axis: int
    scale: float
    score: float
    reason: str
    in_order: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """What it maps: two columns must not share it."""
        return self.element, self.name, self.quantity, str(self.axis)

    @property
    def what(self) -> str:
        """What it maps, in words."""
        return f"{self.element} {self.name} {self.quantity}" + (f" axis {self.axis}" if self.axis else "")


class NameGuesser:
    """Guesses from names alone: what each column may be, given all columns and the model."""

    def __init__(self, model: mujoco.MjModel, columns: Sequence[str]) -> None:
        """Reads the names of all columns, and of all elements that a column may stand for."""
        self.model = model
        self.known: dict[Element, list[str]] = {
            "joint": [n for n in names(model, "joint") if model.jnt_type[index(model, "joint", n)] in _ONE_NUMBER],
            "actuator": list(names(model, "actuator")),
            "body": _free_bodies(model),
            "sensor": list(names(model, "sensor")),
        }
        elements: tuple[Element, ...] = ("joint", "actuator", "body", "sensor")
        self.words = frozenset(w for kind in elements for name in names(model, kind) for w in split_words(name))
        self.names = self._read_names(columns)

    def why_ignored(self, column: str) -> str:
        """Returns why a column cannot be a signal of the robot; empty where it can."""
        return why_ignored(self.names[column], self.words)

    def guess(self, column: str) -> list[Guess]:
        """Returns all that a column may be."""
        name = self.names[column]
        found = self._guess_sensors(name)
        if self.why_ignored(column):
            return found
        if name.role == "command":
            return found + self._guess_commands(name)
        return found + self._guess_joints(name) + self._guess_bodies(name)

    def _read_names(self, columns: Sequence[str]) -> dict[str, ColumnName]:
        """Reads the columns' names, without words that several share and no name of the model has: the topic."""
        found = {column: read_name(column) for column in columns}
        used = Counter(word for name in found.values() for word in set(name.rest))
        noise = {w for w, count in used.items() if count > 1 and w not in self.words and not must_agree(w)}
        return {
            column: replace(name, rest=tuple(word for word in name.rest if word not in noise) or name.rest)
            for column, name in found.items()
        }

    def _guess_commands(self, name: ColumnName) -> list[Guess]:
        known = [n for n in self.known["actuator"] if self._accepts(n, name.quantity)]
        matches = self._match_number(name, known) or match_names(name.rest, known)
        driven = {joint: n for n in known if (joint := driven_joint(self.model, n))}
        if name.number is None:
            also = match_names(name.rest, list(driven)) if name.rest else []
            matches += [Match(driven[m.name], 0.99 * m.score, f"{m.reason} with joint {m.name}") for m in also]
        best = {m.name: m for m in sorted(matches, key=lambda m: m.score)}
        return [self._make_guess(name, "actuator", m, "command") for m in best.values()]

    def _accepts(self, actuator: str, quantity: str) -> bool:
        unit = command_unit(self.model, actuator)
        return not quantity or unit == "1" or unit in _COMMAND_UNITS[quantity]

    def _guess_joints(self, name: ColumnName) -> list[Guess]:
        matches = self._match_number(name, self.known["joint"])
        if name.role:
            matches = matches or match_names(name.rest, self.known["joint"])
            more = _MEASURED_BONUS if name.is_measured else 0.0
            surer = [replace(m, score=min(m.score + more, 1.0)) for m in matches]
            return [self._make_guess(name, "joint", m, name.role) for m in surer] + self._guess_motors(name, matches)
        if matches and not (name.is_measured and len(self._find_numbers(name)) == len(self.known["joint"])):
            return []
        matches = matches or [m for m in match_names(name.rest, self.known["joint"]) if m.score >= SAME_NAME]
        weaker = [replace(m, score=m.score if self._is_called(name, m.name) else 0.9 * m.score) for m in matches]
        found = [self._make_guess(name, "joint", m, "position") for m in weaker if name.rest]
        return found or self._guess_bare_commands(name)

    def _is_called(self, name: ColumnName, known: str) -> bool:
        return list(name.words) == split_words(known)

    def _guess_motors(self, name: ColumnName, matches: Sequence[Match]) -> list[Guess]:
        """Returns the motors that an effort may command, where another column is the measured effort."""
        if name.role != "effort" or name.is_measured:
            return []
        motors = {driven_joint(self.model, n): n for n in self.known["actuator"] if self._accepts(n, "effort")}
        found = [replace(m, name=motors[m.name], score=0.95 * m.score) for m in matches if m.name in motors]
        return [self._make_guess(name, "actuator", m, "command") for m in found]

    def _guess_bare_commands(self, name: ColumnName) -> list[Guess]:
        """Returns the actuator that has exactly the column's name."""
        called = [Match(n, SAME_NAME, "") for n in self.known["actuator"] if self._is_called(name, n)]
        return [self._make_guess(name, "actuator", m, "command", "it is called as the actuator") for m in called]

    def _make_guess(
        self, name: ColumnName, element: Element, match: Match, quantity: str, reason: str | None = None
    ) -> Guess:
        in_order = match.reason.startswith("it is number")
        if reason is None:
            reason = f"'{name.role_word}' says {quantity}" if name.role else "it is called as the joint"
            reason = f"{reason}, and {match.reason}" if name.role or in_order else reason
        return Guess(name.column, element, match.name, quantity, 0, name.scale, match.score, reason, in_order)

    def _find_numbers(self, name: ColumnName) -> list[int]:
        """Returns the numbers of all columns that differ from this one in their number only."""
        alike = (other for other in self.names.values() if other.pattern == name.pattern)
        return sorted({other.number for other in alike if other.number is not None})

    def _match_number(self, name: ColumnName, known: Sequence[str]) -> list[Match]:
        """Returns the element at the place that a column's number says, unless the elements have these numbers."""
        if name.number is None:
            return []
        numbers = self._find_numbers(name)
        theirs = [[int(word) for word in split_words(each) if word.isdecimal()] for each in known]
        if all(len(each) == 1 for each in theirs) and set(numbers) <= {each[0] for each in theirs}:
            return []
        full = len(numbers) == len(known)
        place = numbers.index(name.number) if full else name.number - (0 if 0 in numbers else 1)
        if not 0 <= place < len(known):
            return []
        return [Match(known[place], 0.7, f"it is number {name.number} of {numbers[0]} to {numbers[-1]}")]

    def _guess_bodies(self, name: ColumnName) -> list[Guess]:
        quantity = name.words[-1] if name.words else ""
        if any(word in TURN_WORDS for word in name.words):
            quantity = f"q{quantity}"
        if quantity not in QUANTITIES["body"] or name.role not in ("", "position"):
            return []
        skipped = (POSE_WORDS | TURN_WORDS) - self.words
        rest = [word for word in name.rest if word not in skipped]
        rest = rest[:-1] if rest and rest[-1] == name.words[-1] else rest
        matches = [replace(m, score=0.99 * m.score) for m in match_names(rest, self.known["body"])]
        word = f"'{name.words[-1]}' says {quantity} of a body"
        return [self._make_guess(name, "body", m, quantity, f"{word}, and {m.reason}") for m in matches]

    def _guess_sensors(self, name: ColumnName) -> list[Guess]:
        """Returns the sensor of exactly this name, perhaps followed by x, y, z or a number."""
        axes = {"x": 0, "y": 1, "z": 2, **{str(k): k for k in range(10)}}
        words, found = list(name.words), []
        for sensor in self.known["sensor"]:
            size, plain = int(self.model.sensor_dim[index(self.model, "sensor", sensor)]), split_words(sensor)
            axis = 0 if words == plain and size == 1 else None
            if axis is None and words[:-1] == plain:
                axis = axes.get(words[-1])
            if axis is not None and axis < size:
                reason = "the sensor has this name"
                found.append(Guess(name.column, "sensor", sensor, "value", axis, name.scale, 1.0, reason))
        return found


def _free_bodies(model: mujoco.MjModel) -> list[str]:
    """Returns the bodies whose pose is free, or all where none is."""
    free = {int(model.jnt_bodyid[k]) for k in range(model.njnt) if model.jnt_type[k] not in _ONE_NUMBER}
    known = list(names(model, "body"))
    return [name for name in known if index(model, "body", name) in free] or known


def driven_joint(model: mujoco.MjModel, actuator: str) -> str:
    """Returns the joint that an actuator drives; empty where it drives something else."""
    actuator_id = index(model, "actuator", actuator)
    if model.actuator_trntype[actuator_id] != mujoco.mjtTrn.mjTRN_JOINT:
        return ""
    return mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, model.actuator_trnid[actuator_id, 0]) or ""
