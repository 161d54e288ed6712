"""TFRecord files and tf.train.Example: checksums of the standard, messages parsed as protobuf has them."""

from pathlib import Path

import numpy as np
import pytest

from gapless.core.errors import LogError
from gapless.formats.rlds.tfrecord import compute_crc, parse_example, read_records, write_example, write_record


def unmask(masked: int) -> int:
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF


def test_checksums_are_those_of_the_standard() -> None:
    # check value of CRC-32C, and the vectors of RFC 3720, B.4
    assert unmask(compute_crc(b"123456789")) == 0xE3069283
    assert unmask(compute_crc(bytes(32))) == 0x8A9136AA
    assert unmask(compute_crc(b"\xff" * 32)) == 0x62A8AB43
    assert unmask(compute_crc(bytes(range(32)))) == 0x46DD794E


@pytest.mark.parametrize("length", [4096, 4097, 5000, 10_000, 10_240])
def test_lanes_agree_with_one_byte_after_the_other(length: int) -> None:
    data, crc = np.random.default_rng(length).bytes(length), 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    assert unmask(compute_crc(data)) == crc ^ 0xFFFFFFFF


def test_examples_as_protobuf_writes_them() -> None:
    # Features { feature { key: "a" value { int64_list { value: [1, -1, 300] } } } }, packed and not
    packed = b"\x0a\x0d\x01" + b"\xff" * 9 + b"\x01\xac\x02"
    single = b"\x08\x01\x08" + b"\xff" * 9 + b"\x01\x08\xac\x02"
    for values in (packed, single):
        feature = b"\x1a" + bytes([len(values)]) + values
        entry = b"\x0a\x01a\x12" + bytes([len(feature)]) + feature
        features = b"\x0a" + bytes([len(entry)]) + entry
        found = parse_example(b"\x0a" + bytes([len(features)]) + features)
        np.testing.assert_array_equal(found["a"], [1, -1, 300])


def test_what_is_written_is_parsed_bit_for_bit() -> None:
    given = {
        "f": np.array([0.1, -0.0, np.inf, 1e-45], np.float32),
        "i": np.array([0, -1, 2**62, -(2**63), 127, 128]),
        "b": [b"", b"\x00\xff" * 300],
        "ä": np.zeros(0, np.int64),
    }
    found = parse_example(write_example(given))
    assert list(found) == list(given)
    assert np.asarray(found["f"]).tobytes() == given["f"].tobytes()
    np.testing.assert_array_equal(found["i"], given["i"])
    assert found["b"] == given["b"]
    assert len(found["ä"]) == 0


def test_damage_is_found_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with path.open("wb") as file:
        for text in (b"one", b"two", b"three"):
            write_record(file, text)
    whole = path.read_bytes()  # records of 19, 19 and 21 bytes, the data 12 bytes from their beginnings
    assert list(read_records(path)) == [b"one", b"two", b"three"]
    path.write_bytes(whole[:32] + b"x" + whole[33:])
    assert list(read_records(path)) == [b"one", None, b"three"]
    path.write_bytes(whole[:20] + b"x" + whole[21:])
    with pytest.raises(LogError, match="damaged 40 bytes before its end"):
        list(read_records(path))
    path.write_bytes(whole[:-1])
    with pytest.raises(LogError, match="cut off, 1 bytes are missing"):
        list(read_records(path))
