"""How the bytes of one channel become messages whose fields can be listed."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

_NOT_DECODED = re.compile(r"(Image|PointCloud2?|CompressedVideo)$")
_HUGE_ARRAY = re.compile(rb"\[\s*\d{6,}\s*\]")  # a decoder is made of code as long as its fixed arrays
_PROTOBUF_TYPES = {  # number of a type in a protobuf descriptor -> type; others are text, bytes and messages
    **{1: "float64", 2: "float32", 3: "int64", 4: "uint64", 5: "int32", 6: "uint64", 7: "uint32", 8: "bool"},
    **{13: "uint32", 14: "int32", 15: "int32", 16: "int64", 17: "int32", 18: "int64"},
}

Field = tuple[str, Any, str | None]  # of a message: name, value and, of a number, type


@dataclass(frozen=True, eq=False)
class MessageChannel:
    """One topic as one writer of a recording announces it."""

    topic: str
    type: str  # such as `sensor_msgs/msg/JointState`
    encoding: str  # of messages: `cdr`, `ros1`, `json`, `protobuf`
    schema_encoding: str = ""  # `ros2msg`, `ros2idl`, `ros1msg`, `protobuf`
    schema: bytes = b""


@dataclass(frozen=True)
class MessageDecoder:
    """How the messages of one channel are read."""

    decode: Callable[[bytes], Any]
    list_fields: Callable[[Any], Iterable[Field]]  # of a message, or of a message inside it


def make_decoder(channel: MessageChannel) -> MessageDecoder:
    """Returns the decoder of a channel; raises ValueError with the reason where its messages cannot be columns."""
    if _NOT_DECODED.search(channel.type):
        raise ValueError(f"messages of type {channel.type} are no columns of numbers: use other topics")
    if channel.encoding == "json":
        return MessageDecoder(json.loads, list_entries)
    if channel.encoding == "protobuf" and channel.schema_encoding == "protobuf":
        return _make_protobuf_decoder(channel)
    if channel.encoding in ("cdr", "ros1"):
        return _make_ros_decoder(channel.type, channel.encoding, channel.schema_encoding, channel.schema)
    schema = f" with schema {channel.schema_encoding!r}" if channel.schema_encoding else " without a schema"
    raise ValueError(f"its encoding {channel.encoding!r}{schema} is not known: record cdr, ros1, json or protobuf")


def list_entries(message: Any) -> Iterable[Field]:
    """Returns the fields of an object of JSON; of another value, that value."""
    if not isinstance(message, dict):
        return [("value", message, None)]
    return [(str(name), value, "bool" if isinstance(value, bool) else None) for name, value in message.items()]


@lru_cache(maxsize=256)  # files of one robot say the same types again and again, and code is compiled for each
def _make_ros_decoder(message_type: str, encoding: str, schema_encoding: str, schema: bytes) -> MessageDecoder:
    from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
    from rosbags.typesys.msg import normalize_msgtype

    name = normalize_msgtype(message_type)
    store = get_typestore(Stores.EMPTY)
    if schema.strip():
        if _HUGE_ARRAY.search(schema):
            raise ValueError("its definition holds an array of 100,000 elements or more: split it")
        text = schema.decode()
        store.register(get_types_from_idl(text) if schema_encoding == "ros2idl" else get_types_from_msg(text, name))
    else:
        store = get_typestore(Stores.ROS1_NOETIC if encoding == "ros1" else Stores.LATEST)
    if name not in store.fielddefs:
        raise ValueError(
            f"the definition of {message_type} is not in the file: record it with the definitions of messages"
        )
    store.get_msgdef(name)
    read = store.deserialize_ros1 if encoding == "ros1" else store.deserialize_cdr
    known = cache(lambda kind: _list_ros_fields(store, kind))

    def list_fields(message: Any) -> list[Field]:
        fields = known(message.__msgtype__)
        return [(name, getattr(message, attribute), number) for attribute, name, number in fields]

    return MessageDecoder(lambda data: read(data, name), list_fields)


def _list_ros_fields(store: Any, kind: str) -> list[tuple[str, str, str | None]]:
    """Returns attribute, name and, of numbers, type of each field of a ROS message."""
    from rosbags.interfaces import Nodetype
    from rosbags.typesys.base import normalize_fieldname

    found: list[tuple[str, str, str | None]] = []
    for field, description in store.fielddefs[kind][1]:
        number: str | None = description[1][0] if description[0] == Nodetype.BASE else None
        number = "uint8" if number in ("char", "byte", "octet") else None if number == "string" else number
        found.append((normalize_fieldname(field), field, number))
    return [each for each in found if each[1] != "structure_needs_at_least_one_member"]


def _make_protobuf_decoder(channel: MessageChannel) -> MessageDecoder:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    files = {each.name: each for each in descriptor_pb2.FileDescriptorSet.FromString(channel.schema).file}
    pool = descriptor_pool.DescriptorPool()

    def add(name: str) -> None:
        if each := files.pop(name, None):
            for needed in each.dependency:
                add(needed)
            pool.Add(each)

    for name in list(files):
        add(name)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName(channel.type))
    return MessageDecoder(made.FromString, _list_protobuf_fields)


def _list_protobuf_fields(message: Any) -> Iterator[tuple[str, Any, str | None]]:
    for field in message.DESCRIPTOR.fields:
        number = _PROTOBUF_TYPES.get(field.type)
        value = getattr(message, field.name)
        if hasattr(value, "keys"):  # a map
            yield field.name, {str(key): value[key] for key in value}, None
        elif hasattr(value, "__len__") and not isinstance(value, str | bytes):  # repeated
            yield field.name, np.array(value, number) if number else list(value), None
        elif not field.has_presence or message.HasField(field.name):
            yield field.name, value, number
