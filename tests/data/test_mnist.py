"""MNIST's files: IDX, where they are looked for, and what is wrong with them."""

import gzip
import hashlib

import numpy as np
import pytest

from minidp.data import mnist
from minidp.data.mnist import load_mnist, parse_idx, read_bytes
from minidp.errors import DataError, DataUnavailableError
from tests.support.refused import refused


def contents(name, tiny):
    return np.frombuffer(tiny[name], np.uint8)[16 if "images" in name else 8 :]


def check(dataset, tiny):
    assert dataset.name == "mnist" and dataset.notice == ""
    assert dataset.classes == 10 and dataset.nominal_size == 60_000
    assert dataset.x_train.shape == (12, 28, 28) and dataset.x_test.shape == (5, 28, 28)
    assert dataset.x_train.dtype == np.uint8 and dataset.y_train.dtype == np.int64
    np.testing.assert_array_equal(
        dataset.x_train.ravel(), contents("train-images-idx3-ubyte", tiny)
    )
    np.testing.assert_array_equal(dataset.y_train, contents("train-labels-idx1-ubyte", tiny))
    np.testing.assert_array_equal(dataset.x_test.ravel(), contents("t10k-images-idx3-ubyte", tiny))
    np.testing.assert_array_equal(dataset.y_test, contents("t10k-labels-idx1-ubyte", tiny))
    assert dataset.sha256 == hashlib.sha256(b"".join(tiny.values())).hexdigest()


def test_real_files_have_the_published_contents(mnist_dir):
    dataset = load_mnist(mnist_dir)
    assert dataset.x_train.shape == (60_000, 28, 28) and dataset.x_test.shape == (10_000, 28, 28)
    assert dataset.y_train[:5].tolist() == [5, 0, 4, 1, 9]


@pytest.mark.parametrize("inner", ["", "mnist"])
@pytest.mark.parametrize("gzipped", [True, False])
def test_data_dir_in_all_its_forms(tmp_path, tiny, write, inner, gzipped):
    write(tmp_path / "d" / inner, gzipped)
    check(load_mnist(str(tmp_path / "d")), tiny)


def test_download_fills_the_cache_and_goes_on_where_it_was_cut(
    tiny, write, cache, mirror, monkeypatch
):
    names = list(tiny)
    write(cache / "mnist", names=names[:1])
    mirror.answers = {f"/{name}.gz": gzip.compress(raw, mtime=0) for name, raw in tiny.items()}
    monkeypatch.setattr(mnist, "MIRRORS", (mirror.url,))
    check(load_mnist(), tiny)
    assert mirror.asked == [f"/{name}.gz" for name in names[1:]]
    check(load_mnist(), tiny)
    assert len(mirror.asked) == 3


def test_order_of_places(tmp_path, tiny, write, cache, monkeypatch):
    monkeypatch.setenv("MINIDP_DATA", str(write(tmp_path / "e")))
    write(cache / "mnist")
    for folder in (cache / "mnist", tmp_path / "e"):
        spoil(folder / "train-images-idx3-ubyte.gz")
    write(tmp_path / "d")
    check(load_mnist(tmp_path / "d"), tiny)
    with pytest.raises(DataError, match=str(tmp_path / "e")):
        load_mnist()
    monkeypatch.delenv("MINIDP_DATA")
    with pytest.raises(DataError, match=str(cache)):
        load_mnist()


def spoil(path):
    raw = bytearray(gzip.decompress(path.read_bytes()))
    raw[-1] ^= 1
    path.write_bytes(gzip.compress(bytes(raw), mtime=0))


def test_wrong_hash_names_the_file_and_both_hashes(tmp_path, tiny, write):
    path = write(tmp_path) / f"{(name := 't10k-labels-idx1-ubyte')}.gz"
    spoil(path)
    got = hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest()
    with refused(DataError, f"is {got}", f"expected {mnist.FILES[name]}", start=f"{path}: "):
        load_mnist(tmp_path)


def test_data_dir_without_files_is_an_error_though_the_cache_has_them(tmp_path, tiny, write, cache):
    write(cache / "mnist")
    with refused(
        DataError,
        "train-images-idx3-ubyte.gz",
        "--data-dir DIR",
        start=f"{tmp_path}: holds no MNIST files",
    ):
        load_mnist(tmp_path)


def test_some_files_and_not_all(tmp_path, tiny, write):
    write(tmp_path / "e", names=list(tiny)[:3])
    with refused(DataError, "expected all four MNIST files, t10k-labels-idx1-ubyte missing"):
        load_mnist(tmp_path / "e")


def test_nowhere_to_be_had_names_places_and_mirrors(tmp_path, tiny, cache, dead_url, monkeypatch):
    monkeypatch.setattr(mnist, "MIRRORS", (dead_url,))
    monkeypatch.setenv("MINIDP_DATA", str(tmp_path))
    for download in (True, False):
        with refused(
            DataUnavailableError,
            f"MINIDP_DATA={tmp_path}",
            str(cache),
            dead_url,
            "t10k-labels-idx1-ubyte.gz",
            "--data-dir DIR",
        ) as raised:
            load_mnist(download=download)
        assert (
            f"{dead_url}train-images-idx3-ubyte.gz: Connection refused" in str(raised.value)
        ) == download


HEADER = bytes.fromhex("00000803 00000002 00000003 00000002")  # 2 x 3 x 2 unsigned bytes
BODY = bytes(range(12))
PACKED = gzip.compress(HEADER + BODY, mtime=0)


@pytest.mark.parametrize(
    "raw, words",
    [
        (b"\x00\x00\x08", "at least 4 bytes, got 3"),
        (
            bytes.fromhex("00000d03") + HEADER[4:] + BODY,
            "magic number 00000803, got 00000d03",
        ),  # floats
        (HEADER[:9], "truncated: expected a header of 16 bytes, got 9"),
        (HEADER + BODY[:-1], "truncated: expected 2 x 3 x 2 = 12 bytes after the header, got 11"),
        (
            HEADER + BODY + b"!",
            "trailing bytes: expected 2 x 3 x 2 = 12 bytes after the header, got 13",
        ),
        (
            bytes.fromhex("00000803" + "ffffffff" * 3) + BODY,
            "truncated: expected 4294967295 x 4294967295 x 4294967295",
        ),
        (PACKED[:-9], "damaged gzip file"),
        # a bit of the checksum
        (PACKED[:-5] + bytes((PACKED[-5] ^ 1,)) + PACKED[-4:], "damaged gzip file"),
    ],
)
def test_wrong_contents_are_named_in_one_line(tmp_path, raw, words):
    path = tmp_path / "images"
    path.write_bytes(raw)
    with refused(DataError, words, start=f"{path}: "):
        parse_idx(read_bytes(path), path, 3)


def test_unreadable_file(tmp_path):
    for path in (tmp_path / "nowhere", tmp_path):
        with refused(DataError, start=f"{path}: cannot be read"):
            read_bytes(path)
