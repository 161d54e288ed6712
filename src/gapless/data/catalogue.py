"""The catalogue of one project, in its folder `.gapless/`."""

import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from gapless.core.episode import Episode, Outcome, Source
from gapless.core.errors import CatalogueError, nearest
from gapless.core.provenance import Provenance, content_id
from gapless.core.recording import Origin, Recording
from gapless.data.chunks import Segment
from gapless.data.descendants import Descendants
from gapless.data.events import Event, EventKind, read_events, write_time
from gapless.data.files import artefact_content, check_file_names, write_files
from gapless.data.media import keep_media
from gapless.data.migrate import delete_old_samples, is_old, migrate, old_path, read_old_samples
from gapless.data.new_episodes import NewEpisode, read_episode, read_recording, store_episode, store_recording
from gapless.data.rows import (
    ARTEFACTS_SCHEMA,
    EPISODES_SCHEMA,
    EVENTS_SCHEMA,
    ArtefactRow,
    EpisodeRow,
    check_provenance,
    forget,
    from_stored,
    to_stored,
)
from gapless.data.samples import MAX_LEFTOVER_AGE_S, SampleStore
from gapless.data.tables import Table, explain_failure
from gapless.data.views import CatalogueMoment, Views, open_database
from gapless.data.withdrawn import name_today

FOLDER = ".gapless"
UNUSABLE_CHARACTERS = "[]|^\\%*?"  # Delta or DuckDB take a path with one of them for another path
BATCH_CELLS = 4_000_000  # values that `add_recordings` gathers for one commit: 64 MB in memory with their times
BATCH_EPISODES = 5000  # and recordings
_AMONG = "IN (SELECT unnest($1::VARCHAR[]))"


