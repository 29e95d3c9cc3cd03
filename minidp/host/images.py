"""Numba kernels for images, float32 on the host: the same bits as their definitions in `nn`.

Work goes along runs of numbers that lie together in memory. Cutting patches has no twin: NumPy
copies runs of bytes faster. Nor has a convolution without patches: written as loops it takes ten
times as long as cutting patches and their product.
"""

import numpy as np

from .jit import njit

DEAD = np.uint8(255)  # the place of a maximum that moves with no pixel
_options = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**_options)
def fold(patches, dx, window):
    """nn.window.Window.fold: patches (B, H', W', kh, kw, C) to dx (B, H, W, C), which is written.

    window: sizes, strides, rows of padding above, columns on the left, H', W'
    """
    tall, wide, down, across, top, left, rows, columns = window
    examples, height, width, channels = dx.shape
    images = dx.reshape((examples, height, width * channels))
    runs = patches.reshape((examples, rows, columns, tall, wide * channels))
    dx[:] = 0
    for b in range(examples):
        for k in range(tall):
            for i in range(rows):
                y = i * down + k - top
                if y < 0 or y >= height:
                    continue
                for back in range(columns):  # a pixel's places in its windows rise
                    j = columns - 1 - back
                    start = (j * across - left) * channels
                    low = max(0, -start)
                    high = min(wide * channels, width * channels - start)
                    source, target = runs[b, i, j, k, low:high], images[b, y, start + low :]
                    for n in range(source.size):
                        target[n] += source[n]


@njit(**_options)
def pool(x, y, place, window, relu):
    """nn.MaxPool2D [F1] of images x that were padded, and of their positive parts if `relu`.

    y, place (B, H', W', C) are written: the maximum, and which place of its window has it first;
    DEAD if that is not a number, or if a ReLU does not move with it.   window: sizes, strides
    """
    tall, wide, down, across = window
    examples, height, width, channels = x.shape
    rows, columns = y.shape[1:3]
    runs, size = (1, columns * channels) if across == 1 else (columns, channels)
    images = x.reshape((examples, height, width * channels))
    shape = examples, rows, runs, size
    maxima, places = y.reshape(shape), place.reshape(shape)
    floor = np.float32(0.0 if relu else -np.inf)
    for b in range(examples):
        for i in range(rows):
            for j in range(runs):
                most, at = maxima[b, i, j], places[b, i, j]
                most[:] = -np.inf
                at[:] = 0
                for k in range(tall):
                    for l in range(wide):
                        start = (j * across + l) * channels
                        pixels, here = images[b, i * down + k, start:], np.uint8(k * wide + l)
                        for c in range(most.size):
                            larger = pixels[c] > most[c] or pixels[c] != pixels[c]
                            most[c] = pixels[c] if larger else most[c]
                            at[c] = here if larger else at[c]
                for c in range(most.size):
                    alive = most[c] > floor or most[c] == floor and not relu
                    at[c] = at[c] if alive else DEAD
                    most[c] = floor if most[c] <= floor else most[c]


@njit(**_options)
def pool_gradient(dy, place, dx, window):
    """nn.MaxPool2D [B1] by the places that `pool` found: dy, place (B, H', W', C) to dx, of the
    padded images, which is written.
    """
    tall, wide, down, across = window
    examples, height, width, channels = dx.shape
    rows, columns = dy.shape[1:3]
    runs, size = (1, columns * channels) if across == 1 else (columns, channels)
    images = dx.reshape((examples, height, width * channels))
    shape = examples, rows, runs, size
    gradients, places = dy.reshape(shape), place.reshape(shape)
    for b in range(examples):
        images[b] = 0
        for k in range(tall):
            for l in range(wide):
                here = np.uint8(k * wide + l)
                for i in range(rows):
                    for j in range(runs):
                        start = (j * across + l) * channels
                        target = images[b, i * down + k, start:]
                        gradient, at = gradients[b, i, j], places[b, i, j]
                        for c in range(gradient.size):
                            target[c] += gradient[c] if at[c] == here else np.float32(0)
