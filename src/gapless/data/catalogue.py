"""The catalogue of one project, in its folder `.gapless/`."""

import contextlib
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pyarrow as pa

from gapless.core.episode import Episode, Outcome, Source
from gapless.core.errors import CatalogueError, nearest
from gapless.core.provenance import Provenance, content_id
from gapless.core.recording import Origin, Recording
from gapless.data.chunks import Piece, join_series
from gapless.data.descendants import Descendants
from gapless.data.entries import Entry, make_episode_entry, make_recording_entry, place_pieces, read_recording_entry
from gapless.data.events import EventLog
from gapless.data.files import artefact_content, check_file_names, write_files
from gapless.data.media import delete_media, keep_media
from gapless.data.migrate import delete_old_samples, is_old, migrate, old_path, read_old_samples
from gapless.data.rows import (
    ARTEFACTS_SCHEMA,
    EPISODES_SCHEMA,
    ArtefactRow,
    EpisodeRow,
    check_provenance,
    from_stored,
    to_stored,
)
from gapless.data.samples import MAX_LEFTOVER_AGE_S, SampleStore
from gapless.data.tables import Table, explain_failure
from gapless.data.views import Views, open_database
from gapless.data.withdrawn import find_hidden

FOLDER = ".gapless"
UNUSABLE_CHARACTERS = "[]|^\\%*?"  # Delta or DuckDB take a path with one of them for another path
BATCH_CELLS = 4_000_000  # values that `add_recordings` gathers for one commit: 64 MB in memory with their times
BATCH_EPISODES = 5000  # and recordings


