"""Guessing what the columns of a log mean, from their names and from what their signals do."""

from collections.abc import Mapping, Sequence

import mujoco

from gapless.core.results import Note
from gapless.project.model import command_unit, measurement_unit
from gapless.project.new.guess.assign import assign
from gapless.project.new.guess.candidates import Guess, NameGuesser
from gapless.project.new.guess.motion import command_in_order, find_idle, order_by_motion, settle_by_motion
from gapless.project.new.guess.scales import guess_scales
from gapless.project.new.guess.signals import Signals
from gapless.project.records import CommandMap, MeasurementMap


def guess_columns(
    model: mujoco.MjModel, signals: Signals
) -> tuple[tuple[CommandMap, ...], tuple[MeasurementMap, ...], tuple[Note, ...]]:
    """Returns commands, measurements, and a note for every column on what was guessed and why."""
    guesser = NameGuesser(model, list(signals.columns))
    chosen, reasons = assign({column: guesser.guess(column) for column in signals.columns})
    chosen |= settle_by_motion(guesser, chosen, signals)
    chosen |= command_in_order(guesser, chosen, signals)
    chosen |= order_by_motion(model, chosen, signals)
    chosen = guess_scales(guesser, chosen, signals)
    notes = _compose_notes(guesser, chosen, reasons)
    commands, measurements = _as_maps(model, [chosen[column] for column in signals.columns if column in chosen])
    return commands, measurements, tuple(notes)


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


def _as_maps(
    model: mujoco.MjModel, ordered: Sequence[Guess]
) -> tuple[tuple[CommandMap, ...], tuple[MeasurementMap, ...]]:
    """Returns guesses as the commands and measurements of a project."""
    commands = [g for g in ordered if g.quantity == "command"]
    measured = [g for g in ordered if g.quantity != "command"]
    units = [measurement_unit(model, g.element, g.name, g.quantity) for g in measured]
    return (
        tuple(CommandMap(g.column, g.name, g.scale, unit=command_unit(model, g.name)) for g in commands),
        tuple(
            MeasurementMap(g.column, g.element, g.name, g.quantity, g.axis, g.scale, unit=unit)
            for g, unit in zip(measured, units, strict=True)
        ),
    )
