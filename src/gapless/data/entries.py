"""The entries of the catalogue: rows of a table, each with a file or folder that holds what it stands for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gapless.core.errors import CatalogueError
from gapless.data.query import Views
from gapless.data.tables import Table

NUM_SIMILAR_IDS = 3  # shown for an id that does not exist
# Ids that need no further row: episodes that are there; of each kind the artefact that was stored last.
NEED_NO_ROW = {
    "episodes": "SELECT id FROM episodes WHERE id IN (SELECT unnest($1::VARCHAR[]))",
    "artefacts": "SELECT id FROM artefacts WHERE id IN (SELECT unnest($1::VARCHAR[])) AND stored_at = "
    "(SELECT max(stored_at) FROM artefacts AS other WHERE other.kind = artefacts.kind)",
}


@dataclass(frozen=True)
class Entries:
    """A table of the catalogue, and where the files of its rows lie.

    Attributes:
        name: Name of the table.
        label: What one row is called, for messages.
        directory: The catalogue's folder.
        table: The table.
        path_of: Returns where the samples or files of an id lie.
    """

    name: Literal["episodes", "artefacts"]
    label: str
    directory: Path
    table: Table
    path_of: Callable[[str], Path]

    def add(self, rows: Mapping[str, Mapping[str, Any]], write: Callable[[str], None]) -> None:
        """Adds, in one commit, those rows that are needed; see `NEED_NO_ROW`.

        What has a row has its files, but not the other way round: a process may be killed in between. So an id
        without files is new, and only the others need a look into the table.

        `rows` are by id; `write` writes the files of an id, whole or not at all.
        """

        def choose(files: tuple[Path, ...]) -> list[Mapping[str, Any]]:
            written = [id for id in rows if self.path_of(id).exists()]
            views = Views(self.directory, **{self.name: files})
            found = views.select(NEED_NO_ROW[self.name], (written,)) if files and written else []
            needed = [id for id in rows if id not in {row["id"] for row in found}]
            for id in set(needed) - set(written):
                write(id)
            return [rows[id] for id in needed]

        try:
            self.table.append(choose)
        except OSError as error:
            raise CatalogueError(
                f"the catalogue cannot be written ({error.strerror or error}): check space and "
                f"permissions: {self.directory}"
            ) from error

    def row(self, id: str) -> dict[str, Any]:
        """Returns the stored row of an id."""
        views = self.views()
        found = views.select(f"SELECT * FROM {self.name} WHERE id = $1", (id,))
        if not found:
            raise unknown_id(self.label, self.name, id, views)
        return found[0]

    def views(self) -> Views:
        """Returns the view of this table at this moment."""
        return Views(self.directory, **{self.name: self.table.files()})


def unknown_id(label: str, relation: str, id: str, views: Views) -> CatalogueError:
    """Returns the error for an id that is not there: how many are, and which are most alike."""
    count = views.select(f"SELECT count(*) AS count FROM {relation}")[0]["count"]
    order = f"ORDER BY levenshtein(id, $1), id LIMIT {NUM_SIMILAR_IDS}"
    similar = [row["id"] for row in views.select(f"SELECT id FROM {relation} {order}", (id,))]
    shown = f", most alike: {', '.join(similar)}" if similar else ""
    return CatalogueError(f"no {label} {id!r}; {count} exist{shown}; choose an id of `SELECT id`: {views.directory}")
