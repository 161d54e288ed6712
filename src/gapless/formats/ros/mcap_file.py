"""How the messages of an MCAP file are read, with or without its index, whole or damaged."""

import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from gapless.core.errors import GaplessError
from gapless.core.recording import DESCRIPTION_KEY
from gapless.formats.ros.collecting import MessageCollector
from gapless.formats.ros.compression import MAX_BLOCK_BYTES, unpack_block
from gapless.formats.ros.decoding import MessageChannel
from gapless.formats.source import log_error, shorten_error

MAGIC = b"\x89MCAP0\r\n"  # at the begin and the end of a file
_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _METADATA, _DATA_END = 3, 4, 5, 6, 12, 15  # kinds of records
_RECORD, _MESSAGE_HEAD = struct.Struct("<BQ"), struct.Struct("<HIQQ")
_FOOTER = struct.Struct("<BQQQI")  # the last record: kind, length, place of the summary, place of its index, checksum


def read_mcap_file(path: Path, collector: MessageCollector) -> None:
    """Adds the messages of an MCAP file up to its end, or to where it is damaged."""
    num_records, size = 0, path.stat().st_size
    with path.open("rb") as file:
        taker = _RecordTaker(collector)
        taker.take_summary(file, size)
        checksum = zlib.crc32(file.read(len(MAGIC)))
        try:
            for kind, content in _split_records(file, size - len(MAGIC)):
                if kind == _DATA_END and struct.unpack("<I", content)[0] not in (0, checksum):
                    raise ValueError("its checksum is wrong: record it again")
                if kind == _DATA_END:
                    return
                checksum = zlib.crc32(content, zlib.crc32(_RECORD.pack(kind, len(content)), checksum))
                taker.take(kind, content)
                num_records += 1
            raise EOFError("its end is missing: record it again")
        except GaplessError:
            raise
        except Exception as error:
            if num_records < 2:  # the header
                text = f"not readable as MCAP ({shorten_error(error)}): record or save it again"
                raise log_error(text, path) from None
            collector.skipped[f"the rest of {path.name}"] = f"it is cut off or damaged ({shorten_error(error)})"


def _split_records(file: BinaryIO, num_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yields kind and content of the records in so many bytes; raises EOFError for one that is longer than the rest."""
    while num_bytes > 0:
        kind, length = _RECORD.unpack(file.read(_RECORD.size))
        num_bytes -= _RECORD.size + length
        if num_bytes < 0:
            raise EOFError("a record is longer than what it is in: record it again")
        yield kind, file.read(length)


class _RecordTaker:
    """Gives messages to a collector, with the channel that an earlier record or the file's summary describes."""

    def __init__(self, collector: MessageCollector) -> None:
        self._collector = collector
        self._schemas: dict[int, Any] = {}
        self._channels: dict[int, MessageChannel] = {}

    def take_summary(self, file: BinaryIO, size: int) -> None:
        """Takes schemas and channels from the end of the file, if it is there, in case their first chunk is damaged."""
        try:
            file.seek(-_FOOTER.size - len(MAGIC), io.SEEK_END)
            place = _FOOTER.unpack(file.read(_FOOTER.size))[2]
            file.seek(place)
            num_bytes = size - len(MAGIC) - _FOOTER.size - place
            for kind, content in _split_records(file, num_bytes if place else 0):
                if kind in (_SCHEMA, _CHANNEL):
                    self.take(kind, content)
        except Exception:  # the file is cut off: its records say it all again
            self._schemas, self._channels = {}, {}
        file.seek(0)

    def take(self, kind: int, content: bytes) -> None:
        """Takes one record; of a kind that says nothing of messages, nothing."""
        if kind == _MESSAGE:
            number, _, receipt_ns, publish_ns = _MESSAGE_HEAD.unpack_from(content)
            if number in self._channels:
                self._collector.add(self._channels[number], receipt_ns, content[_MESSAGE_HEAD.size :], publish_ns)
            else:
                self._collector.skipped[f"channel {number}"] = "the file does not describe it: record it again"
            return
        from mcap import records
        from mcap.data_stream import ReadDataStream

        stream = ReadDataStream(io.BytesIO(content))
        if kind == _SCHEMA:
            schema = records.Schema.read(stream)
            self._schemas[schema.id] = schema
        elif kind == _CHANNEL:
            channel = records.Channel.read(stream)
            schema = self._schemas.get(channel.schema_id)
            about = (schema.encoding, schema.data) if schema else ()
            made = MessageChannel(channel.topic, schema.name if schema else "", channel.message_encoding, *about)
            self._channels.setdefault(channel.id, made)
        elif kind == _METADATA:
            metadata = records.Metadata.read(stream)
            if metadata.name == DESCRIPTION_KEY:
                self._collector.read_description(metadata.metadata.get(DESCRIPTION_KEY, "{}"))
        elif kind == _CHUNK:
            self._take_chunk(records.Chunk.read(stream))

    def _take_chunk(self, chunk: Any) -> None:
        """Takes the records of a chunk; up to where it is damaged, with a note of that."""
        try:
            if chunk.uncompressed_size > MAX_BLOCK_BYTES:
                raise ValueError(f"its size is given as {chunk.uncompressed_size} bytes: record it again")
            data = unpack_block(chunk.compression, chunk.data, chunk.uncompressed_size)
            if chunk.uncompressed_crc and zlib.crc32(data) != chunk.uncompressed_crc:
                raise ValueError("its crc is wrong: record it again")
            for kind, content in _split_records(io.BytesIO(data), len(data)):
                self.take(kind, content)
        except GaplessError:
            raise
        except Exception as error:
            what = f"the chunk at {chunk.message_start_time} ns"
            self._collector.skipped[what] = f"it is damaged ({shorten_error(error)})"
