"""What every reader watches: files that are damaged, too large for the memory, or outside of the source."""

import os
import re
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from gapless.core.errors import GaplessError, LogError
from gapless.core.recording import Recording, Skipped
from gapless.core.signal import Array

MAX_MEMORY_SHARE = 0.5  # of the memory that is free, for one episode
MAX_EXACT_INTEGER = 2**53  # beyond, float64 does not hold every whole number
MAX_NAME_LENGTH = 100  # letters of a file's name, of the 255 bytes that file systems allow
RECORDING_SUFFIXES = frozenset((".bag", ".csv", ".db3", ".h5", ".hdf5", ".mcap", ".npz", ".parquet"))


def log_error(text: str, path: Path) -> LogError:
    """Returns an error whose message is one line, with the path in brackets at its end."""
    return LogError(" ".join(f"{text} ({path})".splitlines()))


def shorten_error(error: BaseException, limit: int = 160) -> str:
    """Returns what other people's code says of damage, as part of a line."""
    return " ".join(str(error).split())[:limit] or type(error).__name__


@contextmanager
def explain_damage(path: Path, kind: str) -> Iterator[None]:
    """Turns whatever a reader raises of a damaged file into one line; errors of gapless pass.

    Readers of other people's bytes raise nearly anything, so that nearly everything is taken for damage here: keep
    the block to calls that read. Sizes that damage made up ask for memory that nobody has.
    """
    try:
        yield
    except GaplessError:
        raise
    except MemoryError:
        text = f"as {kind}, it asks for more memory than is free, as a damaged file does"
        raise log_error(f"{text}: record or save it again, or split it", path) from None
    except Exception as error:
        reason = shorten_error(error)
        raise log_error(f"not readable as {kind}, perhaps cut off ({reason}): record or save it again", path) from None


def skip_damaged(
    what: str, found: Iterator[Recording | Skipped], path: Path, kind: str
) -> Iterator[Recording | Skipped]:
    """Yields what is found of a file; where it is damaged, the name of what is read and why it is left out."""
    try:
        with explain_damage(path, kind):
            yield from found
    except LogError as error:
        yield Skipped(what, str(error))


def list_files(source: Path, suffixes: Container[str]) -> list[Path]:
    """Returns the file itself, or those of a folder, whose names end so; sorted, and none that is hidden."""
    files = sorted(source.iterdir()) if source.is_dir() else [source]
    found = [file for file in files if file.suffix.lower() in suffixes and not file.name.startswith(".")]
    return [file for file in found if not file.is_dir()]


def read_files(
    files: Iterable[Path], source: Path, read: Callable[[Path], Iterator[Recording | Skipped]]
) -> Iterator[Recording | Skipped]:
    """Yields what is in each file of a source; what is wrong with one file of a folder does not stop the others.

    Raises:
        LogError: If the folder holds recordings of other formats too, or a file leads out of it.
    """
    files = list(files)
    if files != [source]:
        kinds = {file.suffix.lower() for file in list_files(source, RECORDING_SUFFIXES)}
        if kinds - {file.suffix.lower() for file in files}:
            kinds = sorted(kinds | {file.suffix.lower() for file in files if file.is_file()})
            raise log_error(f"a folder of {' and '.join(kinds)} files: give each format a folder of its own", source)
        for file in files:
            require_inside(source, str(file.relative_to(source)))
    for file in files:
        try:
            yield from read(file)
        except LogError as error:
            if file == source:
                raise
            yield Skipped(str(file.relative_to(source)), str(error))


def choose_name(wanted: str, taken: set[str]) -> str:
    """Returns a name that is not taken, with a number behind it where it must be, and takes it."""
    name, number = wanted, 1
    while name.lower() in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name.lower())
    return name


def choose_file_name(wanted: str, taken: set[str]) -> str:
    """Returns a name of a file, without its ending, that is not taken and that every file system allows."""
    return choose_name(re.sub(r"[^\w.+=@,() -]", "_", wanted).strip(". ")[:MAX_NAME_LENGTH] or "episode", taken)


def require_inside(folder: Path, name: str) -> Path:
    """Returns the path of a file that a data set names; raises LogError where it leads out of its folder."""
    path = folder / name
    if Path(name).is_absolute() or not path.resolve().is_relative_to(folder.resolve()):
        raise log_error(f"it names a file outside of its folder, {name!r}: correct the data set", folder)
    return path


def require_memory(num_bytes: float, path: Path) -> None:
    """Raises LogError where reading needs more than a share of the memory that is free."""
    free = read_free_memory()
    if num_bytes > MAX_MEMORY_SHARE * free:
        needs = f"one episode needs {num_bytes / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free"
        raise log_error(f"{needs}: split the file, or use a machine with more", path)


def read_free_memory() -> float:
    """Returns how much memory is free, in bytes."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            return 1024.0 * next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def convert_exactly(values: np.ndarray, column: str, path: Path) -> tuple[Array, str | None]:
    """Returns a column as float64, and the type it had (None for float64); raises LogError for what that cannot hold.

    Args:
        values: (num_rows,) of numbers or booleans.
        column: Its name.
        path: Where it was read.
    """
    kind = values.dtype.newbyteorder("=")
    if kind.kind in "iu" and values.size and max(-int(values.min()), int(values.max())) > MAX_EXACT_INTEGER:
        raise log_error(f"column {column} holds whole numbers beyond 2**53: save them as text, or delete it", path)
    if kind.kind not in "fiub" or kind.itemsize > 8:
        raise log_error(f"column {column} holds {kind}, not numbers: delete it", path)
    return values.astype(np.float64), None if kind == np.float64 else kind.name


def keep_increasing(times_s: Array) -> np.ndarray:
    """Returns the rows whose time is later than all before: what is repeated or goes backwards is left out."""
    known = np.where(np.isfinite(times_s), times_s, -np.inf)
    latest = np.maximum.accumulate(known)
    return np.flatnonzero((known > np.concatenate([[-np.inf], latest[:-1]])) & np.isfinite(times_s))
