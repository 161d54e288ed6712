"""Making a project folder from a model and logs: `gapless new`."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import mujoco
import numpy as np
import yaml

from gapless.core.errors import ProjectError, nearest
from gapless.core.results import NewResult, Note
from gapless.core.signal import Array
from gapless.project.load import load_project
from gapless.project.log.columns import SUFFIXES
from gapless.project.model import load_model, names
from gapless.project.new.drive import add_motors, find_efforts, offer_drive
from gapless.project.new.guess.by_motion import pool_signals
from gapless.project.new.guess.columns import guess_columns
from gapless.project.new.guess.degrees import GUESSED_DEGREES
from gapless.project.new.project_files import Placement
from gapless.project.new.recordings import Recording, find_logs, read_recordings
from gapless.project.records import CommandMap, MeasurementMap
from gapless.project.yaml_file import FILE_NAME, project_error

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


def new_project(
    model: str | Path,
    logs: str | Path | Sequence[str | Path],
    directory: str | Path,
    *,
    drive_by_effort: bool = False,
) -> NewResult:
    """Makes a project folder, and says in notes what was guessed. Nothing is written before all logs are read.

    Args:
        model: MJCF or URDF file.
        logs: One or many logs, or folders of them, of one recorder; the time column may have any usual name.
        directory: Where to make the project; must not have a `gapless.yaml` yet.
        drive_by_effort: Give a model without actuators a motor for each joint whose effort is logged.

    Raises:
        ProjectError: If there is a project already, or no column can be mapped.
        LogError: If a log cannot be read.
    """
    given = [logs] if isinstance(logs, str | Path) else logs
    model, directory = Path(model).expanduser(), Path(directory).expanduser()
    _check_directory(directory)
    if not given:
        raise project_error("no log was given: write gapless new MODEL LOG... DIR", directory)
    compiled = load_model(model)
    recordings = read_recordings(find_logs([Path(each).expanduser() for each in given]))
    commands, measurements, guesses = guess_columns(
        compiled, pool_signals([(each.times_s, each.columns) for each in recordings])
    )
    if not measurements:
        raise _nothing_mapped(compiled, recordings[0])
    paths = list(dict.fromkeys(each.path for each in recordings))
    inputs = tuple(_digest(path) for path in (model, *paths))
    notes = [*recordings[0].notes, *_clock_notes(recordings[0])]
    if drive_by_effort:
        driven, commands = add_motors(model, measurements, directory)
        measurements = tuple(item for item in measurements if item not in find_efforts(measurements))
        guesses = tuple(_driving_note(note, commands) for note in guesses)
    rate_hz = _rate_hz(recordings, [item.column for item in measurements])
    notes.append(Note("info", "rate_hz", f"guessed: {rate_hz:g}, from the median interval of the logs"))
    notes += [*guesses, *offer_drive(compiled, [] if drive_by_effort else measurements)]
    notes += _percent_notes(recordings[0], guesses)
    notes += _lacking_notes(recordings, [item.column for item in (*commands, *measurements)])
    with Placement(directory) as place:
        entry = place.write_model(model, driven) if drive_by_effort else place.put_model(model)
        for recording in recordings:
            place.put_log(recording)
        text = _compose(directory.resolve().name, entry, rate_hz, commands, measurements)
        place.write_text(directory / FILE_NAME, text)
        load_project(directory)
    return NewResult(inputs, str(directory), (*place.notes(), *notes))


def _check_directory(directory: Path) -> None:
    if directory.is_file() or directory.suffix.lower() in SUFFIXES:
        raise project_error("the last argument is the folder to make: gapless new MODEL LOG... DIR", directory)
    if (directory / FILE_NAME).exists():
        raise project_error(f"there is a {FILE_NAME} already: delete it or choose another folder", directory)


def _nothing_mapped(model: mujoco.MjModel, recording: Recording) -> ProjectError:
    there = f"the log has: {nearest('q', recording.columns, 12)}"
    joints = f"the model has joints: {nearest('q', names(model, 'joint'), 12)}"
    bodies = f"bodies: {nearest('x', names(model, 'body'), 12)}"
    text = f"no column is called like anything that can be measured; {there}; {joints}; {bodies}"
    return project_error(f"{text}; rename columns such as q_JOINT, dq_JOINT, BODY_x", recording.path)


def _clock_notes(recording: Recording) -> list[Note]:
    clock = recording.clock
    return [Note("info", clock.columns[0], clock.text)] if clock.text else []


def _percent_notes(recording: Recording, guesses: Sequence[Note]) -> list[Note]:
    """Returns a warning where degrees were guessed in a LeRobot data set, which may hold percent of the range."""
    if not recording.renamed or not any(GUESSED_DEGREES in note.text for note in guesses):
        return []
    text = "values beyond the joints' ranges were taken as degrees; LeRobot may also record -100 to 100 percent of a "
    return [Note("warning", "scale", f"{text}range: then correct scale and offset in gapless.yaml")]


def _driving_note(note: Note, commands: Sequence[CommandMap]) -> Note:
    actuator = next((command.actuator for command in commands if command.column == note.where), None)
    text = f"guessed: actuator {actuator} command, as the logged effort drives the joint; correct it if wrong"
    return Note("info", note.where, text) if actuator else note


def _lacking_notes(recordings: Sequence[Recording], mapped: Sequence[str]) -> list[Note]:
    """Returns a warning for each log that does not have all mapped columns."""
    notes: list[Note] = []
    for recording in recordings:
        if lacking := [column for column in mapped if column not in recording.columns]:
            text = f"it has no column {nearest('', lacking, 4)}, which gapless.yaml maps: it cannot be used so"
            notes.append(Note("warning", recording.name, f"{text}; delete it from logs, or the mapping"))
    return notes


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def _rate_hz(recordings: Sequence[Recording], columns: Sequence[str]) -> float:
    """Returns the rate of the measured columns [Hz]: a usual one within 1 %, otherwise three digits.

    Rows of other topics, in which a column has no value, do not count.
    """
    medians_s = [
        np.median(intervals_s)
        for recording in recordings
        for column in columns
        if column in recording.columns and len(intervals_s := _intervals_s(recording, column))
    ]
    rate_hz = 1 / float(np.median(medians_s or _intervals_s(recordings[0], None)))
    usual = min(_USUAL_RATES_HZ, key=lambda each: abs(each - rate_hz))
    return float(usual) if abs(usual / rate_hz - 1) < 0.01 else float(f"{rate_hz:.3g}")


def _intervals_s(recording: Recording, column: str | None) -> Array:
    there = np.isfinite(recording.times_s)
    there &= np.isfinite(recording.columns[column]) if column else True
    intervals_s = np.diff(recording.times_s[there])
    return intervals_s[intervals_s > 0]


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
