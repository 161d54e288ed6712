"""Looking at where results will go before the work begins."""

import os
import shutil
from pathlib import Path

from gapless.core.errors import InputError

MIN_FREE_BYTES = 50_000_000  # results and their samples take a few MB each; a disk with less is about to be full


def require_space(folder: Path) -> None:
    """Raises an `InputError` if the disk of a folder has no room for results: no work of hours ends at a full disk."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return  # no such folder, or a file system that does not say
    if free < MIN_FREE_BYTES:
        needed = f"results need {MIN_FREE_BYTES / 1e6:.0f} MB"
        raise InputError(f"only {free / 1e6:.1f} MB free on this disk, {needed}: free some space first: {folder}")


def require_writable(path: Path, option: str) -> Path:
    """Returns a file's path after a look at its folder: hours of work must not end at a typing error.

    If nothing can be written there, an `InputError` names the option.
    """
    if path.is_dir():
        raise InputError(f"{option}: this is a folder: name a file in it: {path}")
    if not path.parent.is_dir():
        raise InputError(f"{option}: no such folder: make it first: {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{option}: no permission to write: {path}")
    require_space(path.parent)
    return path
