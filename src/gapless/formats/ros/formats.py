"""MCAP files, ROS 1 bags and ROS 2 bags as formats: one file or bag, or a folder of them."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from gapless.core.recording import Recording, Skipped
from gapless.formats.format import Format, ReadOptions
from gapless.formats.ros.bags import METADATA, METADATA_HEAD, read_rosbag1_file, read_rosbag2
from gapless.formats.ros.collecting import MessageCollector
from gapless.formats.ros.mcap_file import MAGIC, read_mcap_file
from gapless.formats.ros.writing import write_mcap, write_rosbag1, write_rosbag2
from gapless.formats.source import list_files, read_files

_ListPaths = Callable[[Path], list[Path]]  # source -> the recordings that it is
_ReadOne = Callable[[Path, MessageCollector], None]


def _list_files(suffix: str, magic: bytes, source: Path) -> list[Path]:
    """Returns the files of a source; a single one may be known by its first bytes."""
    if (source / METADATA).is_file():
        return []  # a bag, whose files are no recordings by themselves
    if found := list_files(source, (suffix,)):
        return found
    if not source.is_file():
        return []
    with source.open("rb") as file:
        return [source] if file.read(len(magic)) == magic else []


def _list_bags(source: Path) -> list[Path]:
    if source.is_file():
        return list_files(source, (".db3",))
    return [source] if (source / METADATA).is_file() else sorted(each.parent for each in source.glob(f"*/{METADATA}"))


def _is_recording(path: Path) -> bool:
    if path.is_file():
        return True
    with (path / METADATA).open(encoding="utf-8", errors="replace") as file:
        return METADATA_HEAD in file.read(4096)


def _read(
    list_paths: _ListPaths, read_one: _ReadOne, source: Path, options: ReadOptions
) -> Iterator[Recording | Skipped]:
    yield from read_files(list_paths(source), source, partial(_read_one, read_one, options))


def _read_one(read_one: _ReadOne, options: ReadOptions, path: Path) -> Iterator[Recording | Skipped]:
    name = path.stem if path.is_file() else path.resolve().name
    if name not in options.known:
        collector = MessageCollector(name, path, options.time)
        read_one(path, collector)
        yield from collector.finish()


def _is_source(list_paths: _ListPaths, path: Path) -> bool:
    return any(map(_is_recording, list_paths(path)))


def _make_format(name: str, title: str, list_paths: _ListPaths, read_one: _ReadOne, write: Any, *more: str) -> Format:
    is_source, read = partial(_is_source, list_paths), partial(_read, list_paths, read_one)
    return Format(name, title, is_source, read, write, modules=("rosbags", *more))


_list_mcap, _list_rosbag1 = partial(_list_files, ".mcap", MAGIC), partial(_list_files, ".bag", b"#ROSBAG V")
MCAP = _make_format("mcap", "MCAP file", _list_mcap, read_mcap_file, write_mcap, "mcap", "google.protobuf")
ROSBAG1 = _make_format("rosbag1", "ROS 1 bag", _list_rosbag1, read_rosbag1_file, write_rosbag1)
ROSBAG2 = _make_format("rosbag2", "ROS 2 bag", _list_bags, read_rosbag2, write_rosbag2, "mcap")
