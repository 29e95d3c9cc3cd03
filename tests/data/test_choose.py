"""Which data set is taken, and that its parts fit together."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

from minidp.data import Dataset, load, mnist, strokes
from minidp.errors import DataError, DataUnavailableError, ParameterError

SMALL = (6, 3)


@pytest.fixture
def notices():
    return []


@pytest.fixture(autouse=True)
def small_strokes(monkeypatch):
    """The full set is drawn by test_strokes.py; here a few are enough."""
    monkeypatch.setattr(strokes, "SIZES", SMALL)


def test_mnist_is_preferred(tmp_path, write, notices):
    found = load("auto", write(tmp_path / "d"), notices.append)
    assert found.name == "mnist" and len(found.x_train) == 12 and notices == []


def test_auto_falls_back_loudly(tiny, cache, dead_url, notices, monkeypatch):
    monkeypatch.setattr(mnist, "MIRRORS", (dead_url,))
    found = load("auto", on_notice=notices.append, sizes=SMALL)
    assert found.name == "strokes" and found.sha256 is None
    first, *why, notice = notices
    assert (
        first.startswith("MNIST cannot be had: using the drawn digits instead")
        and max(map(len, notices)) < 250
    )
    assert any(f"{dead_url}train-images-idx3-ubyte.gz: Connection refused" in line for line in why)
    assert notice == found.notice and notice.startswith("NOT MNIST")


def test_auto_falls_back_where_the_cache_cannot_be_written(tmp_path, tiny, notices, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MINIDP_CACHE", str(tmp_path / "file"))
    assert load("auto", on_notice=notices.append, sizes=SMALL).name == "strokes"


def test_mnist_never_falls_back(tiny, cache, dead_url, notices, monkeypatch):
    monkeypatch.setattr(mnist, "MIRRORS", (dead_url,))
    with pytest.raises(DataUnavailableError, match="--data-dir DIR"):
        load("mnist", on_notice=notices.append)
    assert notices == []


def test_damaged_files_are_an_error(tmp_path, write, notices):
    folder = write(tmp_path / "d")
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(
        gzip.compress(b"\x00\x00\x08\x01\x00\x00\x00\x00")
    )
    with pytest.raises(DataError, match="sha256"):
        load("auto", folder, notices.append)
    with pytest.raises(DataError, match="is no folder"):
        load("auto", tmp_path / "nowhere", notices.append)
    assert notices == []


def test_sizes_take_from_the_front_and_set_the_nominal_size(tmp_path, write):
    whole = load("mnist", write(tmp_path / "d"))
    some = load("mnist", tmp_path / "d", sizes=(7, 2))
    assert some.nominal_size == 7 and some.sha256 == whole.sha256
    np.testing.assert_array_equal(some.x_train, whole.x_train[:7])
    np.testing.assert_array_equal(some.y_train, whole.y_train[:7])
    np.testing.assert_array_equal(some.x_test, whole.x_test[:2])
    np.testing.assert_array_equal(some.y_test, whole.y_test[:2])


def test_bad_arguments():
    with pytest.raises(
        ParameterError, match="expected dataset='cifar' to be one of auto, mnist, strokes"
    ):
        load("cifar")
    for sizes, words in (
        ((1, 10_001), "test_size=10001"),
        ((0, 1), "_size=0"),
    ):
        with pytest.raises(ParameterError, match=words):
            load("strokes", sizes=sizes)


@pytest.fixture
def dataset():
    return Dataset(
        "toy",
        np.zeros((3, 2, 2), np.uint8),
        np.array([0, 1, 2]),
        np.zeros((1, 2, 2), np.uint8),
        np.array([2]),
        classes=3,
        nominal_size=3,
    )


@pytest.mark.parametrize(
    "change, words",
    [
        (
            {"y_train": np.array([0, 1])},
            "toy train: expected uint8 images and one int64 label for each",
        ),
        ({"x_test": np.zeros((1, 2, 2))}, "toy test: expected uint8 images"),
        ({"y_test": np.array([-1])}, "toy test: expected labels from 0 to 2"),
        ({"x_test": np.zeros((1, 2, 3), np.uint8)}, "expected test images of shape .2, 2."),
    ],
)
def test_parts_that_do_not_fit(dataset, change, words):
    with pytest.raises(DataError, match=words):
        replace(dataset, **change)
