"""MNIST's files: IDX, where they are looked for, and what is wrong with them."""

import gzip
import hashlib

import numpy as np
import pytest

from minidp.data import mnist
from minidp.data.mnist import load, load_mnist, parse_idx, read_bytes
from minidp.errors import DataError, DataUnavailableError, ParameterError
from tests.support.refused import refused


def check(dataset, tiny):
    assert dataset.name == "mnist" and dataset.notice == ""
    assert dataset.classes == 10 and dataset.nominal_size == 60_000
    assert dataset.x_train.shape == (12, 28, 28) and dataset.x_test.shape == (5, 28, 28)
    assert dataset.x_train.dtype == np.uint8 and dataset.y_train.dtype == np.int64
    arrays = dataset.x_train, dataset.y_train, dataset.x_test, dataset.y_test
    for (name, raw), array in zip(tiny.items(), arrays, strict=True):
        start = 16 if "images" in name else 8
        np.testing.assert_array_equal(np.frombuffer(raw, np.uint8)[start:], array.ravel())
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


SMALL = (6, 3)


@pytest.fixture
def notices():
    return []


def test_mnist_is_preferred(tmp_path, write, notices):
    found = load("auto", write(tmp_path / "d"), notices.append)
    assert found.name == "mnist" and len(found.x_train) == 12 and notices == []


def test_auto_falls_back_loudly(tiny, cache, dead_url, notices, monkeypatch):
    monkeypatch.setattr(mnist, "MIRRORS", (dead_url,))
    found = load("auto", on_notice=notices.append, sizes=SMALL)
    assert found.name == "strokes" and found.sha256 is None
    first, *why, notice = notices
    assert (
        first.startswith("MNIST is not available: using the synthetic digits instead")
        and max(map(len, notices)) < 250
    )
    assert any(f"{dead_url}train-images-idx3-ubyte.gz: Connection refused" in line for line in why)
    assert notice == found.notice and notice.startswith("NOT MNIST")


def test_mnist_never_falls_back(tiny, cache, dead_url, notices, monkeypatch):
    monkeypatch.setattr(mnist, "MIRRORS", (dead_url,))
    with pytest.raises(DataUnavailableError, match="--data-dir DIR"):
        load("mnist", on_notice=notices.append)
    assert notices == []


def test_damaged_files_are_an_error(tmp_path, write, notices):
    folder = write(tmp_path / "d")
    spoil(folder / "t10k-labels-idx1-ubyte.gz")
    with pytest.raises(DataError, match="sha256"):
        load("auto", folder, notices.append)
    with pytest.raises(DataError, match="is no folder"):
        load("auto", tmp_path / "nowhere", notices.append)
    assert notices == []


def test_sizes_take_from_the_front_and_set_the_nominal_size(tmp_path, write):
    whole = load("mnist", write(tmp_path / "d"))
    some = load("mnist", tmp_path / "d", sizes=(7, 2))
    assert some.nominal_size == 7 and some.sha256 == whole.sha256
    for name, size in (("x_train", 7), ("y_train", 7), ("x_test", 2), ("y_test", 2)):
        np.testing.assert_array_equal(getattr(some, name), getattr(whole, name)[:size])


def test_bad_arguments():
    with pytest.raises(
        ParameterError, match="expected dataset='cifar' to be one of auto, mnist, strokes"
    ):
        load("cifar")
    for sizes, words in (((1, 10_001), "test_size=10001"), ((0, 1), "_size=0")):
        with pytest.raises(ParameterError, match=words):
            load("strokes", sizes=sizes)
