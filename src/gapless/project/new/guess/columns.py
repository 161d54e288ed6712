"""What the columns of a log mean, guessed from their names and from what their signals do."""

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np
from scipy.optimize import linear_sum_assignment

from gapless.core.results import Note
from gapless.core.signal import Array
from gapless.project.model import command_unit, measurement_unit
from gapless.project.new.guess.by_motion import Signals, correct_order, find_idle, map_by_motion, map_in_order
from gapless.project.new.guess.by_name import Guess, NameGuesser
from gapless.project.new.guess.degrees import guess_scales
from gapless.project.new.guess.names import MIN_SCORE
from gapless.project.records import CommandMap, MeasurementMap

MAX_TIE = 0.03  # two scores that differ by less are equally good
CERTAIN_SCORE = 0.9  # from this score on, nothing else is considered


def guess_columns(
    model: mujoco.MjModel, signals: Signals
) -> tuple[tuple[CommandMap, ...], tuple[MeasurementMap, ...], tuple[Note, ...]]:
    """Returns commands, measurements, and a note for every column on what was guessed and why."""
    guesser = NameGuesser(model, list(signals.columns))
    chosen, reasons = _assign({column: guesser.guess(column) for column in signals.columns})
    chosen |= map_by_motion(guesser, chosen, signals)
    chosen |= map_in_order(guesser, chosen, signals)
    chosen |= correct_order(model, chosen, signals)
    chosen = guess_scales(guesser, chosen, signals)
    commands: list[CommandMap] = []
    measurements: list[MeasurementMap] = []
    for g in (chosen[column] for column in signals.columns if column in chosen):
        if g.quantity == "command":
            commands.append(CommandMap(g.column, g.name, g.scale, unit=command_unit(model, g.name)))
        else:
            unit = measurement_unit(model, g.element, g.name, g.quantity)
            measurements.append(MeasurementMap(g.column, g.element, g.name, g.quantity, g.axis, g.scale, unit=unit))
    return tuple(commands), tuple(measurements), tuple(_compose_notes(guesser, chosen, reasons))


def _compose_notes(guesser: NameGuesser, chosen: Mapping[str, Guess], reasons: Mapping[str, str]) -> list[Note]:
    """Returns a note for every column on what was guessed and why, and for every actuator that is left alone."""
    notes: list[Note] = []
    for column in guesser.names:
        if guess := chosen.get(column):
            scale = f" with scale {guess.scale:.6g}" if guess.scale != 1 else ""
            text = f"guessed: {guess.what}{scale}, as {guess.reason}; correct it if wrong"
        else:
            why = reasons.get(column) or guesser.why_ignored(column) or "no name in the model is like it"
            text = f"not mapped: {why}; add it to gapless.yaml if needed"
        notes.append(Note("info", column, text))
    idle = find_idle(guesser.model, chosen)
    text = "no column commands it, so that simulation leaves it alone: add its column to gapless.yaml"
    return notes + [Note("warning", f"actuator {name}", text) for name in idle]


def _assign(guesses: Mapping[str, Sequence[Guess]]) -> tuple[dict[str, Guess], dict[str, str]]:
    """Gives each column at most one meaning and each meaning at most one column, best in sum.

    Returns column -> guess; and, for columns with guesses that got none, why.
    """
    columns = [column for column, found in guesses.items() if found]
    keys = list(dict.fromkeys(guess.key for column in columns for guess in guesses[column]))
    if not columns:
        return {}, {}
    by_key = {(guess.column, guess.key): guess for found in guesses.values() for guess in found}
    score = np.zeros((len(columns), len(keys)))
    for (column, key), guess in by_key.items():
        score[columns.index(column), keys.index(key)] = guess.score
    first_come = 1e-6 * np.arange(len(columns))[:, None] * (score > 0)  # of equals, the first column
    rows, places = linear_sum_assignment(score - first_come, maximize=True)
    owner = {int(place): int(row) for row, place in zip(rows, places, strict=True) if score[row, place] > 0}
    chosen: dict[str, Guess] = {}
    reasons: dict[str, str] = {}
    for place, row in owner.items():
        rival = _find_rival(score, owner, row, place)
        guess = by_key[columns[row], keys[place]]
        if rival and (rival[0] == row or not guess.in_order):
            what = [by_key[columns[r], keys[p]] for r, p in ((row, place), rival)]
            both = f"it may be {what[0].what} or {what[1].what}"
            one = f"{columns[rival[0]]} and it may both be {what[0].what}"
            reasons[columns[row]] = both if rival[0] == row else one
        else:
            chosen[columns[row]] = guess
    taken = {guess.key: guess.column for guess in chosen.values()}
    for column in columns:
        if column not in chosen and column not in reasons:
            best = max(guesses[column], key=lambda guess: guess.score)
            other = taken.get(best.key)
            reasons[column] = f"{other} already is {best.what}" if other else f"another column may be {best.what}"
    return chosen, reasons


def _find_rival(score: Array, owner: Mapping[int, int], row: int, place: int) -> tuple[int, int] | None:
    """Returns (row, place) of what is as good as this choice and not ruled out by a better one."""
    mine = score[row, place]
    if mine >= CERTAIN_SCORE:
        return None
    for other in np.flatnonzero(score[row] >= max(mine - MAX_TIE, MIN_SCORE)):
        held = score[owner[int(other)], other] if int(other) in owner else 0.0
        if other != place and held <= score[row, other] + MAX_TIE:
            return row, int(other)
    rows = np.flatnonzero(score[:, place] >= max(mine - MAX_TIE, MIN_SCORE))
    return next(((int(r), place) for r in rows if r != row and int(r) not in owner.values()), None)
