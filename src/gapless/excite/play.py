"""Writing a motion, reading it again, and playing it on a robot, a twin or a simulation."""

import io
from collections.abc import Mapping
from pathlib import Path

import mujoco
import numpy as np

from gapless.core.episode import Episode
from gapless.core.protocols import Start, World
from gapless.core.run import run_open
from gapless.core.signal import Array
from gapless.formats.table.columns import read_columns
from gapless.project.model import load_model
from gapless.project.records import Project
from gapless.sim.measurements import StateReader


def motion_csv(project: Project, commands: Array) -> bytes:
    """Returns (num_steps, num_commands) commands in model units as CSV: `time_s`, then columns in units of the log."""
    table = [np.arange(len(commands)) / project.rate_hz]
    table += [(commands[:, k] - item.offset) / item.scale for k, item in enumerate(project.commands)]
    text = io.StringIO()
    header = ",".join(["time_s", *project.command_names])
    np.savetxt(text, np.stack(table, axis=1), fmt="%.9g", delimiter=",", header=header, comments="")
    return text.getvalue().encode()


def read_motion(project: Project, path: str | Path) -> Array:
    """Returns the commands of a motion in model units, (num_steps, num_commands)."""
    columns = read_columns(Path(path), ("time_s", *project.command_names))
    return np.stack([item.scale * columns[item.column] + item.offset for item in project.commands], axis=1)


def play(
    project: Project,
    world: World,
    path: str | Path,
    start: Mapping[str, float],
    rng: np.random.Generator,
    name: str = "excite",
) -> Episode:
    """Plays the CSV that `excite` wrote in a world, once, and returns what it showed; `write_log` makes it a log.

    `world` is a robot, a twin or a simulation, with one world; `start` has column -> reading at the start, in the units
    of the log, as `start` of the result.
    """
    commands = read_motion(project, path)
    sent = iter(commands)
    units = (project.command_units, project.measurement_units)
    begin = make_start(project, start)
    return run_open(world, lambda time_s, measured: next(sent)[None], begin, rng, len(commands), units=units, name=name)


def make_start(project: Project, start: Mapping[str, float]) -> Start:
    """Returns a start from readings in the units of the log; what is not measured begins as the model has it."""
    model = load_model(project.model_path)
    readings = np.array([[item.scale * start[item.column] + item.offset for item in project.measurements]])
    qpos = StateReader.of(project, model).state(readings, np.zeros_like(readings))[0]
    data = mujoco.MjData(model)
    data.qpos[:] = qpos[0]
    names = [name for joint in range(model.njnt) if (name := model.joint(joint).name)]
    return Start({name: data.joint(name).qpos[None].copy() for name in names}, np.zeros((1, 0)))
