"""Which episodes somebody means: by id, name, pattern or SQL."""

from collections.abc import Sequence
from pathlib import Path

from gapless.core.errors import InputError, nearest
from gapless.data.catalogue import FOLDER, Catalogue

MIN_ID_LENGTH = 4  # digits of the beginning of an id; fewer name too many episodes


def open_existing(directory: str | Path) -> Catalogue:
    """Returns the catalogue of a folder; raises InputError where there is none yet."""
    place = Path(directory).expanduser()
    if not (place / FOLDER).is_dir():
        raise InputError(f"no catalogue here yet: run `gapless import` or `gapless measure` first: {place}")
    return Catalogue.open(place)


def find_episodes(catalogue: Catalogue, names: Sequence[str], where: str | None) -> tuple[str, ...]:
    """Returns the ids of the episodes that names or an SQL condition mean, none twice.

    A name is an id, the beginning of one, an episode's name, or a pattern of names such as `reach_*`.

    Raises:
        InputError: If a name means no episode, or the condition none, or both or neither of them are given.
    """
    if bool(names) == (where is not None):
        raise InputError("which episodes? Name them, or choose them with --where SQL, but not both")
    if where is not None:
        found = catalogue.select_ids(where)
        if not found:
            raise InputError(f"no episode has {where}: look at what there is with `gapless query`")
        return found
    return tuple(dict.fromkeys(id for name in names for id in _find_by_name(catalogue, name)))


def _find_by_name(catalogue: Catalogue, name: str) -> tuple[str, ...]:
    text = "'" + name.replace("'", "''") + "'"
    if found := catalogue.select_ids(f"id = {text} OR name = {text}"):
        return found
    if found := catalogue.select_ids(f"name GLOB {text}"):
        return found
    found = catalogue.select_ids(f"starts_with(id, {text})") if len(name) >= MIN_ID_LENGTH else ()
    if len(found) > 1:
        raise InputError(f"{len(found)} ids begin with {name}: give more digits, such as {', '.join(found[:3])}")
    if not found:
        known = catalogue.query("SELECT DISTINCT name FROM episodes").column("name").to_pylist()
        raise InputError(f"no episode {name!r}; choose from: {nearest(name, known)}")
    return found


def signals_of(catalogue: Catalogue, ids: Sequence[str]) -> tuple[str, ...]:
    """Returns the hashes of the signals of some episodes; runs without samples have none."""
    sql = "SELECT DISTINCT signals_id FROM recorded_episodes WHERE num_rows > 0"
    found = catalogue.select(f"{sql} AND id IN (SELECT unnest($1::VARCHAR[])) ORDER BY ALL", (list(ids),))
    return tuple(row["signals_id"] for row in found)
