"""Scattering: fixed features of an image from wavelets, moduli and averages; nothing in it is
learned.

The filters depend on nothing and an image's features on that image alone, so that computing them is
preprocessing and costs no privacy.
"""

import math
from itertools import product

import numpy as np

from minidp.backend import namespace_of

ANGLES = 8
PATHS = 1 + 2 * ANGLES + ANGLES**2
# of the finest wavelet: pixels, radians a pixel, ratio times L
WIDTH, FREQUENCY, SLANT = (
    0.8,
    0.75 * math.pi,
    4.0,
)
PERIODS = 2  # of the image, summed on either side; beyond, the filters are below float32
CHUNK = 16  # images transformed together: what lies between two transforms stays in a core's cache


class Scattering:
    r"""Wavelet scattering of square grey images to second order, with Morlet wavelets of J = 2
    scales and L = 8 angles.

    Shapes
        x (B, N, N) float32 or float64, N a multiple of 4
        S (B, n, n, P), of x's dtype; n = N / 2^J positions a side, P = 81 paths in the order: x
        itself; (j, a) for every scale j and angle a; (0, 1, a, b)

    Forward, with * circular convolution, v^m the pixels whose two indices are multiples of m
        [F2]  psi_ja(u) = c 4^-j (exp(i f_ja . u) - beta) g(u), g(u) = exp(-(along^2 + (across
              4/L)^2) / (2 w^2)), along and across u turned by pi a / L, w = 0.8 2^j, |f_ja| = 3 pi
              / 2^(j+2) along, beta such that sum_u psi = 0
        [F3]  phi(u) = d exp(-|u|^2 / (2 w^2)), w = 0.8 2^(J-1), d such that sum_u phi = 1
        [F4]  c the largest for which A(v) = |phi^(v)|^2 + sum_ja (|psi_ja^(v)|^2 + |psi_ja^(-v)|^2)
              / 2 is at most 1 at every frequency v != 0
        [F5]  U_ja = |x * psi_ja| v^(2^j),   U_jakb = |U_ja * psi_kb| v^(2^(k-j)), psi_kb seen by
              pixels 2^j apart
        [F6]  S = (U * phi) v^(2^(J-j)), phi over the pixels of U, which are 2^j apart, with its sum
              there 1

    Source
        [F2]  Bruna and Mallat 2013, arXiv:1203.1513, section 2.1, in two dimensions
        [F4]  Mallat 2012, arXiv:1101.2286: then no layer increases energy, and the norm of a
              difference of images bounds that of their features
        [F5]  Bruna and Mallat 2013, arXiv:1203.1513, section 2.2

    Guarantees
        Example b of the result depends on example b of the input only. An empty batch gives an
        empty result. Averages over pixels 2^j apart have the sum 1.
    """

    def __init__(self, size):
        """size N of the images in pixels."""
        side = size // 4
        self.output_shape = (side, side, PATHS)
        self._filters = wavelets(size)
        self._averages = [averages(size, j, side) for j in (0, 1)]

    def __call__(self, x):
        """S, (B, n, n, P)."""
        xp = namespace_of(x)
        filters = xp.asarray(self._filters, dtype=x.dtype)
        averages = [xp.asarray(a, dtype=x.dtype) for a in self._averages]
        result = xp.empty((x.shape[0], *self.output_shape), dtype=x.dtype)
        for start in range(0, x.shape[0], CHUNK):
            part = x[start : start + CHUNK, None]
            paths = transform(part, filters, averages)
            result[start : start + CHUNK] = paths.transpose(0, 2, 3, 1)
        return result

    def mirrored(self, features):
        """S (B, n, n, P) of the images x(rows, -columns), from S of the images: positions and
        angles are in another order.
        """

        def back(numbers):
            return -np.arange(numbers) % numbers

        angles = back(ANGLES)
        first = ANGLES * np.arange(2)[:, None] + angles
        second = ANGLES * angles[:, None] + angles
        paths = np.concatenate([[0], 1 + first.ravel(), 1 + first.size + second.ravel()])
        xp = namespace_of(features)
        return features[:, :, xp.asarray(back(self.output_shape[1]))][..., xp.asarray(paths)]


