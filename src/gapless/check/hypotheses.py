"""Hypotheses about the mapping: a column has the other sign, another unit, another column's place, another clock.

Each is one change to the data. `mapping.py` tests them: does the model predict the changed data far better?
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gapless.check.columns import MISTAKEN_UNITS, RADIANS_PER_DEGREE, Drive, joint_columns, list_drives
from gapless.fit.prediction.windows import Windows
from gapless.project.records import CommandMap, MeasurementMap, Project
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject

COMMANDS_EARLIER_S = (0.02, 0.04, 0.08, 0.12, 0.2)  # by which commands may be stamped too late
COMMANDS_LATER_S = (0.2, 0.3, 0.5, 1.0)  # by which they may be stamped too early; below is an ordinary delay
MAX_SCALE = 5.0  # a scale that a factor above 1 would make larger was never a conversion that could be undone


class ColumnChange(NamedTuple):
    """Column `place` gets what column `source` holds, times a factor."""

    place: int
    source: int
    factor: float


@dataclass(frozen=True)
class MappingHypothesis:
    """One change to the data that would correct a fault of the mapping.

    Attributes:
        text: What is then wrong with the data as mapped; goes on after "it looks as if".
        remedy: What to write in gapless.yaml.
        measurements: Changes of measured columns.
        commands: Changes of commanded columns.
        shift_rows: Rows by which commands take effect later than stamped; negative is earlier.
        tested_columns: Measured columns whose prediction it must improve.
    """

    text: str
    remedy: str
    measurements: tuple[ColumnChange, ...] = ()
    commands: tuple[ColumnChange, ...] = ()
    shift_rows: int = 0
    tested_columns: frozenset[int] = frozenset()

    def column_names(self, project: Project) -> tuple[str, ...]:
        """Returns the columns that it changes; for a shift those that it is tested on."""
        changed = [project.measurements[change.place].column for change in self.measurements]
        changed += [project.commands[change.place].column for change in self.commands]
        return tuple(changed) or tuple(project.measurements[k].column for k in sorted(self.tested_columns))

    def overlaps(self, other: "MappingHypothesis") -> bool:
        """Tells whether both change the same column, or the clock."""
        changed = [
            {("measurement", change.place) for change in one.measurements}
            | {("command", change.place) for change in one.commands}
            for one in (self, other)
        ]
        return bool(changed[0] & changed[1]) or bool(self.shift_rows and other.shift_rows)

    def apply(self, project: Project, windows: Windows) -> Windows:
        """Returns windows with their columns changed; commands that are to be shifted must have been."""
        start, slope, measured = windows.start.copy(), windows.slope.copy(), windows.measured.copy()
        errors = [windows.noise.copy(), windows.start_sd.copy(), windows.slope_sd.copy()]
        commands, history = windows.commands.copy(), windows.history.copy()
        for place, source, factor in self.measurements:
            gain, offset = _model_gain_and_offset(project.measurements, place, source, factor)
            measured[..., place] = gain * windows.measured[..., source] + offset
            start[:, place], slope[:, place] = gain * windows.start[:, source] + offset, gain * windows.slope[:, source]
            for error, old in zip(errors, (windows.noise, windows.start_sd, windows.slope_sd), strict=True):
                error[place] = abs(gain) * old[source]
        for place, source, factor in self.commands:
            gain, offset = _model_gain_and_offset(project.commands, place, source, factor)
            commands[..., place] = gain * windows.commands[..., source] + offset
            history[..., place] = gain * windows.history[..., source] + offset
        return Windows(commands, history, measured, start, slope, windows.track, windows.first_row, *errors)


def _model_gain_and_offset(
    maps: Sequence[CommandMap] | Sequence[MeasurementMap], place: int, source: int, factor: float
) -> tuple[float, float]:
    """Returns gain and offset from the model value of column `source` to that which it would have in `place`."""
    here, there = maps[place], maps[source]
    gain = factor * here.scale / there.scale
    return gain, here.offset - gain * there.offset


def shift_commands(tracks: Sequence[Track], later_rows: int) -> list[Track]:
    """Returns tracks whose commands take effect some rows later; what is not known is held."""
    return [
        replace(t, commands=t.commands[np.clip(np.arange(len(t.commands)) - later_rows, 0, len(t.commands) - 1)])
        for t in tracks
    ]


def list_column_hypotheses(
    blueprint: CompiledProject, suspects: Sequence[int], silent: Set[int]
) -> list[MappingHypothesis]:
    """Returns every sign, unit and swap that could explain why some measured columns are predicted badly.

    Args:
        blueprint: The compiled project.
        suspects: The columns that are.
        silent: Columns that hardly move: only they, and suspects, may be swapped with a suspect.
    """
    project, drives = blueprint.project, list_drives(blueprint)
    found = [
        *_list_reading_scales(project, suspects),
        *_list_command_scales(project, drives, suspects),
        *_list_all_degrees(project, drives),
        *_list_reading_swaps(project, suspects, silent),
        *_list_command_swaps(project, drives, {*suspects, *silent}),
    ]
    unique = {(one.measurements, one.commands): one for one in found if one.tested_columns & set(suspects)}
    return list(unique.values())


def list_clock_hypotheses(blueprint: CompiledProject) -> list[MappingHypothesis]:
    """Returns hypotheses that commands and readings were stamped by clocks that differ."""
    rate_hz, drives = blueprint.project.rate_hz, list_drives(blueprint)
    driven = frozenset(column for drive in drives for column in drive.columns)
    shifts = dict.fromkeys(round(s * rate_hz) for s in (*(-s for s in COMMANDS_EARLIER_S), *COMMANDS_LATER_S))
    found: list[MappingHypothesis] = []
    for rows in shifts if drives else ():
        size = f"{1000 * abs(rows) / rate_hz:.0f} ms"
        text = f"readings are stamped about {size} earlier than the commands that cause them"
        if rows > 0:
            text = f"readings follow the commands only after about {size}, longer than a delay that is fitted"
        remedy = "shift the time stamps of one of them"
        found += [MappingHypothesis(text, remedy, shift_rows=rows, tested_columns=driven)] if rows else []
    return found


def _list_reading_scales(project: Project, suspects: Sequence[int]) -> Iterator[MappingHypothesis]:
    """Yields wrong signs and units of a column, and of all columns of its joint together."""
    for column in suspects:
        item = project.measurements[column]
        groups = [(column,), joint_columns(project, item.name)] if item.element == "joint" else [(column,)]
        for columns in groups if not item.quantity.startswith("q") else []:
            names = " and ".join(project.measurements[k].column for k in columns)
            for factor, words in _list_factors(item.unit, item.scale):
                remedy = f"set scale: {item.scale * factor:.6g}"
                changes = _scale_columns(columns, factor)
                yield MappingHypothesis(f"{names} {words}", remedy, changes, tested_columns=frozenset(columns))


def _list_command_scales(
    project: Project, drives: Sequence[Drive], suspects: Sequence[int]
) -> Iterator[MappingHypothesis]:
    for item, drive in zip(project.commands, drives, strict=True):
        tested = frozenset(drive.columns or suspects)
        for factor, words in _list_factors(item.unit if drive.is_servo else "", item.scale):
            remedy = f"set scale: {item.scale * factor:.6g}"
            changes = _scale_columns([drive.command], factor)
            yield MappingHypothesis(f"{item.column} {words}", remedy, commands=changes, tested_columns=tested)


def _list_factors(unit: str, scale: float) -> list[tuple[float, str]]:
    """Returns factors that could correct a column, in words; a unit is undone only where the scale converts one."""
    units = [
        (factor, f"is in {words}")
        for factor, words in MISTAKEN_UNITS.get(unit.removesuffix("/s"), ())
        if factor < 1 or abs(scale * factor) < MAX_SCALE
    ]
    return [(-1.0, "has the wrong sign"), *units]


def _list_all_degrees(project: Project, drives: Sequence[Drive]) -> Iterator[MappingHypothesis]:
    """Yields that every angle is in degrees: where joints act on each other, correcting one alone helps little."""
    angles = [k for k, item in enumerate(project.measurements) if item.unit in ("rad", "rad/s")]
    hinges = [drive.command for drive in drives if drive.is_servo and drive.is_hinge]
    for commands in (hinges, []):
        if angles and len(angles) + len(commands) > 1:
            names = [project.measurements[k].column for k in angles] + [project.commands[k].column for k in commands]
            yield MappingHypothesis(
                f"{', '.join(names)} are in degrees, not radians",
                f"set scale: {RADIANS_PER_DEGREE:.6g} for each",
                _scale_columns(angles, RADIANS_PER_DEGREE),
                _scale_columns(commands, RADIANS_PER_DEGREE),
                tested_columns=frozenset(angles),
            )


def _list_reading_swaps(project: Project, suspects: Sequence[int], silent: Set[int]) -> Iterator[MappingHypothesis]:
    for one in suspects:
        item = project.measurements[one]
        for other in sorted({*suspects, *silent} - {one}):
            its = project.measurements[other]
            if (its.element, its.unit) == (item.element, item.unit):
                low, high = sorted((one, other))
                names = project.measurements[low].column, project.measurements[high].column
                text, remedy = _describe_swap(*names)
                yield MappingHypothesis(text, remedy, _swap(low, high), tested_columns=frozenset((low, high)))


def _list_command_swaps(project: Project, drives: Sequence[Drive], moved: set[int]) -> Iterator[MappingHypothesis]:
    for low, here in enumerate(drives):
        for high in range(low + 1, len(drives)):
            one, other, there = project.commands[low], project.commands[high], drives[high]
            if one.unit == other.unit and moved.intersection(here.columns) and moved.intersection(there.columns):
                tested = frozenset((*here.columns, *there.columns))
                text, remedy = _describe_swap(one.column, other.column)
                yield MappingHypothesis(text, remedy, commands=_swap(low, high), tested_columns=tested)


def _describe_swap(one: str, other: str) -> tuple[str, str]:
    return f"{one} and {other} are swapped", "swap them in gapless.yaml"


def _swap(low: int, high: int) -> tuple[ColumnChange, ...]:
    return ColumnChange(low, high, 1.0), ColumnChange(high, low, 1.0)


def _scale_columns(columns: Iterable[int], factor: float) -> tuple[ColumnChange, ...]:
    return tuple(ColumnChange(k, k, factor) for k in columns)
