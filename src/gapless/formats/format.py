"""What a format is: how its files are recognised, read and written."""

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gapless.core.recording import Recording, Skipped


@dataclass(frozen=True)
class ReadOptions:
    """How to read a source."""

    known: Container[str] = ()  # names of recordings that need not be read: they are there already
    time: str = "receipt"  # of formats that keep both: rows at the time of `receipt`, or of the `message`


@dataclass(frozen=True)
class Format:
    """One format. Functions raise LogError, with one line, for a source that is damaged as a whole.

    `read` yields each episode as soon as it is read, so that a source larger than the memory can be read; what cannot
    be read of an otherwise good source is yielded as `Skipped`. Names of recordings are the same each time a source is
    read, and differ within it.

    `write` gets recordings in the order to write them, and a path that does not exist yet. It writes to that path only;
    whoever calls it puts the whole in its place. Every number comes back bit for bit, and all that `describe_recording`
    says, from the format's own metadata fields. What the format cannot hold is yielded as `Skipped`.
    """

    name: str  # as `--format` takes it, such as `lerobot-v3.0`
    title: str  # for people, such as `LeRobot v3.0 data set`
    is_source: Callable[[Path], bool]  # whether a file or folder is of this format, by its names and first bytes
    read: Callable[[Path, ReadOptions], Iterator[Recording | Skipped]]
    write: Callable[[Iterable[Recording], Path], Iterator[Skipped]] | None = None  # None where it is only read
    suffix: str = ""  # how the name of a written file ends; empty where a folder is written
    modules: tuple[str, ...] = ()  # what it needs of the extra `formats`
