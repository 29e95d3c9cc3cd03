"""Scattering: fixed features of an image from wavelets, moduli and averages; nothing in it is
learned.

The filters depend on nothing and an image's features on that image alone, so that computing them is
preprocessing and costs no privacy.
"""

import math

import numpy as np

from minidp.backend import namespace_of
from minidp.errors import ParameterError
from minidp.util import validate

# of the finest wavelet: pixels, radians a pixel, ratio times L
WIDTH, FREQUENCY, SLANT = (
    0.8,
    0.75 * math.pi,
    4.0,
)
PERIODS = 2  # of the padded image, summed on either side; beyond, the filters are below float32
CHUNK = 16  # images transformed together: what lies between two transforms stays in a core's cache


class Scattering:
    r"""Wavelet scattering of square grey images to second order, with Morlet wavelets of J scales
    and L angles.

    Shapes
        x (B, H, H) float32 or float64
        S (B, n, n, P), of x's dtype; n = (H + 2 pad) / 2^J positions a side, P = 1 + J L + L^2 J (J
        - 1) / 2 paths in the order: x itself; (j, a) for every scale j and angle a; (j, k, a, b)
        for every k > j

    Forward, with * circular convolution, v^m the pixels whose two indices are multiples of m
        [F1]  x between `pad` zeros on each edge, (B, N, N)
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
        empty result. Wavelets seen by pixels 2^j apart are scaled by 4^j, so that sums stand for
        the same integrals.

    Raises
        ParameterError   size, scales, angles or pad out of range; 2^scales does not divide the
                         padded side
        ShapeError       x is not (B, H, H)
        DtypeError       x is not floating point
    """

    def __init__(self, size, *, scales=2, angles=8, pad=2):
        """size H of the images in pixels, scales J, angles L, pad: zeros on each edge."""
        validate.count(1, size=size, scales=scales, angles=angles)
        validate.count(pad=pad)
        self.size, self.scales, self.angles, self.pad = size, scales, angles, pad
        self.side = size + 2 * pad
        if self.side % 2**scales:
            raise ParameterError(
                f"expected size + 2 pad = {self.side} to be a multiple of 2^scales = {2**scales}"
            )
        paths = 1 + scales * angles + angles**2 * scales * (scales - 1) // 2
        self.output_shape = (self.side >> scales, self.side >> scales, paths)
        self._phi_width = WIDTH * 2 ** (scales - 1)
        self._filters = {
            # transforms of the wavelets of scale k seen by pixels 2^j apart
            (k, j): _folded(psi.__getitem__, self.side, 2**j) * 4**j
            for k, psi in enumerate(self._wavelets())
            for j in range(k + 1)
        }
        self._averages = [self._average(j) for j in range(scales)]

    def _wavelets(self):
        """[(L, N, N)] for each scale: the wavelets' transforms, real since the wavelets are
        symmetric about 0.
        """
        found = np.array(
            [
                [morlet(self.side, j, a, self.angles) for a in range(self.angles)]
                for j in range(self.scales)
            ]
        )
        found = np.fft.fft2(found).real
        row = np.abs(np.fft.fft(gaussian(self.side, self._phi_width))) ** 2
        energy = (found**2).sum(axis=(0, 1))
        energy = (energy + np.roll(energy[::-1, ::-1], 1, (0, 1))) / 2
        left = 1 - row[:, None] * row
        positive = energy > 0
        positive[0, 0] = False
        return found * math.sqrt((left[positive] / energy[positive]).min())  # [F4]

    def _average(self, j):
        """(n, N / 2^j): phi along one axis at the n sampled positions, for pixels 2^j apart."""
        pixels, n = self.side >> j, self.output_shape[0]
        phi = gaussian(pixels, self._phi_width / 2**j)  # [F3]
        return np.stack([np.roll(phi, i * (pixels // n)) for i in range(n)])

    def __call__(self, x):
        """S, (B, n, n, P)."""
        validate.shape("scattering", "x", x, ("B", self.size, self.size))
        validate.inexact("scattering", x=x)
        xp = namespace_of(x)
        filters = {at: xp.asarray(a, dtype=x.dtype) for at, a in self._filters.items()}
        averages = [xp.asarray(a, dtype=x.dtype) for a in self._averages]
        result = xp.empty((x.shape[0], *self.output_shape), dtype=x.dtype)
        for start in range(0, x.shape[0], CHUNK):
            part = x[start : start + CHUNK]
            result[start : start + CHUNK] = self._transform(part, filters, averages).transpose(
                0, 2, 3, 1
            )
        return result

    def mirrored(self, features):
        """S (B, n, n, P) of the images x(rows, -columns), from S of the images: positions and
        angles are in another order.
        """

        def back(numbers):
            return -np.arange(numbers) % numbers

        angles, blocks = back(self.angles), np.arange(self.scales * (self.scales - 1) // 2)
        first = self.angles * np.arange(self.scales)[:, None] + angles
        second = self.angles**2 * blocks[:, None, None] + self.angles * angles[:, None] + angles
        paths = np.concatenate([[0], 1 + first.ravel(), 1 + first.size + second.ravel()])
        xp = namespace_of(features)
        return features[:, :, xp.asarray(back(self.output_shape[1]))][..., xp.asarray(paths)]

    def _transform(self, x, filters, averages):
        """(B, P, n, n) of one part."""
        xp = namespace_of(x)
        x = xp.pad(x, ((0, 0), (self.pad, self.pad), (self.pad, self.pad)))[:, None]  # [F1]

        def average(u, j):
            return averages[j] @ u @ averages[j].T  # [F6]

        first = [_modulus(xp.fft.fft2(x), filters[j, 0], 2**j) for j in range(self.scales)]  # [F5]
        paths = [average(x, 0)] + [average(u, j) for j, u in enumerate(first)]
        for j, u in enumerate(first[:-1]):
            transform = xp.fft.fft2(u)
            for k in range(j + 1, self.scales):
                paths.append(average(_modulus(transform, filters[k, j], 2 ** (k - j)), k))  # [F5]
        return xp.concatenate(paths, axis=1)


def _modulus(transform, filters, step):
    """|u * psi| at each step-th pixel, (B, C L, M / step, M / step), from u's transform (B, C, M,
    M).
    """
    xp = namespace_of(transform, filters)
    product = _folded(
        lambda part: transform[:, :, None][part] * filters[part], filters.shape[-1], step
    )
    batch, channels, angles, pixels, _ = product.shape
    return xp.abs(xp.fft.ifft2(product.reshape((batch, channels * angles, pixels, pixels))))


def _folded(at, side, step):
    """The transform of each step-th pixel of what has the transform `at`: the mean over frequencies
    that become one.

    at: function of an index (..., rows, columns), so that each quarter is made as it is added.
    """
    pixels = side // step
    parts = [slice(i * pixels, (i + 1) * pixels) for i in range(step)]
    total = None
    for rows in parts:
        for columns in parts:
            part = at((..., rows, columns))
            total = part if total is None else total + part
    return total if step == 1 else total / step**2


def gaussian(pixels, width):
    """(pixels,) a Gaussian about 0 of the given deviation (pixels), wrapped around, with sum 1."""
    u = _positions(pixels)
    phi = np.exp(-(u**2) / (2 * width**2)).sum(axis=0)
    return phi / phi.sum()


def morlet(pixels, scale, angle, angles):
    """(pixels, pixels) complex, rows first: psi about pixel (0, 0), wrapped around, before the
    factor c.
    """
    turn, width = math.pi * angle / angles, WIDTH * 2**scale
    u = _positions(pixels)
    rows, columns = u[:, None, :, None], u[None, :, None, :]
    along = math.cos(turn) * columns + math.sin(turn) * rows
    across = math.cos(turn) * rows - math.sin(turn) * columns
    envelope = np.exp(-(along**2 + (SLANT / angles * across) ** 2) / (2 * width**2))
    wave = (envelope * np.exp(1j * FREQUENCY / 2**scale * along)).sum(axis=(0, 1))
    envelope = envelope.sum(axis=(0, 1))
    beta = wave.sum() / envelope.sum()
    return (wave - beta * envelope) / 4**scale  # [F2]


def _positions(pixels):
    """(periods, pixels): all u that wrap around to each pixel."""
    return np.arange(-PERIODS, PERIODS + 1)[:, None] * pixels + np.arange(pixels)
