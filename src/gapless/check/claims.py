"""Claims about data that predictions can test: a column has the wrong sign, the wrong unit, another's place or time."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from gapless.check.units import DEGREE, MISTAKEN
from gapless.fit.prediction.windows import Windows
from gapless.project.records import CommandMap, MeasurementMap, Project
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject
from gapless.sim.targets import driven_joint, is_position_servo

EARLIER_S = (0.02, 0.04, 0.08, 0.12, 0.2)  # by which commands may be stamped too late
LATER_S = (0.2, 0.3, 0.5, 1.0)  # by which they may be stamped too early; below is an ordinary delay

Change = tuple[int, int, float]  # column `place` gets what column `source` holds, times a factor


@dataclass(frozen=True)
class Claim:
    """One change to the data that would mend them.

    Attributes:
        text: What would then be wrong with them as they are, as a sentence that ends the column's name.
        remedy: What to write in gapless.yaml.
        measurements: Changes of measured columns.
        commands: Changes of commanded columns.
        later_rows: Rows by which commands take effect later than stamped; negative is earlier.
        about: Measured columns that the claim must improve.
    """

    text: str
    remedy: str
    measurements: tuple[Change, ...] = ()
    commands: tuple[Change, ...] = ()
    later_rows: int = 0
    about: frozenset[int] = frozenset()

    def columns(self, project: Project) -> tuple[str, ...]:
        """Returns the columns that it changes; for a shift those that it is about."""
        changed = [project.measurements[place].column for place, _, _ in self.measurements]
        changed += [project.commands[place].column for place, _, _ in self.commands]
        return tuple(changed) or tuple(project.measurements[k].column for k in sorted(self.about))

    def apply(self, project: Project, windows: Windows) -> Windows:
        """Returns windows with their columns changed; commands that are to be shifted must have been."""
        start, slope, measured = windows.start.copy(), windows.slope.copy(), windows.measured.copy()
        errors = [windows.noise.copy(), windows.start_sd.copy(), windows.slope_sd.copy()]
        commands, history = windows.commands.copy(), windows.history.copy()
        for place, source, factor in self.measurements:
            gain, offset = _linear(project.measurements, place, source, factor)
            measured[..., place] = gain * windows.measured[..., source] + offset
            start[:, place], slope[:, place] = gain * windows.start[:, source] + offset, gain * windows.slope[:, source]
            for error, old in zip(errors, (windows.noise, windows.start_sd, windows.slope_sd), strict=True):
                error[place] = abs(gain) * old[source]
        for place, source, factor in self.commands:
            gain, offset = _linear(project.commands, place, source, factor)
            commands[..., place] = gain * windows.commands[..., source] + offset
            history[..., place] = gain * windows.history[..., source] + offset
        return Windows(commands, history, measured, start, slope, windows.track, windows.first_row, *errors)


def shift_commands(tracks: Sequence[Track], later_rows: int) -> list[Track]:
    """Returns tracks whose commands take effect some rows later; what is not known is held."""
    return [
        replace(t, commands=t.commands[np.clip(np.arange(len(t.commands)) - later_rows, 0, len(t.commands) - 1)])
        for t in tracks
    ]


def claims_about(blueprint: CompiledProject, suspects: Sequence[int], unheard: Set[int]) -> list[Claim]:
    """Returns every claim that could explain why some measured columns are predicted badly.

    Args:
        blueprint: The compiled project.
        suspects: The columns that are.
        unheard: Columns that say nothing: they may be swapped with a suspect, others that are predicted well may not.
    """
    project = blueprint.project
    driven = _driven(blueprint)
    found = [*_scales(project, suspects), *_command_scales(blueprint, driven, suspects), *_degrees(blueprint)]
    found += _swaps(project, suspects, unheard) + _command_swaps(project, driven, {*suspects, *unheard})
    unique = {(c.measurements, c.commands): c for c in found if c.about & set(suspects)}
    return list(unique.values())


def clock_claims(blueprint: CompiledProject) -> list[Claim]:
    """Returns claims that commands and readings were stamped by clocks that differ."""
    project = blueprint.project
    if not project.commands:
        return []
    about = frozenset(column for columns in _driven(blueprint) for column in columns)
    sizes_s = [-s for s in EARLIER_S] + list(LATER_S)
    rows = dict.fromkeys(round(s * project.rate_hz) for s in sizes_s)
    return [_clock(k, project.rate_hz, about) for k in rows if k]


def _clock(rows: int, rate_hz: float, about: frozenset[int]) -> Claim:
    size = f"{1000 * abs(rows) / rate_hz:.0f} ms"
    if rows < 0:
        text = f"readings are stamped about {size} earlier than the commands that cause them"
    else:
        text = f"readings follow the commands only after about {size}, longer than a delay that is fitted"
    return Claim(text, "shift the time stamps of one of them", later_rows=rows, about=about)


def _linear(
    maps: tuple[CommandMap, ...] | tuple[MeasurementMap, ...], place: int, source: int, factor: float
) -> tuple[float, float]:
    """Returns gain and offset from the model value of one column to that which it would have in another's place."""
    here, there = maps[place], maps[source]
    gain = factor * here.scale / there.scale
    return gain, here.offset - gain * there.offset


