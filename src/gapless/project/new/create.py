"""Makes a project folder from a model and logs: `gapless new`."""

import hashlib
import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np
import yaml

from gapless.core.errors import nearest
from gapless.core.protocols import Progress
from gapless.core.results import NewResult, Note
from gapless.formats.table.files import SUFFIXES
from gapless.project.load import load_project
from gapless.project.log.inspect import DRIVE_OPTION, offer_drive
from gapless.project.model import command_unit, load_model, load_spec, names, relocate_files
from gapless.project.new.motion import GUESSED_DEGREES, Signals, guess_columns
from gapless.project.new.recordings import FoundLog, find_logs, read_recordings, write_recording
from gapless.project.records import CommandMap, MeasurementMap
from gapless.project.yaml_file import FILE_NAME, project_error

_USUAL_RATES_HZ = [10, 15, 20, 25, 30, 40, 50, 60, 100, 120, 125, 150, 200, 240, 250, 300, 400, 500, 800, 1000]
MAX_RATE_ERROR = 0.01  # relative difference to a usual rate that is taken for jitter


def new_project(
    model: str | Path,
    logs: str | Path | Sequence[str | Path],
    directory: str | Path,
    *,
    drive_by_effort: bool = False,
    progress: Progress | None = None,
) -> NewResult:
    """Makes a project folder, and says in notes what was guessed. Nothing is written before all logs are read.

    `logs` are logs or folders of them, of one recorder; their time may have any usual name. `drive_by_effort` gives a
    model (MJCF or URDF) without actuators a motor for each joint whose effort is logged.

    Raises:
        InputError: If there is a project already, no column can be mapped, or a log cannot be read.
    """
    given = [logs] if isinstance(logs, str | Path) else logs
    model, directory = Path(model).expanduser(), Path(directory).expanduser()
    if directory.is_file() or directory.suffix.lower() in SUFFIXES:
        raise project_error("the last argument is the folder to make: gapless new MODEL LOG... DIR", directory)
    if (directory / FILE_NAME).exists():
        raise project_error(f"there is a {FILE_NAME} already: delete it or choose another folder", directory)
    if not given:
        raise project_error("no log was given: write gapless new MODEL LOG... DIR", directory)
    compiled = load_model(model)
    recordings = read_recordings(find_logs([Path(each).expanduser() for each in given]), progress)
    first = recordings[0]
    signals = Signals.pool([(each.times_s, each.columns) for each in recordings])
    commands, measurements, guesses = guess_columns(compiled, signals)
    if not measurements:
        known = {"the log has": first.columns, "the model has joints": names(compiled, "joint")}
        known |= {"bodies": names(compiled, "body")}
        there = "; ".join(f"{what}: {nearest('q', those, 12)}" for what, those in known.items())
        text = f"no column is called like anything that can be measured; {there}"
        raise project_error(f"{text}; rename columns such as q_JOINT, dq_JOINT, BODY_x", first.path)
    inputs = [_digest(path) for path in dict.fromkeys((model, *(each.path for each in recordings)))]
    notes = list(first.notes)
    if first.clock.text:
        notes.append(Note("info", first.clock.columns[0], first.clock.text))
    drive_notes, driven = offer_drive(compiled, commands, measurements), ""
    if drive_by_effort:
        drive_notes = []
        driven, commands = _add_motors(model, measurements, directory)
        measurements = tuple(item for item in measurements if not item.is_effort)
        guesses = tuple(_describe_drive(note, commands) for note in guesses)
    rate_hz = _guess_rate_hz(recordings, [item.column for item in measurements])
    notes.append(Note("info", "rate_hz", f"guessed: {rate_hz:g}, from the median interval of the logs"))
    notes += [*guesses, *drive_notes]
    is_lerobot = bool(first.renamed) or (first.recording is not None and "features" in first.recording.details)
    if is_lerobot and any(GUESSED_DEGREES in note.text for note in guesses):
        text = "values beyond the joints' ranges were taken as degrees; LeRobot may also record -100 to 100 percent"
        notes.append(Note("warning", "scale", f"{text} of a range: then correct scale and offset in gapless.yaml"))
    for recording in recordings:
        mapped = (item.column for item in (*commands, *measurements))
        if lacking := [column for column in mapped if column not in recording.columns]:
            text = f"it has no column {nearest('', lacking, 4)}, which gapless.yaml maps: it cannot be used so"
            notes.append(Note("warning", recording.name, f"{text}; delete it from logs, or the mapping"))
    with ExitStack() as undo:
        files = _ProjectFiles(directory, undo)
        entry, model_note = files.add_model(model, driven)
        log_notes = files.add_logs(recordings)
        text = _compose_yaml(directory.resolve().name, entry, rate_hz, commands, measurements)
        files.prepare(directory / FILE_NAME).write_text(text, encoding="utf-8")
        load_project(directory)
        undo.pop_all()  # all is well: what was written stays
    return NewResult(tuple(inputs), str(directory), (model_note, *log_notes, *notes))


