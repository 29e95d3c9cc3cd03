import hashlib

import numpy as np
import pytest

from datasets import strokes
from datasets.strokes import load_strokes


def test_the_images_are_the_same_everywhere():
    # golden: this implementation, VERSION 1; a change of any pixel needs a new VERSION
    images, labels = strokes.draw(0, 0)
    digest = hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()
    assert strokes.VERSION == 1
    assert digest == "13a1c0a87c3b016d2e776add626094426ce579b9d692ba77b6c5f1ee2910122f"


def test_digits_that_stray_further_are_others_of_the_same_classes():
    (far, labels), (near, same) = strokes.draw(0, 0, stray=1.5), strokes.draw(0, 0)
    np.testing.assert_array_equal(labels, same)
    assert (far != near).any(axis=(1, 2)).all()


@pytest.fixture
def small_full_set(monkeypatch, cache):
    """Pretend that the full set is small, so that the cache is used."""
    monkeypatch.setattr(strokes, "SIZES", (30, 10))
    return cache / f"strokes-v{strokes.VERSION}.npz"


def load_full(on_notice=print):
    return load_strokes((30, 10), on_notice=on_notice, progress=False)


def assert_same(one, other):
    for name in strokes.ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_the_full_set_is_cached(small_full_set, monkeypatch):
    first = load_full()
    assert [path.name for path in small_full_set.parent.iterdir()] == [small_full_set.name]
    monkeypatch.setattr(strokes, "draw", None)
    assert_same(load_full(), first)


def test_small_sets_begin_large_ones():
    some = load_strokes((2000, 10), progress=False)
    odd = load_strokes((strokes.CHUNK + 1, 3), progress=False)
    assert some.x_train.shape == (2000, 28, 28) and some.nominal_size == 2000
    np.testing.assert_array_equal(odd.x_train, some.x_train[: strokes.CHUNK + 1])
    np.testing.assert_array_equal(odd.y_test, some.y_test[:3])


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-200]),
        lambda path: np.savez(path, x_train=np.array([{}] * 30)),  # pickled
    ],
)
def test_a_damaged_cache_is_drawn_anew(small_full_set, damage):
    good = load_full()
    damage(small_full_set)
    assert_same(load_full(), good)
    with np.load(small_full_set) as stored:
        assert [*stored] == [*strokes.ARRAYS]


def test_a_cache_that_cannot_be_written_is_said_and_survived(tmp_path, small_full_set, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MINIDP_CACHE", str(tmp_path / "file" / "cache"))
    notices = []
    assert load_full(notices.append).x_train.shape == (30, 28, 28)
    assert len(notices) == 1 and "cannot be written" in notices[0] and "\n" not in notices[0]
