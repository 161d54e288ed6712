"""A model without actuators whose efforts are logged: its joints can be driven by them."""

from collections.abc import Sequence
from pathlib import Path

import mujoco

from gapless.core.errors import nearest
from gapless.core.results import Note
from gapless.project.model import command_unit, load_spec, names, relocate_files
from gapless.project.records import CommandMap, MeasurementMap
from gapless.project.yaml_file import project_error

OPTION = "--drive-by-effort"


def find_efforts(measurements: Sequence[MeasurementMap]) -> list[MeasurementMap]:
    """Returns the measured efforts of joints."""
    return [item for item in measurements if item.element == "joint" and item.quantity == "effort"]


def offer_drive(model: mujoco.MjModel, measurements: Sequence[MeasurementMap]) -> list[Note]:
    """Returns a warning where nothing drives a model, and what to do where its efforts are measured."""
    efforts = find_efforts(measurements)
    if model.nu or not efforts:
        return []
    text = f"it has no actuators, so that nothing drives its joints in simulation; the efforts of {len(efforts)} "
    text += f"joints are logged: to drive them by these, run gapless new MODEL LOG... DIR {OPTION} (a new DIR)"
    return [Note("warning", "model", text)]


def add_motors(model_path: Path, measurements: Sequence[MeasurementMap], folder: Path) -> tuple[str, list[CommandMap]]:
    """Returns the model as MJCF for a folder, with a motor for each joint whose effort is logged, and its commands.

    Raises:
        ProjectError: If the model has actuators, or no effort is logged.
    """
    spec = load_spec(model_path)
    efforts = find_efforts(measurements)
    if there := names(spec.compile(), "actuator"):
        text = f"{OPTION} is for a model without actuators; this one has actuators: {nearest('', there)}"
        raise project_error(f"{text}; leave {OPTION} out", model_path)
    if not efforts:
        text = f"{OPTION}: no effort of a joint was recognised in the log"
        raise project_error(f"{text}; name such columns effort_JOINT or tau_JOINT, or leave {OPTION} out", model_path)
    for item in efforts:
        spec.add_actuator(name=item.name, target=item.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    model = spec.compile()
    units = {item.name: command_unit(model, item.name) for item in efforts}
    commands = [CommandMap(item.column, item.name, item.scale, unit=units[item.name]) for item in efforts]
    return relocate_files(spec.to_xml(), model_path.resolve().parent, folder.resolve()), commands
