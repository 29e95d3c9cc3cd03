"""Cached features of frozen layers: what is read back is what was computed, and for the same images
and layers only.
"""

import numpy as np
import pytest

from datasets.augment import Distortions, distort, standardise_images
from features import views
from features.frozen import feature_path
from minidp import nn
from minidp.errors import DataError
from minidp.streams import Streams

SIZE = 8


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (30, 32, 32, 3), dtype=np.uint8)


def frozen(seed):
    rng = np.random.default_rng(seed)
    return nn.Sequential([nn.Conv2D(3, 2, 3, rng=rng), nn.Flatten()], (SIZE, SIZE, 3))


def make(images, file, multiplicity=1):
    rng = np.random.default_rng(2)
    return views.CachedViews(images, frozen(1), SIZE, 2, rng, file, multiplicity)


def test_features_read_back_are_those_computed(images, tmp_path, capsys):
    file = tmp_path / "deep" / "features.npy"
    computed, read = make(images, file), make(images, file)
    assert capsys.readouterr().err.count(str(file)) == 1
    np.testing.assert_array_equal(computed[:30], read[:30])
    rows = np.arange(30)[::-1]
    np.testing.assert_array_equal(
        *(each.take_views(rows, Streams(1).views(0).rows(rows)) for each in (computed, read))
    )
    plain = frozen(1).predict(views.standardise_images(views.centre_crop(images, SIZE)))
    np.testing.assert_allclose(read[:30], plain, rtol=1e-3, atol=1e-3)  # float16


def test_rows_are_taken_as_they_are_sliced(images, tmp_path):
    found = make(images, tmp_path / "features.npy")
    rows = np.array([0, 4, 20])
    np.testing.assert_allclose(found.take(rows, axis=0), found[:30][rows], rtol=1e-5, atol=1e-6)


def test_the_views_of_an_example_are_different_ones_each_time(images, tmp_path):
    cached = make(images, tmp_path / "features.npy", 2)
    seen = {4: set(), 20: set()}
    for step in range(50):
        rows = cached.take_views(np.repeat([4, 20], 2), Streams(3).views(step).rows([8, 9, 40, 41]))
        for example, pair in zip(seen, (rows[:2], rows[2:])):
            same = (pair[:, None] == cached._views[example]).all(axis=2)  # (2, views)
            assert (same.sum(axis=1) == 1).all() and not same.all(axis=0).any()
            seen[example].update(same.argmax(axis=1))
    assert seen == {4: {0, 1, 2}, 20: {0, 1, 2}}  # the centre crop among them


def test_another_network_image_or_count_has_another_file(images):
    changed = images.copy()
    changed[7, 3, 3, 1] ^= 1
    usual, others = (images, "a", 2), [(changed, "a", 2), (images, "b", 2), (images, "a", 3)]
    assert len({feature_path(*facts) for facts in (usual, usual, *others)}) == 4


def test_a_damaged_file_is_named(images, tmp_path):
    file = tmp_path / "features.npy"
    make(images, file)
    for damaged in (file.read_bytes()[:1000], b"hello"):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match="features.npy.*delete it"):
            make(images, file)


def test_mean_over_views_is_that_of_the_logits_of_ten_distorted_views(images, monkeypatch):
    monkeypatch.setattr(views, "BATCH", 7)  # fewer than there are images
    model = nn.Sequential(
        [*frozen(1).layers, nn.Dense(2 * SIZE * SIZE, 4, rng=np.random.default_rng(5))],
        (SIZE, SIZE, 3),
    )
    logits = 0
    for down, right in ((12, 12), (10, 10), (10, 14), (14, 10), (14, 14)):
        for flip in (False, True):
            each = [np.full(30, value) for value in (down, right, flip, 0.0, 1.0)]
            logits = logits + model.predict(
                standardise_images(distort(images, Distortions(SIZE, *each)))
            )
    assert len(set(logits.argmax(axis=1))) > 1
    mean = views.mean_over_views(lambda view: model.forward(view)[0], images, SIZE)
    np.testing.assert_allclose(mean, logits / 10, rtol=1e-4, atol=1e-5)
