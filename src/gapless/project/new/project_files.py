"""The files of a new project folder, with its `gapless.yaml`: all of them are written, or none."""

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from xml.etree import ElementTree

import yaml

from gapless.core.results import Note
from gapless.project.new.recordings import Recording, write_recording
from gapless.project.records import CommandMap, MeasurementMap
from gapless.project.yaml_file import project_error


class ProjectFiles:
    """Writes the files of a new project; `undo` gets what takes back each of them if anything fails on the way."""

    def __init__(self, directory: Path, undo: ExitStack) -> None:
        """Begins with nothing written."""
        self.directory = directory
        self._undo = undo
        self._model_note: Note | None = None
        self._logs: dict[str, list[str]] = {}

    def notes(self) -> list[Note]:
        """Returns what was done with the model and the logs."""
        notes = [self._model_note] if self._model_note else []
        for text, names in self._logs.items():
            more = f"{len(names)} files, logs/{names[0]} to {names[-1]}" if len(names) > 1 else f"logs/{names[0]}"
            notes.append(Note("info", "logs", text.format(more)))
        return notes

    def add_model(self, model: Path) -> str:
        """Copies a model that stands alone; refers to one that needs other files. Returns its entry."""
        target = self.directory / model.name
        if target.exists() and target.samefile(model):
            self._model_note = Note("info", "model", f"{model.name} is in the folder already and is used as it is")
            return model.name
        if references := _named_files(model):
            entry = Path(os.path.relpath(model.resolve(), self.directory.resolve())).as_posix()
            text = f"not copied, as it needs {len(references)} other file(s) such as {references[0]}"
            self._model_note = Note("info", "model", f"{text}; referred to as {entry}")
            return entry
        self._copy(model, target)
        self._model_note = Note("info", "model", f"copied to {model.name}")
        return model.name

    def write_model(self, model: Path, text: str) -> str:
        """Writes a model that was given motors. Returns its entry."""
        name = f"{model.stem}_driven.xml"
        self.write_text(self.directory / name, text)
        about = f"written to {name} with a motor for each joint whose effort is logged; {model.name} is unchanged"
        self._model_note = Note("info", "model", about)
        return name

    def add_log(self, recording: Recording) -> None:
        """Copies a log, or writes it with `time_s`, and copies what stands beside it."""
        log, target = recording.path, self.directory / "logs" / recording.name
        if target.exists() and target.samefile(log) and not recording.is_changed:
            self._logs.setdefault("{}: in the folder already, used as it is", []).append(recording.name)
            return
        sidecar, beside = log.with_suffix(".json"), target.with_suffix(".json")
        if sidecar.is_file() and not (beside.exists() and beside.samefile(sidecar)):
            self._copy(sidecar, beside)
        if recording.is_changed:
            self._prepare(target)
            write_recording(recording, target)
            text = "written to {}, with time_s added; the original is unchanged"
        else:
            self._copy(log, target)
            text = "copied to {}"
        self._logs.setdefault(text, []).append(recording.name)

    def write_text(self, target: Path, text: str) -> None:
        """Writes a new file."""
        self._prepare(target)
        target.write_text(text, encoding="utf-8")

    def _copy(self, source: Path, target: Path) -> None:
        self._prepare(target)
        shutil.copyfile(source, target)

    def _prepare(self, target: Path) -> None:
        if target.exists():
            raise project_error("a file of this name exists and is not overwritten: choose another folder", target)
        folders = [folder for folder in (target.parent, *target.parent.parents) if not folder.exists()]
        for folder in reversed(folders):
            folder.mkdir()
            self._undo.callback(_remove, folder)
        self._undo.callback(_remove, target)


def _remove(path: Path) -> None:
    with suppress(OSError):  # the first error matters; a folder in which others wrote meanwhile stays
        path.rmdir() if path.is_dir() else path.unlink()


def _named_files(model: Path) -> list[str]:
    """Returns the files that an MJCF or URDF file names."""
    elements = ElementTree.parse(model).iter()  # MuJoCo has parsed it already
    return [value for item in elements for key, value in item.attrib.items() if key.startswith("file") and value]


def compose_yaml(
    name: str, model: str, rate_hz: float, commands: Sequence[CommandMap], measurements: Sequence[MeasurementMap]
) -> str:
    """Returns a `gapless.yaml` with comments."""
    lines = [
        "gapless: 1                # version of this format",
        f"name: {_quote(name)}",
        f"model: {_quote(model)}",
        f"rate_hz: {rate_hz:<16g} # control rate; guessed from the log",
        "# Any mapping may carry scale and offset (model value = scale * column + offset) and noise.",
    ]
    if commands:
        lines.append("commands:                 # log column -> actuator of the model; guessed")
        lines += [_compose_mapping(item, {"actuator": item.actuator}) for item in commands]
    lines.append("measurements:             # log column -> what it measures; guessed")
    for item in measurements:
        about = {"axis": str(item.axis)} if item.element == "sensor" else {"quantity": item.quantity}
        lines.append(_compose_mapping(item, {item.element: item.name, **about}))
    lines += ["logs: logs                # folder; one episode per file", "parameters: auto"]
    lines += ["# task: task.py:Push      # observation, reward, success, phases"]
    lines += ["# reality: twin.py:make   # what policies are deployed on", ""]
    return "\n".join(lines)


def _compose_mapping(item: CommandMap | MeasurementMap, keys: dict[str, str]) -> str:
    keys |= {} if item.scale == 1 else {"scale": repr(item.scale)}
    values = ", ".join(f"{key}: {_quote(value)}" for key, value in keys.items())
    return f"  {_quote(item.column)}: {{{values}}}  # [{item.unit}]"


def _quote(text: str) -> str:
    """Returns text as one YAML scalar, in quotes only where needed."""
    if text.replace(".", "").replace("-", "").isalnum() and not text.startswith("-"):
        return text
    dumped: str = yaml.safe_dump([text], default_flow_style=True, width=10**6, allow_unicode=True)
    return dumped.strip()[1:-1]
