"""MNIST's files: where they are looked for, and what is wrong with them."""

import gzip
import hashlib

import numpy as np
import pytest

from datasets import mnist
from datasets.fetch import DataUnavailableError
from datasets.mnist import load, load_mnist
from minidp.errors import DataError, ParameterError
from tests.support.refused import refused

from .test_fetch import DEAD

IMAGES = "train-images-idx3-ubyte.gz"


def check(dataset, tiny):
    assert dataset.name == "mnist" and dataset.notice == ""
    assert dataset.classes == 10 and dataset.nominal_size == 60_000
    assert dataset.x_train.shape == (12, 28, 28) and dataset.x_test.shape == (5, 28, 28)
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
    write(mirror.folder)
    monkeypatch.setattr(mnist, "MIRRORS", (mirror.url,))
    check(load_mnist(), tiny)
    assert mirror.asked == [f"/{name}.gz" for name in names[1:]]
    check(load_mnist(), tiny)
    assert len(mirror.asked) == 3


def test_order_of_places(tmp_path, tiny, write, cache, monkeypatch):
    monkeypatch.setenv("MINIDP_DATA", str(write(tmp_path / "e")))
    write(cache / "mnist")
    for folder in (cache / "mnist", tmp_path / "e"):
        spoil(folder / IMAGES)
    write(tmp_path / "d")
    check(load_mnist(tmp_path / "d"), tiny)
    with refused(DataError, f"expected {mnist.FILES[IMAGES[:-3]]}", start=f"{tmp_path / 'e'}"):
        load_mnist()
    monkeypatch.delenv("MINIDP_DATA")
    with pytest.raises(DataError, match=str(cache)):
        load_mnist()


def spoil(path):
    raw = bytearray(gzip.decompress(path.read_bytes()))
    raw[-1] ^= 1
    path.write_bytes(gzip.compress(bytes(raw), mtime=0))


def test_data_dir_without_all_files_is_an_error_though_the_cache_has_them(
    tmp_path, tiny, write, cache
):
    write(cache / "mnist")
    write(tmp_path, names=list(tiny)[:3])
    start = f"{tmp_path}: lacks files of MNIST"
    with refused(DataError, IMAGES, "--data-dir DIR", start=start):
        load_mnist(tmp_path)


def test_nowhere_to_be_had_names_places_and_mirrors(tmp_path, tiny, cache, monkeypatch):
    monkeypatch.setattr(mnist, "MIRRORS", (DEAD,))
    monkeypatch.setenv("MINIDP_DATA", str(tmp_path))
    words = f"MINIDP_DATA={tmp_path}", str(cache), DEAD, IMAGES, "--data-dir DIR"
    with refused(DataUnavailableError, *words, f"{DEAD}{IMAGES}: [Errno 111] Conn"):
        load_mnist()


SMALL = (6, 3)


@pytest.fixture
def notices():
    return []


def test_auto_falls_back_loudly_and_mnist_never(tiny, cache, notices, monkeypatch):
    monkeypatch.setattr(mnist, "MIRRORS", (DEAD,))
    with pytest.raises(DataUnavailableError, match="--data-dir DIR.*--dataset strokes"):
        load(on_notice=notices.append)
    assert notices == []
    found = load("auto", on_notice=notices.append, sizes=SMALL)
    assert found.name == "strokes" and found.sha256 is None
    first, *why, notice = notices
    assert first.startswith("MNIST is not available: using the synthetic digits instead")
    assert max(map(len, notices)) < 250
    assert any(f"{DEAD}{IMAGES}: [Errno 111] Connection refused" in line for line in why)
    assert notice == found.notice and notice.startswith("NOT MNIST")


def test_damaged_files_are_an_error(tmp_path, write, notices):
    folder = write(tmp_path / "d")
    spoil(folder / "t10k-labels-idx1-ubyte.gz")
    with pytest.raises(DataError, match="sha256"):
        load("auto", folder, notices.append)
    with pytest.raises(DataError, match="lacks files"):
        load("auto", tmp_path / "nowhere", notices.append)
    assert notices == []


def test_sizes_take_from_the_front_and_set_the_nominal_size(tmp_path, write):
    whole = load("auto", write(tmp_path / "d"))
    some = load("mnist", tmp_path / "d", sizes=(7, 2))
    assert some.nominal_size == 7 and some.sha256 == whole.sha256
    for name, size in (("x_train", 7), ("y_train", 7), ("x_test", 2), ("y_test", 2)):
        np.testing.assert_array_equal(getattr(some, name), getattr(whole, name)[:size])


@pytest.mark.parametrize(
    "dataset, sizes, words",
    [
        ("cifar", (1, 1), "expected dataset='cifar' to be one of auto, mnist, strokes"),
        ("strokes", (1, 10_001), "test_size=10001"),
        ("strokes", (0, 1), "_size=0"),
    ],
)
def test_bad_arguments(dataset, sizes, words):
    with pytest.raises(ParameterError, match=words):
        load(dataset, sizes=sizes)
