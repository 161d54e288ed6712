"""What checks report, and what they know of columns: the drive that each belongs to, units that it is mistaken for."""

from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.core.signal import Flags
from gapless.project.records import Project
from gapless.sim.blueprint import CompiledProject
from gapless.sim.targets import driven_joint, is_position_servo

RADIANS_PER_DEGREE = float(np.pi / 180)
MAX_UNIT_RATIO = 1.4  # a measured ratio may differ from a unit's factor by this: a servo need not reach its target
MISTAKEN_UNITS = {  # unit of a column -> factors that would correct it, with what the column then holds
    "rad": ((RADIANS_PER_DEGREE, "degrees, not radians"), (1 / RADIANS_PER_DEGREE, "radians already, not degrees")),
    "m": ((1e-3, "millimetres, not metres"), (1e3, "metres already, not millimetres")),
}


@dataclass(frozen=True)
class Finding:
    """A fault in how columns are mapped, or in what they hold, in all logs."""

    columns: tuple[str, ...]  # the columns that it is about, the likeliest first
    text: str  # what looks wrong, why, and what to change, as one sentence
    prevents_fit: bool = False  # whether nothing can be fitted until it is corrected


@dataclass(frozen=True)
class UnusableRows:
    """Rows of one log that say nothing about the model, from `first_row` to before `end_row`."""

    track: int  # index of the log
    first_row: int  # the first of them
    end_row: int  # the row after the last
    column: str  # the column that shows it
    text: str  # what is wrong there, without where


def find_runs(flags: Flags) -> list[tuple[int, int]]:
    """Returns where flags are set without a break: (first, end) of each run."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


@dataclass(frozen=True)
class Drive:
    """A command and the measured joint that it drives."""

    command: int  # its column among the commands
    command_name: str  # name of that column
    joint: str  # name of the joint; empty where the actuator drives something else
    columns: tuple[int, ...]  # all measured columns of that joint
    reading: int  # the one of them that is its position; -1 where that is not measured
    reading_name: str  # name of that column; empty where there is none
    is_hinge: bool  # whether the joint is a hinge
    is_servo: bool  # whether the actuator is a position servo: the command is a target
    gear: float  # command per joint travel


def list_drives(blueprint: CompiledProject) -> list[Drive]:
    """Returns a drive per command, in their order."""
    project, model, drives = blueprint.project, blueprint.model, list[Drive]()
    for command, actuator in enumerate(blueprint.actuator_ids):
        joint = driven_joint(model, actuator)
        name = "" if joint is None else model.joint(joint).name
        columns = joint_columns(project, name)
        reading = next((k for k in columns if project.measurements[k].quantity == "position"), -1)
        reading_name = project.measurements[reading].column if reading >= 0 else ""
        is_hinge = joint is not None and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE
        gear = float(model.actuator_gear[actuator, 0]) or 1.0
        column, is_servo = project.commands[command].column, is_position_servo(model, actuator)
        drives.append(Drive(command, column, name, columns, reading, reading_name, bool(is_hinge), is_servo, gear))
    return drives


def list_measured_servos(blueprint: CompiledProject) -> list[Drive]:
    """Returns the position servos whose joints are measured."""
    return [drive for drive in list_drives(blueprint) if drive.is_servo and drive.reading >= 0]


def joint_columns(project: Project, joint: str) -> tuple[int, ...]:
    """Returns the measured columns of a joint."""
    return tuple(k for k, item in enumerate(project.measurements) if item.element == "joint" and item.name == joint)


def name_wrong_unit(unit: str, ratio: float) -> str | None:
    """Returns the unit that one of two columns is in by mistake if their `ratio` is about its factor; else None.

    `unit` is what both should be in: rad, m, or one of these per second.
    """
    factor, words = MISTAKEN_UNITS.get(unit.removesuffix("/s"), ((np.inf, ""),))[0]
    differs = any(1 / MAX_UNIT_RATIO < ratio / size < MAX_UNIT_RATIO for size in (factor, 1 / factor) if size)
    return words if differs else None
