"""How the messages of an MCAP file, a ROS 1 bag or a ROS 2 bag are listed, whole or damaged."""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from gapless.core.errors import GaplessError
from gapless.core.recording import DESCRIPTION_KEY
from gapless.formats.ros.collecting import DESCRIPTION_TOPIC, MessageCollector
from gapless.formats.ros.decoding import MessageChannel
from gapless.formats.source import explain_damage, log_error, require_inside, require_memory

METADATA = "metadata.yaml"
METADATA_HEAD = "rosbag2_bagfile_information"
MAX_METADATA_BYTES = 2**24  # a bag's own list of topics is some kB
_RECORD, _MESSAGE = struct.Struct("<BQ"), struct.Struct("<HIQQ")  # heads of records and of messages in MCAP
_SCHEMA_KIND, _CHANNEL_KIND, _MESSAGE_KIND = 3, 4, 5
MAX_CHUNK_BYTES = 2**31  # uncompressed; recorders write chunks of about 1 MB


@contextmanager
def _explain_memory(path: Path) -> Iterator[None]:
    """Turns a lack of memory, for which damaged lengths ask too, into one line."""
    try:
        yield
    except MemoryError:
        raise log_error("reading it needs more memory than there is: split it, or record it again", path) from None


class _WholeFile:
    """A file that refuses to read beyond its end, so that damaged lengths take no memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = os.fstat(file.fileno()).st_size

    def read(self, count: int) -> bytes:
        """Returns that many bytes."""
        if count > self._left:
            raise EOFError("a record is longer than the rest of the file")
        self._left -= count
        return self._file.read(count)


def read_mcap_file(path: Path, collector: MessageCollector) -> None:
    """Adds the messages of an MCAP file up to its end, or to where it is damaged."""
    from mcap.records import Channel, Chunk, DataEnd, Message, Metadata, Schema
    from mcap.stream_reader import StreamReader

    schemas: dict[int, Any] = {}
    channels: dict[int, MessageChannel] = {}
    num_records = 0

    def take(record: Any) -> None:
        if isinstance(record, Message):
            record = (record.channel_id, record.sequence, record.log_time, record.publish_time, record.data)
        if isinstance(record, tuple):
            number, _, receipt_ns, publish_ns, data = record
            collector.add(channels[number], receipt_ns, data, publish_ns)
        elif isinstance(record, Schema):
            schemas[record.id] = record
        elif isinstance(record, Channel) and record.id not in channels:
            schema = schemas.get(record.schema_id)
            name, encoding, data = (schema.name, schema.encoding, schema.data) if schema else ("", "", b"")
            channels[record.id] = MessageChannel(record.topic, name, record.message_encoding, encoding, data)
        elif isinstance(record, Metadata) and record.name == DESCRIPTION_KEY:
            collector.read_description(record.metadata.get(DESCRIPTION_KEY, "{}"))

    with path.open("rb") as file:
        try:
            for record in StreamReader(_WholeFile(file), emit_chunks=True, validate_crcs=True).records:  # type: ignore[arg-type]
                for each in _open_chunk(record, path, collector) if isinstance(record, Chunk) else [record]:
                    take(each)
                num_records += 1
                if isinstance(record, DataEnd):
                    return
        except GaplessError:
            raise
        except Exception as error:
            reason = " ".join(str(error).split())[:160] or type(error).__name__
            if num_records < 2:  # the header
                raise log_error(f"not readable as MCAP ({reason}): record or save it again", path) from None
            collector.skipped["the rest of the file"] = f"it is cut off or damaged ({reason})"


def _open_chunk(chunk: Any, path: Path, collector: MessageCollector) -> Iterator[Any]:
    """Yields the records of a chunk; none, and a note of it, where the chunk is damaged."""
    from mcap.stream_reader import get_chunk_data_stream

    try:
        if chunk.uncompressed_size > MAX_CHUNK_BYTES:
            raise ValueError(f"its size is given as {chunk.uncompressed_size} bytes")
        require_memory(2 * chunk.uncompressed_size, path)
        stream, length = get_chunk_data_stream(chunk, validate_crc=True)
        data = stream.read(length)
    except GaplessError:
        raise
    except (Exception, MemoryError) as error:
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        collector.skipped[f"the chunk at {chunk.message_start_time} ns"] = f"it is damaged ({reason})"
        return
    yield from _split_chunk(data)


def _split_chunk(data: bytes) -> Iterator[Any]:
    """Yields the records of a chunk: messages as tuples, some ten times as fast as by the library."""
    from mcap.data_stream import ReadDataStream
    from mcap.records import Channel, Schema

    place = 0
    while place < len(data):
        kind, length = _RECORD.unpack_from(data, place)
        place, end = place + _RECORD.size, place + _RECORD.size + length
        if kind == _MESSAGE_KIND:
            yield *_MESSAGE.unpack_from(data, place), data[place + _MESSAGE.size : end]
        elif kind in (_SCHEMA_KIND, _CHANNEL_KIND):
            made = Schema if kind == _SCHEMA_KIND else Channel
            yield made.read(ReadDataStream(BytesIO(data[place:end])))
        place = end


def read_rosbag1_file(path: Path, collector: MessageCollector) -> None:
    """Adds the messages of a ROS 1 bag."""
    from rosbags.rosbag1 import Reader

    with explain_damage(path, "ROS 1 bag"), _explain_memory(path), Reader(path) as reader:
        _read_connections(reader, collector, "ros1", "ros1msg")


def read_rosbag2_folder(path: Path, collector: MessageCollector) -> None:
    """Adds the messages of a ROS 2 bag: a folder with metadata and the files that these name."""
    from rosbags.rosbag2 import Reader

    with explain_damage(path / METADATA, "metadata of a ROS 2 bag"):
        if (path / METADATA).stat().st_size > MAX_METADATA_BYTES:
            raise log_error("the metadata of a bag are larger than 16 MB: record it again", path / METADATA)
        said = yaml.safe_load((path / METADATA).read_text(encoding="utf-8"))[METADATA_HEAD]
        files = [require_inside(path, name) for name in said["relative_file_paths"]]
        custom = said.get("custom_data") or {}
        is_plain_mcap = said["storage_identifier"] == "mcap" and not said.get("compression_mode")
        if DESCRIPTION_KEY in custom:
            collector.read_description(custom[DESCRIPTION_KEY])
    if missing := [file for file in files if not file.is_file()]:
        raise log_error("the bag names a file that is not there: copy it into the bag, or delete its entry", missing[0])
    if is_plain_mcap:
        for file in files:
            read_mcap_file(file, collector)
        return
    with explain_damage(path, "ROS 2 bag"), _explain_memory(path), Reader(path) as reader:
        _read_connections(reader, collector, "cdr", "ros2msg")


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
    wanted.sort(key=lambda each: each.topic != DESCRIPTION_TOPIC)
    for connection, time_ns, data in reader.messages(wanted) if wanted else ():
        collector.add(channels[connection.id], time_ns, data)
