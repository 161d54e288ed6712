"""How the messages of an MCAP file are read, with or without its index, whole or damaged."""

import os
import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from gapless.core.errors import GaplessError
from gapless.core.recording import DESCRIPTION_KEY
from gapless.formats.ros.collecting import MessageCollector
from gapless.formats.ros.compression import MAX_BLOCK_BYTES, unpack_block
from gapless.formats.ros.decoding import MessageChannel
from gapless.formats.source import log_error, shorten_error

_RECORD, _MESSAGE = struct.Struct("<BQ"), struct.Struct("<HIQQ")  # heads of records and of messages
_SCHEMA_KIND, _CHANNEL_KIND, _MESSAGE_KIND = 3, 4, 5
_MAX_SUMMARY_RECORD_BYTES = 2**26  # schemas are some kB


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
    from mcap.records import Chunk, DataEnd
    from mcap.stream_reader import StreamReader

    num_records = 0
    with path.open("rb") as file:
        taker = _RecordTaker(collector, file)
        try:
            for record in StreamReader(_WholeFile(file), emit_chunks=True, validate_crcs=True).records:  # type: ignore[arg-type]
                for each in _open_chunk(record, collector) if isinstance(record, Chunk) else [record]:
                    taker.take(each)
                num_records += 1
                if isinstance(record, DataEnd):
                    return
        except GaplessError:
            raise
        except Exception as error:
            if num_records < 2:  # the header
                reason = shorten_error(error)
                raise log_error(f"not readable as MCAP ({reason}): record or save it again", path) from None
            collector.skipped[f"the rest of {path.name}"] = f"it is cut off or damaged ({shorten_error(error)})"


class _RecordTaker:
    """Gives messages to a collector, with the channel that an earlier record or the file's summary describes."""

    def __init__(self, collector: MessageCollector, file: BinaryIO) -> None:
        self._collector = collector
        self._schemas: dict[int, Any] = {}
        self._channels: dict[int, MessageChannel] = {}
        self._read_summary(file)

    def _read_summary(self, file: BinaryIO) -> None:
        """Takes schemas and channels from the end of the file, if it is there, in case their first chunk is damaged."""
        from mcap.reader import SeekingReader

        try:
            summary = SeekingReader(file, record_size_limit=_MAX_SUMMARY_RECORD_BYTES).get_summary()
            for record in (*summary.schemas.values(), *summary.channels.values()) if summary else ():
                self.take(record)
        except Exception:  # the file is cut off: its records say it all again
            self._schemas, self._channels = {}, {}
        file.seek(0)

    def take(self, record: Any) -> None:
        """Takes one record; messages of a chunk are tuples."""
        from mcap.records import Channel, Message, Metadata, Schema

        if isinstance(record, Message):
            record = (record.channel_id, record.sequence, record.log_time, record.publish_time, record.data)
        if isinstance(record, tuple):
            number, _, receipt_ns, publish_ns, data = record
            if number in self._channels:
                self._collector.add(self._channels[number], receipt_ns, data, publish_ns)
            else:
                self._collector.skipped[f"channel {number}"] = "the file does not describe it: record it again"
        elif isinstance(record, Schema):
            self._schemas[record.id] = record
        elif isinstance(record, Channel) and record.id not in self._channels:
            schema = self._schemas.get(record.schema_id)
            name, encoding, data = (schema.name, schema.encoding, schema.data) if schema else ("", "", b"")
            self._channels[record.id] = MessageChannel(record.topic, name, record.message_encoding, encoding, data)
        elif isinstance(record, Metadata) and record.name == DESCRIPTION_KEY:
            self._collector.read_description(record.metadata.get(DESCRIPTION_KEY, "{}"))


def _open_chunk(chunk: Any, collector: MessageCollector) -> Iterator[Any]:
    """Yields the records of a chunk; up to where it is damaged, with a note of that."""
    try:
        if chunk.uncompressed_size > MAX_BLOCK_BYTES:
            raise OSError(f"its size is given as {chunk.uncompressed_size} bytes")
        data = unpack_block(chunk.compression, chunk.data, chunk.uncompressed_size)
        if chunk.uncompressed_crc and zlib.crc32(data) != chunk.uncompressed_crc:
            raise OSError("its crc does not match")
        yield from _split_chunk(data)
    except Exception as error:
        what = f"the chunk at {chunk.message_start_time} ns"
        collector.skipped[what] = f"it is damaged ({shorten_error(error)})"


def _split_chunk(data: bytes) -> Iterator[Any]:
    """Yields the records of a chunk: messages as tuples, some ten times as fast as by the library."""
    from mcap.data_stream import ReadDataStream
    from mcap.records import Channel, Schema

    place = 0
    while place < len(data):
        kind, length = _RECORD.unpack_from(data, place)
        place, end = place + _RECORD.size, place + _RECORD.size + length
        if end > len(data):
            raise EOFError("a record is longer than its chunk")
        if kind == _MESSAGE_KIND:
            yield *_MESSAGE.unpack_from(data, place), data[place + _MESSAGE.size : end]
        elif kind in (_SCHEMA_KIND, _CHANNEL_KIND):
            made = Schema if kind == _SCHEMA_KIND else Channel
            yield made.read(ReadDataStream(BytesIO(data[place:end])))
        place = end
