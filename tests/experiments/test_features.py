"""Features before private training: filters written out in space, convolutions as sums over pixels,
random cosines.
"""

import math
from functools import partial

import numpy as np
import pytest

from features.random_features import RandomFeatures, cosines
from features.scattering import ANGLES, CHUNK, Scattering
from minidp.backend import to_host

PERIODS = range(-4, 5)  # of the image, summed: twice as far as the code goes


def _wrapped(pixels, formula):
    """formula(rows, columns) about pixel (0, 0), summed over everything that wraps around to each
    pixel.
    """
    u = np.arange(pixels)
    return sum(formula(u[:, None] + pixels * p, u + pixels * q) for p in PERIODS for q in PERIODS)


def _phi(pixels, width):
    found = _wrapped(pixels, lambda rows, columns: np.exp(-(rows**2 + columns**2) / (2 * width**2)))
    return found / found.sum()


def _psi(pixels, scale, angle):
    """Before the factor c: rows are the second coordinate of u, columns the first."""
    turn, width = math.pi * angle / ANGLES, 0.8 * 2**scale
    frequency = 3 * math.pi / 2 ** (scale + 2)

    def gaussian(rows, columns, frequency):
        along = columns * math.cos(turn) + rows * math.sin(turn)
        across = (rows * math.cos(turn) - columns * math.sin(turn)) * 4 / ANGLES
        return np.exp(-(along**2 + across**2) / (2 * width**2) + 1j * frequency * along)

    envelope = _wrapped(pixels, partial(gaussian, frequency=0))
    wave = _wrapped(pixels, partial(gaussian, frequency=frequency))
    return (wave - envelope * (wave.sum() / envelope.sum())) / 4**scale


def _filters(pixels):
    """{(j, a): psi} in space, with the factor c."""
    found = {(j, a): _psi(pixels, j, a) for j in range(2) for a in range(ANGLES)}
    left = 1 - np.abs(np.fft.fft2(_phi(pixels, 1.6))) ** 2
    energy = sum(np.abs(np.fft.fft2(psi)) ** 2 for psi in found.values())
    ratios = [
        left[v] / ((energy[v] + energy[-v[0], -v[1]]) / 2)
        for v in np.ndindex(pixels, pixels)
        if v != (0, 0)
    ]
    return {key: psi * math.sqrt(min(ratios)) for key, psi in found.items()}


def _convolved(x, kernel):
    return sum(x[u] * np.roll(kernel, u, (0, 1)) for u in np.ndindex(x.shape))


def _scattered(x):
    """S of one image, one path at a time; (P, n, n)."""
    psi = _filters(len(x))

    def average(u, j):
        return _convolved(u, _phi(len(u), 1.6 / 2**j))[:: 4 >> j, :: 4 >> j]

    def modulus(u, key):
        step = 2 ** key[0]
        return np.abs(_convolved(u, psi[key]))[::step, ::step]

    first = {key: modulus(x, key) for key in psi}
    paths = [average(x, 0)] + [average(u, j) for (j, _), u in first.items()]
    angles = range(ANGLES)
    paths += [average(modulus(first[0, a], (1, b)), 1) for a in angles for b in angles]
    return np.stack(paths)


@pytest.mark.parametrize(
    "dtype, tolerance", [("float64", {"rtol": 1e-12, "atol": 1e-13}), ("float32", {"atol": 1e-5})]
)
@pytest.mark.parametrize("size", [16, 20])
def test_features_equal_sums_over_pixels_one_path_at_a_time(size, dtype, tolerance, backend, rng):
    x = rng.standard_normal((2, size, size))
    y = Scattering(size)(backend.asarray(x, dtype=dtype))
    assert y.dtype == dtype
    for got, image in zip(to_host(y).transpose(0, 3, 1, 2), x):
        np.testing.assert_allclose(got, _scattered(image), **tolerance)


@pytest.mark.parametrize("size", [24, 28])
def test_features_of_an_image_have_their_own_bits_on_the_host(size, rng):
    scattering = Scattering(size)
    x = rng.random((101, size, size)).astype("float32")
    whole, order = scattering(x), rng.permutation(101)
    for rows in (order[:1], order[:2], order[: CHUNK + 1], order):
        assert scattering(x[rows]).tobytes() == whole[rows].tobytes()


@pytest.mark.parametrize("dtype, rtol, atol", [("float64", 1e-12, 0), ("float32", 0, 1e-5)])
def test_equals_the_definition(dtype, rtol, atol, backend, rng):
    features, x = RandomFeatures(3, 5, 2.0), rng.standard_normal((2, 3))
    again = np.random.default_rng(0)
    w = again.standard_normal((3, 5), dtype=np.float32) / np.float32(2)
    p = again.uniform(0, 2 * math.pi, 5)
    got = features(backend.asarray(x, dtype=dtype))
    np.testing.assert_allclose(
        to_host(got), math.sqrt(2 / 5) * np.cos(x @ w + p), rtol=rtol, atol=atol
    )
    assert got.dtype == dtype


def test_cosines_are_close_whatever_the_angle(rng):
    for scale in (1, 100, 1e6):
        x = rng.uniform(-scale, scale, 10_000)
        assert np.abs(cosines(x) - np.cos(x)).max() <= 2.0**-51 * (1 + scale)
        x = x.astype("float32")
        assert np.abs(cosines(x) - np.cos(x.astype(float))).max() <= 2.0**-24
