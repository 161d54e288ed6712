"""Guessing what the columns of a log mean, from their names and ranges."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.core.results import Note
from gapless.core.signal import Array
from gapless.project.model import (
    QUANTITIES,
    command_unit,
    index,
    is_hinge,
    joint_range,
    measurement_unit,
    names,
)
from gapless.project.records import CommandMap, Element, MeasurementMap

RADIANS_PER_DEGREE = float(np.pi / 180)
_ROLES = {
    **dict.fromkeys(("cmd", "command", "ctrl", "control", "target", "u", "des", "desired", "ref"), "command"),
    **dict.fromkeys(("action", "setpoint", "goal"), "command"),
    **dict.fromkeys(("q", "pos", "position", "angle", "qpos", "theta"), "position"),
    **dict.fromkeys(("dq", "qd", "vel", "velocity", "qvel", "speed", "omega"), "velocity"),
    **dict.fromkeys(("tau", "effort", "torque", "trq"), "effort"),
}
_UNITS = {"deg": RADIANS_PER_DEGREE, "degrees": RADIANS_PER_DEGREE, "degree": RADIANS_PER_DEGREE}
_UNITS |= {"mm": 1e-3, "rpm": 2 * float(np.pi) / 60, "rad": 1.0, "m": 1.0, "nm": 1.0, "n": 1.0}
_FILLERS = {"joint", "measured", "meas", "actual", "state", "robot", "obs", "raw", "motor"}
_LIKE_ENOUGH = 0.6
_DEGREES_LIMIT_RAD = 3 * np.pi


@dataclass(frozen=True)
class Guess:
    """What one column seems to be; `score` in [0, 1] says how sure, `reason` why."""

    column: str
    element: Element
    name: str
    quantity: str
    axis: int
    scale: float
    score: float
    reason: str

    @property
    def key(self) -> tuple[str, ...]:
        """What it maps: two columns must not share it."""
        return self.element, self.name, self.quantity, str(self.axis)


def guess_columns(
    model: mujoco.MjModel, columns: Mapping[str, Array]
) -> tuple[tuple[CommandMap, ...], tuple[MeasurementMap, ...], tuple[Note, ...]]:
    """Returns commands, measurements, and a note for every column on what was guessed and why."""
    parts = {column: _split(column) for column in columns}
    first = 0 if any("0" in words for words in parts.values()) else 1
    best: dict[tuple[str, ...], Guess] = {}
    for column, values in columns.items():
        found = max(_guesses(model, column, parts[column], first), key=lambda g: g.score, default=None)
        if found is not None and (found.key not in best or best[found.key].score < found.score):
            best[found.key] = _with_degrees(model, found, values)
    chosen = {guess.column: guess for guess in best.values()}
    chosen |= _by_elimination(model, [column for column in columns if column not in chosen], parts, chosen)
    notes = [_note(chosen.get(column), column) for column in columns]
    notes += _idle_notes(model, chosen)
    ordered = [chosen[column] for column in columns if column in chosen]
    commands = [g for g in ordered if g.quantity == "command"]
    measured = [g for g in ordered if g.quantity != "command"]
    return (
        tuple(CommandMap(g.column, g.name, g.scale, unit=command_unit(model, g.name)) for g in commands),
        tuple(_measurement(model, g) for g in measured),
        tuple(notes),
    )


def _by_elimination(
    model: mujoco.MjModel, left: list[str], parts: Mapping[str, Sequence[str]], chosen: Mapping[str, Guess]
) -> dict[str, Guess]:
    """Maps columns to actuators that nothing commands, in their order, where there are as many of each."""
    idle = _idle(model, chosen)
    spoken = [column for column in left if any(_ROLES.get(word) == "command" for word in parts[column])]
    for columns in (spoken, left):
        if idle and len(columns) == len(idle):
            reason = "columns and actuators are left in equal number, taken in order"
            pairs = zip(columns, idle, strict=True)
            return {c: Guess(c, "actuator", name, "command", 0, 1.0, 0.5, reason) for c, name in pairs}
    return {}


def _idle(model: mujoco.MjModel, chosen: Mapping[str, Guess]) -> list[str]:
    driven = {guess.name for guess in chosen.values() if guess.quantity == "command"}
    return [name for name in names(model, "actuator") if name not in driven]


def _idle_notes(model: mujoco.MjModel, chosen: Mapping[str, Guess]) -> list[Note]:
    text = "no column commands it, so that simulation leaves it alone: add its column to gapless.yaml"
    return [Note("warning", f"actuator {name}", text) for name in _idle(model, chosen)]


def _measurement(model: mujoco.MjModel, guess: Guess) -> MeasurementMap:
    unit = measurement_unit(model, guess.element, guess.name, guess.quantity)
    return MeasurementMap(guess.column, guess.element, guess.name, guess.quantity, guess.axis, guess.scale, unit=unit)


def _split(column: str) -> list[str]:
    """Splits a column's name into lower-case words and numbers: `q2_deg` -> q, 2, deg."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", column)]


