"""Stores the results of verbs in the catalogue, and finds them again."""

import hashlib
import json
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import gapless
from gapless.core.errors import CatalogueError, NotKeptWarning
from gapless.core.provenance import Provenance
from gapless.core.results import AuditResult, Result, SensorResult, from_json, to_json
from gapless.data.catalogue import Catalogue

RESULT = "result.json"
SENSOR = "identify-sensor"
AUDIT = "randomize-audit"
ID_PATTERN = "[0-9a-f]{32}"


@cache
def code_version() -> str:
    """Returns the version of gapless with a digest of its source files, such as `0.1.0+3f2a9c01d4e5`."""
    folder = Path(gapless.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{gapless.__version__}+{digest.hexdigest()[:12]}"


def store_result(
    catalogue: Catalogue, result: Result, provenance: Provenance, files: Mapping[str, bytes] | None = None
) -> str:
    """Stores a result, with the files that belong to it, under its verb; returns its id.

    The provenance gets this `code_version`. The noise of sensors goes under `SENSOR`, as it is no fit of the model; an
    audit goes under `AUDIT`, as it is no ranges.
    """
    data = {key: value for key, value in to_json(result).items() if key != "id"}  # the id follows from the content
    content = {**(files or {}), RESULT: json.dumps(data, indent=1).encode()}
    kind = {SensorResult: SENSOR, AuditResult: AUDIT}.get(type(result), result.verb)
    return catalogue.add_artefact(kind, content, replace(provenance, code_version=code_version()))


def store_result_if_possible(
    catalogue: Catalogue, result: Result, provenance: Provenance, files: Mapping[str, bytes] | None = None
) -> str | None:
    """Stores a result as `store_result` does; where that fails, as on a full disk, warns and returns None.

    What took long to find is not lost then: whoever asked still gets the result.
    """
    try:
        return store_result(catalogue, result, provenance, files)
    except CatalogueError as error:
        warn_not_kept(f"this result of {result.verb}", error)
        return None


def warn_not_kept(what: str, error: CatalogueError) -> None:
    """Warns that something is not in the catalogue."""
    text = f"{what} is not in the catalogue, so later verbs and `report` do not see it: {error}"
    warnings.warn(text, NotKeptWarning, stacklevel=3)


def load_stored_result(catalogue: Catalogue, identity: str) -> Result:
    """Returns a stored result, with its id."""
    data = json.loads(result_path(catalogue, identity).read_text(encoding="utf-8"))
    return from_json({**data, "id": identity})


def result_path(catalogue: Catalogue, identity: str) -> Path:
    """Returns the file of a stored result: what other verbs take as `fit` or `ranges`."""
    return catalogue.artefact_path(identity, RESULT)


def newest_result(catalogue: Catalogue, verb: str) -> str | None:
    """Returns the id of the result of a verb that was stored last, or None.

    Another process may store one at any moment: whoever has just made a result passes on its `id` instead.
    """
    found = catalogue.artefacts(verb)
    return found[-1].id if found else None


def find_same_result(
    catalogue: Catalogue, verb: str, provenance: Provenance, found_keys: Sequence[str] = ()
) -> str | None:
    """Returns the id of a result that the same code made from the same inputs, or None.

    `found_keys` are keys of its configuration that were found on the way, and are not compared.
    """

    def as_asked(one: Provenance) -> str:
        config = {key: value for key, value in one.config.items() if key not in found_keys}
        return replace(one, config=config).canonical()

    wanted = as_asked(replace(provenance, code_version=code_version()))
    rows = reversed(catalogue.artefacts(verb))
    return next((row.id for row in rows if as_asked(row.provenance) == wanted), None)


def artefact_ids(*paths: str | Path | None) -> tuple[str, ...]:
    """Returns the ids of the artefacts that files belong to; files from elsewhere have none, unless they say it."""
    ids: list[str] = []
    for path in (Path(path) for path in paths if path is not None):
        found = path.resolve().parent.name
        if not re.fullmatch(ID_PATTERN, found) and path.suffix == ".json":
            with suppress(OSError, ValueError, KeyError, TypeError):
                found = str(json.loads(path.read_text(encoding="utf-8"))["id"])
        ids += [found] if re.fullmatch(ID_PATTERN, found) else []
    return tuple(ids)
