"""Which recorded column becomes which column of the project."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gapless.core.errors import InputError, nearest
from gapless.core.recording import Recording
from gapless.core.results.exchange import ColumnMapping
from gapless.project.data_folder import DataFolder
from gapless.project.model import load_model
from gapless.project.new.guess import Guess, NameGuesser
from gapless.project.new.motion import Signals, choose_guesses
from gapless.project.records import CommandMap, MeasurementMap, Project
from gapless.project.yaml_file import read_document

Ask = Callable[[str, Sequence[str]], str | None]  # question, possible answers -> the answer, None for none of them
LEAVE_OUT = "leave out"
_MAP_EXAMPLE = "columns: {recorded.column: column_of_the_project}"


def read_map_file(path: Path) -> dict[str, str | None]:
    """Returns what a file for `--map` says: recorded column -> column of the project, None to leave it out."""
    document = read_document(path)
    unknown = [key for key in document.data if key not in ("gapless", "columns")]
    columns = document.data.get("columns")
    if unknown or not isinstance(columns, dict):
        raise document.error(unknown[:1], f"a map has the key columns only: write {_MAP_EXAMPLE}")
    for column, name in columns.items():
        if not isinstance(name, str | None):
            raise document.error(("columns", column), f"{column}: write one column's name, or nothing to leave it out")
    return dict(columns)


@dataclass(frozen=True)
class ColumnMapper:
    """Gives the columns of recordings the names that a project has for them."""

    folder: DataFolder
    given: Mapping[str, str | None]  # of `--map`; it wins over what the project says
    ask: Ask | None  # asks a person; None where nobody can be asked
    take_best: bool  # of several columns that may be meant take the likeliest, and say so

    def propose(self, recordings: Sequence[Recording]) -> tuple[ColumnMapping, ...]:
        """Returns what becomes of each column of recordings that have the same columns, with the reason.

        Raises:
            InputError: If a column of the project is missing and several may be meant, or none, and nobody says which.
        """
        columns = tuple(recordings[0].columns)
        named = {**self.folder.columns, **self.given}
        if absent := [column for column in self.given if column not in columns]:
            raise InputError(f"--map names {absent[0]}, which is not there; choose from: {nearest(absent[0], columns)}")
        found = {c: ColumnMapping(c, named[c], None, "so it is written") for c in columns if c in named}
        _refuse_same_names({c: named.get(c, c) for c in columns})
        if self.folder.project is not None:
            found |= self._find_project_columns(self.folder.project, recordings, found)
        meanings = {m.column: m.what for m in _list_maps(self.folder.project)}
        kept = {c: found.get(c) or ColumnMapping(c, c, None, "kept as it is called") for c in columns}
        return tuple(ColumnMapping(m.column, m.becomes, meanings.get(m.becomes or ""), m.reason) for m in kept.values())

    def _find_project_columns(
        self, project: Project, recordings: Sequence[Recording], named: Mapping[str, ColumnMapping]
    ) -> dict[str, ColumnMapping]:
        """Returns recorded columns for those that the project maps and that are not there by name."""
        columns = recordings[0].columns
        there = {named[c].becomes if c in named else c for c in columns}
        found = {c: ColumnMapping(c, c, None, "it is called as in gapless.yaml") for c in columns}
        found = {c: m for c, m in found.items() if c not in named and c in {i.column for i in _list_maps(project)}}
        missing = [item for item in _list_maps(project) if item.column not in there]
        if not missing:
            return found
        candidates = _Candidates.find(project, recordings, set(columns) - set(found) - set(named))
        for item in missing:
            chosen, reason = self._choose(item, candidates, columns)
            found[chosen] = ColumnMapping(chosen, item.column, None, reason)
        return found

    def _choose(
        self, item: CommandMap | MeasurementMap, candidates: "_Candidates", columns: Mapping[str, object]
    ) -> tuple[str, str]:
        """Returns the recorded column for one of the project, and why; asks where several may be meant."""
        sure = candidates.sure.get(item.what)
        if sure and _has_same_scale(sure, item):
            return sure.column, sure.reason
        possible = sorted(candidates.possible.get(item.what, []), key=lambda guess: -guess.score)
        possible = [guess for guess in possible if _has_same_scale(guess, item)]
        names = list(dict.fromkeys(guess.column for guess in possible))
        question = f"which recorded column is {item.column} ({item.what})"
        if names and self.ask is not None:
            if answer := self.ask(question, names):
                return answer, "so it was answered"
        elif names and self.take_best:
            return names[0], f"likeliest of {', '.join(names)}, taken by --yes"
        if sure and not _has_same_scale(sure, item):
            text = f"{sure.column} seems to be {item.column}, with scale {sure.scale:g}, not {item.scale:g}"
            raise InputError(f"{text}: convert it, or correct scale in gapless.yaml")
        there = f"it may be {' or '.join(names)}" if names else f"there are: {nearest(item.column, columns)}"
        raise InputError(f"{question}? {there}; say it with --map FILE ({_MAP_EXAMPLE})")


@dataclass(frozen=True)
class _Candidates:
    """Which recorded columns may mean what."""

    sure: Mapping[str, Guess]  # meaning -> the column that surely has it
    possible: Mapping[str, list[Guess]]  # meaning -> all that names, or the order of columns, allow

    @classmethod
    def find(cls, project: Project, recordings: Sequence[Recording], free: set[str]) -> "_Candidates":
        guesser = NameGuesser(load_model(project.model_path), sorted(free, key=list(recordings[0].columns).index))
        signals = Signals.pool([(r.times_s, {c: r.columns[c] for c in guesser.names}) for r in recordings])
        chosen = choose_guesses(guesser, signals)[0]
        possible: dict[str, list[Guess]] = {}
        for guess in (*chosen.values(), *(g for column in guesser.names for g in guesser.guess(column))):
            possible.setdefault(_meaning(guess), []).append(guess)
        return cls({_meaning(guess): guess for guess in chosen.values() if not guess.in_order}, possible)


def _meaning(guess: Guess) -> str:
    """Returns what a guess maps, in the words of `CommandMap.what` and `MeasurementMap.what`."""
    return f"actuator {guess.name} command" if guess.quantity == "command" else guess.what


def _list_maps(project: Project | None) -> tuple[CommandMap | MeasurementMap, ...]:
    return (*project.commands, *project.measurements) if project else ()


def _has_same_scale(guess: Guess, item: CommandMap | MeasurementMap) -> bool:
    return bool(np.isclose(guess.scale, item.scale, rtol=1e-3))


def _refuse_same_names(names: Mapping[str, str | None]) -> None:
    """Raises InputError where two recorded columns would get one name."""
    taken: dict[str, str] = {}
    for column, name in names.items():
        if name is not None and taken.setdefault(name, column) != column:
            text = f"{taken[name]} and {column} would both be {name}"
            raise InputError(f"{text}: say with --map FILE which one is, and leave out the other")


def rename_columns(recording: Recording, mapping: Sequence[ColumnMapping]) -> Recording:
    """Returns a recording with the project's names; what is left out is gone."""
    names = {each.column: each.becomes for each in mapping}
    pairs = [(column, names.get(column, column)) for column in recording.columns]
    if all(column == name for column, name in pairs):
        return recording
    columns = {name: recording.columns[column] for column, name in pairs if name is not None}
    types = {name: recording.types[column] for column, name in pairs if name is not None and column in recording.types}
    return replace(recording, columns=columns, types=types)
