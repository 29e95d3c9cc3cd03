"""Numba kernels for float32 on the host: twins of definitions in `grads` and `nn.pool`, each measured against them.

NumPy goes three times over every explicit gradient, and its product of a row and a number is four times as slow as
memory. Here each gradient is formed and squared in one pass, and added to the sum in another, with the
interpreter's lock released. Sums may be taken in any order (`reassoc`), so a chain of roundings is as long as a
run of squares, whatever the compiler does; numbers that are not finite stay what they are.
"""
import numpy as np
from numba import njit

from .gram import RUN

STRETCH = 4096  # numbers of the sum that stay in the nearest cache while all examples are added to them

_options = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}


@njit(**_options)
def form_outer(a, d, g, sq):
    r"""Materialise outer products and square them.

    Shapes
        a (B, I)   d (B, O)   g (B, I, O) and sq (B,) are written

    Forward
        [F1]  g_bio = a_bi d_bo
        [N1]  sq_b = sum_io g_bio^2, runs of RUN in float32, their sum in float64

    Source
        [F1]  the definition of grads.Outer [F1]
    """
    for b in range(g.shape[0]):
        total = 0.0
        for i in range(g.shape[1]):
            factor = a[b, i]
            for start in range(0, g.shape[2], RUN):
                source, target = d[b, start : start + RUN], g[b, i, start : start + RUN]
                run = np.float32(0)
                for k in range(target.size):
                    value = factor * source[k]  # [F1]
                    target[k] = value
                    run += value * value  # [N1]
                total += run
        sq[b] = total


@njit(**_options)
def add_weighted(total, w, g):
    r"""Add gradients to a sum, without those of weight 0, which may not be finite.

    Shapes
        total (P,), changed in place   w (B,)   g (B, P)

    Forward
        [P1]  total_p += sum_b w_b g_bp

    Source
        [P1]  the definition of grads.Explicit [P1]
    """
    for start in range(0, total.size, STRETCH):
        target = total[start : start + STRETCH]
        for b in range(g.shape[0]):
            weight = w[b]
            if weight != 0:
                source = g[b, start : start + STRETCH]
                for k in range(target.size):
                    target[k] += weight * source[k]  # [P1]


@njit(**_options)
def take_by_maxima(padded, y, rest, dx, tall, wide, down, across):
    r"""Give the gradient of each window's maximum to the first pixel that equals it.

    Shapes
        padded (B, H, W, C), the images   y (B, H', W', C), their windows' maxima   windows of (tall, wide), at steps
        of (down, across)   rest (B, H', W', C), the gradient of y, is used up   dx (B, H, W, C), zeros, is written

    Forward
        [B1]  dx_bpc = sum over the windows t whose first maximum is p of rest_btc

    Source
        [B1]  the definition of nn.pool.MaxPool2D [B1], in the same order of additions
    """
    examples, rows, columns, channels = y.shape
    runs, size = (1, columns * channels) if across == 1 else (columns, channels)  # that lie together in memory
    width = padded.shape[2] * channels
    images, moved = padded.reshape((examples, padded.shape[1], width)), dx.reshape((examples, dx.shape[1], width))
    maxima, gradient = y.reshape((examples, rows, runs, size)), rest.reshape((examples, rows, runs, size))
    for b in range(examples):
        for k in range(tall):
            for l in range(wide):
                for i in range(rows):
                    for j in range(runs):
                        start = (j * across + l) * channels
                        pixels = images[b, i * down + k, start : start + size]
                        target = moved[b, i * down + k, start : start + size]
                        largest, left = maxima[b, i, j], gradient[b, i, j]
                        for c in range(size):
                            taken = left[c] * np.float32(pixels[c] == largest[c])
                            left[c] -= taken
                            target[c] += taken  # [B1]