class Catalogue:
    """Every episode and artefact of a project, each with its id and provenance.

    Something exists only if its row is committed, and its samples or files are in place before that. Hence a
    killed process leaves nothing half done. Any number of processes may read and write; readers never wait.
    Start further processes by spawning: Delta's threads do not survive a fork.
    """

    def __init__(self, directory: Path) -> None:
        """Takes the catalogue in a folder that `open` has prepared."""
        self._directory = directory
        self._temporary = directory / "temporary"
        self._media = directory / "media"
        self._samples = SampleStore(directory / "samples", self._temporary)
        self._episodes = Table(directory / "tables" / "episodes", EPISODES_SCHEMA, ("source",), "id")
        self._artefacts = Table(directory / "tables" / "artefacts", ARTEFACTS_SCHEMA)
        self.events = EventLog(directory / "tables" / "events")  # what people said of episodes
        self._database = open_database(directory)
        self._last_views = self._recorded = Views(directory, self._samples, self._database)
        self._hidden: tuple[Any, Descendants] | None = None  # at which moment, and what was hidden then

    @classmethod
    def open(cls, project_directory: Path) -> "Catalogue":
        """Returns the catalogue of a project, made if there is none.

        An existing catalogue in a folder that cannot be written to opens for reading.
        """
        directory = Path(project_directory).absolute() / FOLDER
        bad = sorted(set(UNUSABLE_CHARACTERS) & set(str(directory)))
        if bad:
            raise CatalogueError(f"no catalogue can lie in a path with {' '.join(bad)}: rename the folder: {directory}")
        catalogue = cls(directory)
        with explain_failure("no catalogue can be made here", directory):
            for folder in (directory, catalogue._temporary, directory / "tables"):
                folder.mkdir(exist_ok=True)
        catalogue._episodes.create()
        catalogue._artefacts.create()
        if is_old(catalogue._episodes):
            migrate(catalogue._episodes, catalogue._views)
        return catalogue

    def add_episode(self, episode: Episode, provenance: Provenance, origin: Origin = Origin()) -> str:  # noqa: B008
        """Adds an episode and returns its id; one that is there already is left as it is.

        `origin` says of a simulated one in which simulator and with which parameters.
        """
        return self.add_episodes([(episode, provenance)], (origin,))[0]

    def add_episodes(
        self, items: Sequence[tuple[Episode, Provenance]], origins: Sequence[Origin] = ()
    ) -> tuple[str, ...]:
        """Adds episodes in one commit, all or none, and returns their ids in the order given.

        Args:
            items: Episodes, and how each was made.
            origins: Where each came from; none where that is not known.
        """
        entries = list[Entry]()
        for k, (episode, provenance) in enumerate(items):
            entries.append(make_episode_entry(episode, provenance, origins[k] if origins else Origin()))
        self._add(entries)
        return tuple(entry.id for entry in entries)

    def add_recordings(
        self,
        items: Iterable[tuple[Recording, Provenance]],
        *,
        format: str | None = None,
        quality: Callable[[Recording], Sequence[str]] = lambda _: (),
    ) -> tuple[str, ...]:
        """Adds recordings as they are, and returns their ids in the order given.

        They are added in batches as they come, so that any number of them fits into memory. Each batch is one
        commit: if the process is killed, what was committed is found again and not written twice.

        Args:
            items: Recordings, and how each was made.
            format: Of the files that they were read from.
            quality: Returns the quality flags of a recording.
        """
        ids, batch, files, num_cells = list[str](), list[Entry](), dict[Path, str](), 0
        for recording, provenance in items:
            batch.append(make_recording_entry(recording, provenance, format, quality(recording), files))
            ids.append(batch[-1].id)
            num_cells += batch[-1].num_cells
            if num_cells >= BATCH_CELLS or len(batch) >= BATCH_EPISODES:
                self._add(batch, files)
                batch, files, num_cells = [], {}, 0
        self._add(batch, files)
        return tuple(ids)

    def _add(self, entries: Sequence[Entry], files: Mapping[Path, str] = MappingProxyType({})) -> None:
        """Adds what is not there yet: videos and samples first, then the rows in one commit."""
        stored = {entry.id: entry for entry in sorted(entries, key=lambda entry: entry.id)}
        with explain_failure("the catalogue cannot be written", self._directory):
            checked = self._episodes.files()
            for id in self._episodes.find_known(stored):
                del stored[id]
            if not stored:
                return
            keep_media(files, self._media, self._temporary)
            chunk, places = self._samples.write({id: entry.pieces for id, entry in stored.items()})
            about = {"added_at": _write_time(), "chunk": chunk}
            rows = [entry.row | about | place_pieces(places[id]) for id, entry in stored.items()]
            self._episodes.append(rows, checked)
            keep_media(files, self._media, self._temporary)  # those that a compaction has just deleted
            if self._samples.needs_joining():
                self._samples.compact(self._views().chunks(), all_sizes=False)

    def episode(self, id: str) -> Episode:
        """Returns an episode as it was added, with the outcome and conditions that people said of it since."""
        stored = self._row(id)
        if stored["is_recording"]:
            raise CatalogueError(f"{id} is a recording, not mapped to a model: use `recording`: {self._directory}")
        row = from_stored(EpisodeRow, stored)
        commands, measurements = join_series(self._pieces(stored))
        about = {key: getattr(row, key) for key in ("outcome", "failed_in", "conditions", "recorded_at")}
        return Episode(row.name, cast(Source, row.source), commands, measurements, **about)

    def recording(self, id: str) -> Recording:
        """Returns a recording exactly as it was added; its videos lie in the catalogue."""
        stored = self._row(id)
        return read_recording_entry(stored, self._pieces(stored), self._media)

    def recordings(self, ids: Iterable[str]) -> Iterator[Recording]:
        """Yields recordings in the order of their ids; files stay open meanwhile."""
        views, wanted = self._views(), list(ids)
        for begin in range(0, len(wanted), BATCH_EPISODES):
            batch = wanted[begin : begin + BATCH_EPISODES]
            found = views.select("SELECT * FROM episodes WHERE id IN (SELECT unnest($1::VARCHAR[]))", (batch,))
            rows = {row["id"]: row for row in found}
            for id in batch:
                stored = rows.get(id) or views.row("episodes", id)
                yield read_recording_entry(stored, self._pieces(stored), self._media)

    def _row(self, id: str) -> dict[str, Any]:
        """Returns the row of an episode as the view shows it; faster while nobody said anything of any episode."""
        with explain_failure("the catalogue cannot be read", self._directory):
            found = None if self.events.files() else self._episodes.find(id)
        return found or self._views().row("episodes", id)

    def _pieces(self, stored: Mapping[str, Any]) -> list[Piece]:
        id, chunk = stored["id"], stored["chunk"]
        path = self._samples.place(chunk)[0] if chunk else old_path(self._samples, id)
        with explain_failure(f"the samples of episode {id} cannot be read", path):
            if not chunk:
                return read_old_samples(self._samples, id)
            if pieces := self._samples.read(chunk, stored["first_piece"], stored["num_pieces"]):
                return pieces
        raise CatalogueError(f"the samples of episode {id} were deleted: choose another one: {self._directory}")

    def episodes(self, *, source: Source | None = None, outcome: Outcome | None = None) -> tuple[EpisodeRow, ...]:
        """Returns what is known of the episodes, newest last: all, or those of one source or outcome."""
        sql = "SELECT * FROM episodes WHERE ($1 IS NULL OR source = $1) AND ($2 IS NULL OR outcome = $2)"
        found = self._views().select(f"{sql} ORDER BY added_at, name, id", (source, outcome))
        return tuple(from_stored(EpisodeRow, stored) for stored in found)

    def add_artefact(self, kind: str, content: Mapping[str, bytes], provenance: Provenance) -> str:
        """Stores an artefact and returns its id; one that is there already becomes the newest of its kind.

        `kind` is such as `fit`, `policy` or `report`; `content` maps file names to bytes.
        """
        check_provenance(provenance)
        check_file_names(kind, content)
        id = content_id(artefact_content(kind, content), provenance)
        about = {"id": id, "kind": kind, "files": sorted(content), "created_at": _write_time()}
        stored = self.artefacts(kind)
        with explain_failure("the catalogue cannot be written", self._directory):
            write_files(self.artefact_folder(id), self._temporary, content)
            if not stored or stored[-1].id != id:
                self._artefacts.append([{**about, **to_stored(provenance)}])
        return id

    def artefact(self, id: str) -> ArtefactRow:
        """Returns what is known of an artefact; raises CatalogueError if there is none with this id."""
        return from_stored(ArtefactRow, self._views().row("artefacts", id))

    def artefact_path(self, id: str, name: str) -> Path:
        """Returns where a file of an artefact lies."""
        files = self.artefact(id).files
        if name not in files:
            raise CatalogueError(f"artefact {id} has no file {name!r}; choose from: {nearest(name, files)}")
        return self.artefact_folder(id) / name

    def artefact_folder(self, id: str) -> Path:
        """Returns the folder that an artefact's files lie in, or would lie in."""
        return self._directory / "artefacts" / id

    def unfinished_path(self, name: str) -> Path:
        """Returns where work that is not finished may keep a file; what is a week old is deleted now and then."""
        return self._temporary / name

    def artefacts(self, kind: str | None = None) -> tuple[ArtefactRow, ...]:
        """Returns what is known of the artefacts, of one kind or (None) of all; what was stored last comes last."""
        sql = "SELECT * FROM artefacts WHERE $1 IS NULL OR kind = $1 ORDER BY stored_at, id"
        return tuple(from_stored(ArtefactRow, stored) for stored in self._views().select(sql, (kind,)))

    def lineage(self, id: str) -> tuple[str, ...]:
        """Returns the ids of all ancestors of an episode or artefact, nearest first.

        Parents that were never added here are listed too.
        """
        views = self._views()
        known = "SELECT id FROM episodes UNION ALL SELECT id FROM artefacts"
        if not views.select(f"SELECT id FROM ({known}) WHERE id = $1", (id,)):
            raise views.unknown("episode or artefact", id, known)
        return tuple(row["id"] for row in views.select("SELECT id FROM lineage($1)", (id,)))

    def query(self, sql: str) -> pa.Table:
        """Returns the rows that an SQL query asks for, over the views below. Nothing can be changed.

        `episodes` and `artefacts` have one row each; `conditions` and `config` are JSON
        (`conditions->>'object'`). `samples` has a row per episode, signal and time: `episode`, `signal`
        (`command` and `measurement`; `recorded` of recordings), `name`, `unit`, `time_s`, `value` (NaN where nothing
        was recorded; a recording has no row there).
        `labels`, `splits` and `consents` have a row for each thing that people said of an episode.
        `lineage('ID')` has a row per episode and artefact that something was made from: `id`, `steps`, `what`, `name`.

        Raises:
            InputError: If the query is not one statement that reads, or DuckDB refuses it.
        """
        return self._views().run_query(sql)

    def select_ids(self, where: str, *, recordings_only: bool = False) -> tuple[str, ...]:
        """Returns the ids of the episodes for which an SQL condition over the columns of `episodes` holds.

        They come oldest first. `recordings_only` leaves out those that are mapped to a model.

        Raises:
            InputError: If it is not one condition that reads.
        """
        return self._views().select_ids(where, "is_recording" if recordings_only else "true")

    def compact(self, without: Collection[str] = ()) -> None:
        """Joins small files into large ones; adding does so by itself now and then. Loses nothing.

        What killed processes left unfinished a week ago or earlier is removed, and the samples of episodes of people
        whose consent is withdrawn or has ended.

        Args:
            without: Episodes whose samples are deleted for good, at once. Their rows stay. Their videos are deleted
                too, unless another episode lies in the same file. What a killed process had written of them, and
                no row refers to, goes when it is a week old.
        """
        self._episodes.compact()
        self._artefacts.compact()
        views, without = self._recorded_views(), {*without, *self.hidden().episodes}
        with explain_failure("the catalogue cannot be compacted", self._directory):
            self._samples.compact(views.chunks(), without)
            delete_old_samples(self._episodes, views)
            if without:
                query = "SELECT DISTINCT unnest(media) AS file FROM recorded_episodes "
                query += "WHERE (id IN (SELECT unnest($1))) = $2"
                out, kept = ({row["file"] for row in views.select(query, (list(without), w))} for w in (True, False))
                delete_media(out - kept, self._media)
            for path in self._temporary.iterdir():
                with contextlib.suppress(FileNotFoundError):  # its process has just put it in its place
                    if time.time() - path.stat().st_mtime > MAX_LEFTOVER_AGE_S:
                        shutil.rmtree(path) if path.is_dir() else path.unlink()

    def select(self, sql: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Returns the rows of a query of gapless's own; its view `recorded_episodes` has every episode, as added."""
        return self._recorded_views().select(sql, values)

    def hidden(self) -> Descendants:
        """Returns what holds the data of people whose consent is withdrawn or has ended: id -> person."""
        moment = (self._recorded_views(), datetime.now(UTC).date())
        if self._hidden is None or self._hidden[0] != moment:
            self._hidden = (moment, find_hidden(self.select, self.events.read("consent")))
        return self._hidden[1]

    def _recorded_views(self) -> Views:
        files = (self._episodes.files(), self._artefacts.files(), self.events.files())
        found = Views(self._directory, self._samples, self._database, *files)
        if self._recorded != found:  # else its connection serves on: files never change
            self._recorded = found
        return self._recorded

    def _views(self) -> Views:
        """Returns the views without the episodes that nothing may show."""
        recorded, hidden = self._recorded_views(), tuple(self.hidden().episodes)
        found = replace(recorded, hidden=hidden) if hidden else recorded
        if self._last_views != found:
            self._last_views = found
        return self._last_views


def _write_time() -> str:
    """Returns the time now as ISO 8601 text in UTC whose order as text is its order in time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
