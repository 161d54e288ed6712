"""What can be seen in logs without simulating: oddities, for `check`, and copies of one recording."""

import re
from collections.abc import Sequence

import mujoco
import numpy as np

from gapless.core.errors import InputError, MissingColumnError
from gapless.core.results import Note
from gapless.core.signal import Array
from gapless.project.log.read import Log, Report, log_paths, read_log, read_unlogged, report_each
from gapless.project.model import is_hinge, joint_range, load_model
from gapless.project.records import CommandMap, MeasurementMap, Project

DRIVE_OPTION = "--drive-by-effort"
MAX_INTERVALS = 3.0  # a longer pause than this many median intervals is a gap
MAX_RATE_DIFFERENCE = 0.05  # relative
MAX_JITTER = 0.05  # of the median interval
MAX_SHARE_AT_BOUND = 0.05  # of the samples
MAX_ANGLE_RAD = 6 * np.pi  # three turns


def read_and_inspect(project: Project, report: Report | None = None) -> tuple[tuple[Log, ...], tuple[Note, ...]]:
    """Returns a project's logs, and what is wrong or odd in them; the same finding in many logs is one note.

    A log that cannot be read is a note of level `fault`; nothing is raised for it. `report` is called with how much is
    read, in [0, 1].
    """
    try:
        unlogged = read_unlogged(project)
        paths = log_paths(project, may_be_none=bool(unlogged))
        model = load_model(project.model_path)
    except (InputError, OSError) as error:
        return (), (Note("fault", str(project.logs_path), str(error)),)
    notes, logs = _count_unlogged(unlogged, len(paths)), list[Log]()
    notes += offer_drive(model, project.commands, project.measurements)
    for path in report_each(paths, report):
        try:
            logs.append(read_log(project, path))
        except MissingColumnError as error:
            notes.append(Note("warning", path.name, f"left out: {error}"))
        except (InputError, OSError) as error:
            notes.append(Note("fault", path.name, str(error)))
        else:
            notes += [*logs[-1].notes, *time_notes(logs[-1], project.rate_hz)]
            for item in (*project.commands, *project.measurements):
                notes += _inspect_column(logs[-1], item, model)
    return tuple(logs), merge_notes([*notes, *copy_notes(logs, find_copies(logs), left_out=False)])


def _count_unlogged(unlogged: Sequence[Log], num_logs: int) -> list[Note]:
    """Returns how many runs have no log, and what is odd in their sidecars."""
    if not unlogged:
        return []
    count = f"{len(unlogged)} run{'s' if len(unlogged) > 1 else ''} without a log"
    if num_logs:
        first = Note("info", "logs", f"{count}: their outcomes count, they have no signals")
    else:
        first = Note("warning", "logs", f"{count}, and no logs: outcomes alone count, there are no signals to compare")
    return [first, *(note for run in unlogged for note in run.notes)]


def offer_drive(
    model: mujoco.MjModel, commands: Sequence[CommandMap], measurements: Sequence[MeasurementMap]
) -> list[Note]:
    """Returns a warning where efforts are measured of joints that nothing drives in simulation."""
    num_efforts = sum(item.is_effort for item in measurements)
    if model.nu or commands or not num_efforts:
        return []
    text = f"it has no actuators, so that nothing drives its joints in simulation; the efforts of {num_efforts} "
    text += f"joints are logged: to drive them by these, run gapless new MODEL LOG... DIR {DRIVE_OPTION} (a new DIR)"
    return [Note("warning", "model", text)]


def time_notes(log: Log, rate_hz: float) -> list[Note]:
    """Returns what is odd in the time stamps of a log: gaps, jitter, another rate than the project's."""
    intervals_s = np.diff(log.episode.measurements.times_s)
    median_s = float(np.median(intervals_s))
    where = f"{log.path.name}: time_s"
    notes: list[Note] = []
    gaps = intervals_s > MAX_INTERVALS * median_s
    if gaps.any():
        start_s = float(log.episode.measurements.times_s[int(np.argmax(intervals_s))])
        text = f"{int(gaps.sum())} gap(s) longer than {MAX_INTERVALS:g} intervals, the longest "
        text += f"{float(intervals_s.max()):.4g} s at {start_s:.4g} s after the start; were samples lost?"
        notes.append(Note("warning", where, text))
    near = intervals_s[np.abs(intervals_s / median_s - 1) < 0.5]  # lost samples are no jitter
    jitter = float(np.std(near) / median_s) if len(near) else 0.0
    if jitter > MAX_JITTER:
        text = f"intervals scatter by {100 * jitter:.0f} % of their median; logs are resampled to rate_hz"
        notes.append(Note("info", where, text))
    found_hz = 1 / median_s
    if abs(found_hz / rate_hz - 1) > MAX_RATE_DIFFERENCE:
        text = f"recorded at {found_hz:.4g} Hz while rate_hz is {rate_hz:g}: "
        slower = "commands are averaged over each control interval; to use all samples of the logs write rate_hz: "
        text += f"{slower}{found_hz:.4g}" if found_hz > rate_hz else "correct one"
        notes.append(Note("warning", where, text))
    return notes


