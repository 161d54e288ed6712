"""Hypotheses about the mapping: a column has the other sign, another unit, another column's place, another clock.

Each is one change to the data. `mapping.py` tests them: does the model predict the changed data far better?
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from gapless.check.findings import MISTAKEN_UNITS, RADIANS_PER_DEGREE, Drive, joint_columns, list_drives
from gapless.fit.prediction.windows import Windows
from gapless.project.records import CommandMap, MeasurementMap, Project
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject

COMMANDS_EARLIER_S = (0.02, 0.04, 0.08, 0.12, 0.2)  # by which commands may be stamped too late
COMMANDS_LATER_S = (0.2, 0.3, 0.5, 1.0)  # by which they may be stamped too early; below is an ordinary delay
MAX_SCALE = 5.0  # a scale that a factor above 1 would make larger was never a conversion that could be undone


ColumnKind = Literal["measurement", "command"]


class ColumnChange(NamedTuple):
    """Column `place` gets what column `source` of the same kind holds, times a factor."""

    kind: ColumnKind
    place: int
    source: int
    factor: float


@dataclass(frozen=True)
class MappingHypothesis:
    """One change to the data that would correct a fault of the mapping."""

    text: str  # what is then wrong with the data as mapped; goes on after "it looks as if"
    remedy: str  # what to write in gapless.yaml
    changes: tuple[ColumnChange, ...] = ()  # of columns
    shift_rows: int = 0  # rows by which commands take effect later than stamped; negative is earlier
    tested_columns: frozenset[int] = frozenset()  # measured columns whose prediction it must improve

    def column_names(self, project: Project) -> tuple[str, ...]:
        """Returns the columns that it changes; for a shift those that it is tested on."""
        changed = tuple(_get_maps(project, change.kind)[change.place].column for change in self.changes)
        return changed or tuple(project.measurements[k].column for k in sorted(self.tested_columns))

    def apply(self, project: Project, windows: Windows) -> Windows:
        """Returns windows with their columns changed; commands that are to be shifted must have been."""
        changed = {name: getattr(windows, name).copy() for names in _ARRAYS.values() for name in names}
        for kind, place, source, factor in self.changes:
            here, there = _get_maps(project, kind)[place], _get_maps(project, kind)[source]
            gain = factor * here.scale / there.scale  # from the model value of `source` to that it has in `place`
            offset = here.offset - gain * there.offset
            for name in _ARRAYS[kind]:
                old = getattr(windows, name)[..., source]
                if name in ("noise", "start_sd", "slope_sd"):
                    changed[name][..., place] = abs(gain) * old
                else:
                    changed[name][..., place] = gain * old + (0.0 if name == "slope" else offset)
        return replace(windows, **changed)


_ARRAYS: dict[ColumnKind, tuple[str, ...]] = {  # of windows, with one column per mapped column
    "measurement": ("measured", "start", "slope", "noise", "start_sd", "slope_sd"),
    "command": ("commands", "history"),
}


def _get_maps(project: Project, kind: ColumnKind) -> Sequence[CommandMap | MeasurementMap]:
    return project.measurements if kind == "measurement" else project.commands


def shift_commands(tracks: Sequence[Track], later_rows: int) -> list[Track]:
    """Returns tracks whose commands take effect some rows later; what is not known is held."""
    return [
        replace(t, commands=t.commands[np.clip(np.arange(len(t.commands)) - later_rows, 0, len(t.commands) - 1)])
        for t in tracks
    ]


def list_column_hypotheses(
    blueprint: CompiledProject, suspects: Sequence[int], silent: Set[int]
) -> list[MappingHypothesis]:
    """Returns every sign, unit and swap that could explain why some measured columns, `suspects`, are predicted badly.

    Only other suspects, and columns that hardly move, `silent`, may be swapped with a suspect.
    """
    project, drives = blueprint.project, list_drives(blueprint)
    found = [
        *_list_scales(project, drives, suspects),
        *_list_all_degrees(project, drives),
        *_list_swaps(project, drives, suspects, silent),
    ]
    unique = {one.changes: one for one in found if one.tested_columns & set(suspects)}
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


def _list_scales(project: Project, drives: Sequence[Drive], suspects: Sequence[int]) -> Iterator[MappingHypothesis]:
    """Yields wrong signs and units of a column, of all columns of its joint together, and of commands."""
    for column in suspects:
        item = project.measurements[column]
        groups = [(column,), joint_columns(project, item.name)] if item.element == "joint" else [(column,)]
        for columns in groups if not item.quantity.startswith("q") else []:
            names = " and ".join(project.measurements[k].column for k in columns)
            for factor, words in _list_factors(item.unit, item.scale):
                remedy, changes = f"set scale: {item.scale * factor:.6g}", _scale("measurement", columns, factor)
                yield MappingHypothesis(f"{names} {words}", remedy, changes, tested_columns=frozenset(columns))
    for item, drive in zip(project.commands, drives, strict=True):
        tested = frozenset(drive.columns or suspects)
        for factor, words in _list_factors(item.unit if drive.is_servo else "", item.scale):
            remedy, changes = f"set scale: {item.scale * factor:.6g}", _scale("command", [drive.command], factor)
            yield MappingHypothesis(f"{item.column} {words}", remedy, changes, tested_columns=tested)


def _list_factors(unit: str, scale: float) -> list[tuple[float, str]]:
    """Returns factors that could correct a column, in words; a unit is undone only where the scale converts one."""
    units = MISTAKEN_UNITS.get(unit.removesuffix("/s"), ())
    possible = [(factor, words) for factor, words in units if factor < 1 or abs(scale * factor) < MAX_SCALE]
    return [(-1.0, "has the wrong sign"), *((factor, f"is in {words}") for factor, words in possible)]


def _list_all_degrees(project: Project, drives: Sequence[Drive]) -> Iterator[MappingHypothesis]:
    """Yields that every angle is in degrees: where joints act on each other, correcting one alone helps little."""
    angles = [k for k, item in enumerate(project.measurements) if item.unit in ("rad", "rad/s")]
    hinges = [drive.command for drive in drives if drive.is_servo and drive.is_hinge]
    remedy = f"set scale: {RADIANS_PER_DEGREE:.6g} for each"
    for commands in (hinges, []):
        if angles and len(angles) + len(commands) > 1:
            names = [project.measurements[k].column for k in angles] + [project.commands[k].column for k in commands]
            changes = _scale("measurement", angles, RADIANS_PER_DEGREE)
            changes += _scale("command", commands, RADIANS_PER_DEGREE)
            text = f"{', '.join(names)} are in degrees, not radians"
            yield MappingHypothesis(text, remedy, changes, tested_columns=frozenset(angles))


def _list_swaps(
    project: Project, drives: Sequence[Drive], suspects: Sequence[int], silent: Set[int]
) -> Iterator[MappingHypothesis]:
    """Yields readings, then commands, that are in each other's place."""
    possible = {*suspects, *silent}
    for one in suspects:
        item = project.measurements[one]
        for other in sorted(possible - {one}):
            its = project.measurements[other]
            if (its.element, its.unit) == (item.element, item.unit):
                low, high = sorted((one, other))
                yield _swap(project, "measurement", low, high, frozenset((low, high)))
    for one, other in combinations(drives, 2):
        low, high = one.command, other.command
        same_unit = project.commands[low].unit == project.commands[high].unit
        if same_unit and possible.intersection(one.columns) and possible.intersection(other.columns):
            yield _swap(project, "command", low, high, frozenset((*one.columns, *other.columns)))


def _swap(project: Project, kind: ColumnKind, low: int, high: int, tested: frozenset[int]) -> MappingHypothesis:
    names = [_get_maps(project, kind)[k].column for k in (low, high)]
    changes = (ColumnChange(kind, low, high, 1.0), ColumnChange(kind, high, low, 1.0))
    text = f"{names[0]} and {names[1]} are swapped"
    return MappingHypothesis(text, "swap them in gapless.yaml", changes, tested_columns=tested)


def _scale(kind: ColumnKind, columns: Iterable[int], factor: float) -> tuple[ColumnChange, ...]:
    return tuple(ColumnChange(kind, k, k, factor) for k in columns)
