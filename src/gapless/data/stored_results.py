"""Keeps the results of verbs in the catalogue, and finds them again."""

import json
import re
import warnings
from collections.abc import Mapping
from pathlib import Path

from gapless.core.errors import CatalogueError, NotKeptWarning
from gapless.core.provenance import Provenance
from gapless.core.results import AuditResult, Result, SensorResult, from_json, to_json
from gapless.data.catalogue import Catalogue

RESULT = "result.json"
SENSOR = "identify-sensor"
AUDIT = "randomize-audit"


def store_result(
    catalogue: Catalogue, result: Result, provenance: Provenance, files: Mapping[str, bytes] | None = None
) -> str:
    """Enters a result, with the files that belong to it, under its verb; returns its id.

    The noise of sensors, which `identify --sensor` finds, goes under `SENSOR`: it is no fit of the model; an audit, of
    `randomize --audit`, under `AUDIT`: it is no ranges.
    """
    content = {**(files or {}), RESULT: json.dumps(to_json(result), indent=1).encode()}
    kind = {SensorResult: SENSOR, AuditResult: AUDIT}.get(type(result), result.verb)
    return catalogue.add_artefact(kind, content, provenance)


def store_result_if_possible(
    catalogue: Catalogue, result: Result, provenance: Provenance, files: Mapping[str, bytes] | None = None
) -> str | None:
    """Enters a result as `store_result` does; where that fails, as on a full disk, warns and returns None.

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
    """Returns a kept result."""
    return from_json(json.loads(catalogue.artefact_path(identity, RESULT).read_text(encoding="utf-8")))


def newest_result(catalogue: Catalogue, verb: str) -> str | None:
    """Returns the id of a verb's newest result, or None."""
    found = catalogue.artefacts(verb)
    return found[-1].id if found else None


def find_same_result(catalogue: Catalogue, verb: str, provenance: Provenance) -> str | None:
    """Returns the id of a result that was made in the very same way, or None."""
    wanted = provenance.canonical()
    for row in reversed(catalogue.artefacts(verb)):
        if row.provenance.canonical() == wanted:
            return row.id
    return None


def artefact_ids(*paths: str | Path | None) -> tuple[str, ...]:
    """Returns the ids of the artefacts that files belong to; files from elsewhere have none."""
    names = [Path(path).resolve().parent.name for path in paths if path is not None]
    return tuple(name for name in names if re.fullmatch(r"[0-9a-f]{32}", name))
