"""What the verbs start from: a project's model, its logs as episodes, and their ids in the catalogue."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from gapless.core.episode import Episode
from gapless.core.errors import InputError, ResultWarning, nearest
from gapless.core.parameters import ParameterSpace
from gapless.core.places import require_space
from gapless.core.protocols import Progress
from gapless.core.results import Note, Purpose
from gapless.data.catalogue import Catalogue
from gapless.data.labels import apply_labels
from gapless.fit.enter import EnteredRuns, enter_runs, note_left_out, refuse_left_out
from gapless.fit.prediction.assumptions import find_assumptions
from gapless.project.load import load_project
from gapless.project.log.inspect import copy_notes, merge_notes, time_notes
from gapless.project.log.read import Log, read_logs, read_unlogged
from gapless.project.records import Project
from gapless.signals.track import Track, make_track
from gapless.sim.auto import candidate_terms, parameter_space
from gapless.sim.blueprint import CompiledProject, compile_project

READING, ENTERING, SMOOTHING = "reading the logs", "entering them in the catalogue", "smoothing the logs"


@dataclass(frozen=True)
class ProjectData:
    """A project with everything that its logs say."""

    project: Project  # the project
    catalogue: Catalogue  # its catalogue; the episodes are in it
    blueprint: CompiledProject  # its compiled model
    episodes: tuple[Episode, ...]  # its logs
    ids: tuple[str, ...]  # id of each run in the catalogue: of the episodes, then of `unlogged`
    tracks: tuple[Track, ...]  # each episode at the control rate
    space: ParameterSpace  # the parameters that may be wrong
    terms: tuple[ParameterSpace, ...]  # groups of further ones that the model may lack; `identify` tries them
    notes: tuple[Note, ...]  # what reading the logs had to say: corrupt samples, gaps, jitter
    unlogged: tuple[Episode, ...] = ()  # runs of which only outcome and conditions are known, where they were asked for
    # name of a log that is left out -> name of the log that holds the same recording
    copies: Mapping[str, str] = field(default_factory=dict[str, str])
    # name of a run that is left out, as it is of a test split or somebody withdrew consent -> why
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    assumptions: tuple[Note, ...] = ()  # what predictions assume of states that no column shows
    # name of a run -> outcome, phase and conditions that people said of it since it was recorded, where they differ
    labels: Mapping[str, Sequence[Any]] = field(default_factory=dict[str, Sequence[Any]])

    @property
    def runs(self) -> tuple[Episode, ...]:
        """All runs, with a log or without: what outcomes are read from."""
        return (*self.episodes, *self.unlogged)

    def warn_left_out(self) -> None:
        """Warns of runs that are left out, for verbs whose results have no notes."""
        for note in note_left_out(self.left_out, len(self.runs) + len(self.left_out) + len(self.copies)):
            warnings.warn(note.text, ResultWarning, stacklevel=3)

    @property
    def whole(self) -> ParameterSpace:
        """All parameters: those that may be wrong, then those of the terms."""
        everything = (*self.space.parameters, *(p for term in self.terms for p in term.parameters))
        return ParameterSpace(tuple({(p.target, p.run): p for p in everything}.values()))

    @property
    def for_runs(self) -> "ProjectData":
        """The same, with a column for each run of every per-run parameter."""
        return replace(self, space=self.space.for_runs(range(len(self.tracks))))

    def split(self, hold_out: Sequence[str]) -> tuple[list[int], list[int]]:
        """Returns the indices of episodes to fit and to hold out.

        Without names every fourth episode is held out; with a single episode nothing is, here.

        Raises:
            InputError: If a name is no episode, or nothing would be left to fit.
        """
        names = [episode.name for episode in self.episodes]
        held = [] if hold_out else list(range(len(names) - 1, 0, -4))[::-1]
        for name in hold_out:
            if first := self.copies.get(Path(name).stem) or self.copies.get(name):
                raise InputError(f"--hold-out {name}: it holds the same recording as {first}: delete one of the two")
            if why := self.left_out.get(Path(name).stem) or self.left_out.get(name):
                raise InputError(f"--hold-out {name}: it is {why}: choose another log")
            if not (found := [k for k, known in enumerate(names) if known in (name, Path(name).stem)]):
                raise InputError(f"--hold-out {name}: no such log; choose from: {nearest(name, names)}")
            held += found
        held = sorted(set(held))
        fitted = [k for k in range(len(names)) if k not in held]
        if not fitted:
            raise InputError("every log is held out: leave at least one to fit")
        return fitted, held


def read_project_data(
    directory: str | Path | Project,
    logs_like: Sequence[str] = (),
    *,
    with_unlogged: bool = False,
    logs: Sequence[Log] | None = None,
    where: str | None = None,
    purpose: Purpose = "train",
    progress: Progress | None = None,
) -> ProjectData:
    """Reads a project and its logs, and enters the logs in the catalogue.

    Of logs that hold the same recording only the first is used: a copy that is held out would judge a fit to itself.
    Left out, with a note, are runs of frozen test splits, and those of people whose consent is withdrawn or has ended.

    Args:
        directory: The project folder; or the project, where it is loaded already.
        logs_like: Patterns of the names of logs, such as `march-*`; none for all logs.
        with_unlogged: Whether to read runs without a log too; where there are some, there need be no logs.
        logs: What is read already; None reads them.
        where: SQL condition on the view `episodes`, such as `site = 'lab'`; None for all.
        purpose: `test` for verbs that only look at the data: they may read test splits.
        progress: Called with what is being done and how far it is, in [0, 1].

    Raises:
        InputError: If the project, its logs or its catalogue cannot be used, or patterns name only runs that are
            left out.
    """
    report: Progress = progress or (lambda label, done: None)
    project = directory if isinstance(directory, Project) else load_project(directory)
    require_space(project.directory)
    blueprint = compile_project(project)
    unlogged = read_unlogged(project) if with_unlogged else ()
    if logs is None:
        logs = read_logs(project, logs_like, may_be_none=bool(unlogged), report=partial(report, READING))
    catalogue = Catalogue.open(project.directory)
    report(ENTERING, 0.0)
    entered = enter_runs(project, catalogue, logs, unlogged, purpose)
    report(ENTERING, 1.0)
    refuse_left_out(entered, logs_like)
    if where is not None:
        entered = _choose_runs(entered, catalogue, where)
    every_log, logs, copies = logs, entered.logs, entered.copies
    recorded = [log.episode for log in (*logs, *entered.unlogged)]
    runs = apply_labels(catalogue, entered.ids, recorded)
    episodes, silent = runs[: len(logs)], runs[len(logs) :]
    tracks: tuple[Track, ...] = ()
    for number, episode in enumerate(episodes):
        report(SMOOTHING, number / len(episodes))
        tracks += (make_track(project, episode),)
    report(SMOOTHING, 1.0)
    assumptions = find_assumptions(blueprint, tracks)
    notes = [note for log in logs for note in (*log.notes, *time_notes(log, project.rate_hz))]
    notes = merge_notes(notes + copy_notes(every_log, copies, left_out=True) + entered.notes)
    copied = {every_log[copy].episode.name: every_log[first].episode.name for copy, first in copies.items()}
    space = parameter_space(blueprint, tracks)
    terms = candidate_terms(blueprint, tracks)
    return ProjectData(
        *(project, catalogue, blueprint, episodes, entered.ids, tracks, space, terms, notes, silent, copied),
        left_out=entered.left_out,
        assumptions=assumptions,
        labels={
            new.name: [new.outcome, new.failed_in, dict(new.conditions)]
            for new, old in zip(runs, recorded, strict=True)
            if new is not old
        },
    )


def _choose_runs(entered: EnteredRuns, catalogue: Catalogue, where: str) -> EnteredRuns:
    """Returns those runs for which an SQL condition holds; raises InputError where it holds for none."""
    wanted, num_logs = set(catalogue.select_ids(where)), len(entered.logs)
    kept = [k for k, id in enumerate(entered.ids) if id in wanted]
    if not kept:
        text = f"--where {where}: it holds for none of the {len(entered.ids)} runs"
        raise InputError(f"{text}: see `gapless query DIR 'SELECT * FROM episodes'`")
    return replace(
        entered,
        logs=tuple(entered.logs[k] for k in kept if k < num_logs),
        unlogged=tuple(entered.unlogged[k - num_logs] for k in kept if k >= num_logs),
        ids=tuple(entered.ids[k] for k in kept),
    )
