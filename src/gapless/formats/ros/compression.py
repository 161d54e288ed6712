"""Blocks of bytes unpacked only as far as they may go, so that damaged or hostile sizes take no memory."""

from typing import Any

MAX_BLOCK_BYTES = 2**30  # of one chunk, unpacked; recorders write chunks of about 1 MB, of images some 10 MB


def unpack_block(kind: str, data: bytes, limit_bytes: int = MAX_BLOCK_BYTES) -> bytes:
    """Returns unpacked bytes; raises ValueError for an unknown compression, and for more bytes than a limit.

    Args:
        kind: `bz2`, `lz4`, `zstd`; empty or `none` for bytes as they are.
        data: The packed bytes.
        limit_bytes: How many bytes may come out.
    """
    if kind in ("", "none"):
        found, is_whole = data, len(data) <= limit_bytes
    elif kind == "zstd":
        import zstandard

        reader = zstandard.ZstdDecompressor().stream_reader(data)
        found = reader.read(limit_bytes)
        is_whole = not reader.read(1)
    else:
        unpacker = _make_unpacker(kind)
        found = unpacker.decompress(data, limit_bytes)
        is_whole = unpacker.eof or not unpacker.decompress(b"", 1)
    if not is_whole:
        raise ValueError(f"a block holds more than {limit_bytes} bytes")
    return found


def _make_unpacker(kind: str) -> Any:
    if kind == "bz2":
        import bz2

        return bz2.BZ2Decompressor()
    if kind == "lz4":
        import lz4.frame

        return lz4.frame.LZ4FrameDecompressor()
    raise ValueError(f"its compression {kind!r} is not one of bz2, lz4, zstd")
