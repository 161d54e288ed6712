"""TFRecord files and the messages `tf.train.Example` in them: framed with checksums, and parsed by hand."""

import math
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import BinaryIO

import numpy as np

from gapless.formats.source import log_error, require_memory

MIN_LANES_BYTES = 4096  # of a record whose parts have their checksums computed side by side
MAX_VARINT_BYTES = 10  # of 64 bits, 7 in each
_MASK_DELTA = 0xA282EAD8  # of the format: a checksum of data that holds checksums
_KINDS = {1: "bytes", 2: "float", 3: "int64"}  # field of tf.train.StepFeature -> what its list holds


@cache
def _make_table() -> np.ndarray:
    """Returns the CRC-32C (Castagnoli) of each byte."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1)
    return table


def compute_crc(data: bytes) -> int:
    """Returns the masked CRC-32C of a record, as TFRecord files keep it.

    A checksum is linear in its start value, so that parts are computed at once, and joined by what as many zero bytes
    do to each bit: 32 more lanes.
    """
    table = _make_table()
    num_lanes = math.isqrt(len(data)) if len(data) > MIN_LANES_BYTES else 0
    length = len(data) // max(num_lanes, 1) * bool(num_lanes)
    columns = np.ascontiguousarray(np.frombuffer(data, np.uint8, num_lanes * length).reshape(num_lanes, length).T)
    state = np.concatenate([np.zeros(num_lanes, np.uint32), np.uint32(1) << np.arange(32, dtype=np.uint32)])
    for column in columns:
        byte = state & 0xFF
        byte[:num_lanes] ^= column
        state = table[byte] ^ (state >> 8)
    crc, shift = 0xFFFFFFFF, [int(bit) for bit in state[num_lanes:]]
    for part in state[:num_lanes].tolist():
        joined = part
        for bit in range(32):
            joined ^= shift[bit] if crc >> bit & 1 else 0
        crc = joined
    for byte in data[num_lanes * length :]:
        crc = int(table[(crc ^ byte) & 0xFF]) ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def read_records(path: Path) -> Iterator[bytes | None]:
    """Yields the records of a file, None for one whose checksum is wrong; raises LogError where the next is lost."""
    left = path.stat().st_size
    with path.open("rb") as file:
        while left:
            head = file.read(12)
            if len(head) < 12 or compute_crc(head[:8]) != struct.unpack("<I", head[8:])[0]:
                raise log_error(
                    f"damaged {left} bytes before its end, what follows is lost: download or make it again", path
                )
            (length,) = struct.unpack("<Q", head[:8])
            if length + 16 > left:
                raise log_error(
                    f"it is cut off, {length + 16 - left} bytes are missing: download or make it again", path
                )
            require_memory(4.0 * length, path)
            data, left = file.read(length), left - length - 16
            yield data if compute_crc(data) == struct.unpack("<I", file.read(4))[0] else None


def write_record(file: BinaryIO, data: bytes) -> None:
    """Writes a record with the checksums of its length and of itself."""
    head = struct.pack("<Q", len(data))
    file.write(head + struct.pack("<I", compute_crc(head)) + data + struct.pack("<I", compute_crc(data)))


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    for _ in range(MAX_VARINT_BYTES):
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at
    raise ValueError("a number is longer than 64 bits: download or make it again")


def _read_fields(data: memoryview) -> Iterator[tuple[int, memoryview | int]]:
    """Yields the fields of a message: number, and its bytes, or its value where it is a number."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        if key & 7 == 0:
            value, at = _read_varint(data, at)
            yield key >> 3, value
            continue
        size, at = _read_varint(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
        if at + size > len(data):
            raise ValueError("a field is longer than its message: download or make it again")
        yield key >> 3, data[at : at + size]
        at += size


def parse_example(data: bytes) -> dict[str, np.ndarray | list[bytes]]:
    """Returns the features of a `tf.train.Example`: float32 or int64 arrays, or lists of bytes."""
    found: dict[str, np.ndarray | list[bytes]] = {}
    for number, features in _read_fields(memoryview(data)):
        for _, entry in _read_fields(features) if number == 1 and isinstance(features, memoryview) else ():
            about = dict(_read_fields(entry)) if isinstance(entry, memoryview) else {}
            name, feature = about.get(1, b""), about.get(2, memoryview(b""))
            if isinstance(name, memoryview) and isinstance(feature, memoryview):
                found[bytes(name).decode()] = _parse_feature(feature)
    return found


def _parse_feature(feature: memoryview) -> np.ndarray | list[bytes]:
    for kind, values in _read_fields(feature):
        if not isinstance(values, memoryview) or kind not in _KINDS:
            break
        parts = [value for number, value in _read_fields(values) if number == 1]
        if _KINDS[kind] == "bytes":
            return [bytes(part) for part in parts if isinstance(part, memoryview)]
        if _KINDS[kind] == "float":
            return np.frombuffer(b"".join(part for part in parts if isinstance(part, memoryview)), "<f4")
        single = [part for part in parts if isinstance(part, int)]
        return np.array(single, np.uint64).view(np.int64) if single else _parse_varints(b"".join(parts))  # pyright: ignore
    return []


def _parse_varints(data: bytes) -> np.ndarray:
    """Returns the numbers in a packed list of them, (num_numbers,) int64."""
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw < 0x80)
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)[: len(ends)]
    values = np.zeros(len(ends), np.uint64)
    for place in range(MAX_VARINT_BYTES):
        at = np.minimum(starts + place, ends)
        bits = (raw[at] & 0x7F).astype(np.uint64) << np.uint64(7 * place)
        values |= np.where(starts + place <= ends, bits, np.uint64(0))
    return values.view(np.int64)


def _write_varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _write_field(number: int, data: bytes) -> bytes:
    return _write_varint(number << 3 | 2) + _write_varint(len(data)) + data


def write_example(features: Mapping[str, np.ndarray | list[bytes]]) -> bytes:
    """Returns a `tf.train.Example` of float32 or int64 arrays, or lists of bytes."""
    entries: list[bytes] = []
    for name, values in features.items():
        if isinstance(values, list):
            feature = _write_field(1, b"".join(_write_field(1, value) for value in values))
        elif values.dtype == np.float32:
            feature = _write_field(2, _write_field(1, values.astype("<f4").tobytes()))
        else:
            whole = values.astype(np.int64).view(np.uint64).ravel().tolist()
            feature = _write_field(3, _write_field(1, b"".join(map(_write_varint, whole))))
        entries.append(_write_field(1, _write_field(1, name.encode()) + _write_field(2, feature)))
    return _write_field(1, b"".join(entries))
