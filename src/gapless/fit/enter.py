"""Enters a project's logs in its catalogue, and leaves out what must not be used.

That is what is of a frozen test split, for verbs that fit, and for every verb the data of people whose consent is
withdrawn or has ended: the same signals under any name, and copies that differ by rounding.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import gapless
from gapless.core.errors import InputError, MissingColumnError
from gapless.core.provenance import Provenance
from gapless.core.results import Note, Purpose
from gapless.data.catalogue import Catalogue
from gapless.data.new_episodes import store_episode
from gapless.data.splits import find_blocked, find_protected
from gapless.project.log.imported import imported_paths, is_imported, recording_id
from gapless.project.log.inspect import MAX_TIME_DIFFERENCE_S, find_copies
from gapless.project.log.read import Log, read_log, read_logs, read_unlogged
from gapless.project.records import Project

REALITY = ("real", "twin")  # sources of runs that a model can be compared with
MAX_NAMES = 5  # of runs that a note lists


@dataclass(frozen=True)
class EnteredRuns:
    """The runs of a project that may be used, and those that may not."""

    logs: tuple[Log, ...]  # of each recording one
    unlogged: tuple[Log, ...]
    ids: tuple[str, ...]  # of the logs, then of the unlogged
    copies: dict[int, int]  # index of a log -> of the first one with the same recording; neither is left out
    left_out: Mapping[str, str]  # name -> why
    notes: list[Note]


def enter_logs(project: Project) -> tuple[str, ...]:
    """Enters the logs of a project in its catalogue, for verbs that choose among episodes; returns their ids."""
    has_logs = project.logs_path.is_dir() or imported_paths(project)
    logs = read_logs(project, may_be_none=True) if has_logs else ()
    return enter_runs(project, Catalogue.open(project.directory), logs, read_unlogged(project), "test").ids


def enter_runs(
    project: Project, catalogue: Catalogue, logs: Sequence[Log], unlogged: Sequence[Log], purpose: Purpose
) -> EnteredRuns:
    """Enters runs in the catalogue, without those that must not be used for a purpose.

    Imported recordings are there already, and keep their ids. Simulated runs are no reality: they are left out.
    """
    copies, runs = find_copies(logs), (*logs, *unlogged)
    mapping = {"commands": list(project.command_names), "measurements": list(project.measurement_names)}
    provenances = [_make_provenance(run, mapping) for run in runs]
    why = _find_reasons(project, catalogue, logs, copies, runs, provenances, purpose)
    copies = {copy: first for copy, first in copies.items() if copy not in why}
    kept = [k for k in range(len(runs)) if k not in why and k not in copies]
    files = [k for k in kept if not is_imported(runs[k].path)]
    entries = [(runs[k].episode, provenances[k]) for k in files]
    added = dict(zip(files, catalogue.add_episodes(entries, [runs[k].origin for k in files]), strict=True))
    ids = tuple(added.get(k) or recording_id(runs[k].path) for k in kept)
    left_out = {runs[k].episode.name: reason for k, reason in why.items()}
    used = [k for k in kept if k < len(logs)]
    silent = tuple(runs[k] for k in kept if k >= len(logs))
    return EnteredRuns(tuple(runs[k] for k in used), silent, ids, copies, left_out, note_left_out(left_out, len(runs)))


def _make_provenance(run: Log, mapping: Mapping[str, Sequence[str]]) -> Provenance:
    """Returns how a log became an episode; what its sidecar says of its origin is part of that."""
    said = {key: value for key, value in asdict(run.origin).items() if value}
    config = {**mapping, **({"origin": said} if said else {})}
    return Provenance(f"log {run.path.name}", gapless.__version__, config=config)


def _find_reasons(
    project: Project,
    catalogue: Catalogue,
    logs: Sequence[Log],
    copies: Mapping[int, int],
    runs: Sequence[Log],
    provenances: Sequence[Provenance],
    purpose: Purpose,
) -> dict[int, str]:
    """Returns index of a run -> why it must not be used; where it holds for one copy, it does for all."""
    unreal = {k: f"of source {run.episode.source}" for k, run in enumerate(runs) if run.episode.source not in REALITY}
    blocked = find_blocked(catalogue, purpose)
    if not blocked:
        return unreal
    why: dict[int, str] = {}
    for k, (run, provenance) in enumerate(zip(runs, provenances, strict=True)):
        id, signals = _find_keys(catalogue, run, provenance)
        if reason := blocked.get(id) or blocked.get(signals):
            why[k] = reason
    if purpose != "test":
        why |= _find_near_copies(project, catalogue, logs)
    of_first = {copies.get(k, k): reason for k, reason in why.items() if k < len(logs)}
    every = {k: of_first[copies.get(k, k)] for k in range(len(logs)) if copies.get(k, k) in of_first}
    return unreal | why | every


def _find_keys(catalogue: Catalogue, run: Log, provenance: Provenance) -> tuple[str, str]:
    """Returns the id of a run and the hash of its signals, empty where it has none."""
    if is_imported(run.path):
        id = recording_id(run.path)
        (row,) = catalogue.select("SELECT signals_id FROM recorded_episodes WHERE id = $1", (id,))
        return id, row["signals_id"]
    new = store_episode(run.episode, provenance, run.origin)
    return new.id, new.row["signals_id"] if new.row["num_rows"] else ""


def _find_near_copies(project: Project, catalogue: Catalogue, logs: Sequence[Log]) -> dict[int, str]:
    """Returns index of a log -> why, of logs that are an episode of a test split but for rounding or their format."""
    protected = find_protected(catalogue).episodes
    # An episode that was deleted has its id as name. Recordings are as long as their mapped columns, at most.
    sql = (
        "SELECT id FROM episodes WHERE name <> id AND id IN (SELECT unnest($1::VARCHAR[])) AND (is_recording OR EXISTS "
    )
    sql += "(SELECT 1 FROM unnest($2::DOUBLE[]) AS logs(seconds) WHERE abs(seconds - duration_s) < $3))"
    durations = [log.episode.duration_s for log in logs]
    rows = catalogue.select(sql, (list(protected), durations, 2 * MAX_TIME_DIFFERENCE_S)) if protected else []
    recordings = {recording_id(path): path for path in imported_paths(project)}
    tests: dict[str, Log] = {}
    for id in (row["id"] for row in rows):
        with suppress(MissingColumnError):  # of another robot: no log can be a copy of it
            is_here = id in recordings
            tests[id] = read_log(project, recordings[id]) if is_here else Log(Path(id), catalogue.episode(id), ())
    tested = list(tests)
    found = {
        copy: first for copy, first in find_copies([*tests.values(), *logs]).items() if first < len(tested) <= copy
    }
    return {copy - len(tested): f"of test split {protected[tested[first]]}" for copy, first in found.items()}


def note_left_out(left_out: Mapping[str, str], num_runs: int) -> list[Note]:
    """Returns one note per reason."""
    notes: list[Note] = []
    for reason in dict.fromkeys(left_out.values()):
        names = sorted(name for name, why in left_out.items() if why == reason)
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        text = f"{len(names)} of {num_runs} are left out, {reason}: {', '.join(names[:MAX_NAMES])}{more}"
        notes.append(Note("warning", "logs", text))
    return notes


def refuse_left_out(entered: EnteredRuns, patterns: Sequence[str]) -> None:
    """Raises InputError where patterns name only logs that are left out, or nothing else is there."""
    kept = [log.path for log in entered.logs]
    for pattern in patterns:
        if not any(fnmatchcase(path.stem, pattern) or fnmatchcase(path.name, pattern) for path in kept):
            stem = Path(pattern).stem
            named = [k for k in entered.left_out if fnmatchcase(k, pattern) or fnmatchcase(k, stem)]
            if named:
                raise InputError(f"--logs {pattern}: {named[0]} is {entered.left_out[named[0]]}: choose other logs")
    if entered.left_out and not entered.ids:
        reason = next(iter(entered.left_out.values()))
        raise InputError(f"no log is left to use, the first is {reason}: record others, or import some")
