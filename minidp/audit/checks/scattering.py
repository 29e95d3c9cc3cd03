"""Checks of the scattering features, against filters written out in space and convolutions as sums over pixels."""
import math

import numpy as np

from ...backend import to_host
from ...data.scattering import Scattering, gaussian, morlet
from . import measures, worst

CARD = "data.scattering.Scattering"
EXACT = 1e-13
PERIODS = range(-4, 5)  # of the image, summed: twice as far as the code goes
SETTINGS = (dict(size=8, scales=1, angles=2, pad=0), dict(size=4, scales=2, angles=3, pad=2),
            dict(size=14, scales=3, angles=2, pad=1))


def _wrapped(pixels, formula):
    """formula(rows, columns) about pixel (0, 0), summed over everything that wraps around to each pixel."""
    u = np.arange(pixels)
    return sum(formula(u[:, None] + pixels * p, u + pixels * q) for p in PERIODS for q in PERIODS)


def _phi(pixels, width):
    found = _wrapped(pixels, lambda rows, columns: np.exp(-(rows**2 + columns**2) / (2 * width**2)))
    return found / found.sum()


def _psi(pixels, scale, angle, angles):
    """Before the factor c: rows are the second coordinate of u, columns the first."""
    turn, width, frequency = math.pi * angle / angles, 0.8 * 2**scale, 3 * math.pi / 2 ** (scale + 2)
    along = lambda rows, columns: columns * math.cos(turn) + rows * math.sin(turn)
    across = lambda rows, columns: (rows * math.cos(turn) - columns * math.sin(turn)) * 4 / angles
    g = lambda *u: np.exp(-(along(*u) ** 2 + across(*u) ** 2) / (2 * width**2))
    envelope, wave = _wrapped(pixels, g), _wrapped(pixels, lambda *u: g(*u) * np.exp(1j * frequency * along(*u)))
    return (wave - envelope * (wave.sum() / envelope.sum())) / 4**scale


def _spectrum(v):
    """The Fourier sum at every frequency, as a product with the matrix of its terms."""
    u = np.arange(len(v))
    terms = np.exp(-2j * math.pi / len(v) * (np.outer(u, u) % len(v)))
    return terms @ v @ terms


def _filters(pixels, scales, angles):
    """{(j, a): psi} in space, with the factor c."""
    found = {(j, a): _psi(pixels, j, a, angles) for j in range(scales) for a in range(angles)}
    left = 1 - np.abs(_spectrum(_phi(pixels, 0.8 * 2 ** (scales - 1)))) ** 2
    energy = sum(np.abs(_spectrum(psi)) ** 2 for psi in found.values())
    ratios = [left[v] / ((energy[v] + energy[-v[0], -v[1]]) / 2) for v in np.ndindex(pixels, pixels) if v != (0, 0)]
    return {key: psi * math.sqrt(min(ratios)) for key, psi in found.items()}


def _convolved(x, kernel):
    return sum(x[u] * np.roll(kernel, u, (0, 1)) for u in np.ndindex(x.shape))


def _scattered(x, size, scales, angles, pad):
    """S of one image, one path at a time; (P, n, n)."""
    framed = np.zeros((size + 2 * pad,) * 2)
    framed[pad : pad + size, pad : pad + size] = x
    psi = _filters(len(framed), scales, angles)
    every = lambda step, v: v[::step, ::step]
    average = lambda u, j: every(2 ** (scales - j), _convolved(u, _phi(len(u), 0.8 * 2 ** (scales - 1 - j))))
    seen = lambda key, j: every(2**j, psi[key]) * 4**j
    modulus = lambda u, j, key: every(2 ** (key[0] - j), np.abs(_convolved(u, seen(key, j))))
    first = {key: modulus(framed, 0, key) for key in psi}
    paths = [average(framed, 0)] + [average(u, j) for (j, _), u in first.items()]
    for j in range(scales):
        for k in range(j + 1, scales):
            paths += [average(modulus(first[j, a], j, (k, b)), k) for a in range(angles) for b in range(angles)]
    return np.stack(paths)


@measures(CARD, "F1", "F3", "F5", "F6", method="sums over pixels, one path at a time, 1 to 3 scales", tolerance=EXACT)
def features_equal_sums_over_pixels(bench):
    largest = 0.0
    for setting in SETTINGS:
        x = bench.rng.standard_normal((2, setting["size"], setting["size"]))
        features = to_host(Scattering(**setting)(bench.asarray(x))).transpose(0, 3, 1, 2)
        for got, expected in zip(features, (_scattered(image, **setting) for image in x)):
            if got.shape != expected.shape:
                return math.inf
            largest = max(largest, *(worst(path, other) for path, other in zip(got, expected)))
    return largest


@measures(CARD, "F1", "F3", "F6", method="one lit pixel after another: phi as far from it", tolerance=EXACT)
def a_lit_pixel_gives_the_average_about_it(bench):
    size, pad, scales = 6, 5, 2
    expected, phi = np.zeros((size * size, 4, 4)), _phi(16, 1.6)
    for number, (row, column) in enumerate(np.ndindex(size, size)):
        for n, m in np.ndindex(4, 4):
            expected[number, n, m] = phi[4 * n - row - pad, 4 * m - column - pad]
    lit = bench.asarray(np.eye(size * size).reshape(-1, size, size))
    return worst(Scattering(size, scales=scales, angles=1, pad=pad)(lit)[..., 0], expected)


@measures(CARD, "F2", method="the formula in space, 8 angles on 32 by 32 pixels", tolerance=EXACT)
def wavelets_equal_their_formula(bench):
    return max(worst(morlet(32, j, a, 8), _psi(32, j, a, 8)) for j in range(2) for a in range(8))


@measures(CARD, "F3", method="the formula in space; its sum", tolerance=EXACT)
def the_average_equals_its_formula(bench):
    rows = [(gaussian(pixels, width), _phi(pixels, width)) for pixels, width in ((32, 1.6), (16, 0.8), (16, 3.2))]
    return max(max(worst(row[:, None] * row, phi), abs(row.sum() - 1)) for row, phi in rows)


@measures(CARD, "F2", "F4", method="Fourier sums of the filters in space", tolerance=EXACT)
def filters_are_scaled_as_far_as_energy_allows(bench):
    largest = 0.0
    for size, scales, angles in ((8, 1, 2), (8, 2, 3), (16, 3, 4)):
        scattering, psi = Scattering(size, scales=scales, angles=angles, pad=0), _filters(size, scales, angles)
        for j in range(scales):
            got = scattering.filters(j, 0, np.float64, np)
            largest = max(largest, *(worst(got[a], _spectrum(psi[j, a])) for a in range(angles)))
    return largest


@measures(CARD, "F4", method="energy over all frequencies: at most 1, and 1 at one of them", tolerance=EXACT)
def no_frequency_gains_energy(bench):
    scattering, total = Scattering(28), np.abs(_spectrum(_phi(32, 1.6))) ** 2
    for j in range(2):
        energy = (scattering.filters(j, 0, np.float64, np) ** 2).sum(axis=0)
        total += (energy + np.array([[energy[-v, -w] for w in range(32)] for v in range(32)])) / 2
    return abs(np.delete(total, 0).max() - 1)
