"""A shelf of the catalogue: a table, and the place where what its rows stand for lies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gapless.core.errors import CatalogueError
from gapless.data.questions import Questions
from gapless.data.tables import Table

NUM_ALIKE = 3


@dataclass(frozen=True)
class Shelf:
    """A table, and the place where what its rows stand for lies.

    Attributes:
        name: Name of the table.
        one: What a row is called, for messages.
        directory: The catalogue's folder.
        table: The table.
        place: Returns where the samples or files of an id lie.
    """

    name: Literal["episodes", "artefacts"]
    one: str
    directory: Path
    table: Table
    place: Callable[[str], Path]

    def add(self, rows: Mapping[str, Mapping[str, Any]], write: Callable[[str], None]) -> None:
        """Adds, in one commit, those rows whose id is not there yet.

        What has a row has something in its place, but not the other way round: a process may be killed in
        between. So an id with an empty place is new, and only the others need a look into the table.

        Args:
            rows: Id -> stored row.
            write: Puts what an id stands for in its place, whole or not at all.

        Raises:
            CatalogueError: If it cannot be written.
        """

        def choose(files: tuple[Path, ...]) -> list[Mapping[str, Any]]:
            placed = [id for id in rows if self.place(id).exists()]
            known = self._known(files, placed)
            missing = [id for id in rows if id not in known]
            for id in set(missing) - set(placed):
                write(id)
            return [rows[id] for id in missing]

        try:
            self.table.append(choose)
        except OSError as error:
            raise CatalogueError(
                f"the catalogue cannot be written ({error.strerror or error}): check space and "
                f"permissions: {self.directory}"
            ) from error

    def row(self, id: str) -> dict[str, Any]:
        """Returns the stored row of an id.

        Raises:
            CatalogueError: If there is none; the message says how many exist and which are most alike.
        """
        questions = self.questions()
        found = questions.rows(f"SELECT * FROM {self.name} WHERE id = $1", (id,))
        if not found:
            raise unknown(self.one, self.name, id, questions)
        return found[0]

    def questions(self) -> Questions:
        """Returns the shelf's view at this moment."""
        return self._questions(self.table.files())

    def _questions(self, files: tuple[Path, ...]) -> Questions:
        return Questions(self.directory, **{self.name: files})

    def _known(self, files: tuple[Path, ...], ids: list[str]) -> set[str]:
        if not files or not ids:
            return set()
        sql = f"SELECT id FROM {self.name} WHERE id IN (SELECT unnest($1::VARCHAR[]))"
        return {row["id"] for row in self._questions(files).rows(sql, (ids,))}


def unknown(one: str, relation: str, id: str, questions: Questions) -> CatalogueError:
    """Returns the error for an id that is not there: how many are, and which are most alike."""
    count = questions.rows(f"SELECT count(*) AS count FROM {relation}")[0]["count"]
    alike = questions.rows(f"SELECT id FROM {relation} ORDER BY levenshtein(id, $1), id LIMIT {NUM_ALIKE}", (id,))
    most = f", most alike: {', '.join(row['id'] for row in alike)}" if alike else ""
    return CatalogueError(f"no {one} {id!r}; {count} exist{most}; choose an id of `SELECT id`: {questions.directory}")