def _inspect_column(log: Log, item: CommandMap | MeasurementMap, model: mujoco.MjModel) -> list[Note]:
    """Returns what is odd in the values of one column: constant, saturated, or out of range."""
    where, is_command = f"{log.path.name}: {item.column}", isinstance(item, CommandMap)
    values = (log.episode.commands if is_command else log.episode.measurements).column(item.column)
    values = values[np.isfinite(values)]
    levels = np.unique(values)
    if len(levels) == 0:
        return [] if is_command else [Note("warning", where, "no value at all: is it recorded under another name?")]
    if len(levels) == 1:
        meaning = "nothing can be identified from it" if is_command else "did nothing move, or is the sensor dead?"
        what = (
            f"the command is constant at {levels[0]:.4g}" if is_command else f"constant at {levels[0]:.4g} {item.unit}"
        )
        return [Note("warning", where, f"{what}: {meaning}")]
    if len(levels) == 2 and is_command:
        return [Note("info", where, f"the command takes two values only, {levels[0]:.4g} and {levels[1]:.4g}")]
    notes: list[Note] = []
    for side, bound in (("smallest", levels[0]), ("largest", levels[-1])):
        share = float(np.mean(values == bound))
        if share > MAX_SHARE_AT_BOUND:
            text = f"{100 * share:.0f} % of the samples are exactly the {side} value, {bound:.4g}"
            notes.append(Note("warning", where, f"{text}: saturated, or at rest there"))
    return notes + (_check_range(where, values, item, model) if isinstance(item, MeasurementMap) else [])


def _check_range(where: str, values: Array, item: MeasurementMap, model: mujoco.MjModel) -> list[Note]:
    if item.element != "joint" or item.quantity != "position":
        return []
    hinge, limits = is_hinge(model, item.name), joint_range(model, item.name)
    hint = "if the column is in degrees write scale: 0.01745" if hinge else "if it is in mm write scale: 0.001"
    hint = hint if item.scale == 1 else f"is scale: {item.scale:.4g} right?"
    low, high = float(values.min()), float(values.max())
    if limits is not None:
        slack = (limits[1] - limits[0]) / 2
        if low < limits[0] - slack or high > limits[1] + slack:
            text = f"values from {low:.4g} to {high:.4g} {item.unit} are far outside joint {item.name}'s range"
            return [Note("warning", where, f"{text}, {limits[0]:.4g} to {limits[1]:.4g}; {hint}")]
    if hinge and max(-low, high) > MAX_ANGLE_RAD:
        text = f"reaches {max(-low, high):.4g} rad, more than three turns; {hint}"
        return [Note("warning", where, f"{text}; a wheel may well turn so far")]
    return []


def merge_notes(notes: list[Note]) -> tuple[Note, ...]:
    """Joins notes that differ only in their log and numbers, faults first."""
    groups: dict[tuple[str, str, str], list[Note]] = {}
    for note in notes:
        column = note.where.partition(": ")[2]
        key = note.where if note.level == "fault" else column
        groups.setdefault((note.level, key, re.sub(r"[-+]?[\d.]+(e[-+]?\d+)?", "#", note.text)), []).append(note)
    joined: list[Note] = []
    for same in groups.values():
        more = f" (and {len(same) - 1} more log{'s' if len(same) > 2 else ''})" if len(same) > 1 else ""
        joined.append(Note(same[0].level, same[0].where, same[0].text + more))
    order = {"fault": 0, "warning": 1, "info": 2}
    return tuple(sorted(joined, key=lambda note: order[note.level]))


MAX_SHARE_OF_TRAVEL = 1e-6  # by which equal columns differ; noise of any sensor is far more
MAX_SHARE_OF_SIZE = 2.0**-22  # what saving in single precision changes, times 2
MAX_TIME_DIFFERENCE_S = 1e-4  # by which equal stamps differ after a large offset was added and taken away
MIN_SHARE_KNOWN = 0.9  # of the values in one table that the other must have: rounding may make a value a corrupt one


def find_copies(logs: Sequence[Log]) -> dict[int, int]:
    """Returns index of a log -> index of the first earlier log that holds the same recording.

    The mapped columns over the time since the first stamp are compared, so another offset of the clock, another file
    format or other columns beside them make no difference. Logs in which nothing changes are no copies of each other.
    """
    episodes = [log.episode for log in logs]  # time since the start, commands and measurements of each are compared
    tables = [np.column_stack([e.measurements.times_s, e.commands.values, e.measurements.values]) for e in episodes]
    copies: dict[int, int] = {}
    for k, table in enumerate(tables):
        known = np.nan_to_num(table)
        travel = np.ptp(known, axis=0)
        allowed = MAX_SHARE_OF_TRAVEL * travel + MAX_SHARE_OF_SIZE * np.abs(known).max(axis=0)
        allowed[0] = MAX_TIME_DIFFERENCE_S
        for earlier in (e for e in range(k if travel[1:].any() else 0) if e not in copies):
            if table.shape == tables[earlier].shape and _are_equal(table, tables[earlier], allowed):
                copies[k] = earlier
                break
    return copies


def copy_notes(logs: Sequence[Log], copies: dict[int, int], *, left_out: bool) -> list[Note]:
    """Returns what to say of each copy: a warning where it was left out, else a fault."""
    pairs = [(logs[copy].path.name, logs[first].path.name) for copy, first in copies.items()]
    if left_out:
        return [Note("warning", a, f"it holds the same recording as {b} and is left out: delete one") for a, b in pairs]
    return [Note("fault", a, f"{b} and {a} hold the same recording: delete one") for a, b in pairs]


def _are_equal(one: Array, other: Array, allowed: Array) -> bool:
    """Returns whether values that both have are equal but for rounding, and both have nearly all."""
    known, either = np.isfinite(one) & np.isfinite(other), np.isfinite(one) | np.isfinite(other)
    close = (np.abs(one - other) <= allowed) | ~known
    return bool(close.all() and known.sum() >= MIN_SHARE_KNOWN * either.sum())
