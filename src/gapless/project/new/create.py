"""Making a project folder from a model and a log: `gapless new`."""

import hashlib
import os
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml

from gapless.core.errors import nearest
from gapless.core.results import NewResult, Note
from gapless.project.document import FILE_NAME, project_error
from gapless.project.load import load_project
from gapless.project.model import load_model, names
from gapless.project.new.guess import guess_columns
from gapless.project.new.timing import Recording, read_recording, write_recording
from gapless.project.records import CommandMap, MeasurementMap

_USUAL_RATES_HZ = (
    10,
    15,
    20,
    25,
    30,
    40,
    50,
    60,
    100,
    120,
    125,
    150,
    200,
    240,
    250,
    300,
    400,
    500,
    800,
    1000,
)


def new_project(model: Path, log: Path, directory: Path) -> NewResult:
    """Makes a project folder, and says in notes what was guessed.

    Args:
        model: MJCF or URDF file.
        log: One log; its time column may have another name than `time_s`.
        directory: Where to make the project; must not have a `gapless.yaml` yet.

    Raises:
        ProjectError: If there is a project already, or no column can be mapped.
        LogError: If the log cannot be read.
    """
    model, log, directory = (Path(path).expanduser() for path in (model, log, directory))
    if (directory / FILE_NAME).exists():
        raise project_error(f"there is a {FILE_NAME} already: delete it or choose another folder", directory)
    compiled = load_model(model)
    recording = read_recording(log)
    commands, measurements, guesses = guess_columns(compiled, recording.columns)
    if not measurements:
        there = f"the log has: {nearest('q', recording.columns, 12)}"
        joints = f"the model has joints: {nearest('q', names(compiled, 'joint'), 12)}"
        bodies = f"bodies: {nearest('x', names(compiled, 'body'), 12)}"
        text = f"no column is called like anything that can be measured; {there}; {joints}; {bodies}"
        raise project_error(f"{text}; rename columns such as q_JOINT, dq_JOINT, BODY_x", log)
    inputs = tuple(_digest(path) for path in (model, log))
    model_entry, model_note = _place_model(model, directory)
    log_note = _place_log(log, directory, recording)
    rate_hz = _rate_hz(recording)
    rate_note = Note("info", "rate_hz", f"guessed: {rate_hz:g}, from the median interval of the log")
    text = _compose(directory.resolve().name, model_entry, rate_hz, commands, measurements)
    (directory / FILE_NAME).write_text(text, encoding="utf-8")
    load_project(directory)
    notes = (model_note, log_note, *recording.notes, rate_note, *guesses)
    return NewResult(inputs, str(directory), notes)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def _rate_hz(recording: Recording) -> float:
    """Returns the log's rate [Hz]: a usual one within 1 %, otherwise three digits."""
    intervals_s = np.diff(recording.times_s)
    rate_hz = 1 / float(np.median(intervals_s[intervals_s > 0]))
    usual = min(_USUAL_RATES_HZ, key=lambda each: abs(each - rate_hz))
    return float(usual) if abs(usual / rate_hz - 1) < 0.01 else float(f"{rate_hz:.3g}")


def _place_model(model: Path, directory: Path) -> tuple[str, Note]:
    """Copies a model that stands alone; refers to one that needs other files."""
    target = directory / model.name
    if target.exists() and target.samefile(model):
        return model.name, Note("info", "model", f"{model.name} is in the folder already and is used as it is")
    if references := _references(model):
        entry = Path(os.path.relpath(model.resolve(), directory.resolve())).as_posix()
        text = f"not copied, as it needs {len(references)} other file(s) such as {references[0]}"
        return entry, Note("info", "model", f"{text}; referred to as {entry}")
    _copy(model, target)
    return model.name, Note("info", "model", f"copied to {model.name}")


def _references(model: Path) -> list[str]:
    """Returns the files that an MJCF or URDF file names."""
    elements = ElementTree.parse(model).iter()  # MuJoCo has parsed it already
    return [value for item in elements for key, value in item.attrib.items() if key.startswith("file") and value]


def _place_log(log: Path, directory: Path, recording: Recording) -> Note:
    target = directory / "logs" / log.name
    if target.exists() and target.samefile(log) and not recording.converted:
        return Note("info", "logs", f"logs/{log.name} is in the folder already and is used as it is")
    sidecar = log.with_suffix(".json")
    if sidecar.is_file():
        _copy_unless_same(sidecar, target.with_suffix(".json"))
    if recording.converted:
        _refuse_existing(target)
        write_recording(log, target, recording)
        return Note("info", "logs", f"written to logs/{log.name}, with time_s added; the original is unchanged")
    _copy(log, target)
    return Note("info", "logs", f"copied to logs/{log.name}")


def _copy_unless_same(source: Path, target: Path) -> None:
    if not (target.exists() and target.samefile(source)):
        _copy(source, target)


def _copy(source: Path, target: Path) -> None:
    _refuse_existing(target)
    shutil.copyfile(source, target)


def _refuse_existing(target: Path) -> None:
    if target.exists():
        raise project_error("a file of this name exists and is not overwritten: choose another folder", target)
    target.parent.mkdir(parents=True, exist_ok=True)


def _compose(
    name: str,
    model: str,
    rate_hz: float,
    commands: Sequence[CommandMap],
    measurements: Sequence[MeasurementMap],
) -> str:
    """Returns a `gapless.yaml` with comments."""
    lines = [
        "gapless: 1                # version of this format",
        f"name: {_scalar(name)}",
        f"model: {_scalar(model)}",
        f"rate_hz: {rate_hz:<16g} # control rate; guessed from the log",
        "# Any mapping may carry scale and offset (model value = scale * column + offset) and noise.",
    ]
    if commands:
        lines.append("commands:                 # log column -> actuator of the model; guessed")
    for command in commands:
        keys = {"actuator": command.actuator, **_scaled(command.scale)}
        lines.append(f"  {_scalar(command.column)}: {_flow(keys)}  # [{command.unit}]")
    lines.append("measurements:             # log column -> what it measures; guessed")
    for item in measurements:
        about = {"axis": str(item.axis)} if item.element == "sensor" else {"quantity": item.quantity}
        keys = {item.element: item.name, **about, **_scaled(item.scale)}
        lines.append(f"  {_scalar(item.column)}: {_flow(keys)}  # [{item.unit}]")
    lines += ["logs: logs                # folder; one episode per file", "parameters: auto"]
    lines += ["# task: task.py:Push      # observation, reward, success, phases"]
    lines += ["# reality: twin.py:make   # what policies are deployed on", ""]
    return "\n".join(lines)


def _scaled(scale: float) -> dict[str, str]:
    return {} if scale == 1 else {"scale": repr(scale)}


def _flow(keys: dict[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {_scalar(value)}" for key, value in keys.items()) + "}"


def _scalar(text: str) -> str:
    """Returns text as one YAML scalar, in quotes only where needed."""
    if text.replace(".", "").replace("-", "").isalnum() and not text.startswith("-"):
        return text
    dumped: str = yaml.safe_dump([text], default_flow_style=True, width=10**6, allow_unicode=True)
    return dumped.strip()[1:-1]
