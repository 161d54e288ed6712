import bz2

import lz4.frame
import pytest
import zstandard

from gapless.formats.ros.compression import unpack_block

DATA = bytes(range(256)) * 100
PACKED = {"bz2": bz2.compress(DATA), "lz4": lz4.frame.compress(DATA), "zstd": zstandard.compress(DATA), "none": DATA}


@pytest.mark.parametrize("kind", PACKED)
def test_bytes_come_back_and_no_more_than_the_limit(kind: str) -> None:
    assert unpack_block(kind, PACKED[kind], len(DATA)) == DATA
    assert unpack_block(kind, PACKED[kind]) == DATA
    if kind != "none":
        with pytest.raises(ValueError, match="more than 25599 bytes"):
            unpack_block(kind, PACKED[kind], len(DATA) - 1)


def test_an_unknown_compression_is_named() -> None:
    with pytest.raises(ValueError, match="'brotli': use one of bz2"):
        unpack_block("brotli", DATA)