def _guesses(model: mujoco.MjModel, column: str, words: list[str], first: int) -> list[Guess]:
    scale = next((_UNITS[word] for word in words if word in _UNITS), 1.0)
    roles = [(word, _ROLES[word]) for word in words if word in _ROLES]
    command = any(role == "command" for _, role in roles)
    role = "command" if command else roles[0][1] if roles else ""
    rest = [word for word in words if word not in _ROLES and word not in _UNITS and word not in _FILLERS]
    found: list[Guess] = []
    if role:
        element: Element = "actuator" if command else "joint"
        name, score, reason = _match(rest, _candidates(model, element), first)
        because = f"'{next(word for word, r in roles if r == role)}' says {role}, {reason}"
        found.append(Guess(column, element, name, role, 0, scale, score, because))
    elif _joined(words) in (plain := {_joined(_split(name)): name for name in _candidates(model, "joint")}):
        reason = "the column is called as the joint"
        found.append(Guess(column, "joint", plain[_joined(words)], "position", 0, scale, 0.9, reason))
    axes = [word for word in words if word in QUANTITIES["body"]]
    if axes and words[-1] == axes[-1]:
        name, score, reason = _match([w for w in rest if w not in axes], _candidates(model, "body"), first)
        because = f"'{axes[-1]}' is a quantity of bodies, {reason}"
        found.append(Guess(column, "body", name, axes[-1], 0, scale, score, because))
    return [guess for guess in found if guess.score >= _LIKE_ENOUGH] + _sensors(model, column, words, scale)


def _candidates(model: mujoco.MjModel, element: Element) -> list[str]:
    """Returns the names a column may stand for: one-number joints, and free bodies where there are any."""
    known = list(names(model, element))
    one_number = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    if element == "joint":
        return [name for name in known if model.jnt_type[index(model, "joint", name)] in one_number]
    if element == "body":
        free = {int(model.jnt_bodyid[k]) for k in range(model.njnt) if model.jnt_type[k] not in one_number}
        return [name for name in known if index(model, "body", name) in free] or known
    return known


def _match(rest: Sequence[str], known: Sequence[str], first: int) -> tuple[str, float, str]:
    """Returns the likeliest of the known names, how likely, and why; score 0 for none."""
    if not known:
        return "", 0.0, ""
    if not rest:
        return (known[0], 0.8, "and there is one only") if len(known) == 1 else ("", 0.0, "")
    likeness = {name: _likeness(_joined(rest), _joined(_split(name))) for name in known}
    name = max(known, key=lambda each: likeness[each])
    if likeness[name] >= _LIKE_ENOUGH:
        return (
            name,
            likeness[name],
            "and the names are alike" if likeness[name] < 1 else "and the names agree",
        )
    if len(rest) == 1 and rest[0].isdecimal() and 0 <= int(rest[0]) - first < len(known):
        return known[int(rest[0]) - first], 0.7, f"and it is number {rest[0]} of the model"
    return "", 0.0, ""


def _likeness(asked: str, known: str) -> float:
    return 1.0 if asked == known else 0.95 * difflib.SequenceMatcher(None, asked, known).ratio()


def _joined(words: Sequence[str]) -> str:
    return "".join(words)


def _sensors(model: mujoco.MjModel, column: str, words: list[str], scale: float) -> list[Guess]:
    """Returns the sensor of exactly this name, perhaps followed by x, y, z or a number."""
    axes = {"x": 0, "y": 1, "z": 2, **{str(k): k for k in range(10)}}
    found: list[Guess] = []
    for name in names(model, "sensor"):
        size, plain = int(model.sensor_dim[index(model, "sensor", name)]), _joined(_split(name))
        axis = 0 if _joined(words) == plain and size == 1 else None
        if axis is None and _joined(words[:-1]) == plain:
            axis = axes.get(words[-1])
        if axis is not None and axis < size:
            found.append(Guess(column, "sensor", name, "value", axis, scale, 0.96, "the sensor has this name"))
    return found


def _with_degrees(model: mujoco.MjModel, guess: Guess, values: Array) -> Guess:
    """Adds the scale of degrees where values go beyond 3 pi though the model's range does not."""
    limits: tuple[float, float] | None = None
    if guess.element == "joint" and guess.quantity == "position" and is_hinge(model, guess.name):
        limits = joint_range(model, guess.name)
    if guess.quantity == "command" and command_unit(model, guess.name) == "rad":
        actuator_id = index(model, "actuator", guess.name)
        if model.actuator_ctrllimited[actuator_id]:
            limits = tuple(model.actuator_ctrlrange[actuator_id])
    finite = np.abs(values[np.isfinite(values)])
    if limits is None or guess.scale != 1 or not len(finite):
        return guess
    allowed = max(abs(limits[0]), abs(limits[1]))
    if finite.max() <= _DEGREES_LIMIT_RAD or allowed >= _DEGREES_LIMIT_RAD:
        return guess
    why = f"values reach {finite.max():.4g} though the model allows {allowed:.3g} rad, so degrees"
    fields = {**vars(guess), "scale": RADIANS_PER_DEGREE, "reason": f"{guess.reason}; {why}"}
    return Guess(**fields)


def _note(guess: Guess | None, column: str) -> Note:
    if guess is None:
        return Note("info", column, "not mapped: no name in the model is like it; add it to gapless.yaml if needed")
    what = f"{guess.element} {guess.name} {guess.quantity}" + (f" axis {guess.axis}" if guess.axis else "")
    scale = f" with scale {guess.scale:.6g}" if guess.scale != 1 else ""
    return Note("info", column, f"guessed: {what}{scale}, as {guess.reason}; correct it if wrong")
