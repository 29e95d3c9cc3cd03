import hashlib
import zipfile

import numpy as np
import pytest

from minidp.data import load_strokes, strokes
from minidp.errors import ParameterError


@pytest.fixture(scope="module")
def some():
    return load_strokes((2000, 500), progress=False)


def test_shapes_and_names(some):
    assert some.name == "strokes" and some.sha256 is None and some.notice.startswith("NOT MNIST")
    assert some.classes == 10 and some.nominal_size == 2000
    assert some.x_train.shape == (2000, 28, 28) and some.x_test.shape == (500, 28, 28)
    assert some.x_train.dtype == np.uint8 and some.y_train.dtype == np.int64


def test_the_images_are_the_same_everywhere():
    # golden: this implementation, VERSION 1; a change of any pixel needs a new VERSION
    images, labels = strokes.draw(0, 0)
    digest = hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()
    assert (strokes.VERSION, digest) == (1, "13a1c0a87c3b016d2e776add626094426ce579b9d692ba77b6c5f1ee2910122f")


def test_small_sets_begin_large_ones(some):
    few = load_strokes((7, 3), progress=False)
    np.testing.assert_array_equal(few.x_train, some.x_train[:7])
    np.testing.assert_array_equal(few.y_train, some.y_train[:7])
    np.testing.assert_array_equal(few.x_test, some.x_test[:3])
    odd = load_strokes((strokes.CHUNK + 1, 1), progress=False)
    np.testing.assert_array_equal(odd.x_train, some.x_train[: strokes.CHUNK + 1])


def test_no_image_twice(some):
    images = np.concatenate([some.x_train, some.x_test]).reshape(2500, 784)
    assert len(np.unique(images, axis=0)) == 2500


def test_every_class_about_equally_often(some):
    counts = np.bincount(some.y_train, minlength=10)
    assert counts.sum() == 2000 and 140 < counts.min() and counts.max() < 260  # 200 +- 4.5 standard deviations


def test_ink_is_inside_the_frame(some):
    assert some.x_train.max(axis=(1, 2)).min() > 100  # no image is empty
    assert 0.08 < (some.x_train > 0).mean() < 0.3
    edge = np.ones((28, 28), bool)
    edge[1:-1, 1:-1] = False
    assert (some.x_train[:, edge] > 0).mean() < 0.01


def test_classes_can_be_told_apart_and_not_trivially(some):
    x = np.concatenate([some.x_train, some.x_test]).reshape(2500, 784) / 255
    train, test = x[:2000], x[2000:]
    distance = (test**2).sum(1)[:, None] - 2 * test @ train.T + (train**2).sum(1)
    nearest = some.y_train[distance.argmin(1)]
    means = np.stack([train[some.y_train == k].mean(0) for k in range(10)])
    centre = ((test[:, None] - means) ** 2).sum(2).argmin(1)
    assert 0.80 < (nearest == some.y_test).mean() < 0.97
    assert 0.45 < (centre == some.y_test).mean() < 0.85


@pytest.mark.parametrize("sizes", [(0, 1), (1, 0), (-1, 1), (2.5, 1)])
def test_bad_sizes(sizes):
    with pytest.raises(ParameterError, match="_size="):
        load_strokes(sizes)


@pytest.fixture
def small_full_set(monkeypatch, cache):
    """Pretend that the full set is small, so that the cache is used."""
    monkeypatch.setattr(strokes, "SIZES", (30, 10))
    return cache / f"strokes-v{strokes.VERSION}.npz"


def load_full(notices=None):
    return load_strokes((30, 10), on_notice=(notices if notices is not None else []).append, progress=False)


def test_the_full_set_is_cached(small_full_set, monkeypatch):
    first = load_full()
    assert [path.name for path in small_full_set.parent.iterdir()] == [small_full_set.name]
    monkeypatch.setattr(strokes, "draw", None)
    again = load_full()
    for name in strokes.ARRAYS:
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))


def truncate(path):
    path.write_bytes(path.read_bytes()[:-200])


def flip(path):
    raw = bytearray(path.read_bytes())
    raw[5000] ^= 255
    path.write_bytes(raw)


def store(**change):
    def damage(path):
        with np.load(path) as stored:
            arrays = {**stored, **change}
        np.savez(path, **{name: array for name, array in arrays.items() if array is not None})

    return damage


@pytest.mark.parametrize("damage", [
    truncate, flip,
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(b"no archive"),
    store(version=np.array(0)),
    store(version=np.array("one")),
    store(y_test=None),
    store(x_train=np.zeros((31, 28, 28), np.uint8)),
    store(x_train=np.zeros((30, 28, 28))),
    store(y_train=np.full(30, 10, np.uint8)),
    store(y_train=np.array([{}] * 30)),  # pickled
])
def test_a_damaged_cache_is_drawn_anew(small_full_set, damage):
    good = load_full()
    damage(small_full_set)
    again = load_full()
    for name in strokes.ARRAYS:
        np.testing.assert_array_equal(getattr(good, name), getattr(again, name))
    with zipfile.ZipFile(small_full_set) as archive:
        assert archive.testzip() is None


def test_a_cache_that_cannot_be_written_is_said_and_survived(tmp_path, small_full_set, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MINIDP_CACHE", str(tmp_path / "file" / "cache"))
    notices = []
    assert load_full(notices).x_train.shape == (30, 28, 28)
    assert len(notices) == 1 and "cannot be written" in notices[0] and "\n" not in notices[0]


@pytest.mark.slow
def test_the_full_set_is_read_again_as_it_was_drawn(cache):
    full = load_strokes(progress=False)
    assert full.x_train.shape == (60_000, 28, 28) and full.x_test.shape == (10_000, 28, 28)
    np.testing.assert_array_equal(full.x_train, load_strokes(progress=False).x_train)
