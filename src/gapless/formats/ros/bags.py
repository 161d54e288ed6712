"""How the messages of a ROS 1 bag or a ROS 2 bag are read."""

import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from gapless.core.recording import DESCRIPTION_KEY
from gapless.formats.ros.collecting import DESCRIPTION_TOPIC, MessageCollector
from gapless.formats.ros.compression import unpack_block, unpack_stream
from gapless.formats.ros.decoding import MessageChannel
from gapless.formats.ros.mcap_file import read_mcap_file
from gapless.formats.source import explain_damage, log_error, require_inside

METADATA = "metadata.yaml"
METADATA_HEAD = "rosbag2_bagfile_information"
MAX_METADATA_BYTES = 2**24  # a bag's own list of topics is some kB
MAX_DISK_SHARE = 0.5  # of what is free for temporary files, for bags that are packed as a whole


def read_rosbag1_file(path: Path, collector: MessageCollector) -> None:
    """Adds the messages of a ROS 1 bag."""
    from rosbags.rosbag1 import Reader
    from rosbags.rosbag1.reader import decompressors

    kinds = {unpack: kind for kind, unpack in decompressors.items()}
    with explain_damage(path, "ROS 1 bag"), Reader(path) as reader:
        for place, chunk in list(reader.chunks.items()):  # the library unpacks without a limit
            reader.chunks[place] = chunk._replace(decompressor=partial(unpack_block, kinds[chunk.decompressor]))
        _read_connections(reader, collector, "ros1", "ros1msg")


def read_rosbag2(path: Path, collector: MessageCollector) -> None:
    """Adds the messages of a ROS 2 bag: a folder with metadata and the files that these name, or one such file."""
    from rosbags.rosbag2 import Reader

    if path.is_dir():
        files, said = _read_metadata(path)
        custom = said.get("custom_data")
        if isinstance(custom, dict) and DESCRIPTION_KEY in custom:
            with explain_damage(path / METADATA, "metadata of a ROS 2 bag"):
                collector.read_description(custom[DESCRIPTION_KEY])
        packed = str(said.get("compression_mode") or "none").lower()
        if said.get("storage_identifier") == "mcap" and packed == "none":
            for file in files:
                read_mcap_file(file, collector)
            return
        if packed == "file":
            _require_disk(files, path)
    with explain_damage(path, "ROS 2 bag"), Reader(path) as reader:
        _read_connections(reader, collector, "cdr", "ros2msg")


def _read_metadata(path: Path) -> tuple[list[Path], dict[str, Any]]:
    """Returns the files of a bag, which are there and inside its folder, and its metadata."""
    with explain_damage(path / METADATA, "metadata of a ROS 2 bag"):
        if (path / METADATA).stat().st_size > MAX_METADATA_BYTES:
            raise log_error("the metadata of a bag are larger than 16 MB: record it again", path / METADATA)
        said = yaml.safe_load((path / METADATA).read_text(encoding="utf-8"))[METADATA_HEAD]
        files = [require_inside(path, name) for name in said["relative_file_paths"]]
    if missing := [file for file in files if not file.is_file()]:
        raise log_error("the bag names a file that is not there: copy it into the bag, or delete its entry", missing[0])
    return files, said


def _require_disk(files: list[Path], path: Path) -> None:
    """Raises LogError where the files of a bag, unpacked as the library does, fill the disk."""
    left = MAX_DISK_SHARE * shutil.disk_usage(tempfile.gettempdir()).free
    with explain_damage(path, "ROS 2 bag"):
        for file in files:
            left -= sum(map(len, unpack_stream("zstd", str(file), left)))


def _read_connections(reader: Any, collector: MessageCollector, encoding: str, schema_encoding: str) -> None:
    from rosbags.interfaces import MessageDefinitionFormat

    channels: dict[int, MessageChannel] = {}
    wanted = []
    for each in reader.connections:
        is_idl = each.msgdef.format == MessageDefinitionFormat.IDL
        schema = each.msgdef.data.encode()
        channel = MessageChannel(each.topic, each.msgtype, encoding, "ros2idl" if is_idl else schema_encoding, schema)
        if collector.accept(channel):
            channels[each.id] = channel
            wanted.append(each)
    wanted.sort(key=lambda each: each.topic != DESCRIPTION_TOPIC)  # first, of messages at one time
    for connection, time_ns, data in reader.messages(wanted) if wanted else ():
        collector.add(channels[connection.id], time_ns, data)
