"""Video files of recordings, each kept once under a name that follows from its content."""

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gapless.core.errors import CatalogueError
from gapless.core.recording import Video
from gapless.data.files import write_whole


def identify_videos(videos: Sequence[Video], known: dict[Path, str]) -> list[dict[str, Any]]:
    """Returns what the row of a recording says of its videos: camera, file, part of it.

    Args:
        videos: The videos.
        known: Names of files that were read before, by path; others are added.

    Raises:
        CatalogueError: If a file cannot be read.
    """
    said = list[dict[str, Any]]()
    for video in videos:
        if video.path not in known:
            known[video.path] = _content_name(video.path)
        about = {"camera": video.camera, "file": known[video.path]}
        said.append({**about, "begin_s": video.begin_s, "end_s": video.end_s})
    return said


def restore_videos(said: Sequence[Mapping[str, Any]], folder: Path) -> tuple[Video, ...]:
    """Returns the videos of a recording, with where their files lie now."""
    return tuple(Video(v["camera"], folder / v["file"], v["begin_s"], v["end_s"]) for v in said)


def keep_media(known: Mapping[Path, str], folder: Path, temporary: Path) -> None:
    """Puts files (path -> name) into the folder, as hard links where the file system allows that, else as copies."""
    for source, name in known.items():
        if not (folder / name).exists():
            with write_whole(folder / name, temporary) as unfinished:
                try:
                    os.link(source.resolve(), unfinished)
                except OSError:
                    shutil.copyfile(source, unfinished)


def _content_name(path: Path) -> str:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        text = f"a video cannot be read ({error.strerror or error}): record without it, or put the file there"
        raise CatalogueError(f"{text}: {path}") from None
    return f"{digest[:2]}/{digest}{path.suffix}"
