"""Files that appear whole or not at all, locks that end with their process, and the files of artefacts."""

import fcntl
import hashlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from gapless.core.errors import CatalogueError


@contextmanager
def write_whole(path: Path, temporary: Path) -> Iterator[Path]:
    """Yields a path to write to in `temporary`, of the same file system; `path` appears when the block ends well."""
    unfinished = temporary / f"{uuid.uuid4().hex}{path.suffix}"
    for folder in (temporary, path.parent):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def hold_lock(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Holds a lock, which ends with the process; yields False where another one has it and `wait` is not set."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


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
        with write_whole(folder / name, temporary) as unfinished:
            unfinished.write_bytes(content[name])
