"""Features before private training: filters written out in space, convolutions as sums over pixels,
random cosines.
"""

import math
from functools import partial

import numpy as np
import pytest

from features.random_features import RandomFeatures, cosines
from features.scattering import CHUNK, Scattering
from minidp.backend import to_host
from minidp.errors import DtypeError, ParameterError, ShapeError

PERIODS = range(-4, 5)  # of the image, summed: twice as far as the code goes
SETTINGS = {
    "1 scale": {"size": 8, "scales": 1, "angles": 2, "pad": 0},
    "2 scales": {"size": 4, "scales": 2, "angles": 3, "pad": 2},
    "3 scales": {"size": 14, "scales": 3, "angles": 2, "pad": 1},
}


def _wrapped(pixels, formula):
    """formula(rows, columns) about pixel (0, 0), summed over everything that wraps around to each
    pixel.
    """
    u = np.arange(pixels)
    return sum(formula(u[:, None] + pixels * p, u + pixels * q) for p in PERIODS for q in PERIODS)


def _phi(pixels, width):
    found = _wrapped(pixels, lambda rows, columns: np.exp(-(rows**2 + columns**2) / (2 * width**2)))
    return found / found.sum()


def _psi(pixels, scale, angle, angles):
    """Before the factor c: rows are the second coordinate of u, columns the first."""
    turn, width = math.pi * angle / angles, 0.8 * 2**scale
    frequency = 3 * math.pi / 2 ** (scale + 2)

    def gaussian(rows, columns, frequency):
        along = columns * math.cos(turn) + rows * math.sin(turn)
        across = (rows * math.cos(turn) - columns * math.sin(turn)) * 4 / angles
        return np.exp(-(along**2 + across**2) / (2 * width**2) + 1j * frequency * along)

    envelope = _wrapped(pixels, partial(gaussian, frequency=0))
    wave = _wrapped(pixels, partial(gaussian, frequency=frequency))
    return (wave - envelope * (wave.sum() / envelope.sum())) / 4**scale


def _filters(pixels, scales, angles):
    """{(j, a): psi} in space, with the factor c."""
    found = {(j, a): _psi(pixels, j, a, angles) for j in range(scales) for a in range(angles)}
    left = 1 - np.abs(np.fft.fft2(_phi(pixels, 0.8 * 2 ** (scales - 1)))) ** 2
    energy = sum(np.abs(np.fft.fft2(psi)) ** 2 for psi in found.values())
    ratios = [
        left[v] / ((energy[v] + energy[-v[0], -v[1]]) / 2)
        for v in np.ndindex(pixels, pixels)
        if v != (0, 0)
    ]
    return {key: psi * math.sqrt(min(ratios)) for key, psi in found.items()}


def _convolved(x, kernel):
    return sum(x[u] * np.roll(kernel, u, (0, 1)) for u in np.ndindex(x.shape))


def _scattered(x, size, scales, angles, pad):
    """S of one image, one path at a time; (P, n, n)."""
    framed = np.zeros((size + 2 * pad,) * 2)
    framed[pad : pad + size, pad : pad + size] = x
    psi = _filters(len(framed), scales, angles)

    def average(u, j):
        step = 2 ** (scales - j)
        return _convolved(u, _phi(len(u), 0.4 * step))[::step, ::step]

    def modulus(u, j, key):
        seen = psi[key][:: 2**j, :: 2**j] * 4**j
        step = 2 ** (key[0] - j)
        return np.abs(_convolved(u, seen))[::step, ::step]

    first = {key: modulus(framed, 0, key) for key in psi}
    paths = [average(framed, 0)] + [average(u, j) for (j, _), u in first.items()]
    for j in range(scales):
        for k in range(j + 1, scales):
            paths += [
                average(modulus(first[j, a], j, (k, b)), k)
                for a in range(angles)
                for b in range(angles)
            ]
    return np.stack(paths)


@pytest.mark.parametrize(
    "dtype, tolerance", [("float64", {"rtol": 1e-12, "atol": 1e-13}), ("float32", {"atol": 1e-5})]
)
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_features_equal_sums_over_pixels_one_path_at_a_time(
    setting, dtype, tolerance, backend, rng
):
    x = rng.standard_normal((2, setting["size"], setting["size"]))
    y = Scattering(**setting)(backend.asarray(x, dtype=dtype))
    assert y.dtype == dtype
    for got, image in zip(to_host(y).transpose(0, 3, 1, 2), x):
        np.testing.assert_allclose(got, _scattered(image, **setting), **tolerance)


@pytest.mark.parametrize("size, pad, scales", [(24, 0, 2), (22, 0, 1), (28, 3, 1)])
def test_features_of_an_image_have_their_own_bits_on_the_host(size, pad, scales, rng):
    scattering = Scattering(size, pad=pad, scales=scales, angles=4)
    x = rng.random((101, size, size)).astype("float32")
    whole, order = scattering(x), rng.permutation(101)
    for rows in (order[:1], order[:2], order[: CHUNK + 1], order):
        assert scattering(x[rows]).tobytes() == whole[rows].tobytes()


@pytest.mark.parametrize("dtype, rtol, atol", [("float64", 1e-12, 0), ("float32", 0, 1e-5)])
def test_equals_the_definition(dtype, rtol, atol, backend, rng):
    features, x = RandomFeatures(3, 5, 2.0, seed=4), rng.standard_normal((2, 3))
    again = np.random.default_rng(4)
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


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: Scattering(28, scales=0), ParameterError, "scales=0"),
        (lambda: Scattering(29), ParameterError, "= 33 to be a multiple of"),
        (lambda: RandomFeatures(1, 1, math.inf), ParameterError, "width=inf"),
        (
            lambda: Scattering(28)(np.zeros((2, 28, 28, 1), "float32")),
            ShapeError,
            r"scattering: expected x of shape \(B, 28, 28\), got \(2, 28, 28, 1\)",
        ),
        (lambda: Scattering(28)(np.zeros((2, 28, 28), "uint8")), DtypeError, "scattering"),
        (lambda: RandomFeatures(6, 8, 1.0)(np.zeros((2, 7))), ShapeError, "random features"),
        (lambda: RandomFeatures(6, 8, 1.0)(np.zeros((2, 6), int)), DtypeError, "random features"),
    ],
)
def test_wrong_settings_and_inputs_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
