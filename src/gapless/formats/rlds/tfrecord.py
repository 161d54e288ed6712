"""TFRecord files, framed with checksums, and the messages `tf.train.Example` in them."""

import math
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gapless.formats.source import log_error, require_memory

MIN_LANES_BYTES = 4096  # of a record whose parts have their checksums computed side by side
_MASK_DELTA = 0xA282EAD8  # of the format: a checksum of data that holds checksums
_KINDS = {"bytes": object, "float": np.float32, "int64": np.int64}  # of lists that a feature may hold


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
                text = f"damaged {left} bytes before its end, what follows is lost: download or make it again"
                raise log_error(text, path)
            (length,) = struct.unpack("<Q", head[:8])
            if length + 16 > left:
                text = f"it is cut off, {length + 16 - left} bytes are missing: download or make it again"
                raise log_error(text, path)
            require_memory(4.0 * length, path)
            data, left = file.read(length), left - length - 16
            yield data if compute_crc(data) == struct.unpack("<I", file.read(4))[0] else None


def write_record(file: BinaryIO, data: bytes) -> None:
    """Writes a record with the checksums of its length and of itself."""
    head = struct.pack("<Q", len(data))
    file.write(head + struct.pack("<I", compute_crc(head)) + data + struct.pack("<I", compute_crc(data)))


@cache
def _make_example() -> Any:
    """Returns the class of `tf.train.Example`; what it calls a map is on the wire a list of entries."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="gapless/example.proto", package="gapless", syntax="proto3")
    messages: dict[str, list[tuple[str, int, int | str]]] = {  # name -> fields: name, label, type
        "BytesList": [("value", field.LABEL_REPEATED, field.TYPE_BYTES)],
        "FloatList": [("value", field.LABEL_REPEATED, field.TYPE_FLOAT)],
        "Int64List": [("value", field.LABEL_REPEATED, field.TYPE_INT64)],
        "Feature": [(f"{kind}_list", field.LABEL_OPTIONAL, f"{kind.title()}List") for kind in _KINDS],
        "Entry": [("key", field.LABEL_OPTIONAL, field.TYPE_STRING), ("value", field.LABEL_OPTIONAL, "Feature")],
        "Features": [("feature", field.LABEL_REPEATED, "Entry")],
        "Example": [("features", field.LABEL_OPTIONAL, "Features")],
    }
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for number, (key, label, kind) in enumerate(fields, 1):
            about = {"type_name": f".gapless.{kind}"} if isinstance(kind, str) else {"type": kind}
            message.field.add(name=key, number=number, label=label, **about)  # pyright: ignore[reportArgumentType]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("gapless.Example"))


def parse_example(data: bytes) -> dict[str, np.ndarray | list[bytes]]:
    """Returns the features of a `tf.train.Example`: float32 or int64 arrays, or lists of bytes."""
    found: dict[str, np.ndarray | list[bytes]] = {}
    for entry in _make_example().FromString(data).features.feature:
        kind = next((kind for kind in _KINDS if entry.value.HasField(f"{kind}_list")), "bytes")
        values = getattr(entry.value, f"{kind}_list").value
        found[entry.key] = list(values) if kind == "bytes" else np.array(values, _KINDS[kind])
    return found


def write_example(features: Mapping[str, np.ndarray | list[bytes]]) -> bytes:
    """Returns a `tf.train.Example` of float32 or int64 arrays, or lists of bytes."""
    example = _make_example()()
    for name, values in features.items():
        feature = example.features.feature.add(key=name).value
        if isinstance(values, list):
            feature.bytes_list.value.extend(values)
        elif values.dtype == np.float32:
            feature.float_list.value.extend(values.ravel().tolist())
        else:
            feature.int64_list.value.extend(values.astype(np.int64).ravel().tolist())
    return example.SerializeToString()
