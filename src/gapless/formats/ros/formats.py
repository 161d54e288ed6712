"""MCAP files, ROS 1 bags and ROS 2 bags as formats: one file or bag, or a folder of them."""

from collections.abc import Callable, Iterator
from pathlib import Path

from gapless.core.errors import GaplessError
from gapless.core.recording import Recording, Skipped
from gapless.formats.format import Format, ReadOptions
from gapless.formats.ros.bags import METADATA, METADATA_HEAD, read_rosbag1_file, read_rosbag2
from gapless.formats.ros.collecting import MessageCollector
from gapless.formats.ros.mcap_file import read_mcap_file
from gapless.formats.ros.writing import write_mcap, write_rosbag1, write_rosbag2

_ReadOne = Callable[[Path, MessageCollector], None]
_MCAP_MAGIC = b"\x89MCAP0\r\n"
_BAG_MAGIC = b"#ROSBAG V"


def _has_magic(path: Path, suffix: str, magic: bytes) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return path.suffix == suffix or file.read(len(magic)) == magic


def _is_rosbag2(path: Path) -> bool:
    if not (path / METADATA).is_file():
        return False
    with (path / METADATA).open(encoding="utf-8", errors="replace") as file:
        return METADATA_HEAD in file.read(4096)


def _list_files(source: Path, suffix: str) -> list[Path]:
    """Returns the file itself, or those of a folder; hidden ones are no recordings."""
    if source.is_file():
        return [source]
    found = sorted(source.glob(f"*{suffix}"))
    return [each for each in found if each.is_file() and not each.name.startswith(".")]


def _list_bags(source: Path) -> list[Path]:
    if source.is_file() or (source / METADATA).is_file():
        return [source]
    return sorted(each.parent for each in source.glob(f"*/{METADATA}"))


def _read_all(
    paths: list[Path], names: list[str], read_one: _ReadOne, options: ReadOptions
) -> Iterator[Recording | Skipped]:
    """Yields the recording of each path; one damaged of many is left out, the only one raises."""
    for path, name in zip(paths, names, strict=True):
        if name in options.known:
            continue
        collector = MessageCollector(name, path, options.time)
        try:
            read_one(path, collector)
            yield from collector.finish()
        except GaplessError as error:
            if len(paths) == 1:
                raise
            yield Skipped(name, str(error))


def _make_reader(suffix: str, read_one: _ReadOne) -> Callable[[Path, ReadOptions], Iterator[Recording | Skipped]]:
    def read(source: Path, options: ReadOptions) -> Iterator[Recording | Skipped]:
        paths = _list_files(source, suffix)
        return _read_all(paths, [path.stem for path in paths], read_one, options)

    return read


def _read_rosbag2(source: Path, options: ReadOptions) -> Iterator[Recording | Skipped]:
    paths = _list_bags(source)
    names = [path.stem if path.is_file() else path.resolve().name for path in paths]
    return _read_all(paths, names, read_rosbag2, options)


MCAP = Format(
    name="mcap",
    title="MCAP file",
    is_source=lambda path: (
        _has_magic(path, ".mcap", _MCAP_MAGIC) or (not (path / METADATA).exists() and any(path.glob("*.mcap")))
    ),
    read=_make_reader(".mcap", read_mcap_file),
    write=write_mcap,
    modules=("mcap", "rosbags", "google.protobuf"),
)
ROSBAG1 = Format(
    name="rosbag1",
    title="ROS 1 bag",
    is_source=lambda path: _has_magic(path, ".bag", _BAG_MAGIC) or any(path.glob("*.bag")),
    read=_make_reader(".bag", read_rosbag1_file),
    write=write_rosbag1,
    modules=("rosbags",),
)
ROSBAG2 = Format(
    name="rosbag2",
    title="ROS 2 bag",
    is_source=lambda path: path.suffix == ".db3" if path.is_file() else any(map(_is_rosbag2, (path, *path.glob("*")))),
    read=_read_rosbag2,
    write=write_rosbag2,
    modules=("mcap", "rosbags"),
)
