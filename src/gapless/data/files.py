"""The files of artefacts. Each appears whole or not at all."""

import hashlib
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from gapless.core.errors import CatalogueError


def artefact_content(kind: str, content: Mapping[str, bytes]) -> bytes:
    """Returns the bytes that identify an artefact: its kind, and the name and SHA-256 of each file."""
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
    return json.dumps([kind, digests], sort_keys=True).encode()


def check_file_names(kind: str, content: Mapping[str, bytes]) -> None:
    """Raises CatalogueError for an artefact without files, and for names that are no plain relative paths with `/`."""
    if not content:
        raise CatalogueError(f"a {kind} artefact without files has no content: give at least one file")
    for name in content:
        path = PurePosixPath(name)
        plain = name == str(path) and name != "." and "\\" not in name and "\0" not in name
        if not plain or path.is_absolute() or ".." in path.parts:
            raise CatalogueError(f"a {kind} artefact has a file {name!r}: use a relative name such as fit.json")


def write_files(folder: Path, temporary: Path, content: Mapping[str, bytes]) -> None:
    """Writes those files of an artefact that are not there yet: what is there holds the same bytes."""
    for name in (name for name in content if not (folder / name).exists()):
        unfinished, path = temporary / uuid.uuid4().hex, folder / name
        for parent in (temporary, path.parent):
            parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(content[name])
        os.replace(unfinished, path)
