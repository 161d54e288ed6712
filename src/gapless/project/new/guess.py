"""What the columns of a log mean, guessed from their names, and from what their signals do (motion.py)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import mujoco

from gapless.core.words import split_words
from gapless.project.model import QUANTITIES, command_unit, index, names
from gapless.project.new.names import (
    MIN_SCORE,
    POSE_WORDS,
    SAME_NAME,
    TURN_WORDS,
    ColumnName,
    Match,
    match_names,
    must_agree,
    read_name,
)
from gapless.project.records import Element

MAX_TIE = 0.03  # two scores that differ by less are equally good
CERTAIN_SCORE = 0.9  # from this score on, nothing else is considered
_ONE_NUMBER = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
_MEASURED_BONUS = 0.05  # on the score of a measurement whose name says that it was measured
_COMMAND_UNITS = {"position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "effort": ("N·m", "N")}


@dataclass(frozen=True)
class Guess:
    """What one column seems to be."""

    column: str
    element: Element
    name: str
    quantity: str
    axis: int
    scale: float
    score: float  # how sure, in [0, 1]
    reason: str
    in_order: bool = False  # whether only the order of columns and of the model's elements says so

    @property
    def what(self) -> str:
        """What it maps, in words: two columns must not share it."""
        return f"{self.element} {self.name} {self.quantity}" + (f" axis {self.axis}" if self.axis else "")


class NameGuesser:
    """Guesses from names alone: what each column may be, given all columns and the model."""

    def __init__(self, model: mujoco.MjModel, columns: Sequence[str]) -> None:
        """Reads the names of all columns, and of all elements that a column may stand for."""
        self.model = model
        joint_types = {name: model.jnt_type[index(model, "joint", name)] for name in names(model, "joint")}
        free = {int(model.jnt_bodyid[k]) for k in range(model.njnt) if model.jnt_type[k] not in _ONE_NUMBER}
        bodies = list(names(model, "body"))
        self.known: dict[Element, list[str]] = {
            "joint": [name for name, kind in joint_types.items() if kind in _ONE_NUMBER],
            "actuator": list(names(model, "actuator")),
            "body": [name for name in bodies if index(model, "body", name) in free] or bodies,
            "sensor": list(names(model, "sensor")),
        }
        every = (*joint_types, *bodies, *self.known["actuator"], *self.known["sensor"])
        self.words = frozenset(word for name in every for word in split_words(name))
        found = {column: read_name(column) for column in columns}
        # Words that several columns share and no name of the model has are the topic.
        used = Counter(word for name in found.values() for word in set(name.rest))
        topic = {w for w, count in used.items() if count > 1 and w not in self.words and not must_agree(w)}
        self.names = {
            column: replace(name, rest=tuple(word for word in name.rest if word not in topic) or name.rest)
            for column, name in found.items()
        }

    def guess(self, column: str) -> list[Guess]:
        """Returns all that a column may be."""
        name = self.names[column]
        found = self._guess_sensors(name)
        if name.why_ignored(self.words):
            return found
        if name.role == "command":
            return found + self._guess_commands(name)
        return found + self._guess_joints(name) + self._guess_bodies(name)

    def _guess_commands(self, name: ColumnName) -> list[Guess]:
        units = ("1", *_COMMAND_UNITS[name.quantity]) if name.quantity else ()
        known = [n for n in self.known["actuator"] if not units or command_unit(self.model, n) in units]
        matches = self._match_number(name, known) or match_names(name.rest, known)
        driven = {joint: n for n in known if (joint := driven_joint(self.model, n))}
        if name.number is None:
            also = match_names(name.rest, list(driven)) if name.rest else []
            matches += [Match(driven[m.name], 0.99 * m.score, f"{m.reason} with joint {m.name}") for m in also]
        best = {m.name: m for m in sorted(matches, key=lambda m: m.score)}
        return [self._make_guess(name, "actuator", m, "command") for m in best.values()]

    def _guess_joints(self, name: ColumnName) -> list[Guess]:
        matches = self._match_number(name, self.known["joint"])
        if name.role:
            matches = matches or match_names(name.rest, self.known["joint"])
            more = _MEASURED_BONUS if name.is_measured else 0.0
            surer = [replace(m, score=min(m.score + more, 1.0)) for m in matches]
            found = [self._make_guess(name, "joint", m, name.role) for m in surer]
            if name.role == "effort" and not name.is_measured:  # what a motor applies, if another column measures it
                found += [replace(guess, score=0.95 * guess.score) for guess in self._guess_commands(name)]
            return found
        if matches and not (name.is_measured and len(self._find_numbers(name)) == len(self.known["joint"])):
            return []
        matches = matches or [m for m in match_names(name.rest, self.known["joint"]) if m.score >= SAME_NAME]
        words = list(name.words)
        weaker = [m if words == split_words(m.name) else replace(m, score=0.9 * m.score) for m in matches]
        if found := [self._make_guess(name, "joint", m, "position") for m in weaker if name.rest]:
            return found
        called = [Match(n, SAME_NAME, "") for n in self.known["actuator"] if words == split_words(n)]
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
            axis = 0 if words == plain and size == 1 else axes.get(words[-1]) if words[:-1] == plain else None
            if axis is not None and axis < size:
                reason = "the sensor has this name"
                found.append(Guess(name.column, "sensor", sensor, "value", axis, name.scale, 1.0, reason))
        return found


def driven_joint(model: mujoco.MjModel, actuator: str) -> str:
    """Returns the joint that an actuator drives; empty where it drives something else."""
    actuator_id = index(model, "actuator", actuator)
    if model.actuator_trntype[actuator_id] != mujoco.mjtTrn.mjTRN_JOINT:
        return ""
    return mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, model.actuator_trnid[actuator_id, 0]) or ""


def assign_columns(guesses: Mapping[str, Sequence[Guess]]) -> tuple[dict[str, Guess], dict[str, str]]:
    """Gives each column at most one meaning and each meaning at most one column, the surest first.

    A guess that is not certain and has an equally good rival, in its column or for its meaning, is not taken. Returns
    column -> guess; and, for columns with guesses that got none, why.
    """
    left = sorted((guess for found in guesses.values() for guess in found), key=lambda guess: -guess.score)
    chosen: dict[str, Guess] = {}
    reasons: dict[str, str] = {}
    while left:
        best = left[0]
        held = {guess.what: guess.score - MAX_TIE for guess in chosen.values()}  # others are out only if clearly worse
        near = [g for g in (*guesses[best.column], *left) if g.score >= best.score - MAX_TIE]
        near = near if best.score < CERTAIN_SCORE else []
        others = [g for g in near if g.column == best.column and g.what != best.what and held.get(g.what, 0) <= g.score]
        # Another column is no rival if the model's order decides, or if something else is as likely for it.
        free = {g.column for g in left if g.what != best.what and g.score >= MIN_SCORE}
        rivals = [g for g in near if g.what == best.what and g.column != best.column and g.column not in free]
        left = [g for g in left if g.column != best.column]
        if others:
            reasons[best.column] = f"it may be {best.what} or {others[0].what}"
            continue
        if rivals and not best.in_order:
            reasons[best.column] = f"{rivals[0].column} and it may both be {best.what}"
        else:
            chosen[best.column] = best
        taken = f"{best.column} already is" if best.column in chosen else "another column may be"
        reasons = {**{g.column: f"{taken} {best.what}" for g in left if g.what == best.what}, **reasons}
        left = [g for g in left if g.what != best.what]
    return chosen, {column: reason for column, reason in reasons.items() if column not in chosen}
