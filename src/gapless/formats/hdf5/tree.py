"""HDF5 files: opened and walked without following links, arrays read after a look at the memory."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gapless.core.errors import LogError
from gapless.core.recording import Recording, Skipped
from gapless.formats.arrays import Rows, refuse_images
from gapless.formats.source import explain_damage, require_memory, skip_damaged

MAX_DEPTH = 8  # of groups in groups: a file may link a group into itself
MAX_TEXTS = 100_000  # of one array, looked at to see whether they are all the same
SUFFIXES = (".hdf5", ".h5")


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """Opens a file for reading; whatever is wrong with it is a LogError of one line."""
    import h5py

    with explain_damage(path, "HDF5"), h5py.File(path, "r", locking=False) as file:
        yield file


def find_group(group: Any, key: str) -> Any | None:
    """Returns a group inside of a group, or None where there is none, or only a link to one."""
    import h5py

    is_own = isinstance(group.get(key, getlink=True), h5py.HardLink)
    return group[key] if is_own and isinstance(group[key], h5py.Group) else None


def list_arrays(group: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yields the arrays of a group, by names such as `obs.joints`; in place of one, why it is left out."""
    import h5py

    for key in group:
        name = f"{prefix}{key}"
        item = group[key] if isinstance(group.get(key, getlink=True), h5py.HardLink) else None
        if item is None:
            yield name, "it is a link, and links are not followed: copy what it links to into its place"
        elif isinstance(item, h5py.Group) and depth < MAX_DEPTH:
            yield from list_arrays(item, f"{name}.", depth + 1)
        elif not isinstance(item, h5py.Dataset) or item.shape is None:
            yield name, f"it is no array: {type(item).__name__}"
        elif item.is_virtual or item.external:
            yield name, "its numbers lie in other files, which are not read: copy them into this one"
        else:
            yield name, item


def read_attributes(item: Any) -> dict[str, Any]:
    """Returns the attributes of a file, a group or an array as plain JSON; others than text and numbers as text."""
    return {key: _make_plain(item.attrs[key]) for key in item.attrs}


def read_arrays(
    group: Any, episode: str, path: Path, rows: Rows, names: Mapping[str, Any] | None = None
) -> Iterator[Recording | Skipped]:
    """Adds all arrays of an episode to its rows, and texts to the details; yields what is left out.

    Args:
        group: The episode.
        episode: Its name.
        path: The file.
        rows: What is read so far.
        names: Array -> names of its columns, where they are known.
    """
    arrays = dict(list_arrays(group))
    lengths = [array.shape[0] for array in arrays.values() if not isinstance(array, str) and array.shape]
    num_rows = Counter(lengths).most_common(1)[0][0] if lengths else 0
    chosen: dict[str, Any] = {}
    for name, array in arrays.items():
        if isinstance(array, str):
            yield Skipped(name, array)
        elif array.dtype.kind in "OS":
            yield from skip_damaged(f"{episode}: {name}", _read_texts(name, array, rows), path, "HDF5")
        elif array.shape and array.shape[0] != num_rows:
            yield Skipped(f"{episode}: {name}", f"it has {array.shape[0]} rows, and the others have {num_rows}")
        else:
            try:
                refuse_images(name, array.shape, array.dtype, path)
                chosen[name] = array
            except LogError as error:
                yield Skipped(name, str(error))
    require_memory(sum(8.0 * array.size for array in chosen.values()), path)
    for name, array in chosen.items():
        better = (names or {}).get(name)
        try:
            with explain_damage(path, "HDF5"):
                if array.shape:
                    rows.add(name, array[()], path, better if isinstance(better, list) else ())
                else:
                    rows.details[name] = _make_plain(array[()])
        except LogError as error:
            yield Skipped(f"{episode}: {name}", str(error))


def _read_texts(name: str, array: Any, rows: Rows) -> Iterator[Skipped]:
    if array.size > MAX_TEXTS:
        yield Skipped(name, f"it holds {array.size} texts")
    else:
        yield from rows.add_texts(name, {_make_plain(each) for each in np.ravel(array[()])})


def _make_plain(value: Any) -> Any:
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if isinstance(value, list):
        return [_make_plain(each) for each in value]
    value = value.decode(errors="replace") if isinstance(value, bytes) else value
    return value if isinstance(value, str | int | float | None) else str(value)