def transform(x, filters, averages):
    """(B, P, n, n) of one part (B, 1, N, N)."""
    xp = namespace_of(x)
    whole = xp.fft.fft2(x)
    fine, coarse = modulus(whole, filters[0], 1), modulus(whole, filters[1], 2)  # [F5]
    second = modulus(xp.fft.fft2(fine), filters[1], 2)  # [F5]
    paths = [(x, 0), (fine, 0), (coarse, 1), (second, 1)]
    return xp.concatenate([averages[j] @ u @ averages[j].T for u, j in paths], axis=1)  # [F6]


def modulus(transform, filters, step):
    """|u * psi| at each step-th pixel, (B, C L, M / step, M / step), from u's transform (B, C, M,
    M).
    """
    xp = namespace_of(transform, filters)
    pixels = filters.shape[-1] // step
    parts = [slice(i * pixels, (i + 1) * pixels) for i in range(step)]
    # each step-th pixel has the mean over the frequencies that become one, a part at a time
    total = None
    for rows, columns in product(parts, parts):
        part = transform[:, :, None, rows, columns] * filters[:, rows, columns]
        total = part if total is None else total + part
    if step > 1:
        total = total / step**2
    batch, channels, angles, pixels, _ = total.shape
    return xp.abs(xp.fft.ifft2(total.reshape((batch, channels * angles, pixels, pixels))))


def wavelets(pixels):
    """(2, L, N, N): the wavelets' transforms, a scale each, real since the wavelets are symmetric
    about 0.
    """
    found = [[morlet(pixels, j, a) for a in range(ANGLES)] for j in (0, 1)]
    found = np.fft.fft2(np.array(found)).real
    row = np.abs(np.fft.fft(gaussian(pixels, 2 * WIDTH))) ** 2
    energy = (found**2).sum(axis=(0, 1))
    energy = (energy + np.roll(energy[::-1, ::-1], 1, (0, 1))) / 2
    left = 1 - row[:, None] * row
    positive = energy > 0
    positive[0, 0] = False
    return found * math.sqrt((left[positive] / energy[positive]).min())  # [F4]


def averages(pixels, j, n):
    """(n, N / 2^j): phi along one axis at the n sampled positions, for pixels 2^j apart."""
    pixels = pixels >> j
    phi = gaussian(pixels, WIDTH * 2 ** (1 - j))  # [F3]
    return np.stack([np.roll(phi, i * (pixels // n)) for i in range(n)])


def gaussian(pixels, width):
    """(pixels,) a Gaussian about 0 of the given deviation (pixels), wrapped around, with sum 1."""
    u = _positions(pixels)
    phi = np.exp(-(u**2) / (2 * width**2)).sum(axis=0)
    return phi / phi.sum()


def morlet(pixels, scale, angle):
    """(pixels, pixels) complex, rows first: psi about pixel (0, 0), wrapped around, before the
    factor c.
    """
    turn, width = math.pi * angle / ANGLES, WIDTH * 2**scale
    u = _positions(pixels)
    rows, columns = u[:, None, :, None], u[None, :, None, :]
    along = math.cos(turn) * columns + math.sin(turn) * rows
    across = math.cos(turn) * rows - math.sin(turn) * columns
    envelope = np.exp(-(along**2 + (SLANT / ANGLES * across) ** 2) / (2 * width**2))
    wave = (envelope * np.exp(1j * FREQUENCY / 2**scale * along)).sum(axis=(0, 1))
    envelope = envelope.sum(axis=(0, 1))
    beta = wave.sum() / envelope.sum()
    return (wave - beta * envelope) / 4**scale  # [F2]


def _positions(pixels):
    """(periods, pixels): all u that wrap around to each pixel."""
    return np.arange(-PERIODS, PERIODS + 1)[:, None] * pixels + np.arange(pixels)
