"""Looking at where results will go before the work begins."""

import os
from pathlib import Path

from gapless.core.errors import InputError


def writable(path: Path, option: str) -> Path:
    """Returns a file's path after a look at its folder: hours of work must not end at a typing error.

    Raises:
        InputError: If nothing can be written there; the message names the option.
    """
    if path.is_dir():
        raise InputError(f"{option}: this is a folder: name a file in it: {path}")
    if not path.parent.is_dir():
        raise InputError(f"{option}: no such folder: make it first: {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{option}: no permission to write: {path}")
    return path
