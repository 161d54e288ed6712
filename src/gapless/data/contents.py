"""The files of an artefact: one folder each, whole or not there."""

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from gapless.core.errors import CatalogueError


def content_bytes(kind: str, content: Mapping[str, bytes]) -> bytes:
    """Returns the bytes that identify an artefact: its kind, and the name and SHA-256 of each file."""
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
    return json.dumps([kind, digests], sort_keys=True).encode()


def check_names(kind: str, content: Mapping[str, bytes]) -> None:
    """Refuses an artefact without files, and files that would lie outside its folder.

    Raises:
        CatalogueError: If a name is not a plain relative path with `/`.
    """
    if not content:
        raise CatalogueError(f"a {kind} artefact without files has no content: give at least one file")
    for name in content:
        path = PurePosixPath(name)
        plain = name == str(path) and name != "." and "\\" not in name and "\0" not in name
        if not plain or path.is_absolute() or ".." in path.parts:
            raise CatalogueError(f"a {kind} artefact has a file {name!r}: use a relative name such as fit.json")


def write_content(folder: Path, temporary: Path, content: Mapping[str, bytes]) -> None:
    """Writes the files of an artefact, all or none.

    Args:
        folder: Where they shall lie. If it is there already it holds the same files, and is left alone.
        temporary: A folder of the same file system for the unfinished one.
        content: File name -> bytes.
    """
    unfinished = temporary / uuid.uuid4().hex
    for name, data in content.items():
        path = unfinished / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.rename(unfinished, folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(unfinished)  # another process was first, with the same bytes