def _driven(blueprint: CompiledProject) -> list[frozenset[int]]:
    """Returns, per command, the measured columns of the joint that it drives."""
    found: list[frozenset[int]] = []
    for actuator in blueprint.actuator_ids:
        joint = driven_joint(blueprint.model, actuator)
        name = blueprint.model.joint(joint).name if joint is not None else None
        columns = (k for k, m in enumerate(blueprint.project.measurements) if m.element == "joint" and m.name == name)
        found.append(frozenset(columns))
    return found


def _together(project: Project, column: int) -> list[int]:
    """Returns the columns of the same joint."""
    name = project.measurements[column].name
    return [k for k, item in enumerate(project.measurements) if item.element == "joint" and item.name == name]


def _scales(project: Project, suspects: Sequence[int]) -> list[Claim]:
    found: list[Claim] = []
    for column in suspects:
        item = project.measurements[column]
        sets = [[column], _together(project, column)] if item.element == "joint" else [[column]]
        for columns in sets if not item.quantity.startswith("q") else []:
            names = " and ".join(project.measurements[k].column for k in columns)
            for factor, words in _factors(item.unit, item.scale):
                changes = tuple((k, k, factor) for k in columns)
                new = item.scale * factor
                found.append(Claim(f"{names} {words}", f"set scale: {new:.6g}", changes, about=frozenset(columns)))
    return found


def _command_scales(
    blueprint: CompiledProject, driven: Sequence[frozenset[int]], suspects: Sequence[int]
) -> list[Claim]:
    found: list[Claim] = []
    for place, (item, columns) in enumerate(zip(blueprint.project.commands, driven, strict=True)):
        servo = is_position_servo(blueprint.model, blueprint.actuator_ids[place])
        about = columns or frozenset(suspects)
        for factor, words in _factors(item.unit if servo else "", item.scale):
            remedy = f"set scale: {item.scale * factor:.6g}"
            found.append(Claim(f"{item.column} {words}", remedy, commands=((place, place, factor),), about=about))
    return found


def _factors(unit: str, scale: float) -> list[tuple[float, str]]:
    """Returns factors that could mend a column, with words; what is not converted cannot be converted wrongly."""
    units = [entry for entry in MISTAKEN.get(unit.removesuffix("/s"), ()) if entry[0] < 1 or abs(scale * entry[0]) < 5]
    return [(-1.0, "has the wrong sign"), *((factor, f"is in {words}") for factor, words in units)]


def _degrees(blueprint: CompiledProject) -> list[Claim]:
    """Returns the claim that every angle is in degrees: where joints act on each other one alone mends little."""
    project, model = blueprint.project, blueprint.model
    angles = tuple((k, k, DEGREE) for k, item in enumerate(project.measurements) if item.unit in ("rad", "rad/s"))
    hinges = [
        k
        for k, actuator in enumerate(blueprint.actuator_ids)
        if is_position_servo(model, actuator) and (joint := driven_joint(model, actuator)) is not None
        if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE
    ]
    about = frozenset(place for place, _, _ in angles)
    found: list[Claim] = []
    for commands in (tuple((k, k, DEGREE) for k in hinges), ()):
        if len(angles) + len(commands) > 1 and angles:
            names = [project.measurements[k].column for k, _, _ in angles]
            names += [project.commands[k].column for k, _, _ in commands]
            text = f"{', '.join(names)} are in degrees, not radians"
            found.append(Claim(text, f"set scale: {DEGREE:.6g} for each", angles, commands, about=about))
    return found


def _swaps(project: Project, suspects: Sequence[int], unheard: Set[int]) -> list[Claim]:
    found: list[Claim] = []
    for one in suspects:
        item = project.measurements[one]
        for other, its in enumerate(project.measurements):
            alike = (its.element, its.unit) == (item.element, item.unit)
            if other == one or other not in {*suspects, *unheard} or not alike:
                continue
            low, high = sorted((one, other))
            text = f"{project.measurements[low].column} and {project.measurements[high].column} are swapped"
            changes = ((low, high, 1.0), (high, low, 1.0))
            found.append(Claim(text, "swap them in gapless.yaml", changes, about=frozenset((low, high))))
    return found


def _command_swaps(project: Project, driven: Sequence[frozenset[int]], suspects: Set[int]) -> list[Claim]:
    found: list[Claim] = []
    for low, here in enumerate(project.commands):
        for high in range(low + 1, len(project.commands)):
            about = driven[low] | driven[high]
            if here.unit != project.commands[high].unit or not (driven[low] & suspects and driven[high] & suspects):
                continue
            text = f"{here.column} and {project.commands[high].column} are swapped"
            changes = ((low, high, 1.0), (high, low, 1.0))
            found.append(Claim(text, "swap them in gapless.yaml", commands=changes, about=about))
    return found