class Catalogue:
    """Every episode and artefact of a project, each with its id and provenance.

    Something exists only if its row is committed. Any number of processes may read and write; readers never wait.
    Start further processes by spawning: Delta's threads do not survive a fork.
    """

    def __init__(self, directory: Path) -> None:
        """Takes the catalogue in a folder that `open` has prepared."""
        self._directory = directory
        self._temporary = directory / "temporary"
        self._media = directory / "media"
        self._samples = SampleStore(directory / "samples", self._temporary)
        self._episodes = Table(directory / "tables" / "episodes", EPISODES_SCHEMA, "source", "id")
        self._artefacts = Table(directory / "tables" / "artefacts", ARTEFACTS_SCHEMA)
        self.events = Table(directory / "tables" / "events", EVENTS_SCHEMA)  # made with the first event
        self._database = open_database(directory)
        self._newest: tuple[CatalogueMoment, Views] | None = None

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
        new = store_episode(episode, provenance, origin)
        self._add([new])
        return new.id

    def add_episodes(
        self, items: Sequence[tuple[Episode, Provenance]], origins: Sequence[Origin] = ()
    ) -> tuple[str, ...]:
        """Adds episodes, each with how it was made, in one commit, all or none; returns their ids in this order.

        `origins` says where each comes from; none where nothing is known of any.
        """
        known = origins or [Origin()] * len(items)
        new = [store_episode(*item, origin) for item, origin in zip(items, known, strict=True)]
        self._add(new)
        return tuple(each.id for each in new)

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
        ids, batch, files, num_cells = list[str](), list[NewEpisode](), dict[Path, str](), 0
        for recording, provenance in items:
            batch.append(store_recording(recording, provenance, format, quality(recording), files))
            ids.append(batch[-1].id)
            num_cells += batch[-1].num_cells
            if num_cells >= BATCH_CELLS or len(batch) >= BATCH_EPISODES:
                self._add(batch, files)
                batch, files, num_cells = [], {}, 0
        self._add(batch, files)
        return tuple(ids)

    def _add(self, episodes: Sequence[NewEpisode], videos: Mapping[Path, str] = MappingProxyType({})) -> None:
        """Adds what is not there yet: videos and samples first, then the rows in one commit."""
        with explain_failure("the catalogue cannot be written", self._directory):
            known = self._episodes.find_known([each.id for each in episodes])
            new = {each.id: each for each in sorted(episodes, key=lambda each: each.id) if each.id not in known}
            if not new:
                return
            keep_media(videos, self._media, self._temporary)
            where = self._samples.write({id: each.segments for id, each in new.items()})
            now = {"added_at": write_time()}
            self._episodes.append([each.row | now | where[id] for id, each in new.items()])
            keep_media(videos, self._media, self._temporary)  # those that a compaction has just deleted
            if self._samples.needs_joining():
                self._samples.compact(self._views().chunks(), self.hidden().episodes)

    def episode(self, id: str) -> Episode:
        """Returns an episode as it was added, with the outcome and conditions that people said of it since."""
        (stored,) = self._find([id])
        if stored["is_recording"]:
            raise CatalogueError(f"{id} is a recording, not mapped to a model: use `recording`: {self._directory}")
        return read_episode(stored, self._segments(stored))

    def recording(self, id: str) -> Recording:
        """Returns a recording exactly as it was added; its videos lie in the catalogue."""
        return next(self.recordings([id]))

    def recordings(self, ids: Iterable[str]) -> Iterator[Recording]:
        """Yields recordings in the order of their ids; files stay open meanwhile."""
        wanted = list(ids)
        for begin in range(0, len(wanted), BATCH_EPISODES):
            for stored in self._find(wanted[begin : begin + BATCH_EPISODES]):
                if not stored["is_recording"]:
                    raise CatalogueError(f"{stored['id']} is mapped to a model, not a recording: use `episode`")
                yield read_recording(stored, self._segments(stored), self._media)

    def _find(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Returns the rows of episodes as the view shows them; the view itself is slow to find a few of a million."""
        with explain_failure("the catalogue cannot be read", self._directory):
            hidden = self.hidden().episodes if self.events.files() else {}
            rows = {row["id"]: row for row in self._episodes.find(ids) if row["id"] not in hidden}
        if missing := [id for id in ids if id not in rows]:
            raise self._views().unknown("episode", missing[0], "SELECT id FROM episodes")
        said = self.find_said(ids)
        return [rows[id] | said.get(id, {}) for id in ids]

    def find_said(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Returns id -> outcome, phase and conditions of those episodes of which people said some since."""
        if not self.events.files():
            return {}
        labelled = self.select(f"SELECT DISTINCT episode FROM labels WHERE episode {_AMONG}", (list(ids),))
        sql = f"SELECT id, outcome, failed_in, conditions FROM episodes WHERE id {_AMONG}"
        rows = self.select(sql, ([row["episode"] for row in labelled],)) if labelled else []
        return {row["id"]: row for row in rows}

    def _segments(self, stored: Mapping[str, Any]) -> list[Segment]:
        id, chunk = stored["id"], stored["chunk"]
        path = self._samples.find_file(chunk)[0] if chunk else old_path(self._samples, id)
        with explain_failure(f"the samples of episode {id} cannot be read", path):
            if not chunk:
                return read_old_samples(self._samples, id)
            if segments := self._samples.read(chunk, stored["first_segment"], stored["num_segments"]):
                return segments
        raise CatalogueError(f"the samples of episode {id} were deleted: choose another one: {self._directory}")

    def episodes(self, *, source: Source | None = None, outcome: Outcome | None = None) -> tuple[EpisodeRow, ...]:
        """Returns what is known of the episodes, newest last: all, or those of one source or outcome."""
        sql = "SELECT * FROM episodes WHERE ($1 IS NULL OR source = $1) AND ($2 IS NULL OR outcome = $2)"
        found = self.select(f"{sql} ORDER BY added_at, name, id", (source, outcome))
        return tuple(from_stored(EpisodeRow, stored) for stored in found)

    def add_artefact(self, kind: str, content: Mapping[str, bytes], provenance: Provenance) -> str:
        """Stores an artefact and returns its id; one that is there already becomes the newest of its kind.

        `kind` is such as `fit`, `policy` or `report`; `content` maps file names to bytes.
        """
        check_provenance(provenance)
        check_file_names(kind, content)
        id = content_id(artefact_content(kind, content), provenance)
        about = {"id": id, "kind": kind, "files": sorted(content), "created_at": write_time()}
        stored = self.artefacts(kind)
        with explain_failure("the catalogue cannot be written", self._directory):
            write_files(self.artefact_folder(id), self._temporary, content)
            if not stored or stored[-1].id != id:
                self._artefacts.append([{**about, **to_stored(provenance)}])
        return id

    def artefact(self, id: str) -> ArtefactRow:
        """Returns what is known of an artefact; raises CatalogueError if there is none with this id."""
        if found := self.select("SELECT * FROM artefacts WHERE id = $1", (id,)):
            return from_stored(ArtefactRow, found[0])
        raise self._views().unknown("artefact", id, "SELECT id FROM artefacts")

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
        return tuple(from_stored(ArtefactRow, stored) for stored in self.select(sql, (kind,)))

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

    def select(self, sql: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Returns the rows of a query of gapless's own; its view `recorded_episodes` has every episode, as added."""
        return self._views().select(sql, values)

    def add_events(self, *events: Event) -> None:
        """Adds what people say of episodes, in one commit, all or none."""
        self.events.create()
        self.events.append([event.as_row() for event in events])

    def read_events(self, kind: EventKind) -> tuple[Event, ...]:
        """Returns what people said of episodes, in the order in which they said it."""
        return read_events(self.select, kind)

    def hidden(self) -> Descendants:
        """Returns what holds the data of people whose consent is withdrawn or has ended: id -> person."""
        return self._views().hidden

    def compact(self, without: Collection[str] = ()) -> tuple[str, ...]:
        """Joins small files into large ones, and deletes the data of people whose consent is withdrawn or has ended.

        Adding joins by itself now and then. What killed processes left a week ago or earlier is deleted too.

        Args:
            without: Further episodes to delete for good, at once: samples, what their rows say but `KEPT_COLUMNS`, and
                videos, unless another episode lies in the same file. What a killed process had written of them, and
                no row refers to, goes when it is a week old.

        Returns:
            Ids of the episodes that were deleted; their rows stay, so that they do not come back unseen.
        """
        self._episodes.compact()
        self._artefacts.compact()
        views, deleted = self._views(), {*without, *self.hidden().episodes}
        with explain_failure("the catalogue cannot be compacted", self._directory):
            if deleted:
                self._samples.delete(views.chunks(), deleted)
            else:
                self._samples.compact(views.chunks())
            delete_old_samples(self._episodes, views)
            for path in self._temporary.iterdir():
                with suppress(FileNotFoundError):  # its process has just moved it
                    if time.time() - path.stat().st_mtime > MAX_LEFTOVER_AGE_S:
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
            return self._forget(views, list(deleted)) if deleted else ()

    def _forget(self, views: Views, ids: list[str]) -> tuple[str, ...]:
        """Deletes the videos of episodes and what their rows say; returns those of which something was left."""
        media = f"SELECT DISTINCT unnest(media) AS file FROM recorded_episodes WHERE (id {_AMONG}) = $2"
        gone, kept = ({row["file"] for row in views.select(media, (ids, own))} for own in (True, False))
        for name in gone - kept:
            (self._media / name).unlink(missing_ok=True)
        left = views.select(f"SELECT id, participants FROM recorded_episodes WHERE id {_AMONG} AND name <> id", (ids,))
        if left:
            of_people = dict[str, list[str]]()  # as the rows do not say it any more
            for row in left:
                for person in {*(row["participants"] or ()), *filter(None, [views.hidden.episodes.get(row["id"])])}:
                    of_people.setdefault(person, []).append(row["id"])
            said = {"what": "delete"}
            if of_people:
                self.add_events(*(Event("consent", said, who, episodes=own) for who, own in sorted(of_people.items())))
            self._episodes.rewrite([row["id"] for row in left], forget)
        return tuple(sorted(row["id"] for row in left))

    def _views(self) -> Views:
        """Returns the views of this moment."""
        moment = CatalogueMoment(self._episodes.files(), self._artefacts.files(), self.events.files(), name_today())
        if self._newest is None or self._newest[0] != moment:
            self._newest = (moment, Views(self._database, self._samples, moment))
        return self._newest[1]
