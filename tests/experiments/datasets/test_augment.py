import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets.augment import centre_crop, distort, draw_distortions, standardise_images
from minidp.backend import to_host


def loop_distort(x, d):
    """The definition, pixel by pixel, in float64."""
    out = np.empty((len(x), d.size, d.size, x.shape[3]))
    for b in range(len(x)):
        for c in range(x.shape[3]):
            for i in range(d.size):
                for j in range(d.size):
                    source = d.left[b] + (d.size - 1 - j if d.flip[b] else j)
                    out[b, i, j, c] = float(x[b, d.top[b] + i, source, c]) + d.brightness[b]
            mean = out[b, :, :, c].mean()
            out[b, :, :, c] = mean + d.contrast[b] * (out[b, :, :, c] - mean)
    return out


@settings(max_examples=30)
@given(
    n=st.integers(0, 4),
    side=st.integers(1, 9),
    cut=st.integers(0, 5),
    channels=st.integers(1, 3),
    seed=st.integers(0, 99),
    dtype=st.sampled_from([np.uint8, np.float32]),
)
def test_distort_equals_loop(n, side, cut, channels, seed, dtype):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (n, side, side, channels)).astype(dtype)
    before = x.copy()
    d = draw_distortions(n, rng, side, max(1, side - cut))
    y = distort(x, d)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, loop_distort(x, d), rtol=1e-5, atol=1e-3)
    np.testing.assert_array_equal(x, before)


def test_every_backend_gives_the_same(backend, rng):
    x = rng.integers(0, 256, (5, 12, 12, 3), dtype=np.uint8)
    d = draw_distortions(5, rng, 12, 8)
    moved = backend.asarray(x)
    np.testing.assert_allclose(to_host(distort(moved, d)), distort(x, d), rtol=1e-5, atol=1e-3)
    np.testing.assert_array_equal(to_host(centre_crop(moved, 8)), centre_crop(x, 8))
    y = standardise_images(centre_crop(moved, 8))
    np.testing.assert_allclose(
        to_host(y), standardise_images(centre_crop(x, 8)), rtol=1e-4, atol=1e-5
    )
    assert y.dtype == np.float32


def test_draws_cover_their_ranges_and_ignore_the_images(rng):
    d = draw_distortions(20_000, rng)
    for corner in (d.top, d.left):
        counts = np.bincount(corner, minlength=9)
        # 2222 +- 5 standard deviations
        assert len(counts) == 9 and counts.min() > 2000 and counts.max() < 2450
    assert abs(d.flip.mean() - 0.5) < 0.02
    assert -63 <= d.brightness.min() < -62.9 and 62.9 < d.brightness.max() <= 63
    assert 0.2 <= d.contrast.min() < 0.201 and 1.799 < d.contrast.max() <= 1.8
    assert abs(np.corrcoef(d.top, d.left)[0, 1]) < 0.04


def test_centre_crop():
    x = np.arange(36, dtype=np.uint8).reshape(1, 6, 6, 1)
    np.testing.assert_array_equal(centre_crop(x, 2)[0, :, :, 0], [[14, 15], [20, 21]])
    crop = centre_crop(x.astype(np.float32), 6)
    crop[:] = 0
    assert x.max() == 35


def test_standardised_images(rng):
    x = rng.uniform(0, 255, (4, 5, 6, 3))
    y = standardise_images(x)
    np.testing.assert_allclose(y.mean(axis=(1, 2, 3)), 0, atol=1e-12)
    np.testing.assert_allclose(y.std(axis=(1, 2, 3)), 1, rtol=1e-12)
    even = np.full((1, 4, 4, 3), 7.0)
    np.testing.assert_array_equal(standardise_images(even), 0)
    even[0, 0, 0, 0] += 1e-3  # far below the smallest deviation, 1 / sqrt(48)
    np.testing.assert_allclose(
        standardise_images(even)[0, 0, 0, 0], 1e-3 * 47 / 48 * 48**0.5, rtol=1e-6
    )
