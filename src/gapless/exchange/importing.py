"""The verb `import`: recordings of any format become episodes of a project."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gapless
from gapless.core.errors import InputError, Interrupted
from gapless.core.places import require_space
from gapless.core.protocols import Progress
from gapless.core.provenance import Provenance
from gapless.core.recording import Recording, Skipped
from gapless.core.results import Note
from gapless.core.results.exchange import ColumnMapping, ImportResult
from gapless.data.catalogue import FOLDER, Catalogue
from gapless.data.chunks import cut_recording, describe_segments
from gapless.data.splits import find_blocked
from gapless.exchange.mapping import Ask, ColumnMapper, read_map_file, rename_columns
from gapless.exchange.origin import Statement
from gapless.exchange.quality import find_flags
from gapless.formats.format import Format, ReadOptions
from gapless.formats.registry import find_format
from gapless.project.data_folder import DataFolder, open_data_folder, write_columns
from gapless.project.new.recordings import describe_time

BATCH_EPISODES, BATCH_ROWS = 64, 500_000  # committed at once: what a killed import reads again at most
COMPACT_FROM_EPISODES = (
    1000  # added by one import: joining their files makes opening one fast (benchmarks/catalogue.py)
)
MAX_NAMED = 4  # columns that a note names
NUM_EXAMPLES = 3  # recordings with the same columns that a mapping is found from


def import_(
    directory: str | Path,
    sources: str | Path | Sequence[str | Path],
    *,
    map: str | Path | None = None,
    yes: bool = False,
    dry_run: bool = False,
    time: str = "receipt",
    statement: Statement | None = None,
    ask: Ask | None = None,
    progress: Progress | None = None,
) -> ImportResult:
    """Brings recordings of any format into a project; what is there already is left as it is.

    A folder without `gapless.yaml` becomes a project with data only. Each episode comes in whole or not at all; an
    import that was stopped goes on where it was.

    Args:
        directory: The project folder.
        sources: Files and folders: LeRobot data sets, MCAP, bags, HDF5, CSV, ...
        map: File that says which recorded column is which of the project: `columns: {recorded: column}`.
        yes: Whether to take the likeliest where several columns may be meant, instead of asking or refusing.
        dry_run: Whether to read and map only, and write nothing.
        time: Of formats that keep both: rows at the time of `receipt`, or of the `message`.
        statement: What is said of all of them: source, origin, conditions.
        ask: Asks a person which column is meant; None where nobody can be asked.
        progress: Called with what is being done and how far it is, in [0, 1].

    Raises:
        InputError: If a source is of no known format or damaged as a whole, or it is not clear which column is meant.
    """
    paths = [Path(each).expanduser() for each in ([sources] if isinstance(sources, str | Path) else sources)]
    if time not in ("receipt", "message"):
        raise InputError(f"--time {time}: choose receipt or message")
    formats = [find_format(path) for path in paths]  # all are looked at before any is read
    folder = open_data_folder(directory)
    given = read_map_file(Path(map)) if map else {}
    mapper = ColumnMapper(folder, given, ask, yes)
    work = _Import(folder, mapper, statement or Statement(), dry_run)
    for number, (path, kind) in enumerate(zip(paths, formats, strict=True)):
        if progress:
            progress("importing", number / len(paths))
        try:
            work.take_source(path, kind, time)
        except KeyboardInterrupt:
            work.commit()
            there = f"{len(work.ids)} episodes are in the catalogue"
            raise Interrupted(f"{there}; the same command goes on where this one stopped") from None
    if progress:
        progress("importing", 1.0)
    return work.finish(given)


@dataclass(frozen=True)
class _Known:
    """A recording that is there."""

    id: str
    name: str  # in the project
    source_name: str | None  # in the source that it came from


@dataclass
class _Import:
    """One import under way."""

    folder: DataFolder
    mapper: ColumnMapper
    statement: Statement
    dry_run: bool
    ids: list[str] = field(default_factory=list[str])
    samples: int = 0
    known: int = 0
    flagged: int = 0
    added: int = 0
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    flags: dict[str, list[str]] = field(default_factory=dict[str, list[str]])  # flag -> episodes that have it
    notes: dict[tuple[str, str], Note] = field(default_factory=dict[tuple[str, str], Note])
    mappings: dict[frozenset[str], tuple[ColumnMapping, ...]] = field(
        default_factory=dict[frozenset[str], tuple[ColumnMapping, ...]]
    )
    names: set[str] = field(default_factory=set[str])
    batch: list[tuple[Recording, Provenance]] = field(default_factory=list[tuple[Recording, Provenance]])
    _catalogue: Catalogue | None = None

    def take_source(self, path: Path, kind: Format, time: str) -> None:
        """Reads a source and commits its recordings, batch by batch."""
        mark = fingerprint_source(path)
        there = self._find_known(mark)
        self.ids += [row["id"] for row in there.values()]
        self.samples += sum(row["num_rows"] for row in there.values())
        self.known += len(there)
        self._note_unchanged(list(there.values()))
        read = kind.read(path, ReadOptions(known=frozenset(there), time=time))
        about = {"path": path.name, "fingerprint": mark, "format": kind.name}
        for recording in self._map(read):
            self._note(recording)
            provenance = Provenance("import", gapless.__version__, config={"source": {**about, "name": recording.name}})
            self.batch.append((self.statement.apply(recording), provenance))
            num_rows = sum(len(each.times_s) for each, _ in self.batch)
            if len(self.batch) >= BATCH_EPISODES or num_rows >= BATCH_ROWS:
                self.commit()
        self.commit()

    def commit(self) -> None:
        """Writes what is waiting, all of it or nothing."""
        waiting, self.batch = self.batch, []
        signals = [describe_segments(cut_recording(recording))["signals_id"] for recording, _ in waiting]
        there, withdrawn = self._find_same_signals(signals)
        new: list[tuple[Recording, Provenance]] = []
        quality: dict[str, tuple[str, ...]] = {}
        for (recording, provenance), key in zip(waiting, signals, strict=True):
            if key in withdrawn:
                self.skipped.append(Skipped(recording.name, withdrawn[key]))
                continue
            same = there.setdefault(key, [])
            self.samples += len(recording.times_s)
            if known := [each.id for each in same if each.source_name == recording.name]:
                self.ids.append(known[0])
                self.known += 1
                continue
            named = self._rename(recording)
            copies = (f"copy_of:{same[0].name}",) if same else ()
            quality[named.name] = (*find_flags(recording), *copies)
            same.append(_Known("", named.name, recording.name))
            new.append((named, provenance))
        self._add(new, quality)

    def _add(self, new: Sequence[tuple[Recording, Provenance]], quality: Mapping[str, tuple[str, ...]]) -> None:
        self.flagged += sum(map(bool, quality.values()))
        for name, flags in quality.items():
            for flag in flags:
                self.flags.setdefault(flag, []).append(name)
        if self.dry_run:
            self.ids += [""] * len(new)
        elif new:
            catalogue = self._open()
            require_space(self.folder.directory)
            kind = new[0][1].config["source"]["format"]
            self.ids += catalogue.add_recordings(new, format=kind, quality=lambda each: quality[each.name])
            self.added += len(new)

    def finish(self, given: Mapping[str, str | None]) -> ImportResult:
        """Returns what came in; the names of columns are written to `gapless.yaml`."""
        if self.added >= COMPACT_FROM_EPISODES:
            self._open().compact()
        mapping = {each.column: each for found in self.mappings.values() for each in found}
        if not self.dry_run:
            renamed = {c: m.becomes for c, m in mapping.items() if m.becomes != c}
            write_columns(self.folder, {**renamed, **given})
        return ImportResult(
            inputs=tuple(id for id in self.ids if id),
            project=str(self.folder.directory),
            episodes=len(self.ids),
            samples=self.samples,
            known=self.known,
            skipped=tuple(self.skipped),
            mapping=tuple(mapping.values()),
            flagged=self.flagged,
            notes=(*self.notes.values(), *self._note_flags()),
            dry_run=self.dry_run,
        )

    def _map(self, read: Iterator[Recording | Skipped]) -> Iterator[Recording]:
        """Yields recordings with the project's columns; the first few with the same columns decide on the mapping."""
        waiting: dict[frozenset[str], list[Recording]] = {}
        for each in read:
            if isinstance(each, Skipped):
                self.skipped.append(each)
                continue
            key = frozenset(each.columns)
            if key in self.mappings:
                yield rename_columns(each, self.mappings[key])
                continue
            waiting.setdefault(key, []).append(each)
            if len(waiting[key]) >= NUM_EXAMPLES:
                yield from self._decide(key, waiting.pop(key))
        for key, examples in waiting.items():
            yield from self._decide(key, examples)

    def _decide(self, key: frozenset[str], examples: list[Recording]) -> Iterator[Recording]:
        if self.mappings and self.folder.project is None and key not in self.mappings:
            text = "episodes have different columns; each keeps its own, and nothing is filled in"
            self.notes[("columns", "")] = Note("info", "columns", text)
        self.mappings[key] = self.mapper.propose(examples)
        for each in examples:
            yield rename_columns(each, self.mappings[key])

    def _rename(self, recording: Recording) -> Recording:
        """Returns a recording whose name no other one of the project has."""
        name, number = recording.name, 2
        while name in self.names:
            name, number = f"{recording.name}_{number}", number + 1
        self.names.add(name)
        return replace(recording, name=name)

    def _note(self, recording: Recording) -> None:
        """Keeps what a reader found out of the time: latency of transport, units that were guessed."""
        for note in describe_time(recording):
            self.notes.setdefault((note.where, note.text if note.where == "time" else ""), note)

    def _note_flags(self) -> list[Note]:
        """Returns a warning for each kind of flag: in how many episodes, of which columns most."""
        kinds: dict[str, dict[str, list[str]]] = {}
        for flag, names in self.flags.items():
            word, _, column = flag.partition(":")
            kinds.setdefault(word, {})[column] = names
        notes: list[Note] = []
        for word, columns in kinds.items():
            episodes = list(dict.fromkeys(name for names in columns.values() for name in names))
            often = sorted((column for column in columns if column), key=lambda column: -len(columns[column]))
            listed = ", ".join(f"{column} ({len(columns[column])})" for column in often[:MAX_NAMED])
            more = f" and {len(often) - MAX_NAMED} more columns" if len(often) > MAX_NAMED else ""
            count = f"{len(episodes)} episode{'s' if len(episodes) > 1 else ''}"
            text = f"{word.replace('_', ' ')} in {count}, the first is {episodes[0]}"
            notes.append(Note("warning", "quality", f"{text}{': ' * bool(listed)}{listed}{more}"))
        return notes

    def _find_known(self, mark: str) -> dict[str, dict[str, Any]]:
        """Returns name -> row of what is there of a source; notes all names of the project."""
        project = self.folder.project
        if project is not None and project.logs_path.is_dir():
            self.names |= {path.stem for path in project.logs_path.iterdir()}
        if not (self.folder.directory / FOLDER).is_dir():
            return {}
        catalogue = self._open()
        if not self.ids:
            self.names |= set(catalogue.query("SELECT name FROM episodes WHERE is_recording")["name"].to_pylist())
        name, fingerprint = (f"json_extract_string(config, '$.source.{key}')" for key in ("name", "fingerprint"))
        columns = ", ".join(["id", "num_rows", "source", "conditions", *self.statement.origin])
        rows = catalogue.query(f"SELECT {name} AS recorded, {columns} FROM episodes WHERE {fingerprint} = '{mark}'")
        return {row["recorded"]: row for row in rows.to_pylist()}

    def _note_unchanged(self, there: Sequence[Mapping[str, Any]]) -> None:
        """Notes what this import does not change of the episodes that are there."""
        stays = "there stays: import into another project to change it"
        if others := [row for row in there if not self.statement.is_said_in(row)]:
            text = f"what was said of {len(others)} episodes {stays}"
            self.notes[("episodes", "said")] = Note("warning", "--set", text)
        if there and any(self.folder.columns.get(c, ...) != name for c, name in self.mapper.given.items()):
            text = f"what the columns of {len(there)} episodes are called {stays}"
            self.notes[("episodes", "map")] = Note("warning", "--map", text)

    def _find_same_signals(self, signals: Sequence[str]) -> tuple[dict[str, list["_Known"]], dict[str, str]]:
        """Returns hash of signals -> recordings that have them; and -> why, of those that must not come in again."""
        if not (self.folder.directory / FOLDER).is_dir():
            return {}, {}
        catalogue, found = self._open(), dict[str, list[_Known]]()
        sql = "SELECT id, name, signals_id, json_extract_string(config, '$.source.name') AS source_name "
        sql += "FROM episodes WHERE is_recording AND signals_id IN (SELECT unnest($1::VARCHAR[]))"
        for row in catalogue.select(sql, (list(signals),)):
            found.setdefault(row["signals_id"], []).append(_Known(row["id"], row["name"], row["source_name"]))
        return found, find_blocked(catalogue, "test")

    def _open(self) -> Catalogue:
        if self._catalogue is None:
            with suppress(FileExistsError):
                self.folder.directory.mkdir(parents=True)
            if self.folder.project is None:
                write_columns(self.folder, {})  # the folder is a project from now on
            self._catalogue = Catalogue.open(self.folder.directory)
        return self._catalogue


def fingerprint_source(path: Path) -> str:
    """Returns 32 hex digits over names, sizes and times of a source's files: the same while nobody changes it."""
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for each in files:
        status = each.stat()
        name = each.relative_to(path).as_posix() if path.is_dir() else path.name
        digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:32]
