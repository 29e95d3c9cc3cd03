"""Numba kernels for images, float32 on the host: twins of `nn.window`, with the same bits.

Work goes along runs of numbers that lie together in memory. Long runs of patches have no twin:
NumPy copies them as fast. Nor has a convolution without patches: written as loops it takes ten
times as long as cutting patches and their product.
"""

import numpy as np

from ..host.jit import compiled
from .inlined import inlined

ONE, TWO, THREE, FOUR = np.arange(1, 5, dtype=np.uintp)  # which cannot count from the end


@inlined
def _eight(x, start, y, to):
    """Copy eight numbers, in one instruction."""
    a, b, c, d = x[start], x[start + ONE], x[start + TWO], x[start + THREE]
    start += FOUR
    e, f, g, h = x[start], x[start + ONE], x[start + TWO], x[start + THREE]
    y[to], y[to + ONE], y[to + TWO], y[to + THREE] = a, b, c, d
    to += FOUR
    y[to], y[to + ONE], y[to + TWO], y[to + THREE] = e, f, g, h


@compiled
def short_runs(x, patches, window):
    """nn.window.Patches.cut: x (B, H, W, C), padded, to patches (B, H', W', kh, kw C)."""
    down, across = window[2:4]
    examples, rows, columns, tall, run = patches.shape
    channels = x.shape[3]
    images = x.reshape((examples, x.shape[1], x.shape[2] * channels))
    last = np.uintp(max(run - 8, 0))
    for b in range(examples):
        for i in range(rows):
            for k in range(tall):
                source = images[b, i * down + k]
                for j in range(columns):
                    target, start = patches[b, i, j, k], np.uintp(j * across * channels)
                    if run < 8:
                        for n in range(run):
                            target[n] = source[start + np.uintp(n)]
                    else:
                        _eight(source, start + last, target, last)
                        for n in range(np.uintp(0), last, np.uintp(8)):
                            _eight(source, start + n, target, n)


@compiled
def fold(patches, dx, window):
    """Window.fold: patches (B, H', W', kh, kw, C) to dx (B, H, W, C), which is padded.

    window: sizes, strides
    """
    examples, rows, columns, tall, wide, channels = patches.shape
    down, across = window[2:4]
    runs = patches.reshape((examples, rows, columns, tall, wide * channels))
    images = dx.reshape((examples, dx.shape[1], dx.shape[2] * channels))
    for b in range(examples):
        images[b] = 0
        for k in range(tall):
            for i in range(rows):
                for j in range(columns - 1, -1, -1):  # a pixel's places in its windows rise
                    start, source = j * across * channels, runs[b, i, j, k]
                    target = images[b, i * down + k, start : start + source.size]
                    for n in range(source.size):
                        target[n] += source[n]


@compiled
def pool(x, y, place, window):
    """Window.maxima: x (B, H, W, C), padded, to y and place (B, H', W', C)."""
    tall, wide, down, across = window[:4]
    examples, rows, columns, channels = y.shape
    # what lies together in memory
    runs, size = (1, columns * channels) if across == 1 else (columns, channels)
    images = x.reshape((examples, x.shape[1], x.shape[2] * channels))
    maxima = y.reshape((examples, rows, runs, size))
    places = place.reshape((examples, rows, runs, size))
    for b in range(examples):
        for i in range(rows):
            for j in range(runs):
                most, at = maxima[b, i, j], places[b, i, j]
                first = images[b, i * down, j * across * channels :]
                for c in range(size):
                    most[c], at[c] = first[c], 0
                for number in range(1, tall * wide):
                    (k, l), here = divmod(number, wide), np.uint16(number)
                    start = (j * across + l) * channels
                    pixels = images[b, i * down + k, start : start + size]
                    for c in range(size):
                        larger = pixels[c] > most[c] or pixels[c] != pixels[c]
                        most[c] = pixels[c] if larger else most[c]
                        at[c] += np.uint16(larger) * (here - at[c])  # a branch has no vectors


@compiled
def pool_gradient(dy, place, dx, window):
    """Window.spread: dy, place (B, H', W', C) to dx (B, H, W, C), which is padded."""
    tall, wide, down, across = window[:4]
    examples, rows, columns, channels = dy.shape
    runs, size = (1, columns * channels) if across == 1 else (columns, channels)
    images = dx.reshape((examples, dx.shape[1], dx.shape[2] * channels))
    gradients = dy.reshape((examples, rows, runs, size))
    places = place.reshape((examples, rows, runs, size))
    for b in range(examples):
        images[b] = 0
        for number in range(tall * wide):
            k, l = divmod(number, wide)
            for i in range(rows):
                for j in range(runs):
                    start = (j * across + l) * channels
                    target = images[b, i * down + k, start : start + size]
                    gradient, at = gradients[b, i, j], places[b, i, j]
                    for c in range(size):
                        target[c] += gradient[c] if at[c] == number else np.float32(0)
