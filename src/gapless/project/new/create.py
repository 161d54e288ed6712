"""Makes a project folder from a model and logs: `gapless new`."""

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import mujoco
import numpy as np

from gapless.core.errors import ProjectError, nearest
from gapless.core.protocols import Progress
from gapless.core.results import NewResult, Note
from gapless.project.load import load_project
from gapless.project.log.columns import SUFFIXES
from gapless.project.model import command_unit, load_model, load_spec, names, relocate_files
from gapless.project.new.motion import GUESSED_DEGREES, Signals, guess_columns
from gapless.project.new.project_files import ProjectFiles, compose_yaml
from gapless.project.new.recordings import Recording, find_logs, read_recordings
from gapless.project.records import CommandMap, MeasurementMap
from gapless.project.yaml_file import FILE_NAME, project_error

DRIVE_OPTION = "--drive-by-effort"
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

    Args:
        model: MJCF or URDF file.
        logs: One or many logs, or folders of them, of one recorder; the time column may have any usual name.
        directory: Where to make the project; must not have a `gapless.yaml` yet.
        drive_by_effort: Give a model without actuators a motor for each joint whose effort is logged.
        progress: Called with what is being done and how far it is, in [0, 1].

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
    recordings = read_recordings(find_logs([Path(each).expanduser() for each in given]), progress)
    signals = Signals.pool([(each.times_s, each.columns) for each in recordings])
    commands, measurements, guesses = guess_columns(compiled, signals)
    if not measurements:
        raise _nothing_mapped(compiled, recordings[0])
    paths = list(dict.fromkeys(each.path for each in recordings))
    inputs = tuple(_digest_file(path) for path in (model, *paths))
    notes = list(recordings[0].notes)
    if recordings[0].clock.text:
        notes.append(Note("info", recordings[0].clock.columns[0], recordings[0].clock.text))
    drive_notes = [] if drive_by_effort else _offer_drive(compiled, measurements)
    driven = ""
    if drive_by_effort:
        driven, commands = _add_motors(model, measurements, directory)
        measurements = tuple(item for item in measurements if not _is_effort(item))
        guesses = tuple(_describe_drive(note, commands) for note in guesses)
    rate_hz = _guess_rate_hz(recordings, [item.column for item in measurements])
    notes.append(Note("info", "rate_hz", f"guessed: {rate_hz:g}, from the median interval of the logs"))
    notes += [*guesses, *drive_notes, *_warn_of_percent(recordings[0], guesses)]
    notes += _warn_of_lacking(recordings, [item.column for item in (*commands, *measurements)])
    with ExitStack() as undo:
        files = ProjectFiles(directory, undo)
        entry = files.write_model(model, driven) if drive_by_effort else files.add_model(model)
        for recording in recordings:
            files.add_log(recording)
        text = compose_yaml(directory.resolve().name, entry, rate_hz, commands, measurements)
        files.write_text(directory / FILE_NAME, text)
        load_project(directory)
        undo.pop_all()  # all is well: what was written stays
    return NewResult(inputs, str(directory), (*files.notes(), *notes))


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


def _digest_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def _is_effort(item: MeasurementMap) -> bool:
    return item.element == "joint" and item.quantity == "effort"


def _offer_drive(model: mujoco.MjModel, measurements: Sequence[MeasurementMap]) -> list[Note]:
    """Returns a warning where nothing drives a model, and what to do where its efforts are measured."""
    num_efforts = sum(map(_is_effort, measurements))
    if model.nu or not num_efforts:
        return []
    text = f"it has no actuators, so that nothing drives its joints in simulation; the efforts of {num_efforts} "
    text += f"joints are logged: to drive them by these, run gapless new MODEL LOG... DIR {DRIVE_OPTION} (a new DIR)"
    return [Note("warning", "model", text)]


def _add_motors(
    model_path: Path, measurements: Sequence[MeasurementMap], folder: Path
) -> tuple[str, tuple[CommandMap, ...]]:
    """Returns the model as MJCF for a folder, with a motor for each joint whose effort is logged, and its commands."""
    spec = load_spec(model_path)
    efforts = [item for item in measurements if _is_effort(item)]
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


def _warn_of_percent(recording: Recording, guesses: Sequence[Note]) -> list[Note]:
    """Returns a warning where degrees were guessed in a LeRobot data set, which may hold percent of the range."""
    if not recording.renamed or not any(GUESSED_DEGREES in note.text for note in guesses):
        return []
    text = "values beyond the joints' ranges were taken as degrees; LeRobot may also record -100 to 100 percent of a "
    return [Note("warning", "scale", f"{text}range: then correct scale and offset in gapless.yaml")]


def _warn_of_lacking(recordings: Sequence[Recording], mapped: Sequence[str]) -> list[Note]:
    """Returns a warning for each log that does not have all mapped columns."""
    notes: list[Note] = []
    for recording in recordings:
        if lacking := [column for column in mapped if column not in recording.columns]:
            text = f"it has no column {nearest('', lacking, 4)}, which gapless.yaml maps: it cannot be used so"
            notes.append(Note("warning", recording.name, f"{text}; delete it from logs, or the mapping"))
    return notes


def _guess_rate_hz(recordings: Sequence[Recording], columns: Sequence[str]) -> float:
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
