"""Blocks of bytes unpacked only as far as they may go, so that damaged or hostile sizes take no memory."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

MAX_BLOCK_BYTES = 2**30  # of one chunk, unpacked; recorders write chunks of about 1 MB, of images some 10 MB
_STEP_BYTES = 2**22  # unpacked at once
_KINDS = ("bz2", "lz4", "zstd")


def unpack_block(kind: str, data: bytes, limit_bytes: int = MAX_BLOCK_BYTES) -> bytes:
    """Returns unpacked bytes; raises ValueError for an unknown compression, and for more bytes than a limit.

    Args:
        kind: `bz2`, `lz4`, `zstd`; empty or `none` for bytes as they are.
        data: The packed bytes.
        limit_bytes: How many bytes may come out.
    """
    if kind in ("", "none"):
        return data
    if kind not in _KINDS:
        raise ValueError(f"its compression is {kind!r}: use one of {', '.join(_KINDS)}")
    return b"".join(unpack_stream(kind, pa.BufferReader(data), limit_bytes))


def unpack_stream(kind: str, source: Any, limit_bytes: float) -> Iterator[bytes]:
    """Yields unpacked bytes of a file or buffer; raises ValueError where they are more than a limit."""
    num_bytes = 0
    with pa.input_stream(source, compression=kind) as stream:
        while block := stream.read(_STEP_BYTES):
            num_bytes += len(block)
            if num_bytes > limit_bytes:
                raise ValueError(f"it holds more than {limit_bytes:.0f} bytes: record it again in smaller pieces")
            yield block
