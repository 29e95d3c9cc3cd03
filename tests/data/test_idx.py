import gzip

import numpy as np
import pytest

from minidp.data.idx import read_idx
from minidp.errors import DataError
from tests.support.refused import refused

HEADER = bytes.fromhex("00000803 00000002 00000003 00000002".replace(" ", ""))  # 2 x 3 x 2 unsigned bytes
BODY = bytes(range(12))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_reads_plain_and_gzipped(tmp_path, pack):
    path = tmp_path / "images"
    path.write_bytes(pack(HEADER + BODY))
    array = read_idx(path, ndim=3)
    assert array.dtype == np.uint8
    np.testing.assert_array_equal(array, np.arange(12).reshape(2, 3, 2))


@pytest.mark.parametrize("raw, words", [
    (b"\x00\x00\x08", "at least 4 bytes, got 3"),
    (bytes.fromhex("00000d03") + HEADER[4:] + BODY, "magic number 00000803, got 00000d03"),  # floats
    (HEADER[:9], "truncated: expected a header of 16 bytes, got 9"),
    (HEADER + BODY[:-1], "truncated: expected 2 x 3 x 2 = 12 bytes after the header, got 11"),
    (HEADER + BODY + b"!", "trailing bytes: expected 2 x 3 x 2 = 12 bytes after the header, got 13"),
    (bytes.fromhex("00000803" + "ffffffff" * 3) + BODY, "truncated: expected 4294967295 x 4294967295 x 4294967295"),
])
def test_wrong_contents_are_named_in_one_line(tmp_path, raw, words):
    path = tmp_path / "images"
    path.write_bytes(raw)
    with refused(DataError, words, start=f"{path}: "):
        read_idx(path, ndim=3)


def flipped(packed):
    return packed[:-5] + bytes((packed[-5] ^ 1,)) + packed[-4:]  # a bit of the checksum


@pytest.mark.parametrize("damage", [lambda p: p[:-9], lambda p: p[:12], flipped, lambda p: p + b"junk"])
def test_damaged_gzip(tmp_path, damage):
    path = tmp_path / "images.gz"
    path.write_bytes(damage(gzip.compress(HEADER + BODY)))
    with refused(DataError, start=f"{path}: damaged gzip file"):
        read_idx(path)


def test_unreadable_file(tmp_path):
    for path in (tmp_path / "nowhere", tmp_path):
        with refused(DataError, start=f"{path}: cannot be read"):
            read_idx(path)
