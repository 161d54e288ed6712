"""The catalogue of one project, in its folder `.gapless/`."""

import contextlib
import shutil
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa

from gapless.core.episode import Episode, Outcome, Source
from gapless.core.errors import CatalogueError, nearest
from gapless.core.provenance import Provenance, content_id, episode_content, signals_id
from gapless.data import tables
from gapless.data.descendants import Descendants
from gapless.data.events import EventLog
from gapless.data.files import artefact_content, check_file_names, read_samples, write_files, write_samples
from gapless.data.tables import ArtefactRow, EpisodeRow, explain_failure
from gapless.data.withdrawn import find_hidden

FOLDER = ".gapless"
UNUSABLE_CHARACTERS = "[]|^\\%*?"  # Delta or DuckDB take a path with one of them for another path
MAX_LEFTOVER_AGE_S = 7 * 24 * 3600.0


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
        self._episodes = tables.Table(directory / "tables" / "episodes", tables.EPISODES_SCHEMA, ("source",))
        self._artefacts = tables.Table(directory / "tables" / "artefacts", tables.ARTEFACTS_SCHEMA)
        self.events = EventLog(directory / "tables" / "events")  # what people said of episodes

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
        return catalogue

    def add_episode(self, episode: Episode, provenance: Provenance) -> str:
        """Adds an episode and returns its id; one that is there already is left as it is."""
        return self.add_episodes([(episode, provenance)])[0]

    def add_episodes(self, items: Sequence[tuple[Episode, Provenance]]) -> tuple[str, ...]:
        """Adds episodes in one commit, all or none, and returns their ids in the order given."""
        added_at = _write_time()
        ids, episodes, stored = list[str](), dict[str, Episode](), dict[str, dict[str, Any]]()
        for episode, provenance in items:
            tables.check_provenance(provenance)
            if episode.source not in get_args(Source):
                known = ", ".join(get_args(Source))
                raise CatalogueError(f"episode {episode.name} has source {episode.source!r}: use one of {known}")
            id = content_id(episode_content(episode), provenance)
            ids.append(id)
            episodes[id] = episode
            about = {"id": id, "duration_s": episode.duration_s, "added_at": added_at}
            about |= {
                "signals_id": signals_id(episode),
                "participants": [],
                "num_rows": len(episode.measurements.times_s),
            }
            stored[id] = {**about, **tables.to_stored(episode), **tables.to_stored(provenance)}
        query = "SELECT id FROM recorded_episodes WHERE id IN (SELECT unnest($1::VARCHAR[]))"
        known = {row["id"] for row in self.select(query, (ids,))}
        with explain_failure("the catalogue cannot be written", self._directory):
            for id in stored.keys() - known:
                write_samples(self._samples_path(id), self._temporary, episodes[id].commands, episodes[id].measurements)
            if new := [row for id, row in stored.items() if id not in known]:
                self._episodes.append(new)
        return tuple(ids)

    def episode(self, id: str) -> Episode:
        """Returns an episode exactly as it was added."""
        row = tables.from_stored(EpisodeRow, self._views().row("episodes", id))
        path = self._samples_path(id)
        with explain_failure(f"the samples of episode {id} cannot be read", path):
            commands, measurements = read_samples(path)
        about = {key: getattr(row, key) for key in ("outcome", "failed_in", "conditions", "recorded_at")}
        return Episode(row.name, row.source, commands, measurements, **about)

    def episodes(self, *, source: Source | None = None, outcome: Outcome | None = None) -> tuple[EpisodeRow, ...]:
        """Returns what is known of the episodes, newest last: all, or those of one source or outcome."""
        sql = "SELECT * FROM episodes WHERE ($1 IS NULL OR source = $1) AND ($2 IS NULL OR outcome = $2)"
        found = self._views().select(f"{sql} ORDER BY added_at, name, id", (source, outcome))
        return tuple(tables.from_stored(EpisodeRow, stored) for stored in found)

    def add_artefact(self, kind: str, content: Mapping[str, bytes], provenance: Provenance) -> str:
        """Stores an artefact and returns its id; one that is there already becomes the newest of its kind.

        `kind` is such as `fit`, `policy` or `report`; `content` maps file names to bytes.
        """
        tables.check_provenance(provenance)
        check_file_names(kind, content)
        id = content_id(artefact_content(kind, content), provenance)
        about = {"id": id, "kind": kind, "files": sorted(content), "created_at": _write_time()}
        stored = self.artefacts(kind)
        with explain_failure("the catalogue cannot be written", self._directory):
            write_files(self.artefact_folder(id), self._temporary, content)
            if not stored or stored[-1].id != id:
                self._artefacts.append([{**about, **tables.to_stored(provenance)}])
        return id

    def artefact(self, id: str) -> ArtefactRow:
        """Returns what is known of an artefact; raises CatalogueError if there is none with this id."""
        return tables.from_stored(ArtefactRow, self._views().row("artefacts", id))

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
        return tuple(tables.from_stored(ArtefactRow, stored) for stored in self._views().select(sql, (kind,)))

    def lineage(self, id: str) -> tuple[str, ...]:
        """Returns the ids of all ancestors of an episode or artefact, nearest first.

        Parents that were never added here are listed too.
        """
        views = self._views()
        known = [row["id"] for row in views.select("SELECT id FROM episodes UNION ALL SELECT id FROM artefacts")]
        if id not in known:
            raise CatalogueError(f"no episode or artefact {id!r}; choose from: {nearest(id, known)}: {self._directory}")
        return tuple(row["id"] for row in views.select("SELECT id FROM lineage($1)", (id,)))

    def query(self, sql: str) -> pa.Table:
        """Returns the rows that an SQL query asks for, over the views below. Nothing can be changed.

        `episodes` and `artefacts` have one row each; `conditions` and `config` are JSON
        (`conditions->>'object'`). `samples` has a row per episode, signal and time: `episode`, `signal`
        (`command`, `measurement`), `name`, `unit`, `time_s`, `value` (NaN where nothing was recorded).
        `lineage('ID')` has a row per episode and artefact that something was made from: `id`, `steps`, `what`, `name`.

        Raises:
            InputError: If the query is not one statement that reads, or DuckDB refuses it.
        """
        return self._views().run_query(sql)

    def select(self, sql: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Returns the rows of a query of gapless's own; its view `recorded_episodes` has every episode, as added."""
        return tables.Views(self._directory, self._episodes.files(), self._artefacts.files()).select(sql, values)

    def hidden(self) -> Descendants:
        """Returns what holds the data of people whose consent is withdrawn or has ended: id -> person."""
        return find_hidden(self.select, self.events.read("consent"))

    def compact(self, without: Sequence[str] = ()) -> None:
        """Joins the tables' small files; adding does so by itself now and then. Loses nothing.

        What killed processes left unfinished a week ago or earlier is removed.
        """
        if without:  # PLACEHOLDER until the reworked catalogue is merged
            self._episodes.remove(without)
            for id in without:
                self._samples_path(id).unlink(missing_ok=True)
        self._episodes.compact()
        self._artefacts.compact()
        for path in self._temporary.iterdir():
            with contextlib.suppress(FileNotFoundError):  # its process has just put it in its place
                if time.time() - path.stat().st_mtime > MAX_LEFTOVER_AGE_S:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _samples_path(self, id: str) -> Path:
        return self._directory / "samples" / id[:2] / f"{id}.parquet"

    def _views(self) -> tables.Views:
        files = (self._episodes.files(), self._artefacts.files(), self.events.files())
        return tables.Views(self._directory, *files, tuple(self.hidden().episodes))


def _write_time() -> str:
    """Returns the time now as ISO 8601 text in UTC whose order as text is its order in time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