def _digest(path: Path) -> str:
    """Returns 32 hex digits over the bytes of a file, or of all files of a folder."""
    digest = hashlib.sha256()
    for file in sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]:
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest() if path.is_dir() else content.read())
    return digest.hexdigest()[:32]


def _add_motors(
    model_path: Path, measurements: Sequence[MeasurementMap], folder: Path
) -> tuple[str, tuple[CommandMap, ...]]:
    """Returns the model as MJCF for a folder, with a motor for each joint whose effort is logged, and its commands."""
    spec = load_spec(model_path)
    efforts = [item for item in measurements if item.is_effort]
    if there := names(spec.compile(), "actuator"):
        text = f"{DRIVE_OPTION} is for a model without actuators; this one has actuators: {nearest('', there)}"
        raise project_error(f"{text}; leave {DRIVE_OPTION} out", model_path)
    if not efforts:
        text = f"{DRIVE_OPTION}: no effort of a joint was recognised in the log; name such columns effort_JOINT"
        raise project_error(f"{text} or tau_JOINT, or leave {DRIVE_OPTION} out", model_path)
    for item in efforts:
        spec.add_actuator(name=item.name, target=item.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    model = spec.compile()
    commands = (CommandMap(e.column, e.name, e.scale, unit=command_unit(model, e.name)) for e in efforts)
    return relocate_files(spec.to_xml(), model_path.resolve().parent, folder.resolve()), tuple(commands)


def _describe_drive(note: Note, commands: Sequence[CommandMap]) -> Note:
    """Returns the note of a column, saying that it drives a joint where it does."""
    actuator = next((command.actuator for command in commands if command.column == note.where), None)
    text = f"guessed: actuator {actuator} command, as the logged effort drives the joint; correct it if wrong"
    return Note("info", note.where, text) if actuator else note


def _guess_rate_hz(recordings: Sequence[FoundLog], columns: Sequence[str]) -> float:
    """Returns the rate of the measured columns [Hz]: a usual one within 1 %, otherwise three digits.

    Rows of other topics, in which a column has no value, do not count.
    """
    known = [(r.times_s, np.isfinite(r.columns[c])) for r in recordings for c in columns if c in r.columns]
    known.append((recordings[0].times_s, np.ones(len(recordings[0].times_s), dtype=np.bool_)))
    intervals_s = [np.diff(times_s[present & np.isfinite(times_s)]) for times_s, present in known]
    medians_s = [float(np.median(each[each > 0])) for each in intervals_s if np.any(each > 0)]
    rate_hz = 1 / float(np.median(medians_s[:-1] or medians_s))
    usual = min(_USUAL_RATES_HZ, key=lambda each: abs(each - rate_hz))
    return float(usual) if abs(usual / rate_hz - 1) < MAX_RATE_ERROR else float(f"{rate_hz:.3g}")


class _ProjectFiles:
    """Writes the files of a new project; `undo` gets what takes back each of them if anything fails on the way."""

    def __init__(self, directory: Path, undo: ExitStack) -> None:
        self._directory, self._undo = directory, undo

    def add_model(self, model: Path, driven: str) -> tuple[str, Note]:
        """Adds a model, and returns its entry with what was done.

        It is copied if it stands alone and referred to if it needs other files; with motors it is the text `driven`.
        """
        target = self._directory / model.name
        entry, text = model.name, f"copied to {model.name}"
        elements = ElementTree.parse(model).iter()  # MuJoCo has parsed it already
        files = [value for item in elements for key, value in item.attrib.items() if key.startswith("file") and value]
        if driven:
            entry = f"{model.stem}_driven.xml"
            self.prepare(self._directory / entry).write_text(driven, encoding="utf-8")
            text = f"written to {entry} with a motor for each joint whose effort is logged; {model.name} is unchanged"
        elif target.exists() and target.samefile(model):
            text = f"{model.name} is in the folder already and is used as it is"
        elif files:
            entry = Path(os.path.relpath(model.resolve(), self._directory.resolve())).as_posix()
            text = f"not copied, as it needs {len(files)} other file(s) such as {files[0]}; referred to as {entry}"
        else:
            shutil.copyfile(model, self.prepare(target))
        return entry, Note("info", "model", text)

    def add_logs(self, recordings: Sequence[FoundLog]) -> list[Note]:
        """Copies logs, or writes them with `time_s`, and copies what stands beside them; returns what was done."""
        done: dict[str, list[str]] = {}
        for recording in recordings:
            log, target = recording.path, self._directory / "logs" / recording.name
            sidecar, beside = log.with_suffix(".json"), target.with_suffix(".json")
            if recording.recording is not None:  # it brings its own
                self.prepare(beside)
                write_recording(recording, self.prepare(target))
                done.setdefault("written to {}; the original is unchanged", []).append(recording.name)
                continue
            if target.exists() and target.samefile(log) and not recording.is_changed:
                done.setdefault("{}: in the folder already, used as it is", []).append(recording.name)
                continue
            if sidecar.is_file() and not (beside.exists() and beside.samefile(sidecar)):
                shutil.copyfile(sidecar, self.prepare(beside))
            if recording.is_changed:
                write_recording(recording, self.prepare(target))
                text = "written to {}, with time_s added; the original is unchanged"
            else:
                shutil.copyfile(log, self.prepare(target))
                text = "copied to {}"
            done.setdefault(text, []).append(recording.name)
        ranges = {
            text: f"{len(those)} files, logs/{those[0]} to {those[-1]}" if len(those) > 1 else f"logs/{those[0]}"
            for text, those in done.items()
        }
        return [Note("info", "logs", text.format(files)) for text, files in ranges.items()]

    def prepare(self, target: Path) -> Path:
        """Makes the folders of a new file, and returns its path."""
        if target.exists():
            raise project_error("a file of this name exists and is not overwritten: choose another folder", target)
        for folder in reversed([folder for folder in target.parents if not folder.exists()]):
            folder.mkdir()
            self._undo.callback(_remove, folder)
        self._undo.callback(_remove, target)
        return target


def _remove(path: Path) -> None:
    with suppress(OSError):  # the first error matters; a folder in which others wrote meanwhile stays
        path.rmdir() if path.is_dir() else path.unlink()


def _compose_yaml(
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
        about = {"axis": item.axis} if item.element == "sensor" else {"quantity": item.quantity}
        lines.append(_compose_mapping(item, {item.element: item.name, **about}))
    lines += ["logs: logs                # folder; one episode per file", "parameters: auto"]
    lines += ["# task: task.py:Push      # observation, reward, success, phases"]
    lines += ["# reality: twin.py:make   # what policies are deployed on", ""]
    return "\n".join(lines)


def _compose_mapping(item: CommandMap | MeasurementMap, keys: dict[str, Any]) -> str:
    keys |= {} if item.scale == 1 else {"scale": item.scale}
    values = ", ".join(f"{key}: {_quote(value)}" for key, value in keys.items())
    return f"  {_quote(item.column)}: {{{values}}}  # [{item.unit}]"


def _quote(value: Any) -> str:
    """Returns a value as one YAML scalar, in quotes only where needed."""
    dumped: str = yaml.safe_dump([value], default_flow_style=True, width=10**6, allow_unicode=True)
    return dumped.strip()[1:-1]
